-- The bench's target: a loop of Lua calls a few frames deep, interpreted.
jit.off()
local function work(n)
  local x = 0.5
  for i = 1, n do x = (x * x + i) % 1000.25 end
  return x
end
local function third(n) return work(n) + 1 end
local function second(n) return third(n) + 1 end
local function first(n) return second(n) + 1 end
local stop = os.time() + tonumber(arg[1])
while os.time() < stop do first(2000) end

-- What a program may show of a VM: traces of loops, calls and recursion with side traces, coroutines, garbage,
-- errors, functions of all kinds.
-- Usage: luajit loops.lua SECONDS STOP: it ends after that time or when there is a file STOP.
local kept = {}
for i = 1, 5 do
  kept[i] = coroutine.create(function() coroutine.yield() end)
  coroutine.resume(kept[i])
end
local function fib(n) if n < 2 then return n end return fib(n - 1) + fib(n - 2) end
local function join(t)
  local s = {}
  for i = 1, #t do s[#s + 1] = tostring(t[i]) .. "x" end
  return table.concat(s)
end
local Class = {}
Class.__index = Class
function Class.new(x) return setmetatable({ x = x }, Class) end
function Class:add(n) self.x = self.x + n return self end
local count = coroutine.wrap(function() local i = 0 while true do i = i + 1 coroutine.yield(i) end end)
io.write("ready\n") io.flush()
local stop, object = os.time() + tonumber(arg[1]), Class.new(0)
while os.time() < stop and not io.open(arg[2] or "") do
  fib(18)
  for i = 1, 2000 do object:add(i) end
  local t = {}
  for i = 1, 1000 do t[i] = i * 2.5 end
  table.sort(t, function(a, b) return a > b end)
  for i = 1, 100 do join({ i, i + 1, 3, 4 }) count() end
  pcall(error, "x")
end

-- A recursion of 12,000 frames, busy at its end.
jit.off()
local function bottom()
  local x = 0
  for i = 1, 1e6 do x = x + i % 7 end
  return x
end
local function deep(n)
  if n == 0 then return bottom() + 1 end
  return deep(n - 1) + 1
end
io.write("ready\n") io.flush()
local stop = os.time() + tonumber(arg[1])
while os.time() < stop do deep(12000) end

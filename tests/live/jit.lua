-- Compiled code below a known stack: the loop in inner becomes a trace.
function inner(n)
  local x = 0.5
  for i = 1, n do
    x = (x * x + i) % 1000.25     -- 5
  end
  return x
end
function outer(n)
  local x = inner(n)              -- 10
  return x
end
io.write("ready\n") io.flush()
local stop = os.time() + tonumber(arg[1])
while os.time() < stop do
  outer(3e6)                      -- 16
end

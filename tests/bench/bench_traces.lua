-- The bench's target with many traces: so many functions with a loop, each from a chunk of its own and
-- compiled, that run one after the other for as long; or, without traces, the same interpreted.
-- Usage: luajit bench_traces.lua TRACES [interpreted]
-- Prints "ready" and the number of its traces, and runs until it is killed.
local count, interpreted = tonumber(arg[1]), arg[2] == "interpreted"
if interpreted then jit.off() end
-- The loops are compiled, what calls them is not.
jit.off(true, true)
jit.opt.start("maxtrace=60000", "sizemcode=256", "maxmcode=65536")

local text = [[
local t = ...
local function leaf(x)
  if t[x % 8 + 1] > 3 then
    return 1
  end
  return 2
end
local function middle(x)
  local a = leaf(x)
  return a + x % 3
end
return function(n)
  local sum = 0
  for i = 1, n do
    local m = middle(i)
    sum = sum + m
  end
  return sum
end
]]
local loops = {}
for i = 1, count do loops[i] = loadstring(text, "@loop" .. i)({ 4, 5, 6, 7, 8, 9, 10, 11 }) end
for i = 1, count do
  -- Counters are shared: each function begins with new ones, so that none but its loop gets hot.
  jit.opt.start("hotloop=10")
  loops[i](50)
end
local traces, traceinfo = 0, require("jit.util").traceinfo
for number = 1, 2 * count do
  if traceinfo(number) then traces = traces + 1 end
end
io.write("ready ", traces, "\n") io.flush()
local turns = interpreted and 20 or 400
local function round()
  for i = 1, count do loops[i](turns) end
end
while true do round() end

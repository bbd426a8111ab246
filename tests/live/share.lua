-- burn_heavy does three times the work of burn_light, and both clock themselves.
-- Usage: luajit share.lua SECONDS [STOP]: it ends after that time or when there is a file STOP. Four times a
-- second and at the end it prints TRUTH, burn_heavy's percentage of the time in both so far, and the seconds in each.
jit.off()
local clock = os.clock
local spent = { heavy = 0, light = 0 }
function burn_heavy(n)
  local x = 0.5
  for i = 1, 3 * n do x = (x * x + i) % 1000.25 end
  return x
end
function burn_light(n)
  local x = 0.5
  for i = 1, n do x = (x * x + i) % 1000.25 end
  return x
end
local function burn_round(n)
  local t0 = clock()
  burn_heavy(n)
  local t1 = clock()
  burn_light(n)
  local t2 = clock()
  spent.heavy = spent.heavy + (t1 - t0)
  spent.light = spent.light + (t2 - t1)
end
io.write("ready\n") io.flush()
local stop = os.time() + tonumber(arg[1])
-- A thread that is to stop often does so only in the next system call, as the clock is one: so some
-- milliseconds lie between them.
local function tell()
  io.write(string.format("TRUTH %.3f %.6f %.6f\n", 100 * spent.heavy / (spent.heavy + spent.light),
    spent.heavy, spent.light))
  io.flush()
end
local told = clock()
while os.time() < stop and not io.open(arg[2] or "") do
  burn_round(100000)
  if clock() - told > 0.25 then
    tell()
    told = clock()
  end
end
tell()

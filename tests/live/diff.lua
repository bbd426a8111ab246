-- A program of known work, which can be made slower in one function.
-- Usage: luajit diff.lua SECONDS SEED [slow] [jit=off]
-- A round has 100 units of work, and with "slow" 5 more, all of them in encode(): that takes the program
-- 5 % longer, and encode() has 10 of 105 instead of 5 of 100.
local seconds, seed = tonumber(arg[1]), tonumber(arg[2])
local options = {}
for i = 3, #arg do options[arg[i]] = true end
if options["jit=off"] then jit.off() end
math.randomseed(seed)
local random = math.random

-- So many steps are a unit. Each function has a loop of its own, so that shares of the work are shares
-- of the time.
local UNIT = options["jit=off"] and 80 or 200
local ENCODE = options["slow"] and 10 or 5

local function escape(units)
  local x = 0.5
  for i = 1, units * UNIT do x = (x * x + i) % 1000.25 end
  return x
end
local function read()
  local x = 0.5
  for i = 1, 12 * UNIT do x = (x * x + i) % 1000.25 end
  return x
end
local function parse()
  local x = 0.5
  for i = 1, 25 * UNIT do x = (x * x + i) % 1000.25 end
  return x
end
local function route()
  local x = 0.5
  for i = 1, 8 * UNIT do x = (x * x + i) % 1000.25 end
  return x
end
local function render()
  local x = 0.5
  for i = 1, 30 * UNIT do x = (x * x + i) % 1000.25 end
  return x + escape(10)
end
local function encode()
  local x = 0.5
  for i = 1, ENCODE * UNIT do x = (x * x + i) % 1000.25 end
  return x
end
local function log()
  local x = 0.5
  for i = 1, 7 * UNIT do x = (x * x + i) % 1000.25 end
  return x + escape(3)
end

-- How often each is called in a row is drawn, so that no rate of samples is in step with the rounds; on
-- the average it is called twice. A round is short against the time between two samples, so that a
-- sample tells nothing of the next.
local phases = { read, parse, route, render, encode, log }
local function round()
  for i = 1, #phases do
    local phase = phases[i]
    for _ = 1, random(3) do phase() end
  end
end

for _ = 1, 200 do round() end
io.write("ready\n") io.flush()
-- No system calls: a thread that is to stop often does so only there.
local stop, count, begin = os.time() + seconds, 0, os.clock()
repeat
  for _ = 1, 100 do round() end
  count = count + 100
until os.time() >= stop
io.write(string.format("ROUND %.6f\n", (os.clock() - begin) / count))

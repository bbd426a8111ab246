-- Run random scenarios of one case until the time is over. CASES_STAY_US in the environment says how long
-- one lasts at most, if the case does not.
local host, case, seconds, seed, thread = ...
local file = debug.getinfo(1, "S").source:sub(2)
local folder = file:match("^(.*)/[^/]*$")
package.path = folder .. "/?.lua"
local Scenario = require("scenario")
local steps = require("steps")
local leaves = require("leaves")
local definition = require("list")[case] or error("no case " .. tostring(case))
if definition.needs then -- kept, for what is collected is unloaded
  package.loaded[definition.needs] = require("ffi").load(definition.needs, true)
end

-- Each scenario has steps of the case between plain ones, and some more plain ones.
local plain = { "call", "call", "method", "pcall", "c_call", "resume", "vararg", "meta_index" }
local function pick(list) return list[math.random(#list)] end

local function plan()
  local kinds, own = {}, definition.steps or {}
  local special = math.random(1, definition.most or 3)
  for i = 1, #own > 0 and special or 0 do
    for j = 1, math.random(0, 2) do kinds[#kinds + 1] = pick(plain) end
    kinds[#kinds + 1] = pick(own)
  end
  for i = 1, math.random(0, 2) do kinds[#kinds + 1] = pick(plain) end
  return kinds
end

local function build(id)
  local s, kinds, names = Scenario.new(id), plan(), {}
  local level = 2 * #kinds + 2
  local name = ("f%s_%d"):format(id, #kinds + 1)
  leaves[pick(definition.leaves or { "spin" })](s, { name = name, level = level })
  for i = #kinds, 1, -1 do
    local at = { name = ("f%s_%d"):format(id, i), level = 2 * i, next = name }
    names[#names + 1] = name
    steps[kinds[i]](s, at)
    name = at.name
  end
  names[#names + 1] = name
  return s:source(names), table.concat(s.ranges, ";"), name
end

-- Functions are kept, so that no address is used twice; `drop` leaves them to the collector.
local kept = {}
math.randomseed(seed + 7919 * thread)
host.ready()
local most_us = definition.stay or tonumber(os.getenv("CASES_STAY_US")) or 3000
local stop, number = host.time() + seconds, 0
while host.time() < stop and not host.stopped() do
  number = number + 1
  local id = ("%d_%d"):format(thread, number)
  local source, ranges, first = build(id)
  host.scenario(id, ranges, source, math.random(math.min(1000, most_us / 3), most_us))
  local chunk = assert(loadstring(source, "@s" .. id))
  local functions = chunk(host)
  if not definition.drop then kept[number] = functions end
  local start = functions[first]
  host.push(("L@%s:%d:"):format(file, debug.getinfo(1, "l").currentline + 1))
  start()
  host.pop(1)
end

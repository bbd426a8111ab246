-- SPDX-License-Identifier: MIT
-- Coroutines that have resumed one another, and the last one counts.
-- Usage: nested.lua SECONDS DEPTH
local seconds, depth = tonumber(arg[1]), tonumber(arg[2])
local function count(stop)
  local n = 0
  while os.time() < stop do for i = 1, 1e6 do n = n + i % 7 end end
  return n
end
local function nest(left, stop)
  if left == 0 then return (count(stop)) end
  local inner = coroutine.wrap(nest)
  return (inner(left - 1, stop))
end
io.write("ready\n") io.flush()
nest(depth, os.time() + seconds)

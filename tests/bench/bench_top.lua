-- SPDX-License-Identifier: MIT
-- Five thousand functions, one after the other, in the interpreter.
-- Usage: bench_top.lua SECONDS
local seconds, count = tonumber(arg[1]), 5000
jit.off()
local source, made = { "local made = ... do" }, {}
for i = 1, count do
  source[#source + 1] = ("made[%d] = function(n) local s = 0 for i = 1, n do s = s + i %% %d end return s end")
    :format(i, i + 1)
end
source[#source + 1] = "end"
assert(loadstring(table.concat(source, "\n"), "@many.lua"))(made)
local stop, at = os.time() + seconds, 0
while os.time() < stop do
  for _ = 1, 1000 do
    at = at % count + 1
    made[at](2000)
  end
end

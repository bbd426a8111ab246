-- SPDX-License-Identifier: MIT
-- Does the same unit of work again and again and counts, in a file that others may map.
-- Usage: luajit bench_units.lua WORK FILE SECONDS
--   WORK  as bench_works.lua has it; fib is interpreted
local works, open_count = dofile(arg[0]:match("^.*/") .. "bench_works.lua")
local count = open_count(arg[2])
if arg[1] == "fib" then jit.off() end
local work, stop = works[arg[1]], os.time() + tonumber(arg[3])
while os.time() < stop do
  for _ = 1, 10 do work() end
  count[0] = count[0] + 1
end

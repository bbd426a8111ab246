-- Work of known shares: burn_heavy runs three times as often through the same loop as burn_light. A
-- starter says before what BURN_FOLDER is, and BURN_JIT whether the compiler stays on. The first round
-- leaves a line in the file "ready" there.
--
-- What each of them took is by the clock of the thread's processor time, which is what samples count. The clock
-- on the wall tells how long the thread was in them, waiting for a processor or not; of that the longest round is
-- reported, too, as a machine that stands still disturbs what is measured.
if not BURN_JIT then jit.off() end
local ffi = require("ffi")
ffi.cdef("struct burn_time { long s, ns; }; int clock_gettime(int, struct burn_time *);")
local now = ffi.new("struct burn_time")
local MONOTONIC, THREAD_CPU = 1, 3 -- <linux/time.h>
local function clock(which)
  ffi.C.clock_gettime(which, now)
  return tonumber(now.s) + tonumber(now.ns) * 1e-9
end
local ROUND = BURN_JIT and 400000 or 20000 -- some milliseconds
local heavy, light, inside, longest, first, last = 0, 0, 0, 0, nil, nil

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

local function append(file, text)
  local out = assert(io.open(BURN_FOLDER .. "/" .. file, "a"))
  out:write(text, "\n")
  out:close()
end

function burn_round()
  local begin = clock(MONOTONIC)
  if not first then
    first = begin
    append("ready", "ready")
  end
  local t0 = clock(THREAD_CPU)
  burn_heavy(ROUND)
  local t1 = clock(THREAD_CPU)
  burn_light(ROUND)
  local t2 = clock(THREAD_CPU)
  last = clock(MONOTONIC)
  heavy = heavy + (t1 - t0)
  light = light + (t2 - t1)
  inside = inside + (last - begin)
  longest = math.max(longest, last - begin)
end

-- Seconds since the first round; 0 before it.
function burn_elapsed() return first and clock(MONOTONIC) - first or 0 end

function burn_for(seconds)
  repeat burn_round() until burn_elapsed() >= seconds
end

-- PROCESS HEAVY_S LIGHT_S INSIDE_S ELAPSED_S LONGEST_ROUND_S GC64 JIT; the process as whoever asks calls it.
function burn_line(process)
  return string.format("%s %.6f %.6f %.6f %.6f %.6f %s %s", process, heavy, light, inside, last and last - first or 0,
    longest, tostring(ffi.abi("gc64")), tostring((jit.status())))
end

function burn_report(line) append("report", line or burn_line("-")) end

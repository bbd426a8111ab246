-- Work of known shares: burn_heavy runs three times as often through the same loop as burn_light. A
-- starter says before what BURN_FOLDER is, and BURN_JIT whether the compiler stays on. The first round
-- leaves a line in the file "ready" there.
--
-- The clock is the one on the wall. Neither function ever blocks, so it tells how long a thread was
-- running or waiting for a processor in each, which is what samples of running threads count. The
-- clock of the thread's processor time would leave the waiting out; it is also a system call, and on a
-- busy machine the kernel takes the processor away just there, between the two. What the clock on the
-- wall does not tell is that the machine itself stood still, so the longest round is reported, too.
if not BURN_JIT then jit.off() end
local ffi = require("ffi")
ffi.cdef("struct burn_time { long s, ns; }; int clock_gettime(int, struct burn_time *);")
local now = ffi.new("struct burn_time")
local MONOTONIC = 1 -- <linux/time.h>
local function clock()
  ffi.C.clock_gettime(MONOTONIC, now)
  return tonumber(now.s) + tonumber(now.ns) * 1e-9
end
local ROUND = BURN_JIT and 400000 or 20000 -- some milliseconds
local heavy, light, longest, first, last = 0, 0, 0, nil, nil

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
  if not first then
    first = clock()
    append("ready", "ready")
  end
  local t0 = clock()
  burn_heavy(ROUND)
  local t1 = clock()
  burn_light(ROUND)
  local t2 = clock()
  heavy = heavy + (t1 - t0)
  light = light + (t2 - t1)
  longest = math.max(longest, t2 - t0)
  last = t2
end

-- Seconds since the first round; 0 before it.
function burn_elapsed() return first and clock() - first or 0 end

function burn_for(seconds)
  repeat burn_round() until burn_elapsed() >= seconds
end

-- PROCESS HEAVY_S LIGHT_S ELAPSED_S LONGEST_ROUND_S GC64 JIT; the process as whoever asks calls it.
function burn_line(process)
  return string.format("%s %.6f %.6f %.6f %.6f %s %s", process, heavy, light, last and last - first or 0,
    longest, tostring(ffi.abi("gc64")), tostring((jit.status())))
end

function burn_report(line) append("report", line or burn_line("-")) end

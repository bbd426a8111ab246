-- Works and waits in turns, in two kinds of waits, and tells after each turn how long each took so far by its
-- own clock, and when that is.
-- Usage: luajit wall.lua SECONDS STOP: it ends after that time or when there is a file STOP.
local ffi = require("ffi")
ffi.cdef [[
int epoll_create1(int flags);
int epoll_wait(int epfd, void *events, int maxevents, int timeout);
int poll(void *fds, unsigned long count, int timeout);
typedef struct { long s, ns; } wall_time;
int clock_gettime(int clock, wall_time *time);
]]
jit.off()
local epoll = ffi.C.epoll_create1(0)
local events, time = ffi.new("char[64]"), ffi.new("wall_time")
local interrupted, calls = 0, 0
local function now() ffi.C.clock_gettime(0, time) return tonumber(time.s) + tonumber(time.ns) / 1e9 end
local function note(got) calls = calls + 1 if got < 0 then interrupted = interrupted + 1 end end
local function work() local x = 0 for i = 1, 400000 do x = (x + i) % 7 end return x end
local function short_wait()
  note(ffi.C.poll(nil, 0, 10))
end
local function long_wait()
  note(ffi.C.epoll_wait(epoll, events, 4, 25))
end
local in_coroutine = coroutine.wrap(function() while true do long_wait() coroutine.yield() end end)
io.write("ready\n") io.flush()
local stop, spent = os.time() + tonumber(arg[1]), { 0, 0, 0 }
local begin = now()
while os.time() < stop and not io.open(arg[2]) do
  for i, part in ipairs { work, short_wait, in_coroutine } do
    part()
    local at = now()
    spent[i], begin = spent[i] + at - begin, at
  end
  io.write(("SPENT %.6f %.6f %.6f %.6f\n"):format(begin, spent[1], spent[2], spent[3])) io.flush()
end
io.write("EINTR ", interrupted, " of ", calls, "\n")

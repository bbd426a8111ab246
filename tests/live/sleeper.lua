-- Sleeps in epoll_wait, which the kernel never restarts, and counts what came back as EINTR.
-- Usage: luajit sleeper.lua SECONDS STOP: it ends after that time or when there is a file STOP.
local ffi = require("ffi")
ffi.cdef [[
int epoll_create1(int flags);
int epoll_wait(int epfd, void *events, int maxevents, int timeout);
]]
jit.off()
local epoll = ffi.C.epoll_create1(0)
local events = ffi.new("char[64]")
io.write("ready\n") io.flush()
local stop = os.time() + tonumber(arg[1])
local calls, interrupted = 0, 0
while os.time() < stop and not io.open(arg[2]) do
  local got = ffi.C.epoll_wait(epoll, events, 4, 2)
  calls = calls + 1
  if got < 0 then interrupted = interrupted + 1 end
  local x = 0
  for i = 1, 20000 do x = (x + i) % 7 end
end
io.write("EINTR ", interrupted, " of ", calls, "\n")

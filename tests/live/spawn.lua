-- Starts other programs all the time, by vfork and fork, and tells now and then how many, and what went wrong.
-- Usage: luajit spawn.lua SECONDS STOP: it ends after that time or when there is a file STOP.
jit.off()
io.write("ready\n") io.flush()
local stop, calls, wrong = os.time() + tonumber(arg[1]), 0, 0
local function check(good) calls = calls + 1 if not good then wrong = wrong + 1 end end
local function tell() io.write("CALLS ", calls, " ", wrong, "\n") io.flush() end
local function work() local x = 0 for i = 1, 20000 do x = (x + i) % 7 end return x end
while os.time() < stop and not io.open(arg[2]) do
  check(os.execute("exit 3") == 3 * 256)
  work()
  local pipe = io.popen("echo $((6 * 7))")
  check(pipe:read("*a") == "42\n")
  check(pipe:close())
  work()
  if calls % 120 == 0 then tell() end
end
tell()

-- Functions that are garbage a moment after they ran: entered from C, from Lua, and in coroutines.
-- Usage: luajit garbage.lua SECONDS [STOP]: it ends after that time or when there is a file STOP.
collectgarbage("setpause", 100)
collectgarbage("setstepmul", 1000)
local function sort(list) table.sort(list, function(a, b) return a.key < b.key end) end
local function resume(n) return coroutine.wrap(function(a) return a + coroutine.yield(a) end)(n) end
local function call(n) return (function(a) return { key = a } end)(n) end
io.write("ready\n") io.flush()
local stop = os.time() + tonumber(arg[1])
while os.time() < stop and not io.open(arg[2] or "") do
  for _ = 1, 100 do
    local list = {}
    for i = 1, 20 do list[i] = call(resume(i * 7 % 20)) end
    sort(list)
  end
end

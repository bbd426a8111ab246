-- A program of which nothing stays: functions, chunks, coroutines, traces, libraries and child processes
-- come and go, until SECONDS have passed or there is a file STOP.
-- Usage: luajit soak.lua SECONDS STOP
-- Prints at its end how many chunks it has loaded.
local ffi = require "ffi"
local stop_file = arg[2]

-- What it computes is known: 3 * (1 + ... + n), modulo 1009 in each step.
local template = [[
local function leaf_$N(x, i) return (x + 3 * i) % 1009 end
local function loop_$N(n)
  local x = 0
  for i = 1, n do x = leaf_$N(x, i) end
  return x
end
local function inside_$N(n)
  return coroutine.wrap(function()
    local x = loop_$N(n)
    return x
  end)()
end
return loop_$N, inside_$N
]]
local turns = 8000
local expected = 3 * turns * (turns + 1) / 2 % 1009

-- One that nothing else has loaded: it is unmapped again once it is collected.
local function load_library() return pcall(ffi.load, "libBrokenLocale.so.1") end

local number = 0
local function go_round()
  number = number + 1
  local text = ("\n"):rep(number % 7) .. template:gsub("$N", number)
  local loop, inside = assert(loadstring(text, "@gen" .. number))()
  assert(loop(turns) == expected and inside(turns) == expected)
  if number % 50 == 0 then jit.flush() end
  if number % 100 == 0 then
    load_library()
    collectgarbage()
  end
  if number % 500 == 0 then
    os.execute("luajit -e 'local x = 0 for i = 1, 3e6 do x = (x + i) % 7 end'")
  end
end

jit.opt.start("hotloop=3", "maxtrace=200")
io.write("ready\n") io.flush()
local stop = os.time() + tonumber(arg[1])
while os.time() < stop and not io.open(stop_file) do go_round() end
io.write("chunks ", number, "\n")

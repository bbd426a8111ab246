-- Makes traces of all kinds, notes what LuaJIT itself says of them in the file TRUTH, waits for a
-- line of standard input, and then makes and drops traces until there is the file STOP.
local util = require("jit.util")

-- ---- What LuaJIT tells of itself ----

local starts, recorded, current = {}, {}, nil

local function place(func, pc)
  local info = util.funcinfo(func, pc)
  return info.source or "?", info.currentline or 0, info.linedefined or 0
end

local function on_trace(what, tr, func, pc, otr, oex)
  if what == "start" then
    local source, line, defined = place(func, pc)
    current = tr
    starts[tr] = { source = source, line = line, defined = defined, parent = otr or 0,
                   exit = oex or 0 }
    recorded[tr] = { [defined] = true }
  elseif what == "abort" then
    starts[tr] = nil
  elseif what == "flush" then
    starts, recorded = {}, {}
  end
end

local function on_record(tr, func)
  if type(func) ~= "function" then return end
  local info = util.funcinfo(func)
  if info.linedefined and recorded[tr] then recorded[tr][info.linedefined] = true end
end

local function write_truth(name)
  local file = assert(io.open(name, "w"))
  for tr = 1, 1000 do
    local info = util.traceinfo(tr)
    if info then
      local s, mc, address, loop = starts[tr], util.tracemc(tr)
      local functions = {}
      for line in pairs(recorded[tr]) do functions[#functions + 1] = line end
      file:write(("trace %d %s %d %d %d %d %s %d %d %d %d %.0f %d %s\n"):format(tr, info.linktype,
        info.link, info.nexit, info.nins, info.nk, s.source, s.line, s.defined, s.parent, s.exit,
        address % 2 ^ 64, #mc, table.concat(functions, ",")))
    end
  end
  file:close()
end

-- ---- What is compiled, and what is not ----

local function leaf(x) return x * 2 + 1 end -- LEAF

local function mid(x) -- MID
  if x % 7 == 0 then return leaf(x) + 1 end
  return leaf(x)
end

local function top(n) -- TOP
  local s = 0
  for i = 1, n do -- TOP_LOOP
    if i % 3 == 0 then s = s + mid(i) else s = s - 1 end
  end
  return s
end

local function makes_closures(n) -- BLACKLISTED
  local s = 0
  for i = 1, n do -- BLACKLISTED_LOOP
    local f = function() return i end -- ABORTED
    s = s + f()
  end
  return s
end

local function with_jit_off(n) -- OFF
  local s = 0
  for i = 1, n do s = s + i end -- OFF_LOOP
  return s
end
jit.off(with_jit_off)

local function aborts_sometimes(n) -- SOMETIMES
  local s = 0
  for i = 1, n do -- SOMETIMES_LOOP
    s = s + #tostring(function() end)
  end
  return s
end

local function fib(n) -- FIB
  if n < 2 then return n end
  return fib(n - 1) + fib(n - 2)
end

local function down(n) -- DOWN
  if n == 0 then return 0 end
  return 1 + down(n - 1)
end

local object = setmetatable({}, { __index = function(_, k) return k * 2 end }) -- INDEX

local function with_metamethod(n)
  local s = 0
  for i = 1, n do s = s + object[i] end
  return s
end

local function with_pcall(n)
  local s = 0
  for i = 1, n do
    local _, x = pcall(mid, i)
    s = s + x
  end
  return s
end

local function with_varargs(...) return select("#", ...) + (...) end

local function calls_varargs(n)
  local s = 0
  for i = 1, n do s = s + with_varargs(i, n) end
  return s
end

function a_global(n)
  local s = 0
  for i = 1, n do s = s + #os.date() end
  return s
end

local function work()
  for _ = 1, 200 do
    top(500)
    makes_closures(300)
    with_jit_off(300)
  end
  aborts_sometimes(150)
  fib(20)
  for _ = 1, 30 do down(100) end
  with_metamethod(500)
  with_pcall(500)
  calls_varargs(500)
  a_global(200)
end

jit.flush()
jit.attach(on_trace, "trace")
jit.attach(on_record, "record")
work()
jit.attach(on_trace)
jit.attach(on_record)
local function wait() -- not compiled: nothing is to change any more
  -- Traces to which nothing leads any more are garbage, too.
  collectgarbage() collectgarbage() collectgarbage("stop")
  write_truth(os.getenv("TRUTH"))
  io.write("ready\n") io.flush()
  io.read()
end
jit.off(wait)
jit.off(write_truth)
wait()
collectgarbage("restart")
local stop = os.time() + 600
while os.time() < stop and not io.open(os.getenv("STOP")) do
  jit.flush()
  io.write("flushed\n") io.flush()
  work()
end

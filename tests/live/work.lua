-- One program for each kind of work that the VM does. A name behind "-->" is that of the function on
-- whose behalf the VM may work at that line.
local which, seconds = arg[1], tonumber(arg[2])
local programs = {}

-- The collector, step by step: a heap that takes time to mark, and garbage of two kinds.
local keep = {}
local function fill()
  for i = 1, 20000 do keep[i] = { "kept" .. i } end
end
function strings(n)
  local s
  for i = 1, n do s = "k" .. i end      --> strings
  return s
end
function tables(n)
  local t
  for i = 1, n do t = { i, i } end      --> tables
  return t
end
function programs.gc()
  jit.off()
  fill()
  return function()
    strings(1e5)
    tables(1e5)
  end
end

-- The same out of machine code.
function compiled(n)
  local t
  for i = 1, n do t = { i, i } end      --> compiled
  return t
end
function programs.gc_jit()
  fill()
  return function() compiled(1e5) end
end

-- Finalizers. The first one that runs leaves the collector nothing to call for all the others.
function final(p)
  local x = 0
  for i = 1, 1e5 do x = x + i end       --> final
  getmetatable(p).__gc = nil
end
function finals(n)
  local first = newproxy(true)
  getmetatable(first).__gc = final
  collectgarbage("stop")
  for _ = 1, n do newproxy(first) end
  first = nil
  collectgarbage("restart")
  for _ = 1, 2 do
    repeat until collectgarbage("step") --> finals
  end
end
function programs.final()
  jit.off()
  return function() finals(5e4) end
end

-- The compiler: traces are made, and dropped at once. They are long: to make memory for machine code writable
-- and executable again takes as long for a short one, and in some virtual machines far longer than all else.
local function leaf(x, i)               --> leaf
  if i % 3 == 0 then return x + i end   --> leaf
  return x * 0.5 + i                    --> leaf
end
local function eight(x, i)              --> eight
  x = leaf(leaf(x, i), i + 1)           --> eight
  x = leaf(leaf(x, i + 2), i + 3)       --> eight
  x = leaf(leaf(x, i + 4), i + 5)       --> eight
  x = leaf(leaf(x, i + 6), i + 7)       --> eight
  return x                              --> eight
end
function hot()                          --> hot
  local x = 0
  for i = 1, 60 do                      --> hot
    x = eight(x, i) + i                 --> hot
    x = eight(x, i + 8) + i             --> hot
    if i % 7 == 0 then x = x + 1 end    --> hot
  end
  return x                              --> hot
end
function again()                        --> again
  hot()                                 --> again
  jit.flush()                           --> again
end                                     --> again
function programs.compile()
  jit.opt.start("hotloop=1", "hotexit=1")
  return function()
    for _ = 1, 100 do again() end       --> run
  end                                   --> run
end

-- Exits: a guard that fails every other time, and no side trace for it.
local mixed = {}
for i = 1, 1000 do mixed[i] = i % 2 == 0 and i or i + 0.5 end
function unstable()
  local x = 0
  for i = 1, #mixed do                  --> unstable
    if mixed[i] % 1 == 0 then           --> unstable
      x = x + 1                         --> unstable
    else
      x = x - 2                         --> unstable
    end
  end
  return x
end
function programs.exits()
  local seen, most = {}, nil
  jit.opt.start("hotexit=65000")
  for _ = 1, 10 do unstable() end
  -- The compiler itself tells which exit is the one.
  local function on_exit(trace, exit)
    local name = trace .. "/" .. exit
    seen[name] = (seen[name] or 0) + 1
  end
  jit.off(on_exit)
  jit.attach(on_exit, "texit")
  for _ = 1, 10 do unstable() end
  jit.attach(on_exit)
  for name, count in pairs(seen) do
    if not most or count > seen[most] then most = name end
  end
  io.write("exit ", most, "\n")
  return function() for _ = 1, 100 do unstable() end end
end

local run = programs[which]()
io.write("ready\n") io.flush()
local stop = os.time() + seconds
while os.time() < stop do run() end

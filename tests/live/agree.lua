-- Many kinds of frames: recursion, mutual recursion, coroutines, library functions with callbacks,
-- pcall, functions of one name in two places, garbage, and compiled code.
-- Usage: luajit agree.lua SECONDS [STOP]: it ends after that time or when there is a file STOP.
local function spin(n)
  local x = 0.5
  for i = 1, n do x = (x * x + i) % 1000.25 end
  return x
end
local function deep(n) return n == 0 and spin(3000) or deep(n - 1) + 1 end
local odd
local function even(n) return n == 0 and spin(2000) or 1 + odd(n - 1) end
function odd(n) return n == 0 and spin(1000) or 1 + even(n - 1) end
local function twice(n)
  local function inner(m) return spin(m) end
  return inner(n)
end
local function sorted()
  local t = {}
  for i = 1, 200 do t[i] = (i * 7919) % 211 end
  table.sort(t, function(a, b) return a < b end)
  return #t
end
local function texts()
  local n = 0
  for i = 1, 100 do n = n + #(("x"):rep(i % 50) .. tostring(i)):gsub("x", "yy") end
  return n
end
local function generator(n)
  return coroutine.wrap(function() for i = 1, n do coroutine.yield(spin(200) + i) end end)
end
local function yields()
  local n = 0
  for value in generator(10) do n = n + value end
  return n
end
local function fails() return pcall(function() return spin(1000) .. nil end) end
local function other()
  local function inner(m) return spin(m) + spin(m) end
  return inner(500)
end
local function round()
  deep(5) even(7) twice(2000) sorted() texts() yields() fails() other()
end
io.write("ready\n") io.flush()
local stop = os.time() + tonumber(arg[1])
while os.time() < stop and not io.open(arg[2] or "") do for _ = 1, 20 do round() end end

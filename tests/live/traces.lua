-- Thousands of small functions, each compiled, whose traces are flushed and which are replaced all the
-- time, so that numbers of traces, and addresses of traces, functions and machine code, are used again.
-- Usage: luajit traces.lua KIND SECONDS FUNCTIONS FLUSH STOP
-- After FLUSH seconds of its processor time all traces are flushed. It ends right before that, after
-- SECONDS or when there is a file STOP.
-- Each function comes from a chunk of its own, named @genN, made from the template of its kind. Behind
-- "-->" stands what a line may call, and behind a slash what that may call in turn. Prints at its end
-- how many traces there were at a time at most: the host of a machine may take all of the time from
-- one flush to the next. Each result of a function is checked.
local kind, seconds, functions, flush = arg[1], tonumber(arg[2]), tonumber(arg[3]), tonumber(arg[4])
local stop_file = arg[5]

local template = {}

-- Root traces: no guard fails but at the loop's end.
template.roots = [[
local t = ...
local function leaf_$N(x)
  local v = t[x % 8 + 1]
  if v > 3 then
    return v + $K
  end
  return x % 5
end
local function mid_$N(k)
  local a = leaf_$N(k)                             --> leaf
  local b = leaf_$N(k + 1)                         --> leaf
  return a + b
end
local function loop_$N(n)
  local s = 0
  for i = 1, n do
    local m = mid_$N(i)                            --> mid
    s = (s + m) % 65536
  end
  return s
end
return loop_$N
]]

-- Side traces: what the table holds differs from one turn to the next.
template.sides = [[
local t = ...
local function leaf_$N(x)
  local v = t[x % 8 + 1]
  if v == 4 then
    return x % 3
  end
  if v > 6 then
    local w = t[(x + 3) % 8 + 1]
    if w > 5 then
      return w - 1
    end
    return w + $K
  end
  return v * 2
end
local function other_$N(x)
  local v = t[x % 5 + 1]
  if v > 5 then
    return v
  end
  return -v
end
local function mid_$N(k)
  if t[k % 7 + 1] % 2 == 0 then
    local a = leaf_$N(k)                           --> leaf
    return a + 1
  end
  local b = other_$N(k + 1)                        --> other
  local c = leaf_$N(k + 2)                         --> leaf
  return b + c
end
local function loop_$N(n)
  local s = 0
  for i = 1, n do
    local m = mid_$N(i)                            --> mid
    s = (s + m) % 65536
  end
  return s
end
return loop_$N
]]

-- Recursion up and down, and tail calls: traces that begin at functions.
template.recursion = [[
local t = ...
local function down_$N(n)
  if n == 0 then
    return $K
  end
  local below = down_$N(n - 1)                     --> down
  return (below + t[n % 8 + 1]) % 65536
end
local function fib_$N(n)
  if n < 2 then
    return t[n + 1]
  end
  local a = fib_$N(n - 1)                          --> fib
  local b = fib_$N(n - 2)                          --> fib
  return (a + b) % 65536
end
local function tail_$N(n, s)
  if n == 0 then
    return s
  end
  return tail_$N(n - 1, (s + t[n % 8 + 1]) % 4096) --> tail/tail
end
local function loop_$N(n)
  local a = down_$N(n % 20 + 12)                   --> down
  local b = fib_$N(n % 3 + 6)                      --> fib
  local c = tail_$N(n, 0)                          --> tail
  return (a + b + c) % 65536
end
return loop_$N
]]

-- Traces in coroutines.
template.coroutines = [[
local t = ...
local function leaf_$N(x)
  local v = t[x % 8 + 1]
  if v > 5 then
    return v + $K
  end
  return x % 5
end
local function mid_$N(k)
  local a = leaf_$N(k)                             --> leaf
  local b = leaf_$N(k + 1)                         --> leaf
  return a + b
end
local function body_$N(n)
  while true do
    local s = 0
    for i = 1, n do
      local m = mid_$N(i)                          --> mid
      s = (s + m) % 65536
    end
    n = coroutine.yield(s)                         --> coroutine.yield
  end
end
local step_$N = coroutine.wrap(body_$N)            --> coroutine.wrap
local function loop_$N(n)
  local s = step_$N(n)                             --> coroutine.wrap_aux/body
  return s
end
return loop_$N
]]

local content = { 1, 7, 4, 6, 9, 2, 5, 8 }
if kind == "roots" then content = { 5, 7, 4, 6, 9, 8, 5, 8 } end

-- Lines differ from one function to the next, too.
local function load_function(number)
  local text = ("\n"):rep(number % 7) .. template[kind]:gsub("$N", number):gsub("$K", number % 9)
  local chunk = assert(loadstring(text, "@gen" .. number))
  local made = chunk(content)                      --> chunk
  return made
end

-- What the function of a number gives, as the interpreter has it. The number's remainder tells.
local expected = {}
local turns = { 300, 410, 520, 670 }
local function expect()
  jit.off()
  for k = 0, 8 do
    local f = load_function(k)
    expected[k] = {}
    for i, n in ipairs(turns) do
      expected[k][i] = f(n)                        --> loop
    end
  end
  jit.on()
end

local next_number = 9
local made, numbers = {}, {}
local function replace(i)
  made[i] = load_function(next_number)
  numbers[i] = next_number
  next_number = next_number + 1
end

local function run(i, turn)
  local result = made[i](turns[turn])              --> loop
  if result ~= expected[numbers[i] % 9][turn] then
    error("function " .. numbers[i] .. " gives " .. tostring(result))
  end
end

local random = 12345
local function chance(n)
  random = (random * 1103515245 + 12345) % 2147483648
  return math.floor(random / 65536) % n
end

local traceinfo = require("jit.util").traceinfo
local function count_traces()
  local count = 0
  for number = 1, 8 * functions do
    if traceinfo(number) then count = count + 1 end
  end
  return count
end

-- Of one function, or of one trace; replaced functions are collected. Some traces cannot be flushed by
-- their number.
local function disturb(i)
  local what = chance(150)
  if what == 0 then replace(i) end
  if what == 1 then jit.flush(made[i], true) end
  if what == 2 then pcall(jit.flush, 1 + chance(functions)) end
  if what == 3 then collectgarbage("step", 20) end
end
jit.off(disturb)
jit.off(count_traces)

expect()
jit.opt.start("hotloop=3", "hotexit=2", "maxtrace=30000", "sizemcode=64", "maxmcode=32768")
for i = 1, functions do replace(i) end
local round = 0
local stop, flushed
local most = 0
local function go_round()
  round = round + 1
  for i = 1, functions do
    run(i, (round + i) % #turns + 1)
    disturb(i)
    if i % 64 == 0 and stop then
      if os.clock() >= flushed + flush then
        most = math.max(most, count_traces())
        if os.time() >= stop or io.open(stop_file) then return false end
        jit.flush()
        flushed = os.clock()
      end
    end
  end
  return true
end
jit.off(go_round)
-- Functions get hot after a few calls.
go_round()
io.write("ready\n") io.flush()
stop, flushed = os.time() + seconds, os.clock()
while go_round() do end
io.write("traces ", most, "\n")

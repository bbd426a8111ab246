-- A program whose call graph is known: behind "-->" stands what a line may call, and behind a slash
-- what that may call in turn. The test checks each pair of frames in each sample against it.
local faults = arg[2] == "faultless" and 2 or 3 -- guarded() has no error up to 2
if arg[2] == "jit" then jit.opt.start("hotloop=5", "hotexit=2") else jit.off() end
local tests = {}
local function leaf(x)
  return x % 7 + 1
end
local function pair(a, b)
  local x = leaf(a)                              --> leaf
  local y = leaf(b)                              --> leaf
  return x + y
end
local function count(n)
  if n == 0 then return 0 end
  local below = count(n - 1)                     --> count
  return below + 1
end
local function last(x)
  return leaf(x)                                 --> leaf/leaf
end
local function spread(...)
  local n = select("#", ...)                     --> select
  local a, b = ...
  local sum = pair(a, b)                         --> pair
  return sum + n
end
local function by_rest(a, b)
  local x = leaf(a)                              --> leaf
  return x < b % 7 + 1
end
local function sorted(n)
  local t = {}
  for i = 1, n do
    t[i] = (i * 37) % 101
    if i % 4 == 0 and pause then pause() end     --> pause
  end
  table.sort(t, by_rest)                         --> table.sort/by_rest
  return t[1]
end
local function upper(word)
  local s = string.upper(word)                   --> string.upper
  return s
end
local function text(n)
  local s = string.rep("ab cd ", n)              --> string.rep
  local r = string.gsub(s, "%a+", upper)         --> string.gsub/upper
  local f = string.format("%s %d", "x", n)       --> string.format
  return #r + #f
end
local function produce(n)
  for i = 1, n do
    pair(i, i)                                   --> pair
    coroutine.yield(i)                           --> coroutine.yield
  end
end
local function consume(n)
  local sum = 0
  local co = coroutine.create(produce)           --> coroutine.create
  for _ = 1, n do
    local ok, v = coroutine.resume(co, n)        --> coroutine.resume/produce
    sum = sum + (v or 0)
  end
  return sum
end
local function wrapped(n)
  local sum = 0
  local step = coroutine.wrap(produce)           --> coroutine.wrap
  for _ = 1, n do
    sum = sum + (step(n) or 0)                   --> coroutine.wrap_aux/produce
  end
  return sum
end
local function fail(x)
  if x > 2 then
    error("too much")                            --> error/handler
  end
  return leaf(x)                                 --> leaf/leaf
end
local function handler(message)
  local s = tostring(message)                    --> tostring
  return s
end
local function guarded(n)
  local good = 0
  for i = 1, n do
    local a = pcall(fail, i)                     --> pcall/fail pcall/leaf
    if pause then pause() end                    --> pause
    local b = xpcall(fail, handler, i)           --> xpcall/fail xpcall/leaf xpcall/handler
    if a and b then good = good + 1 end
    if pause then pause() end                    --> pause
  end
  return good
end
local point = {}
point.__index = function(t, k)
  local n = leaf(#k)                             --> leaf
  return n
end
point.__add = function(a, b)
  local n = pair(1, 2)                           --> pair
  return n
end
point.__lt = function(a, b)
  local n = leaf(3)                              --> leaf
  return n > 2
end
point.__call = function(self, x)
  local n = leaf(x)                              --> leaf
  return n
end
point.__concat = function(a, b)
  local n = leaf(4)                              --> leaf
  return "p"
end
local function objects(n)
  local a = setmetatable({}, point)              --> setmetatable
  local b = setmetatable({}, point)              --> setmetatable
  local sum = 0
  for i = 1, n do
    sum = sum + a.size                           --> point.__index
    sum = sum + (a + b)                          --> point.__add
    if a < b then sum = sum + 1 end              --> point.__lt
    sum = sum + a(i)                             --> point.__call
    local s = a .. "x"                           --> point.__concat
    if pause then pause() end                    --> pause
  end
  return sum
end
local function each(n)
  local t, sum = { 1, 2, 3, x = 4 }, 0
  for k, v in pairs(t) do sum = sum + v end      --> pairs next
  for i, v in ipairs(t) do sum = sum + v end     --> ipairs ipairs_aux
  for w in string.gmatch("a b c", "%a") do sum = sum + #w end --> string.gmatch string.gmatch_aux
  return sum + leaf(n)                           --> leaf
end
local function garbage(n)
  local t
  for i = 1, n do t = { i, { i } } end
  return leaf(#t)                                --> leaf/leaf
end
local function closures(n)
  local made = {}
  for i = 1, n do
    made[i] = function(x)
      local y = leaf(x)                          --> leaf
      return y + i
    end
  end
  local sum = 0
  for i = 1, n do
    sum = sum + made[i](i)                       --> closure
    if pause then pause() end                    --> pause
  end
  return sum
end
local function round()
  pair(1, 2)                                     --> pair
  count(20)                                      --> count
  if pause then pause() end                      --> pause
  last(3)                                        --> last leaf
  spread(1, 2, 3)                                --> spread
  if pause then pause() end                      --> pause
  sorted(6)                                      --> sorted
  if pause then pause() end                      --> pause
  text(2)                                        --> text
  if pause then pause() end                      --> pause
  consume(5)                                     --> consume
  wrapped(5)                                     --> wrapped
  if pause then pause() end                      --> pause
  guarded(faults)                                --> guarded
  if pause then pause() end                      --> pause
  objects(4)                                     --> objects
  each(3)                                        --> each
  if pause then pause() end                      --> pause
  garbage(10)                                    --> garbage leaf
  closures(4)                                    --> closures
  if pause then pause() end                      --> pause
end
io.write("ready\n") io.flush()
local stop = os.time() + tonumber(arg[1])
while os.time() < stop do                        --> os.time
  round()                                        --> round
end

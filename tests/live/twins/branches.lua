-- Many side traces: branches that all are taken, in functions that call different others.
local twin = dofile(arg[0]:match("^.*/") .. "twin.lua")
local seed = 42
local function random(n)
  seed = (seed * 1103 + 12345) % 65536
  return seed % n
end
local function left(x)
  return x * 3 % 1013
end
local function right(x)
  return (x + 77) % 1019
end
local function middle(x)
  if x > 500 then return left(x - 500) + 1 end
  return right(x + 500) + 1
end
local function turn(x)
  local way = random(8)
  if way == 0 then x = left(x)
  elseif way == 1 then x = right(x)
  elseif way == 2 then x = middle(x)
  elseif way < 5 then x = left(right(x))
  elseif way < 7 then x = right(middle(x))
  else x = middle(left(x)) end
  return x
end
local function phase_walk()
  local x = 1
  for _ = 1, 20000 do
    x = turn(x)
  end
  return x
end
local operations = {}
for i, f in ipairs { left, right, middle } do operations[i] = f end
local function apply(code, x)
  local f = operations[code]
  local y = f(x)
  return y
end
local function phase_dispatch()
  local x = 1
  for i = 1, 20000 do
    local code = (x + i) % 3 + 1
    x = apply(code, x)
  end
  return x
end
local function kind(x)
  if type(x) == "number" then return 1 end
  if type(x) == "string" then return 2 end
  if type(x) == "table" then return 3 end
  return 4
end
local things = { 1, "a", { 2 }, true, 2.5, "bc", {}, false }
local function weight(thing)
  local k = kind(thing)
  if k == 1 then return left(thing * 2) end
  if k == 2 then return right(#thing) end
  return k
end
local function phase_kinds()
  local sum = 0
  for i = 1, 36000 do
    local w = weight(things[i % 8 + 1])
    sum = sum + w
  end
  return sum
end
local function phase_decide()
  local x = 1
  for i = 1, 24000 do
    if i % 2 == 0 then x = x + 3 else x = x + 7 end
    if i % 3 == 0 then x = x * 2 end
    if i % 5 == 0 then x = x - 11 end
    if x > 4000 then x = x % 3989 end
    if x % 4 == 1 then x = x + 13 end
    if i % 7 == 3 then x = x + i end
    if x < 0 then x = -x end
    x = x % 5003
  end
  return x
end
twin.run {
  { name = "phase_walk", run = phase_walk },
  { name = "phase_dispatch", run = phase_dispatch },
  { name = "phase_kinds", run = phase_kinds },
  { name = "phase_decide", run = phase_decide, leaf = phase_decide },
}

-- Variable arguments: select, tables of them, forwarding, unpacking.
local twin = dofile(arg[0]:match("^.*/") .. "twin.lua")
local function larger(a, b)
  if a > b then return a end
  return b
end
local function largest(...)
  local best = 0
  for i = 1, select("#", ...) do
    local value = select(i, ...)
    best = larger(best, value)
  end
  return best
end
local function phase_select()
  local sum = 0
  for i = 1, 12000 do
    local n = largest(i % 7, i % 11, i % 13, i % 5)
    sum = sum + n
  end
  return sum
end
local function collect(...)
  local t = { ... }
  return #t + t[1]
end
local function phase_collect()
  local sum = 0
  for i = 1, 8000 do
    local n = collect(i % 9, i, i)
    sum = sum + n
  end
  return sum
end
local function three(a, b, c)
  if a > b then return a - c end
  return b + c
end
local function forward(f, ...)
  local value = f(...)
  return value
end
local function twice(f, ...)
  local one = forward(f, ...)
  local two = forward(f, ...)
  return one + two
end
local function phase_forward()
  local sum = 0
  for i = 1, 40000 do
    local n = twice(three, i % 10, i % 6, 1)
    sum = sum + n
  end
  return sum
end
local packs = { { 1, 5, 3 }, { 8, 2, 1 }, { 4, 4, 9 } }
local function opened(pack)
  local value = three(unpack(pack))
  return value
end
local function phase_unpack()
  local sum = 0
  for i = 1, 30000 do
    local n = opened(packs[i % 3 + 1])
    sum = sum + n
  end
  return sum
end
local rows = {}
for i = 1, 1000 do rows[i] = 10 + i * 31 % 900 end
local function weave(...)
  local i, most, least = ...
  if i < 1 then return 0 end
  local t, n = rows, select("#", ...)
  local a, b, c, d = t[i], t[i + 1], t[i + 2], t[i + 3]
  if a < least or b < least or c < least or d < least then return 0 end
  local e, f, g, h = t[i + 4], t[i + 5], t[i + 6], t[i + 7]
  if e < least or f < least or g < least or h < least then return 1 end
  if a > most or b > most or c > most or d > most then return 2 end
  if e > most or f > most or g > most or h > most then return 3 end
  local p, q = (a * b + c * d) / (e + f), (e * f + g * h) / (a + b)
  if p < least - n or q < least - n or p > 1e6 or q > 1e6 then return 4 end
  local r = (p * 3 + q) / (p + q + 1)
  if r > 1e6 or p - r > 1e6 or q - r > 1e6 or r < -1e6 then return 5 end
  t[i] = a * 0.5 + 100
  t[i + 7] = h * 0.5 + 100
  if a + p > 1e6 or h + q > 1e6 then return 6 end
  return (select(n, ...))
end
local function phase_weave()
  local sum = 0
  for _ = 1, 120 do
    for i = 1, #rows - 7 do
      sum = sum + weave(i, 9999, 5, 2)
    end
  end
  return sum
end
twin.run {
  { name = "phase_select", run = phase_select },
  { name = "phase_collect", run = phase_collect },
  { name = "phase_forward", run = phase_forward },
  { name = "phase_unpack", run = phase_unpack },
  { name = "phase_weave", run = phase_weave, leaf = weave },
}

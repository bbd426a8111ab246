-- Closures and upvalues: counters, composition, folds over functions, accumulators.
local twin = dofile(arg[0]:match("^.*/") .. "twin.lua")
local function counter(step)
  local count = 0
  local function bump()
    count = (count + step) % 1000003
    return count
  end
  local function read()
    return count
  end
  return bump, read
end
local bump_by_3, read_3 = counter(3)
local bump_by_5, read_5 = counter(5)
local function both()
  local a = bump_by_3()
  local b = bump_by_5()
  if a > b then return read_3() end
  return read_5()
end
local function phase_counters()
  local sum = 0
  for _ = 1, 40000 do
    local n = both()
    sum = sum + n
  end
  return sum
end
local function compose(f, g)
  return function(x)
    local y = g(x)
    return (f(y))
  end
end
local function double(x)
  return x * 2 % 1009
end
local function succeed(x)
  if x > 1000 then return 1 end
  return x + 1
end
local chain = compose(compose(double, succeed), compose(succeed, double))
local function phase_compose()
  local x = 1
  for _ = 1, 60000 do
    x = chain(x)
  end
  return x
end
local function fold(t, f, start)
  local value = start
  for i = 1, #t do
    value = f(value, t[i])
  end
  return value
end
local function larger(a, b)
  if a > b then return a end
  return b
end
local function add(a, b)
  local sum = a + b
  return sum % 4093
end
local values = {}
for i = 1, 400 do values[i] = (i * 37) % 1009 end
local function phase_folds()
  local sum = 0
  for _ = 1, 30 do
    sum = sum + fold(values, larger, 0)
    sum = sum + fold(values, add, 0)
    sum = sum + fold(values, function(a, b)
      local product = double(b)
      return (a + product) % 8191
    end, 0)
  end
  return sum
end
local LIMIT = 1e6
local function filter(a, b, c)
  local last, clipped, loud = 0, 0, 0
  return function(x)
    if x < 0 then return loud end
    local p, q = x * a + last * b, x * b - last * c
    if p > LIMIT then clipped = clipped + 1 end
    if q > LIMIT then clipped = clipped + 2 end
    if p < -LIMIT then clipped = clipped + 3 end
    if q < -LIMIT then clipped = clipped + 4 end
    local r, s = (p - q) * a, (p + q) * c
    if r > LIMIT or r < -LIMIT then clipped = clipped + 5 end
    if s > LIMIT or s < -LIMIT then clipped = clipped + 6 end
    local t, u = r * b + s, s * a - r
    if t > LIMIT or t < -LIMIT then clipped = clipped + 7 end
    if u > LIMIT or u < -LIMIT then clipped = clipped + 8 end
    local v, w = (t - u) / (p * p + 1), (t + u) / (q * q + 1)
    if v > LIMIT or v < -LIMIT then clipped = clipped + 9 end
    if w > LIMIT or w < -LIMIT then clipped = clipped + 10 end
    local y, z = (v * c + r) / (w * w + 2), (w * b + s) / (v * v + 2)
    if y > LIMIT or y < -LIMIT then clipped = clipped + 11 end
    if z > LIMIT or z < -LIMIT then clipped = clipped + 12 end
    last = (y + z) * 0.25
    if last > LIMIT then loud = loud + 1 end
    if last < -LIMIT then loud = loud + 2 end
    return clipped
  end
end
local smooth = filter(0.5, 0.3, 0.7)
local function phase_upvalues()
  local sum = 0
  for i = 1, 40000 do
    sum = sum + smooth(i)
  end
  return sum
end
twin.run {
  { name = "phase_counters", run = phase_counters },
  { name = "phase_compose", run = phase_compose },
  { name = "phase_folds", run = phase_folds },
  { name = "phase_upvalues", run = phase_upvalues, leaf = smooth },
}

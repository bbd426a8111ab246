-- Coroutines inside loops: generators, pipelines, hot loops within a coroutine.
local twin = dofile(arg[0]:match("^.*/") .. "twin.lua")
local create, resume = coroutine.create, coroutine.resume
local wrap, yield = coroutine.wrap, coroutine.yield
local function mangle(x)
  return (x * 17 + 5) % 1021
end
local function weigh(x)
  local y = mangle(x)
  if y > 500 then return y - 500 end
  return y
end
local function count_to(n)
  for i = 1, n do
    local w = weigh(i)
    yield(w)
  end
end
local function phase_generator()
  local sum = 0
  local next_one = wrap(count_to)
  for _ = 1, 2400 do
    sum = sum + next_one(10000)
  end
  return sum
end
local function crunch(n)
  local sum = 0
  for i = 1, n do
    local w = weigh(i + sum % 3)
    sum = sum + w
  end
  return sum
end
local function worker(n)
  while true do
    local sum = crunch(n)
    yield(sum)
  end
end
local crew = {}
for i = 1, 4 do crew[i] = create(worker) end
local function phase_workers()
  local sum = 0
  for _ = 1, 5 do
    for i = 1, #crew do
      local _, part = resume(crew[i], 400 * i)
      sum = sum + part
    end
  end
  return sum
end
local function source(n)
  for i = 1, n do
    yield(i)
  end
end
local function filter(n)
  local step = wrap(source)
  for _ = 1, n do
    local value = step(n)
    local w = weigh(value)
    if w % 2 == 0 then yield(w) end
  end
  yield(-1)
end
local function phase_pipeline()
  local sum, step = 0, wrap(filter)
  while true do
    local value = step(1500)
    if value < 0 then return sum end
    sum = sum + value
  end
end
local basin = {}
for i = 1, 1000 do basin[i] = 100 + i * 31 % 800 end
local function stir(t, i)
  if i < 1 then return 0 end
  local a, b, c, d = t[i], t[i + 1], t[i + 2], t[i + 3]
  if a < 1 or b < 1 or c < 1 or d < 1 then return 0 end
  local e, f, g, h = t[i + 4], t[i + 5], t[i + 6], t[i + 7]
  if e < 1 or f < 1 or g < 1 or h < 1 then return 1 end
  local k, l, m, n = t[i + 8], t[i + 9], t[i + 10], t[i + 11]
  if k < 1 or l < 1 or m < 1 or n < 1 then return 2 end
  local p, q = (a + b) / (c + d), (e + f) / (g + h)
  if p > 5000 or q > 5000 then return 3 end
  local r, s = (k + l) / (m + n), (p + q) / (p * q + 1)
  if r > 5000 or s > 5000 then return 4 end
  t[i] = a * 0.5 + 100
  t[i + 5] = f * 0.5 + 100
  t[i + 11] = n * 0.5 + 100
  if r + s > 9000 or p - s > 9000 or q - r > 9000 then return 5 end
  return 6
end
local function stirring()
  while true do
    local sum = 0
    for _ = 1, 30 do
      for i = 1, #basin - 11 do
        sum = sum + stir(basin, i)
      end
    end
    yield(sum)
  end
end
local stirrer = wrap(stirring)
local function phase_stirring()
  local sum = stirrer()
  return sum
end
twin.run {
  { name = "phase_generator", run = phase_generator },
  { name = "phase_workers", run = phase_workers },
  { name = "phase_pipeline", run = phase_pipeline },
  { name = "phase_stirring", run = phase_stirring, leaf = stir },
}

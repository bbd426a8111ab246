-- Numeric loops. Nearly free of guards: most calls leave nothing behind in a snapshot.
local twin = dofile(arg[0]:match("^.*/") .. "twin.lua")
local function square(x)
  return x * x
end
local function polynomial(x)
  local y = square(x) * 0.25 + x
  return square(y) * 0.125 - y * 0.5 + 1
end
local function slope(x)
  local above = polynomial(x + 0.001)
  local below = polynomial(x - 0.001)
  return (above - below) * 500
end
local function phase_integral()
  local sum, step = 0, 1 / 60000
  for i = 1, 60000 do
    sum = sum + polynomial(i * step) * step
  end
  return sum
end
local function phase_newton()
  local found = 0
  for i = 1, 9000 do
    local x = i * 0.0001
    for _ = 1, 4 do
      x = x - polynomial(x) / (slope(x) + 3)
    end
    found = found + x
  end
  return found
end
local function iterate(x)
  for _ = 1, 40000 do
    x = (x * x + 0.3) % 1.75
  end
  return x
end
local function phase_chaos()
  local x = iterate(0.1)
  x = iterate(x)
  return x
end
local function crossings(re, im)
  local x, y = 0, 0
  for i = 1, 60 do
    local xx, yy = square(x), square(y)
    if xx + yy > 4 then return i end
    y = 2 * x * y + im
    x = xx - yy + re
  end
  return 60
end
local function phase_mandelbrot()
  local sum = 0
  for row = 1, 50 do
    for column = 1, 50 do
      local n = crossings(column / 25 - 1.5, row / 25 - 1)
      sum = sum + n
    end
  end
  return sum
end
twin.run {
  { name = "phase_integral", run = phase_integral },
  { name = "phase_newton", run = phase_newton },
  { name = "phase_chaos", run = phase_chaos, leaf = iterate },
  { name = "phase_mandelbrot", run = phase_mandelbrot },
}

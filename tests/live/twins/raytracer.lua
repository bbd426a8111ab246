-- A ray tracer: vectors in tables, spheres, shadows; and what becomes of the picture.
local twin = dofile(arg[0]:match("^.*/") .. "twin.lua")
local sqrt, floor = math.sqrt, math.floor
local function vector(x, y, z)
  return { x = x, y = y, z = z }
end
local function subtract(a, b)
  return vector(a.x - b.x, a.y - b.y, a.z - b.z)
end
local function dot(a, b)
  return a.x * b.x + a.y * b.y + a.z * b.z
end
local function scale(a, k)
  return vector(a.x * k, a.y * k, a.z * k)
end
local function along(a, b, k)
  return vector(a.x + b.x * k, a.y + b.y * k, a.z + b.z * k)
end
local function normalize(a)
  local length = sqrt(dot(a, a))
  return scale(a, 1 / length)
end
local spheres = {}
for i = 1, 6 do
  spheres[i] = { center = vector(i % 3 - 1, i % 2 - 0.5, 3 + i % 4), radius = 0.5, tint = 30 * i }
end
local light = normalize(vector(1, 1, -1))
local eye = vector(0, 0, -1)
local function hit(sphere, origin, ray)
  local to = subtract(sphere.center, origin)
  local middle = dot(to, ray)
  if middle < 0 then return nil end
  local square = dot(to, to) - middle * middle
  local rest = sphere.radius * sphere.radius - square
  if rest < 0 then return nil end
  return middle - sqrt(rest)
end
local function nearest(origin, ray)
  local best, found = 1e9, nil
  for i = 1, #spheres do
    local at = hit(spheres[i], origin, ray)
    if at and at > 0.001 and at < best then best, found = at, spheres[i] end
  end
  return found, best
end
local function shade(sphere, point)
  local normal = normalize(subtract(point, sphere.center))
  local bright = dot(normal, light)
  if bright < 0 then return 5 end
  return bright * sphere.tint
end
local SIZE = 24
local picture = {}
for i = 1, SIZE * SIZE do picture[i] = 0 end
local function trace(column, row)
  local ray = normalize(vector(column / SIZE - 0.5, row / SIZE - 0.5, 1))
  local sphere, at = nearest(eye, ray)
  if not sphere then return 1 end
  local value = shade(sphere, along(eye, ray, at))
  return value
end
local function phase_render()
  for row = 0, SIZE - 1 do
    for column = 0, SIZE - 1 do
      picture[row * SIZE + column + 1] = trace(column, row)
    end
  end
end
local function is_lit(point)
  local sphere = nearest(point, light)
  if sphere then return 0 end
  return 1
end
local function phase_shadows()
  local lit = 0
  for i = 1, 450 do
    local point = vector(i % 20 / 10 - 1, -1, 2 + i / 200)
    lit = lit + is_lit(point)
  end
  return lit
end
local function level(value)
  return floor(value / 16)
end
local histogram = {}
for i = 0, 20 do histogram[i] = 0 end
local function note(value)
  local n = level(value)
  histogram[n] = histogram[n] + 1
end
local function phase_histogram()
  for _ = 1, 50 do
    for i = 1, #picture do
      note(picture[i])
    end
  end
end
local points = {}
for i = 1, 300 do
  points[i] = { x = i % 7 - 3, y = i % 5 - 2, z = i % 11 + 4, near = 0 }
end
local sun = { x = 0, y = 40, z = -40, radius = 9, inner = 4 }
-- Whether what is at that point is lit by the sun's disk through a window; it never is.
local function is_sunny(i)
  if i < 1 then return 0 end
  local point = points[i]
  local x, y, z = point.x, point.y, point.z
  if x < -99 or x > 99 or y < -99 or y > 99 or z < -99 or z > 99 then return 0 end
  local dx, dy, dz = sun.x - x, sun.y - y, sun.z - z
  local square = dx * dx + dy * dy + dz * dz
  if square < 1 or square > 99999 then return 0 end
  local length = sqrt(square)
  local rx, ry, rz = dx / length, dy / length, dz / length
  if rx > 2 or ry > 2 or rz > 2 or rx < -2 or ry < -2 or rz < -2 then return 0 end
  local middle = rx * x + ry * y + rz * z
  if middle > 999 or middle < -999 then return 0 end
  local rest = square - middle * middle
  if rest < sun.radius or rest > 99999 then return 1 end
  local wx, wy = (x + rx * middle) / (rz * rz + 1), (y + ry * middle) / (rx * rx + 1)
  if wx > 999 or wx < -999 or wy > 999 or wy < -999 then return 1 end
  local near = sqrt(wx * wx + wy * wy + rest)
  if near < sun.inner or near > 99999 then return 1 end
  point.near = near
  if rest + near > 99999 or square + near > 99999 then return 1 end
  return 2
end
local function phase_sun()
  local sum = 0
  for _ = 1, 40 do
    for i = 1, #points do
      sum = sum + is_sunny(i)
    end
  end
  return sum
end
twin.run {
  { name = "phase_render", run = phase_render },
  { name = "phase_shadows", run = phase_shadows },
  { name = "phase_histogram", run = phase_histogram },
  { name = "phase_sun", run = phase_sun, leaf = is_sunny },
}

-- FFI structs: arrays of them, fields, pointers, metatables of C types.
local twin = dofile(arg[0]:match("^.*/") .. "twin.lua")
local ffi = require("ffi")
ffi.cdef [[
typedef struct { double x, y, vx, vy, near; int hits, seen; } twin_body;
typedef struct { uint8_t red, green, blue, alpha; } twin_pixel;
typedef struct { double re, im; } twin_complex;
]]
local BODIES, PIXELS = 200, 4096
local bodies = ffi.new("twin_body[?]", BODIES)
local pixels = ffi.new("twin_pixel[?]", PIXELS)
for i = 0, BODIES - 1 do
  bodies[i].x, bodies[i].vx, bodies[i].vy = i, i % 7 - 3, i % 5 - 2
end
for i = 0, PIXELS - 1 do
  pixels[i].red, pixels[i].green = i % 251, i % 127
end
local function bounce(body)
  if body.x < 0 or body.x > 300 then
    body.vx = -body.vx
    body.hits = body.hits + 1
  end
  if body.y < 0 or body.y > 300 then
    body.vy = -body.vy
    body.hits = body.hits + 1
  end
end
local function move(body, time)
  body.x = body.x + body.vx * time
  body.y = body.y + body.vy * time
  bounce(body)
end
local function phase_bodies()
  for _ = 1, 100 do
    for i = 0, BODIES - 1 do
      move(bodies[i], 0.1)
    end
  end
end
local function brightness(pixel)
  local green = pixel.green
  return (pixel.red * 3 + green * 6 + pixel.blue) / 10
end
local function threshold(pixel)
  local light = brightness(pixel)
  if light > 90 then return 255 end
  return 0
end
local function phase_pixels()
  local white = 0
  for _ = 1, 6 do
    for i = 0, PIXELS - 1 do
      local value = threshold(pixels[i])
      pixels[i].alpha = value
      if value == 255 then white = white + 1 end
    end
  end
  return white
end
local function inspect(i)
  if i < 0 then return 0 end
  local body = bodies[i]
  local x, y, vx, vy = body.x, body.y, body.vx, body.vy
  if x < -1e6 or x > 1e6 then return 0 end
  if y < -1e6 or y > 1e6 then return 1 end
  if vx < -1e6 or vx > 1e6 then return 2 end
  if vy < -1e6 or vy > 1e6 then return 3 end
  local speed, distance = vx * vx + vy * vy, x * x + y * y
  if speed > 1e9 then return 4 end
  if distance > 1e9 then return 5 end
  local turn, fall = (x * vy - y * vx) / (distance + 1), (x * vx + y * vy) / (speed + 1)
  if turn > 1e6 or turn < -1e6 then return 6 end
  if fall > 1e6 or fall < -1e6 then return 7 end
  local ahead, aside = (x + vx * fall) / (speed + 2), (y + vy * fall) / (distance + 2)
  if ahead > 1e6 or ahead < -1e6 then return 8 end
  if aside > 1e6 or aside < -1e6 then return 9 end
  body.near = (ahead * ahead + aside * aside) / (turn * turn + 1)
  body.seen = body.seen + 1
  if body.seen < 0 or body.hits < 0 then return 10 end
  if speed + distance > 1e9 or ahead - aside > 1e9 or turn + fall > 1e9 then return 11 end
  return 12
end
local function phase_inspect()
  local sum = 0
  for _ = 1, 60 do
    for i = 0, BODIES - 1 do
      sum = sum + inspect(i)
    end
  end
  return sum
end
local complex
complex = ffi.metatype("twin_complex", {
  __add = function(a, b)
    return complex(a.re + b.re, a.im + b.im)
  end,
  __mul = function(a, b)
    return complex(a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re)
  end,
  __index = {
    size = function(a)
      return a.re * a.re + a.im * a.im
    end,
  },
})
local function escape(c)
  local z = complex(0, 0)
  for i = 1, 30 do
    z = z * z + c
    if z:size() > 4 then return i end
  end
  return 30
end
local function phase_complex()
  local sum = 0
  for row = 1, 12 do
    for column = 1, 12 do
      local n = escape(complex(column / 6 - 1.5, row / 6 - 1))
      sum = sum + n
    end
  end
  return sum
end
twin.run {
  { name = "phase_bodies", run = phase_bodies },
  { name = "phase_pixels", run = phase_pixels },
  { name = "phase_inspect", run = phase_inspect, leaf = inspect },
  { name = "phase_complex", run = phase_complex },
}

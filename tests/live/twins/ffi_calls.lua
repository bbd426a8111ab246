-- FFI calls: functions of the C library, short and long, with buffers and numbers.
local twin = dofile(arg[0]:match("^.*/") .. "twin.lua")
local ffi = require("ffi")
ffi.cdef [[
int abs(int);
double sin(double);
double fmod(double, double);
size_t strlen(const char *);
void *memcpy(void *, const void *, size_t);
void *memset(void *, int, size_t);
int memcmp(const void *, const void *, size_t);
]]
local C = ffi.C
local abs, sin, fmod, strlen = C.abs, C.sin, C.fmod, C.strlen
local memcpy, memset, memcmp = C.memcpy, C.memset, C.memcmp
local SIZE = 8192
local from, to = ffi.new("uint8_t[?]", SIZE), ffi.new("uint8_t[?]", SIZE)
for i = 0, SIZE - 1 do from[i] = i % 250 + 1 end
from[SIZE - 1] = 0
local function distance(a, b)
  return abs(a - b)
end
local function nearest(i)
  local low, high = distance(i, 100), distance(i, 900)
  if low < high then return low end
  return high
end
local function phase_numbers()
  local sum = 0
  for i = 1, 30000 do
    local n = nearest(i % 1000)
    sum = sum + n
  end
  return sum
end
local function wave(x)
  local y = sin(x)
  return y * 0.5
end
local function mixed(x)
  local y = wave(x) + wave(x * 2)
  return fmod(y, 0.25)
end
local function phase_waves()
  local sum = 0
  for i = 1, 6000 do
    local y = mixed(i * 0.01)
    if y > 0 then sum = sum + y end
  end
  return sum
end
local function move_block(offset, length)
  memset(to, offset % 256, length)
  memcpy(to, from + offset, length)
end
local function same(offset, length)
  return memcmp(to, from + offset, length) == 0
end
local function phase_blocks()
  local count = 0
  for i = 1, 3000 do
    local offset = i % 512
    move_block(offset, 2048)
    local equal = same(offset, 2048)
    if equal then count = count + 1 end
  end
  return count
end
local function measure(offset)
  if offset >= SIZE then return 0 end
  local length = strlen(from + offset)
  if length >= SIZE then return 1 end
  memcpy(to + offset, from + offset, length)
  if memcmp(to + offset, from + offset, length) ~= 0 then return 2 end
  memset(to, 7, 4096)
  if to[1] ~= 7 then return 3 end
  return 4
end
local function phase_measures()
  local sum = 0
  for i = 1, 1000 do
    sum = sum + measure(i)
  end
  return sum
end
twin.run {
  { name = "phase_numbers", run = phase_numbers },
  { name = "phase_waves", run = phase_waves },
  { name = "phase_blocks", run = phase_blocks },
  { name = "phase_measures", run = phase_measures, leaf = measure },
}

-- String building: concatenation, pieces in a table, formatting, bytes and substrings.
local twin = dofile(arg[0]:match("^.*/") .. "twin.lua")
local byte, sub, format, rep, char = string.byte, string.sub, string.format, string.rep, string.char
local find, lower = string.find, string.lower
local TEXT = rep("The quick brown Fox jumps, over 13 lazy dogs. ", 20)
local function is_letter(code)
  return code >= 97 and code <= 122 or code >= 65 and code <= 90
end
local function rotated(code)
  local base = code >= 97 and 97 or 65
  return (code - base + 13) % 26 + base
end
local function encoded(code)
  if is_letter(code) then return rotated(code) end
  return code
end
local function phase_rot13()
  local pieces = {}
  for i = 1, #TEXT do
    local code = encoded(byte(TEXT, i))
    pieces[i] = char(code)
  end
  local text = table.concat(pieces)
  return #text
end
-- Of eight characters, none of which is above 127.
local function hash_step(text, i)
  if i < 1 then return 0 end
  local a, b, c, d = byte(text, i, i + 3)
  if a > 127 or b > 127 or c > 127 or d > 127 then return 0 end
  local e, f, g, h = byte(text, i + 4, i + 7)
  if e > 127 or f > 127 or g > 127 or h > 127 then return 0 end
  local p, q = (a * 33 + b) % 1021, (c * 33 + d) % 1019
  if p < 0 or p > 1021 or q < 0 or q > 1021 then return 0 end
  local r, s = (e * 33 + f) % 1013, (g * 33 + h) % 1009
  if r < 0 or r > 1021 or s < 0 or s > 1021 then return 0 end
  local t, u = (p * 17 + q) % 997, (r * 17 + s) % 991
  if t < 0 or t > 1021 or u < 0 or u > 1021 then return 0 end
  local all = (t * 31 + u) % 983
  if all < 0 or all + a > 9999 or all + e > 9999 then return 0 end
  return 1
end
local function phase_hash()
  local sum = 0
  for _ = 1, 8 do
    for i = 1, #TEXT - 7 do
      sum = sum + hash_step(TEXT, i)
    end
  end
  return sum
end
local function key_of(i)
  return "key" .. i % 50
end
local function pair(i)
  local key = key_of(i)
  return key .. "=" .. i % 7
end
local function phase_pairs()
  local length = 0
  for i = 1, 1500 do
    local text = pair(i)
    length = length + #text
  end
  return length
end
local function word(i)
  local from = i % 40 + 1
  return sub(TEXT, from, from + 6)
end
local function line(i)
  local name = lower(word(i))
  return format("%s:%d", name, i % 10)
end
local function has_colon(text)
  return find(text, ":", 1, true)
end
local function phase_lines()
  local count = 0
  for i = 1, 1500 do
    local at = has_colon(line(i))
    if at then count = count + at end
  end
  return count
end
twin.run {
  { name = "phase_rot13", run = phase_rot13 },
  { name = "phase_hash", run = phase_hash, leaf = hash_step },
  { name = "phase_pairs", run = phase_pairs },
  { name = "phase_lines", run = phase_lines },
}

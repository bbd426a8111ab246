-- A JSON encoder and decoder, and what looks at the text character by character.
local twin = dofile(arg[0]:match("^.*/") .. "twin.lua")
local byte, sub, find, format = string.byte, string.sub, string.find, string.format
local encode
local function encode_string(text)
  if find(text, '["\\]') then
    text = text:gsub('["\\]', "\\%0")
  end
  return '"' .. text .. '"'
end
local function encode_list(list, out)
  out[#out + 1] = "["
  for i = 1, #list do
    if i > 1 then out[#out + 1] = "," end
    encode(list[i], out)
  end
  out[#out + 1] = "]"
end
local function encode_record(record, out)
  out[#out + 1] = "{"
  for i = 1, #record.keys do
    local key = record.keys[i]
    if i > 1 then out[#out + 1] = "," end
    out[#out + 1] = encode_string(key)
    out[#out + 1] = ":"
    encode(record[key], out)
  end
  out[#out + 1] = "}"
end
function encode(value, out)
  local kind = type(value)
  if kind == "number" then
    out[#out + 1] = format("%d", value)
  elseif kind == "string" then
    out[#out + 1] = encode_string(value)
  elseif value.keys then
    encode_record(value, out)
  else
    encode_list(value, out)
  end
end
local people = {}
for i = 1, 60 do
  people[i] = { keys = { "name", "age", "tags" }, name = "N" .. i, age = i % 80,
    tags = { i, i * 2, 'say "' .. i .. '"' } }
end
local TEXT
local function phase_encode()
  for _ = 1, 3 do
    local out = {}
    encode(people, out)
    TEXT = table.concat(out)
  end
end
local decode
local function decode_string(text, at)
  local start = at + 1
  while true do
    at = at + 1
    local code = byte(text, at)
    if code == 34 then return sub(text, start, at - 1), at + 1 end
    if code == 92 then at = at + 1 end
  end
end
local function decode_number(text, at)
  local value = 0
  while true do
    local code = byte(text, at)
    if code < 48 or code > 57 then return value, at end
    value = value * 10 + code - 48
    at = at + 1
  end
end
local function decode_list(text, at)
  local list, value = {}, nil
  repeat
    value, at = decode(text, at + 1)
    list[#list + 1] = value
  until byte(text, at) == 93
  return list, at + 1
end
local function decode_record(text, at)
  local record, key, value = {}, nil, nil
  repeat
    key, at = decode_string(text, at + 1)
    value, at = decode(text, at + 1)
    record[key] = value
  until byte(text, at) == 125
  return record, at + 1
end
function decode(text, at)
  local code = byte(text, at)
  local read = decode_number
  if code == 34 then read = decode_string end
  if code == 91 then read = decode_list end
  if code == 123 then read = decode_record end
  return read(text, at)
end
local function phase_decode()
  local count = 0
  for _ = 1, 6 do
    local list = decode(TEXT, 1)
    count = count + #list
  end
  return count
end
local function phase_scan()
  local strings, numbers, depth, deepest = 0, 0, 0, 0
  for _ = 1, 14 do
    local inside, escaped = false, false
    for i = 1, #TEXT do
      local code = byte(TEXT, i)
      if escaped then escaped = false
      elseif code == 92 then escaped = true
      elseif code == 34 then
        if inside then strings = strings + 1 end
        inside = not inside
      elseif not inside then
        if code >= 48 and code <= 57 then numbers = numbers + 1
        elseif code == 91 or code == 123 then
          depth = depth + 1
          if depth > deepest then deepest = depth end
        elseif code == 93 or code == 125 then depth = depth - 1 end
      end
    end
  end
  return strings + numbers + deepest
end
local PLAIN = string.rep("no character here is one that has to be escaped; ", 40)
-- Whether so many from there on can stand in a string as they are.
local function is_plain(text, i)
  if i < 1 then return 0 end
  local a, b, c, d = byte(text, i, i + 3)
  if a < 32 or a == 34 or a == 92 then return 0 end
  if b < 32 or b == 34 or b == 92 then return 1 end
  if c < 32 or c == 34 or c == 92 then return 2 end
  if d < 32 or d == 34 or d == 92 then return 3 end
  local e, f, g, h = byte(text, i + 4, i + 7)
  if e < 32 or e == 34 or e == 92 then return 4 end
  if f < 32 or f == 34 or f == 92 then return 5 end
  if g < 32 or g == 34 or g == 92 then return 6 end
  if h < 32 or h == 34 or h == 92 then return 7 end
  local k, l, m, n = byte(text, i + 8, i + 11)
  if k < 32 or k == 34 or k == 92 then return 8 end
  if l < 32 or l == 34 or l == 92 then return 9 end
  if m < 32 or m == 34 or m == 92 then return 10 end
  if n < 32 or n == 34 or n == 92 then return 11 end
  return 12
end
local function phase_plain()
  local sum = 0
  for _ = 1, 20 do
    for i = 1, #PLAIN - 11 do
      sum = sum + is_plain(PLAIN, i)
    end
  end
  return sum
end
twin.run {
  { name = "phase_encode", run = phase_encode },
  { name = "phase_decode", run = phase_decode },
  { name = "phase_scan", run = phase_scan, leaf = phase_scan },
  { name = "phase_plain", run = phase_plain, leaf = is_plain },
}

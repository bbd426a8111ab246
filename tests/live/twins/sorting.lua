-- Sorting with comparators: LuaJIT's own sort, which calls back, and sorts in Lua.
local twin = dofile(arg[0]:match("^.*/") .. "twin.lua")
local SIZE = 300
local function key(item)
  return item.key
end
local function by_key(a, b)
  local x, y = key(a), key(b)
  return x < y
end
local function by_name(a, b)
  if a.name ~= b.name then return a.name < b.name end
  return a.key > b.key
end
local function fill(seed)
  local items = {}
  for i = 1, SIZE do
    seed = (seed * 1103 + 12345) % 65536
    items[i] = { key = seed, name = "n" .. seed % 50 }
  end
  return items
end
local items, work = fill(7), {}
local function copy()
  for i = 1, SIZE do work[i] = items[i] end
  return work
end
local function phase_by_key()
  for _ = 1, 2 do
    local t = copy()
    table.sort(t, by_key)
  end
end
local function phase_by_name()
  local t = copy()
  table.sort(t, by_name)
end
local function is_before(a, b)
  return by_key(a, b)
end
local function insert_at(t, i, item)
  local k = i - 1
  while k > 0 do
    local other = t[k]
    local before = is_before(item, other)
    if not before then break end
    t[k + 1] = other
    k = k - 1
  end
  t[k + 1] = item
end
local function phase_insertion()
  local t = copy()
  for i = 2, SIZE do
    insert_at(t, i, t[i])
  end
end
local keys = {}
local function phase_gaps()
  for _ = 1, 9 do
    for i = 1, SIZE do keys[i] = items[i].key end
    local gap = 121
    while gap >= 1 do
      for i = gap + 1, SIZE do
        local value, k = keys[i], i - gap
        while k >= 1 and keys[k] > value do
          keys[k + gap] = keys[k]
          k = k - gap
        end
        keys[k + gap] = value
      end
      gap = (gap - 1) / 3
    end
  end
end
local ordered = {}
for i = 1, SIZE + 16 do ordered[i] = i * 3 end
-- How many from there on are in the wrong place: none.
local function misplaced(t, i)
  if i < 1 then return 0 end
  local a, b, c, d = t[i], t[i + 1], t[i + 2], t[i + 3]
  if a > b or b > c or c > d then return 1 end
  local e, f, g, h = t[i + 4], t[i + 5], t[i + 6], t[i + 7]
  if d > e or e > f or f > g or g > h then return 2 end
  local k, l, m, n = t[i + 8], t[i + 9], t[i + 10], t[i + 11]
  if h > k or k > l or l > m or m > n then return 3 end
  local w, x, y, z = t[i + 12], t[i + 13], t[i + 14], t[i + 15]
  if n > w or w > x or x > y or y > z then return 4 end
  if b - a > 99 or d - c > 99 or f - e > 99 or h - g > 99 then return 5 end
  if l - k > 99 or n - m > 99 or x - w > 99 or z - y > 99 then return 6 end
  return 0
end
local function phase_ordered()
  local sum = 0
  for _ = 1, 50 do
    for i = 1, SIZE do
      sum = sum + misplaced(ordered, i)
    end
  end
  return sum
end
twin.run {
  { name = "phase_by_key", run = phase_by_key },
  { name = "phase_by_name", run = phase_by_name },
  { name = "phase_insertion", run = phase_insertion },
  { name = "phase_gaps", run = phase_gaps, leaf = phase_gaps },
  { name = "phase_ordered", run = phase_ordered, leaf = misplaced },
}

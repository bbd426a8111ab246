-- Table code with guards: arrays, records, hash parts, a queue and a grid.
local twin = dofile(arg[0]:match("^.*/") .. "twin.lua")
local SIZE = 4096
local cells, people, counts = {}, {}, {}
for i = 1, SIZE do
  cells[i] = (i * 7919) % 1000
  people[i] = { age = i % 90, city = "c" .. i % 17, height = 150 + i % 50 }
end
local function wrap(i)
  if i > SIZE then return i - SIZE end
  return i
end
local function neighbours(i)
  local right = cells[wrap(i + 1)]
  local far = cells[wrap(i + 64)]
  return right + far
end
local function settle(i)
  local sum = neighbours(i)
  local old = cells[i]
  if sum > 2 * old then
    cells[i] = old + 1
  elseif old > 0 then
    cells[i] = old - 1
  end
end
local function phase_grid()
  for _ = 1, 16 do
    for i = 1, SIZE do
      settle(i)
    end
  end
end
local function is_adult(person)
  return person.age >= 18
end
local function tally(person)
  local city = person.city
  counts[city] = (counts[city] or 0) + person.height
end
local function visit(person)
  local adult = is_adult(person)
  if adult then tally(person) end
end
local function phase_records()
  for _ = 1, 22 do
    for i = 1, SIZE do
      visit(people[i])
    end
  end
end
local line = {}
for i = 1, SIZE + 16 do line[i] = { share = 100 + i % 50, rest = 20 + i % 7 } end
local sums = {}
for i = 1, SIZE + 16 do sums[i] = 50 + i * 31 % 1000 end
local function balance(t, i)
  if i < 1 then return 0 end
  local one, two, three = t[i], t[i + 1], t[i + 2]
  local a, b, c = one.share, two.share, three.share
  if a < 1 or b < 1 or c < 1 then return 0 end
  local d, e, f = one.rest, two.rest, three.rest
  if d < 1 or e < 1 or f < 1 then return 0 end
  local k, l, m, n = sums[i], sums[i + 1], sums[i + 2], sums[i + 3]
  if k < 1 or l < 1 or m < 1 or n < 1 then return 0 end
  local p, q = (a * d + b) / (k + l), (b * e + c) / (m + n)
  if p > 1e6 or q > 1e6 or p < 0 or q < 0 then return 0 end
  local r = (c * f + a) / (p + q + 1)
  if r > 1e6 or r < 0 or p + r > 1e6 or q + r > 1e6 then return 0 end
  one.share = a * 0.5 + 60
  two.rest = e * 0.5 + 10
  sums[i] = k * 0.5 + 50
  if a + e > 1e6 or k + b > 1e6 then return 0 end
  return 1
end
local function phase_balance()
  local sum = 0
  for _ = 1, 12 do
    for i = 1, SIZE do
      sum = sum + balance(line, i)
    end
  end
  return sum
end
local queue = { first = 1, last = 0 }
local function push(value)
  queue.last = queue.last + 1
  queue[queue.last % 512] = value
end
local function pop()
  local value = queue[queue.first % 512]
  queue.first = queue.first + 1
  return value
end
local function pump(i)
  push(i)
  push(i + 1)
  local one, two = pop(), pop()
  return one + two
end
local function phase_queue()
  local sum = 0
  for i = 1, 40000 do
    local n = pump(i)
    sum = sum + n
  end
  return sum
end
twin.run {
  { name = "phase_grid", run = phase_grid },
  { name = "phase_records", run = phase_records },
  { name = "phase_balance", run = phase_balance, leaf = balance },
  { name = "phase_queue", run = phase_queue },
}

-- Metamethods and calls of methods: arithmetic, comparison, __index of both kinds, inheritance.
local twin = dofile(arg[0]:match("^.*/") .. "twin.lua")
local vector = {}
vector.__index = vector
local function new(x, y)
  return setmetatable({ x = x, y = y }, vector)
end
function vector.__add(a, b)
  return new(a.x + b.x, a.y + b.y)
end
function vector.__mul(a, k)
  return new(a.x * k % 97, a.y * k % 89)
end
function vector.__lt(a, b)
  local m, n = a:norm(), b:norm()
  return m < n
end
function vector.__eq(a, b)
  return a.x == b.x and a.y == b.y
end
function vector:norm()
  return self.x * self.x + self.y * self.y
end
local unit = new(1, 2)
local function phase_arithmetic()
  local v = new(1, 1)
  for i = 1, 6000 do
    v = (v + unit) * 3
  end
  return v.x
end
local function phase_compare()
  local a, b, count = new(1, 5), new(2, 3), 0
  for i = 1, 40000 do
    a.x = i % 7
    if a < b then count = count + 1 end
    if a == b then count = count + 2 end
  end
  return count
end
local shape = {}
shape.__index = shape
function shape:scaled(k)
  local area = self:area()
  return area * k
end
local square = setmetatable({}, shape)
square.__index = square
function square:area()
  return self.side * self.side
end
local circle = setmetatable({}, shape)
circle.__index = circle
function circle:area()
  return self.radius * self.radius * 3.14159
end
local shapes = {}
for i = 1, 64 do
  local kind = i % 3 == 0 and circle or square
  shapes[i] = setmetatable({ side = i, radius = i / 2 }, kind)
end
local function phase_shapes()
  local sum = 0
  for _ = 1, 250 do
    for i = 1, #shapes do
      local part = shapes[i]:scaled(0.5)
      sum = sum + part
    end
  end
  return sum
end
local lazy = setmetatable({}, {
  __index = function(_, key)
    return #key + 1
  end,
  __call = function(self, key)
    local n = self[key]
    return n * 2
  end,
})
local function phase_lazy()
  local sum = 0
  for i = 1, 25000 do
    local n = lazy.width
    sum = sum + n + lazy("height")
  end
  return sum
end
local window = {}
window.__index = window
function window.__mul(a, i)
  if i < 1 then return 0 end
  local p = a[i] * a[i + 1] + a[i + 2] * a[i + 3]
  local q = a[i + 4] * a[i + 5] + a[i + 6] * a[i + 7]
  if p < 0 or q < 0 then return 1 end
  local r = a[i + 8] * a[i + 9] + a[i + 10] * a[i + 11]
  local s = a[i + 12] * a[i + 13] + a[i + 14] * a[i + 15]
  if r < 0 or s < 0 then return 2 end
  local t, u = (p + q) / (r + s + 1), (p - q) / (r * r + 1)
  if t > 1e9 or t < 0 or u > 1e9 or u < -1e9 then return 3 end
  a[i] = a[i] * 0.5 + 10
  a[i + 15] = a[i + 15] * 0.5 + 10
  if t + u > 1e9 or t + p > 1e9 or t + q > 1e9 or u + r > 1e9 then return 4 end
  return 5
end
local samples = setmetatable({}, window)
for i = 1, 1000 do samples[i] = 10 + i * 31 % 90 end
local function phase_window()
  local sum = 0
  for _ = 1, 50 do
    for i = 1, #samples - 15 do
      sum = sum + samples * i
    end
  end
  return sum
end
local ledger = {}
ledger.__index = ledger
function ledger:book(i)
  if i < 1 then return 0 end
  local entry = self.entries[i]
  local balance, least, most = entry.balance, entry.least, entry.most
  if balance < 0 or least < 0 or most < 0 then return 0 end
  local count, refused, fee = entry.count, entry.refused, entry.fee
  if count < 0 or refused < 0 or fee < 0 then return 1 end
  local turnover, rate, bonus = entry.turnover, entry.rate, entry.bonus
  if turnover < 0 or rate < 0 or bonus < 0 then return 2 end
  local due = (balance * rate + fee) / (most - least + 1)
  if due > 1e9 or due < 0 then return 3 end
  local score = (turnover + bonus) / (count + refused + 1)
  if score > 1e9 or score < 0 then return 4 end
  local left = (balance + i) / (due * due + 1)
  if left > 1e9 or left < 0 then return 5 end
  entry.balance = left + 100
  entry.turnover = score * 0.5 + 10
  entry.count = count + 1
  if left + score > 1e9 or left + due > 1e9 then return 6 end
  return 7
end
local books = setmetatable({ entries = {} }, ledger)
for i = 1, 100 do
  books.entries[i] = { balance = 100 + i, least = i, most = 200 + i, count = i, refused = 1,
    fee = 2, turnover = 500 + i, rate = 0.5, bonus = 3 }
end
local function phase_ledger()
  local sum = 0
  for _ = 1, 300 do
    for i = 1, 100 do
      sum = sum + books:book(i)
    end
  end
  return sum
end
twin.run {
  { name = "phase_arithmetic", run = phase_arithmetic },
  { name = "phase_compare", run = phase_compare },
  { name = "phase_shapes", run = phase_shapes },
  { name = "phase_lazy", run = phase_lazy },
  { name = "phase_window", run = phase_window, leaf = window.__mul },
  { name = "phase_ledger", run = phase_ledger, leaf = ledger.book },
}

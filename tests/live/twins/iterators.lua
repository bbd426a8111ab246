-- Iterators: pairs, ipairs, next, gmatch and iterators in Lua, stateless and with closures.
local twin = dofile(arg[0]:match("^.*/") .. "twin.lua")
local stock, prices = {}, {}
for i = 1, 100 do
  stock["item" .. i] = i * 7 % 31
  prices[i] = i * 13 % 53
end
local function cost(amount)
  if amount > 15 then return amount * 0.9 end
  return amount
end
local function add_cost(sum, amount)
  local c = cost(amount)
  return sum + c
end
local function phase_pairs()
  local sum = 0
  for _ = 1, 400 do
    for _, amount in pairs(stock) do
      sum = add_cost(sum, amount)
    end
  end
  return sum
end
local function phase_ipairs()
  local sum = 0
  for _ = 1, 1200 do
    for i, price in ipairs(prices) do
      sum = add_cost(sum, price + i)
    end
  end
  return sum
end
local function backwards(t, i)
  i = i - 1
  if i > 0 then return i, t[i] end
end
local function each_back(t)
  return backwards, t, #t + 1
end
local function phase_backwards()
  local sum = 0
  for _ = 1, 700 do
    for i, price in each_back(prices) do
      sum = add_cost(sum, price - i % 3)
    end
  end
  return sum
end
local function range(from, to)
  local at = from - 1
  return function()
    at = at + 1
    if at <= to then return at end
  end
end
local function phase_range()
  local sum = 0
  for i = 1, 600 do
    for at in range(i, i + 60) do
      sum = add_cost(sum, at % 40)
    end
  end
  return sum
end
local TEXT = string.rep("alpha beta gamma delta ", 20)
local function letters(word)
  local n = #word
  if n > 4 then return n * 2 end
  return n
end
local function phase_words()
  local sum = 0
  for _ = 1, 30 do
    for word in string.gmatch(TEXT, "%a+") do
      local n = letters(word)
      sum = sum + n
    end
  end
  return sum
end
local shelves = {}
for i = 1, 200 do
  shelves[i] = {}
  for k = 1, 16 do shelves[i][k] = 10 + (i * k) % 90 end
end
local function restock(t, i)
  if i < 1 then return 0 end
  local a, b, c, d = t[1], t[2], t[3], t[4]
  if a < 1 or b < 1 or c < 1 or d < 1 then return 0 end
  local e, f, g, h = t[5], t[6], t[7], t[8]
  if e < 1 or f < 1 or g < 1 or h < 1 then return 1 end
  local k, l, m, n = t[9], t[10], t[11], t[12]
  if k < 1 or l < 1 or m < 1 or n < 1 then return 2 end
  local w, x, y, z = t[13], t[14], t[15], t[16]
  if w < 1 or x < 1 or y < 1 or z < 1 then return 3 end
  local p, q = (a * b + c * d) / (e + f), (g * h + k * l) / (m + n)
  if p > 9999 or q > 9999 then return 4 end
  local r = (w * x + y * z) / (p + q)
  if r > 9999 or p + r > 9999 or q + r > 9999 then return 5 end
  t[1] = a * 0.5 + 10
  t[8] = h * 0.5 + 10
  t[16] = z * 0.5 + 10
  if a + h + z > 9999 then return 6 end
  return 7
end
local function phase_restock()
  local sum = 0
  for _ = 1, 240 do
    for i, shelf in ipairs(shelves) do
      sum = sum + restock(shelf, i)
    end
  end
  return sum
end
twin.run {
  { name = "phase_pairs", run = phase_pairs },
  { name = "phase_ipairs", run = phase_ipairs },
  { name = "phase_backwards", run = phase_backwards },
  { name = "phase_range", run = phase_range },
  { name = "phase_words", run = phase_words },
  { name = "phase_restock", run = phase_restock, leaf = restock },
}

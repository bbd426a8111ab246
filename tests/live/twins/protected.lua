-- pcall and xpcall in loops: calls that succeed, that fail, and that nest.
local twin = dofile(arg[0]:match("^.*/") .. "twin.lua")
local function half(x)
  if x % 2 == 1 then return (x - 1) / 2 end
  return x / 2
end
local function steps(x)
  local count = 0
  while x > 1 do
    x = half(x)
    count = count + 1
  end
  return count
end
local function phase_success()
  local sum = 0
  for i = 1, 9000 do
    local ok, n = pcall(steps, i)
    if ok then sum = sum + n end
  end
  return sum
end
local function check(x)
  if x % 10 == 0 then error("ten", 0) end
  return half(x)
end
local function phase_failure()
  local failed = 0
  for i = 1, 5000 do
    local ok = pcall(check, i)
    if not ok then failed = failed + 1 end
  end
  return failed
end
local function handler(message)
  return #message
end
local function risky(x)
  local y = half(x)
  if y % 16 == 3 then error("odd", 0) end
  return y
end
local function phase_handler()
  local sum = 0
  for i = 1, 5000 do
    local _, n = xpcall(risky, handler, i)
    sum = sum + n
  end
  return sum
end
local function inner(x)
  local y = half(x)
  return y + 1
end
local function outer(x)
  local ok, y = pcall(inner, x)
  if ok and y > 3 then return y - 3 end
  return y
end
local function phase_nested()
  local sum = 0
  for i = 1, 30000 do
    local _, y = pcall(outer, i)
    sum = sum + y
  end
  return sum
end
local pcall = pcall
local levels = {}
for i = 1, 500 do levels[i] = { low = i, high = i + 50, at = i + 20, alarms = 0, step = 2 } end
local function regulate(all, i)
  if i < 1 then return 0 end
  local one, two = all[i], all[i + 1]
  local low, high, at, step = one.low, one.high, one.at, one.step
  if low < 0 or high < 0 or at < 0 or step < 0 then error("one") end
  local left, right, here, pace = two.low, two.high, two.at, two.step
  if left < 0 or right < 0 or here < 0 or pace < 0 then error("two") end
  local span, reach = (high - low) / (step + 1), (right - left) / (pace + 1)
  if span > 1e6 or reach > 1e6 or span < 0 or reach < 0 then error("span") end
  local drift = (at * span + here * reach) / (span + reach + 1)
  if drift > 1e6 or drift < -1e6 then error("drift") end
  local force = (drift - low) / (high + right + 1)
  if force > 1e6 or force < -1e6 then error("force") end
  local calm = (low * high + drift) / (at * at + 1)
  local quick = (left * right + drift) / (here * here + 1)
  if calm > 1e6 or calm < 0 or quick > 1e6 or quick < 0 then error("calm") end
  one.at = at * 0.5 + i
  one.alarms = one.alarms + 1
  if one.alarms < 0 or two.alarms < 0 then error("alarms") end
  if force + drift > 1e6 or force + span > 1e6 or force + reach > 1e6 then error("all") end
  return step
end
local function phase_regulator()
  local sum = 0
  for _ = 1, 240 do
    for i = 1, #levels - 1 do
      local _, n = pcall(regulate, levels, i)
      sum = sum + n
    end
  end
  return sum
end
twin.run {
  { name = "phase_success", run = phase_success },
  { name = "phase_failure", run = phase_failure },
  { name = "phase_handler", run = phase_handler },
  { name = "phase_nested", run = phase_nested },
  { name = "phase_regulator", run = phase_regulator, leaf = regulate },
}

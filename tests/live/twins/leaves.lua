-- Leaves without a guard: no snapshot tells of their calls, or only of others from the same line.
local twin = dofile(arg[0]:match("^.*/") .. "twin.lua")
local falling, rising = {}, {}
for i = 1, 1000 do falling[i], rising[i] = 0.5 - i * 0.25, i * 0.25 end
local function smooth(x)
  x = x / 1.1 + 1
  x = x / 1.2 + 1
  x = x / 1.3 + 1
  x = x / 1.4 + 1
  x = x / 1.5 + 1
  x = x / 1.6 + 1
  x = x / 1.7 + 1
  x = x / 1.8 + 1
  x = x / 1.9 + 1
  x = x / 2.1 + 1
  x = x / 2.2 + 1
  x = x / 2.3 + 1
  return x
end
-- Its only function, between two loads that are checked.
local function phase_between()
  local sum = 0.5
  for _ = 1, 12 do
    for i = 1, 1000 do
      if falling[i] > 1 then return sum end
      sum = smooth(sum)
      if rising[i] < 0 then return sum end
    end
  end
  return sum
end
local function fade(x)
  x = x / 1.1 + 2
  x = x / 1.2 + 2
  x = x / 1.3 + 2
  x = x / 1.4 + 2
  x = x / 1.5 + 2
  x = x / 1.6 + 2
  x = x / 1.7 + 2
  x = x / 1.8 + 2
  return x
end
-- Behind the guard of its loop.
local function phase_plain()
  local sum = 0.5
  for _ = 1, 12000 do
    sum = fade(sum)
  end
  return sum
end
local function bend(x, n)
  if n > 5 then
    x = x / 1.1 + n
    x = x / 1.2 + n
    x = x / 1.3 + n
    x = x / 1.4 + n
    x = x / 1.5 + n
    x = x / 1.6 + n
    x = x / 1.7 + n
    x = x / 1.8 + n
    x = x / 1.9 + n
    x = x / 2.1 + n
    x = x / 2.2 + n
    return x / 2.3
  end
  return x + 1
end
-- A second call, which has a guard: it compares what is loaded.
local function phase_both()
  local sum = 0.5
  for i = 1, 12000 do
    local small = bend(i, rising[i % 8 + 1])
    sum = sum + small
    if falling[i % 512 + 1] > 1 then return sum end
    sum = bend(sum, 10)
    if rising[i % 512 + 1] < 0 then return sum end
  end
  return sum
end
-- Branches with calls of which the compiled code makes only one.
local function stretch(x)
  x = x / 1.5 + 7
  x = x / 1.4 + 6
  x = x / 1.3 + 5
  x = x / 1.2 + 4
  x = x / 1.1 + 3
  return x
end
local function shrink(x)
  x = x / 1.9 + 7
  x = x / 1.8 + 6
  x = x / 1.7 + 5
  x = x / 1.6 + 4
  x = x / 1.5 + 3
  x = x / 1.4 + 2
  return x
end
local function phase_branches()
  local sum = 0.5
  for i = 1, 12000 do
    if i < 0 then
      sum = stretch(sum)
    else
      sum = shrink(sum)
    end
    if sum > 1e9 then sum = stretch(sum) end
    if rising[i % 512 + 1] < 0 then return sum end
  end
  return sum
end
twin.run {
  { name = "phase_between", run = phase_between, leaf = smooth },
  { name = "phase_plain", run = phase_plain, leaf = fade },
  { name = "phase_both", run = phase_both, leaf = bend },
  { name = "phase_branches", run = phase_branches },
}

-- Recursion up and down: calls that nest before they work and that work while they return.
local twin = dofile(arg[0]:match("^.*/") .. "twin.lua")
local function fib(n)
  if n < 2 then return n end
  return fib(n - 1) + fib(n - 2)
end
local function phase_fib()
  return (fib(22))
end
local function depth_sum(n)
  if n == 0 then return 0 end
  local below = depth_sum(n - 1)
  return (below + n * 3) % 10007
end
local function phase_down()
  local sum = 0
  for i = 1, 150 do
    local n = depth_sum(60 + i % 40)
    sum = sum + n
  end
  return sum
end
local function loop_tail(n, sum)
  if n == 0 then return sum end
  return loop_tail(n - 1, (sum + n * 7) % 10007)
end
local function phase_tail()
  local sum = 0
  for _ = 1, 16 do
    local n = loop_tail(900, 1)
    sum = sum + n
  end
  return sum
end
local is_odd
local function is_even(n)
  if n == 0 then return true end
  local odd = is_odd(n - 1)
  return odd
end
function is_odd(n)
  if n == 0 then return false end
  local even = is_even(n - 1)
  return even
end
local function phase_mutual()
  local count = 0
  for i = 1, 200 do
    local even = is_even(60 + i % 30)
    if even then count = count + 1 end
  end
  return count
end
local function build(depth)
  if depth == 0 then return { value = 1 } end
  return { left = build(depth - 1), right = build(depth - 1), value = depth }
end
local tree = build(13)
local function sum_tree(node)
  if not node.left then return node.value end
  local left = sum_tree(node.left)
  local right = sum_tree(node.right)
  return (left + right + node.value) % 65521
end
local function phase_tree()
  return (sum_tree(tree))
end
twin.run {
  { name = "phase_fib", run = phase_fib, leaf = fib },
  { name = "phase_down", run = phase_down },
  { name = "phase_tail", run = phase_tail },
  { name = "phase_mutual", run = phase_mutual },
  { name = "phase_tree", run = phase_tree, leaf = sum_tree },
}

-- Does the same unit of work again and again and counts, in a file that others may map.
-- Usage: luajit bench_units.lua WORK FILE SECONDS
--   WORK  fib: a recursive function, interpreted; mixed: strings, tables, closures and coroutines, compiled
local ffi = require("ffi")
ffi.cdef [[
int open(const char *path, int flags);
void *mmap(void *address, size_t length, int protection, int flags, int fd, long offset);
]]
local O_RDWR, PROT_READ_WRITE, MAP_SHARED = 2, 3, 1
local fd = ffi.C.open(arg[2], O_RDWR)
assert(fd >= 0, "cannot open the file")
local count = ffi.cast("volatile uint64_t *", ffi.C.mmap(nil, 4096, PROT_READ_WRITE, MAP_SHARED, fd, 0))

local works = {}
local function fib(n) if n < 2 then return n end return fib(n - 1) + fib(n - 2) end
function works.fib() return fib(12) end

local function words(n)
  local list = {}
  for i = 1, n do list[i] = string.format("%d-%s", i, ("x"):rep(i % 7)) end
  return list
end
local function counter() local sum = 0 return function(x) sum = sum + #x return sum end end
local function each(list) return coroutine.wrap(function() for _, word in ipairs(list) do coroutine.yield(word) end end) end
function works.mixed()
  local list, add, last = words(20), counter(), 0
  for word in each(list) do last = add(word) end
  table.sort(list, function(a, b) return #a < #b end)
  return last
end

if arg[1] == "fib" then jit.off() end
local work, stop = works[arg[1]], os.time() + tonumber(arg[3])
while os.time() < stop do
  for _ = 1, 10 do work() end
  count[0] = count[0] + 1
end

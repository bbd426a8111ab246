-- SPDX-License-Identifier: MIT
-- The units of work whose number in a second tells how fast a program is, and a count of them that others
-- may map. @return works, open_count
--   fib    a recursive function
--   mixed  strings, tables, closures and coroutines
local ffi = require("ffi")
ffi.cdef [[
int open(const char *path, int flags);
void *mmap(void *address, size_t length, int protection, int flags, int fd, long offset);
]]
local O_RDWR, PROT_READ_WRITE, MAP_SHARED = 2, 3, 1

local function open_count(path)
  local fd = ffi.C.open(path, O_RDWR)
  assert(fd >= 0, "cannot open the file")
  return ffi.cast("volatile uint64_t *", ffi.C.mmap(nil, 4096, PROT_READ_WRITE, MAP_SHARED, fd, 0))
end

local works = {}
local function fib(n) if n < 2 then return n end return fib(n - 1) + fib(n - 2) end
function works.fib()
  local n = fib(12)
  return n
end

local function words(n)
  local list = {}
  for i = 1, n do list[i] = string.format("%d-%s", i, ("x"):rep(i % 7)) end
  return list
end
local function counter() local sum = 0 return function(x) sum = sum + #x return sum end end
local function each(list)
  return coroutine.wrap(function() for _, word in ipairs(list) do coroutine.yield(word) end end)
end
function works.mixed()
  local list, add, last = words(20), counter(), 0
  for word in each(list) do last = add(word) end
  table.sort(list, function(a, b) return #a < #b end)
  return last
end

return works, open_count

-- SPDX-License-Identifier: MIT
-- Stacks that are known to the line. Usage: stacks.lua WHAT
-- Says "ready", and then stays where the comment says.
local what = arg[1]
local ffi = require("ffi")
ffi.cdef("int poll(void *, unsigned long, int);")

local function ready()
	io.write("ready\n") io.flush()
end

-- Works for ever, in one line.
local function leaf()
	local s = 1
	while true do s = (s * 3 + 1) % 1000003 end -- at leaf
end

local function middle()
	local result = leaf() -- at middle
	return result
end

-- Through a callback of a C function, a coroutine in a coroutine, and a protected call.
local function nested(last)
	local inner = coroutine.wrap(function()
		local result = last() -- at inner
		return result
	end)
	local outer = coroutine.wrap(function()
		local result = inner() -- at outer
		return result
	end)
	local ok, why = pcall(string.gsub, "x", "x", function() -- at nested
		local result = outer() -- at callback
		return result
	end)
	error(why) -- nothing comes here
end

-- Sleeps for ever.
local function sleep()
	local result = ffi.C.poll(nil, 0, -1) -- at sleep
	return result
end

-- Sleeps in compiled code, in the last round.
local function sleep_compiled()
	for i = 1, 1000 do
		ffi.C.poll(nil, 0, (i - i % 1000) * 600) -- at compiled
	end
end

local function read()
	local line = io.read() -- at read
	return line
end

-- A metamethod.
local proxy = setmetatable({}, { __index = function(_, key) -- at index_of
	local result = leaf(key) -- at meta
	return result
end })
local function index()
	local result = proxy.something -- at index
	return result
end

if what ~= "compiled" and what ~= "sleep_compiled" then jit.off() end
local run = {
	interpreted = middle,
	compiled = middle,
	nested = function() nested(leaf) end, -- at run_nested
	sleep = sleep,
	nested_sleep = function() nested(sleep) end, -- at run_sleep
	sleep_compiled = sleep_compiled,
	read = read,
	index = index,
}
ready()
local result = run[what]() -- at main

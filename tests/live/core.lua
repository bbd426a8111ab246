-- SPDX-License-Identifier: MIT
-- A program with a known stack, for tests of core files. Its argument says what it does below a
-- coroutine once it has said "ready":
--   wait      waits in a C function, for a line of input
--   spin      goes round in the interpreter
--   compiled  goes round in a trace
--   crash     reads a null pointer
local ffi = require("ffi")

local function tell()
	io.write("ready\n")
	io.flush()
end

local function wait(depth)
	if depth > 0 then
		local below = wait(depth - 1)
		return below + 1
	end
	tell()
	local line = io.read()
	return #line
end

local function spin()
	local x = 0.5
	tell()
	while true do x = (x * x + 1) % 1000.25 end
end
jit.off(spin)

local function compiled()
	local x = 0.5
	tell()
	while true do x = (x * x + 1) % 1000.25 end
end

local function crash()
	local place = ffi.cast("int *", 0)
	tell()
	local value = place[0]
	return value
end
jit.off(crash)

local function outer(what)
	local run = coroutine.wrap(function(...)
		local result = what(...)
		return result
	end)
	local result = run(2)
	return result
end

-- Traces, exits and a function that is not compiled, for ljdump.
local function add(a, b) return a + b end
local sum = 0
for i = 1, 300 do
	if i % 3 == 0 then sum = add(sum, i) end
end
jit.off(add)

local result = outer(({ wait = wait, spin = spin, compiled = compiled, crash = crash })[arg[1]])
return result

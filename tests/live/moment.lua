-- SPDX-License-Identifier: MIT
-- One step after another goes through several objects, so that at each moment two neighbours differ
-- by one at most: whoever sees more has looked at two moments.
--
-- Usage: moment.lua MODE STOP
--   MODE  interpreted or compiled
--   STOP  it ends once that file exists
local mode, stop = arg[1], arg[2]
if mode == "interpreted" then jit.off() end

local first, second = { n = 0 }, { list = { 0 } }
local third, count = { at = { n = 0 } }, 0
local waiting

local function pass(i)
	local now = i
	first.n = now
	second.list[1] = now
	-- A new object each time: the collector makes room at other places.
	third.at = { n = now }
	count = now
	coroutine.resume(waiting)
	return now
end

waiting = coroutine.create(function()
	local seen = 0
	while true do
		seen = count
		coroutine.yield(seen)
	end
end)

local function work(from)
	local last = from
	for i = from + 1, from + 1000 do last = pass(i) end
	return last
end

local function exists(path)
	local file = io.open(path)
	if file then file:close() end
	return file
end

io.write("ready\n")
io.flush()
local last = 0
while not exists(stop) do last = work(last) end

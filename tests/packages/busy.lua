-- SPDX-License-Identifier: MIT
-- A program to profile: it is busy in two functions for as many seconds as its argument says.
local finish = os.time() + tonumber(arg[1])

local function sort_words()
	local words = {}
	for i = 1, 500 do words[i] = tostring(i * 7919 % 1000) end
	table.sort(words)
	return #words
end

local function work()
	local sum = 0
	for _ = 1, 50 do sum = sum + sort_words() end
	return sum
end

print("ready")
io.flush()
while os.time() < finish do work() end

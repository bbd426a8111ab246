-- SPDX-License-Identifier: MIT
-- Coroutines of each kind, and what the program itself knows of them.
--
-- Usage: coroutines.lua RECORD MODE COUNT
--   RECORD  a line for each: address, status, main, started, frames; "-" for an unknown address
--   MODE    blocked: all wait, the one that runs in a system call
--           interpreted, compiled: it counts
--           churn: it makes others and drops them
--   COUNT   of coroutines that wait at three places
local path, mode, count = arg[1], arg[2], tonumber(arg[3])
local all, kinds, record = {}, {}, {}

local function frame_of(info)
	if info.what == "C" then return "C" end
	return ("%s:%d:%d"):format(info.short_src, info.currentline, info.linedefined)
end

local function frames_of(co)
	local frames, level = {}, 0
	while true do
		local info = debug.getinfo(co, level, "Sl")
		if not info then return frames end
		frames[#frames + 1] = frame_of(info)
		level = level + 1
	end
end

-- Of the coroutine that calls @level functions above.
local function own_frames(level)
	local frames = {}
	while true do
		local info = debug.getinfo(level, "Sl")
		if not info then return frames end
		frames[#frames + 1] = frame_of(info)
		level = level + 1
	end
end

-- In parts: OpenResty's library may give long strings that differ in few places the same hash, as chance
-- has it: 100,000 lines took it five times as long then.
local function note(address, status, main, started, frames)
	record[#record + 1] = { address, status, main and 1 or 0, started and 1 or 0,
		table.concat(frames, ";") }
end

local function address_of(co) return tostring(co):match("0x%x+") end

local function add(co, kind)
	all[#all + 1] = co
	kinds[co] = kind
	return co
end

local function note_all()
	for _, co in ipairs(all) do
		local kind = kinds[co]
		local status = kind == "fiber" and "suspended" or coroutine.status(co)
		if type(kind) == "function" then
			local info = debug.getinfo(kind, "S")
			note(address_of(co), status, false, false,
				{ ("%s:%d:%d"):format(info.short_src, info.linedefined, info.linedefined) })
		elseif status ~= "running" then
			note(address_of(co), status, false, true, frames_of(co))
		end
	end
end

local function finish()
	local file = assert(io.open(path, "w"))
	for _, line in ipairs(record) do
		file:write(line[1], "\t", line[2], "\t", line[3], "\t", line[4], "\t", line[5], "\n")
	end
	file:close()
	record = {}
	collectgarbage() collectgarbage()
	print("ready")
	io.stdout:flush()
end

local function started(f, ...)
	local co = coroutine.create(f)
	coroutine.resume(co, ...)
	return co
end

-- ---- Kinds --------------------------------------------------------------------------------

local function leaf(x)
	local got = coroutine.yield(x)
	return got
end
local function middle(x)
	local got = leaf(x)
	return got, 1
end
local function vararg(...)
	local got = middle(...)
	return got, 2
end
local function deep(n)
	if n == 0 then
		coroutine.yield()
		return 0
	end
	return 1 + deep(n - 1)
end
local meta = setmetatable({}, {
	__index = function(_, key)
		coroutine.yield(key)
		return key
	end,
	__lt = function()
		coroutine.yield()
		return true
	end,
})
local function iterate(_, i)
	coroutine.yield(i)
	return i
end

local bodies = {
	function() leaf(1) return 1 end,
	function() vararg(1, 2, 3) return 1 end,
	function(...) middle(...) return 1 end,
	function() deep(60) return 1 end,
	function() pcall(vararg, 4) return 1 end,
	function() xpcall(function() leaf(2) end, debug.traceback) return 1 end,
	function() local x = meta.key return x end,
	function() if meta < meta then return 1 end return 2 end,
	function() for i in iterate, nil, 1 do return i end end,
	function() return leaf(3) end,
	function() load("local yield = ...\n\nyield(1) return 1", "=loaded")(coroutine.yield) return 1 end,
	function() host.wait() return 1 end,
}
for _, body in ipairs(bodies) do add(started(body)) end
-- Those that a wrapper hides.
for _ = 1, 2 do
	coroutine.wrap(function()
		add(coroutine.running())
		leaf(5)
		return 1
	end)()
end
-- By C.
add(host.start(function() middle(6) return 1 end))
add(host.start(function() host.wait() return 1 end))
add(host.start(function() return 7 end))
add(host.fiber(function() host.leave() return 1 end), "fiber")
add(host.fiber(function() pcall(host.leave) return 1 end), "fiber")
-- Not started.
for _, body in ipairs(bodies) do add(coroutine.create(body), body) end
-- Dead: returned, and failed in several ways.
add(started(function() return 1 end))
add(started(function() error("no") end))
add(started(function() local t t = nil return t.x end))
add(started(function() error({}) end))
add(started(function() string.rep() end))
add(started(function() leaf() end, 1))
coroutine.resume(all[#all])

local places = { function() leaf(8) return 1 end, function() vararg(9) return 1 end, deep }
for i = 1, count do add(started(places[i % 3 + 1], 3)) end

-- ---- What runs ----------------------------------------------------------------------------

local function note_running(line, callee)
	local frames = own_frames(3)
	if line then frames[1] = frames[1]:gsub(":%d+:", ":" .. line .. ":", 1) end
	if callee then table.insert(frames, 1, "C") end
	note(address_of(coroutine.running()), "running", false, true, frames)
end

local function this_line() return debug.getinfo(2, "l").currentline end

local function block()
	note_running(nil, true) note_all() finish() io.read("*l")
end
local function count_up()
	local x = 0
	note_running(this_line() + 3)
	note_all()
	finish()
	while true do x = x + 1 end
end
local function churn()
	note_all()
	finish()
	while true do
		for i = 1, 50 do started(places[i % 3 + 1], 5) end
	end
end

if mode == "interpreted" then jit.off() end
local run = ({ blocked = block, interpreted = count_up, compiled = count_up, churn = churn })[mode]
local inner = add(coroutine.create(function() run() return 1 end))
local outer = add(coroutine.create(function()
	coroutine.resume(inner)
	return 1
end))
local function frames_of_caller()
	local frames = own_frames(3)
	table.insert(frames, 1, "C")
	return frames
end
local frames = frames_of_caller() note("-", "normal", true, true, frames) coroutine.resume(outer)

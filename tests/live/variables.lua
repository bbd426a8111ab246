-- SPDX-License-Identifier: MIT
-- Known variables in known frames: variables.lua MODE STOP. Prints what debug.getlocal() and
-- debug.getupvalue() tell of its frames, then "ready"; the frames stay until the file STOP exists.
local ffi = require("ffi")
local mode, stop = arg[1], arg[2]

-- No variable of a frame: libraries know the same function by several names.
builtin = { [ipairs({})] = "ipairs_aux" }
for module, functions in pairs(package.loaded) do
	for key, value in pairs(type(functions) == "table" and functions or {}) do
		builtin[value] = (module == "_G" and "" or module .. ".") .. tostring(key)
	end
end

-- Light userdata look like others.
local lights = {}

local function address(value)
	return (tostring(value):match("0x0*(%x+)$"))
end

-- Without metamethods of the value's own.
local function plain(value)
	local meta = debug.getmetatable(value)
	local own = meta and rawget(meta, "__tostring")
	if own then rawset(meta, "__tostring", nil) end
	local found = address(value)
	if own then rawset(meta, "__tostring", own) end
	return found
end

local show

local function show_table(value, path)
	local text = "table 0x" .. plain(value)
	local parts, count = {}, 0
	if path[value] then return text .. " cycle" end
	for _ in next, value do count = count + 1 end
	text = text .. " " .. count .. (debug.getmetatable(value) and " meta" or "")
	if path.depth >= 3 then return text end
	path[value], path.depth = true, path.depth + 1
	for k, v in next, value do
		parts[#parts + 1] = show(k, path) .. "=" .. show(v, path) .. ","
	end
	path[value], path.depth = nil, path.depth - 1
	return text .. " {" .. table.concat(parts) .. "}"
end

local function show_cdata(value)
	local text = tostring(value)
	if not text:find("^cdata<") then return text end
	local ctype = text:match("^cdata<(.*)>")
	if ctype == "bool" then
		return ("cdata<bool> %s"):format(value == ffi.new("bool", true) and "true" or "false")
	elseif not ctype:find("%[") and (ctype:find("%*") or ctype:find("%(%)")) then
		return ("cdata<%s> 0x%s"):format(ctype, text:match("0x0*(%x+)$") or "0")
	elseif type(tonumber(value)) == "number" and not ctype:find("%[") then
		return ("cdata<%s> %.14g"):format(ctype, tonumber(value))
	end
	return ("cdata<%s> %d"):format(ctype, ffi.sizeof(value))
end

function show(value, path)
	local kind = type(value)
	path = path or { depth = 0 }
	if kind == "nil" or kind == "boolean" then return tostring(value) end
	if kind == "number" then
		return value ~= value and "nan" or ("%.14g"):format(value)
	elseif kind == "string" then
		return '"' .. value:gsub("%W", function(c) return ("\\%03d"):format(c:byte()) end) ..
			'"' .. #value
	elseif kind == "table" then
		return show_table(value, path)
	elseif kind == "function" then
		local info = debug.getinfo(value, "S")
		if info.what == "C" then return "function " .. (builtin[value] or "?") end
		return ("function 0x%s %s:%d"):format(address(value), info.source, info.linedefined)
	elseif kind == "thread" then
		return ("thread 0x%s %s"):format(address(value), coroutine.status(value))
	elseif kind == "cdata" then
		return show_cdata(value)
	elseif lights[value] then
		return "light 0x" .. plain(value)
	end
	local meta = debug.getmetatable(value)
	return "userdata 0x" .. plain(value) .. " " .. (meta and meta.__name or "-")
end

-- A loop over pairs() keeps no key in its control variable.
local function is_position(name, previous)
	return name == "(for control)" and previous[2] == next
end

local function tell_slots(out, info, get)
	local params = debug.getinfo(info.func, "u").nparams or 0
	local previous = {}
	for slot = 1, 255 do
		local name, value = get(slot)
		if not name then break end
		if name ~= "(*temporary)" then
			local kind = slot <= params and "parameter" or "local"
			local text = is_position(name, previous) and "unavailable" or show(value)
			out[#out + 1] = ("%s %d %s %s"):format(kind, slot, name, text)
		end
		previous[1], previous[2] = value, previous[1]
		if name == "(for generator)" then previous = { value, value } end
	end
	for slot = 1, 1000 do
		local name, value = get(-slot)
		if not name then break end
		out[#out + 1] = ("vararg %d %s %s"):format(slot, name, show(value))
	end
end

local function tell_upvalues(out, f)
	for i = 1, 255 do
		local name, value = debug.getupvalue(f, i)
		if not name then break end
		out[#out + 1] = ("upvalue %d %s %s"):format(i, name ~= "" and name or "-", show(value))
	end
end

-- Write what all frames from a level on have. @param thread nil: the running one.
local function tell(out, thread, level)
	while true do
		local info
		if thread then info = debug.getinfo(thread, level, "Slf")
		else info = debug.getinfo(level + 1, "Slf") end
		if not info then return end
		if info.what ~= "C" then
			out[#out + 1] = ("frame %s:%d"):format(info.source, info.currentline)
			local at = level + 3 -- seen from get(), called by tell_slots()
			tell_slots(out, info, function(slot)
				local name, value
				if thread then name, value = debug.getlocal(thread, level, slot)
				else name, value = debug.getlocal(at, slot) end
				return name, value -- no tail call: levels are counted
			end)
			tell_upvalues(out, info.func)
		end
		level = level + 1
	end
end
jit.off(tell, true) jit.off(tell_slots, true) jit.off(tell_upvalues, true)
jit.off(show) jit.off(show_table, true) jit.off(is_position)

local function write(out)
	io.stdout:write(table.concat(out, "\n"), "\nready\n")
	io.stdout:flush()
end

-- The frames below this one stay as they are.
local function hold(threads)
	local out = {}
	tell(out, nil, 2)
	for _, thread in ipairs(threads or {}) do tell(out, thread, 0) end
	write(out)
	while true do
		for _ = 1, 100000 do end
		local file = io.open(stop)
		if file then file:close() return end
	end
end
jit.off(hold, true)

ffi.cdef[[
typedef struct { int x, y; } point_t;
struct named { double d[4]; char c; };
enum colour { RED, GREEN = 7 };
int getpid(void);
]]

local light = debug.upvalueid(hold, 1)
lights[light] = true

local marked = newproxy(true)
getmetatable(marked).__name = "marked.proxy"

local function scalars(first, second, missing)
	local none, yes, no = nil, true, false
	local zero, negative, big, small = 0, -17, 2 ^ 53, 1 / 3
	local huge, low, nan = math.huge, -math.huge, 0 / 0
	local empty, text, bytes = "", "plain text", "a\0b\27[31m\255\xe2\x80\xae"
	local long = ("0123456789"):rep(300)
	do local gone = "out of scope" end
	hold()
	local later = "not alive yet"
	return first, second, missing, none, yes, no, zero, negative, big, small, huge, low, nan, empty,
		text, bytes, long, later
end

local function objects(...)
	local list = { 1, 2, 3, nil, 5, "six" }
	local map = { x = 1, [true] = "yes", [2.5] = {}, [list] = 7 }
	local nested = { { { { { "deep" } } } } }
	local meta = setmetatable({}, { __index = list })
	local self = {}
	self.self, self.list = self, { self }
	local lua, fast, c = hold, string.gsub, io.open
	local proxy, none, pointer = marked, newproxy(), light
	local suspended = coroutine.create(function() coroutine.yield() end)
	local dead = coroutine.create(function() end)
	coroutine.resume(suspended)
	coroutine.resume(dead)
	scalars("one", 2)
	return list, map, nested, meta, lua, fast, c, proxy, none, pointer, ...
end

local function cdata()
	local i64, u64 = -1234567890123456789LL, 18446744073709551615ULL
	local int, short, byte = ffi.new("int", -5), ffi.new("short", 300), ffi.new("uint8_t", 200)
	local char, float, yes = ffi.new("char", 65), ffi.new("float", 0.5), ffi.new("bool", true)
	local point, named = ffi.new("point_t"), ffi.new("struct named")
	local array, vla = ffi.new("int[10]"), ffi.new("char[?]", 33)
	local pointer = ffi.cast("const struct named *", named)
	local void, func = ffi.cast("void *", 0x1234), ffi.C.getpid
	local double, matrix = ffi.new("double", 1.25), ffi.new("double[3][4]")
	local ref, callback = ffi.cast("int (*)(int, char *)", 0x1000), ffi.new("const char *[2]")
	objects("vararg", nil, 3)
	return i64, u64, int, short, byte, char, float, yes, point, named, array, vla, pointer, void,
		func, double, matrix, ref, callback
end

local function loops(shared)
	local counter = 0
	local function count() counter = counter + 1 return counter, shared end
	count()
	for i = 10, 1, -3 do
		for k, v in pairs({ only = "entry" }) do
			for n, item in ipairs({ "first" }) do
				local function inner(self) cdata() return counter, i, self end
				if i == 10 then inner(k) end
				count()
				local _ = v, n, item
			end
		end
	end
	return count
end

local function in_coroutines()
	local outer = "outer's"
	local co = coroutine.wrap(function(...)
		local mine, here = { ... }, coroutine.running()
		local inner = coroutine.create(function(a)
			local b = a .. "b"
			hold({ here })
			return b
		end)
		local status, why = coroutine.resume(inner, "a")
		if not status then error(why) end
		return mine, outer, status
	end)
	co(1, "two")
	return outer
end

-- Compiled: frames above this one are in memory, its own are not.
local function compiled(limit, table_)
	local before, sum, last = "known", 0, nil
	local out = {}
	tell(out, nil, 2)
	write(out)
	for i = 1, limit do
		sum = sum + i % 7
		table_[1] = i
		last = i
	end
	return before, sum, last, limit
end

local function around(name)
	local number, list, state = 42, { "a" }, { 0 }
	compiled(1e15, state)
	return name, number, list
end

local function rest()
	for _ = 1, 2000 do end
end
jit.off(rest)

-- Interpreter and machine code take turns; state[1] is a's value but for one round.
local function turns(limit)
	local state, a, b = { 0 }, 0, 0
	io.stdout:write("ready\n")
	io.stdout:flush()
	while a < limit do
		a = a + 1
		state[1] = a
		b = a * 2
		if a % 5000 < 40 then local _ = tostring(b) .. "x" end
		if a % 5000 == 41 then rest() end
	end
	return state, b
end

if mode == "held" then loops("upvalue")
elseif mode == "coroutines" then in_coroutines()
elseif mode == "compiled" then around("named")
else turns(1e15) end

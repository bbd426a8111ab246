-- Ways to define a function. Each runs for a moment, and bears the name that its definition gives
-- it: expect() has it, "-" for none. What is called by a tail call, by pcall, through a table or by
-- the library is called no different.
local seconds = tonumber(arg[1]) or 1
local expected = arg[2] and assert(io.open(arg[2], "w"))

local tests = {}

-- Busy for a while; the line tells it from others.
local function expect(name, f, ...)
	local info = debug.getinfo(f, "S")
	tests[#tests + 1] = { name = name, f = f, line = info.linedefined, ... }
end

-- Variables
local function plain(n) local x = 0 for i = 1, n do x = x + i % 7 end return x end
expect("plain", plain)
local assigned = function(n) local x = 0 for i = 1, n do x = x + i % 7 end return x end
expect("assigned", assigned)
local forward
local function uses_forward(n) return forward(n) end
forward = function(n) local x = 0 for i = 1, n do x = x + i % 7 end return x end
expect("forward", forward)
local set_inside
local function setter() set_inside = function(n) local x = 0 for i = 1, n do x = x + i % 7 end return x end end
setter()
expect("set_inside", set_inside)
local one, two = function(n) local x = 0 for i = 1, n do x = x + i % 7 end return x end,
	function(n) local x = 0 for i = 1, n do x = x + i % 7 end return x end
expect("one", one)
expect("two", two)
local chosen = seconds > 0 and function(n) local x = 0 for i = 1, n do x = x + i % 7 end return x end or print
expect("chosen", chosen)
local fallback = nil or function(n) local x = 0 for i = 1, n do x = x + i % 7 end return x end
expect("fallback", fallback)
local first_name = function(n) local x = 0 for i = 1, n do x = x + i % 7 end return x end
local second_name = first_name
expect("first_name", second_name)
local function recursive(n, depth)
	if depth and depth > 0 then return (recursive(n, depth - 1)) end
	local x = 0 for i = 1, n do x = x + i % 7 end return x
end
expect("recursive", recursive, 3)

-- Globals
function global_function(n) local x = 0 for i = 1, n do x = x + i % 7 end return x end
expect("global_function", global_function)
global_assigned = function(n) local x = 0 for i = 1, n do x = x + i % 7 end return x end
expect("global_assigned", global_assigned)
_G.global_field = function(n) local x = 0 for i = 1, n do x = x + i % 7 end return x end
expect("global_field", global_field)
global_table = {}
function global_table.f(n) local x = 0 for i = 1, n do x = x + i % 7 end return x end
expect("global_table.f", global_table.f)
global_once = global_once or function(n) local x = 0 for i = 1, n do x = x + i % 7 end return x end
expect("global_once", global_once)
if seconds > 0 then
	function global_in_block(n) local x = 0 for i = 1, n do x = x + i % 7 end return x end
end
expect("global_in_block", global_in_block)

-- Fields and methods
local M = {}
function M.field(n) local x = 0 for i = 1, n do x = x + i % 7 end return x end
expect("M.field", M.field)
M.assigned = function(n) local x = 0 for i = 1, n do x = x + i % 7 end return x end
expect("M.assigned", M.assigned)
M["in brackets"] = function(n) local x = 0 for i = 1, n do x = x + i % 7 end return x end
expect('M["in brackets"]', M["in brackets"])
M[7] = function(n) local x = 0 for i = 1, n do x = x + i % 7 end return x end
expect("M[7]", M[7])
M.a = { b = { c = {} } }
function M.a.b.c.deep(n) local x = 0 for i = 1, n do x = x + i % 7 end return x end
expect("M.a.b.c.deep", M.a.b.c.deep)
M.kept = M.kept or function(n) local x = 0 for i = 1, n do x = x + i % 7 end return x end
expect("M.kept", M.kept)
M.left, M.right = function(n) local x = 0 for i = 1, n do x = x + i % 7 end return x end,
	function(n) local x = 0 for i = 1, n do x = x + i % 7 end return x end
expect("M.left", M.left)
expect("M.right", M.right)
local Class = {}
Class.__index = Class
function Class:method(n) local x = 0 for i = 1, n do x = x + i % 7 end return x end
expect("Class:method", function(n) return (setmetatable({}, Class):method(n)) end)
tests[#tests].line = debug.getinfo(Class.method, "S").linedefined
function Class.dotted(self, n) local x = 0 for i = 1, n do x = x + i % 7 end return x end
expect("Class:dotted", function(n) return (setmetatable({}, Class):dotted(n)) end)
tests[#tests].line = debug.getinfo(Class.dotted, "S").linedefined
Class.method_value = function(self, n) local x = 0 for i = 1, n do x = x + i % 7 end return x end
expect("Class:method_value", function(n) return (Class:method_value(n)) end)
tests[#tests].line = debug.getinfo(Class.method_value, "S").linedefined
local Derived = setmetatable({}, { __index = Class })
function Derived:own(n) local x = 0 for i = 1, n do x = x + i % 7 end return x end
expect("Derived:own", function(n) return (Derived:own(n)) end)
tests[#tests].line = debug.getinfo(Derived.own, "S").linedefined
local function add_late()
	function M.late(n) local x = 0 for i = 1, n do x = x + i % 7 end return x end
	function global_table:late(n) local x = 0 for i = 1, n do x = x + i % 7 end return x end
end
add_late()
expect("M.late", M.late)
expect("global_table:late", function(n) return (global_table:late(n)) end)
tests[#tests].line = debug.getinfo(global_table.late, "S").linedefined
local function fill(target)
	target.filled = function(n) local x = 0 for i = 1, n do x = x + i % 7 end return x end
end
fill(M)
expect("target.filled", M.filled)
M[seconds] = function(n) local x = 0 for i = 1, n do x = x + i % 7 end return x end
expect("-", M[seconds])

-- Table constructors
local t = {
	f = function(n) local x = 0 for i = 1, n do x = x + i % 7 end return x end,
	nested = { g = function(n) local x = 0 for i = 1, n do x = x + i % 7 end return x end },
	value = seconds or 1,
	["quoted key"] = function(n) local x = 0 for i = 1, n do x = x + i % 7 end return x end,
	function(n) local x = 0 for i = 1, n do x = x + i % 7 end return x end,
	either = nil or function(n) local x = 0 for i = 1, n do x = x + i % 7 end return x end,
	[12] = function(n) local x = 0 for i = 1, n do x = x + i % 7 end return x end,
}
expect("t.f", t.f)
expect("t.nested.g", t.nested.g)
expect('t["quoted key"]', t["quoted key"])
expect("t[1]", t[1])
expect("t.either", t.either)
expect("t[12]", t[12])
global_made = { f = function(n) local x = 0 for i = 1, n do x = x + i % 7 end return x end }
expect("global_made.f", global_made.f)
M.sub = { f = function(n) local x = 0 for i = 1, n do x = x + i % 7 end return x end }
expect("M.sub.f", M.sub.f)
local function make_table()
	return { made = function(n) local x = 0 for i = 1, n do x = x + i % 7 end return x end }
end
expect("made", make_table().made)
local function take_table(x) return x end
expect("taken", take_table({ taken = function(n) local x = 0 for i = 1, n do x = x + i % 7 end return x end }).taken)
local list = {}
list[#list + 1] = { run = function(n) local x = 0 for i = 1, n do x = x + i % 7 end return x end }
expect("run", list[1].run)
local a, b = { f = function(n) local x = 0 for i = 1, n do x = x + i % 7 end return x end },
	{ f = function(n) local x = 0 for i = 1, n do x = x + i % 7 end return x end }
expect("a.f", a.f)
expect("b.f", b.f)

-- Metatables
local object = setmetatable({}, {
	__index = { get = function(self, n) local x = 0 for i = 1, n do x = x + i % 7 end return x end },
	__call = function(self, n) local x = 0 for i = 1, n do x = x + i % 7 end return x end,
})
expect("object:get", function(n) return (object:get(n)) end)
tests[#tests].line = debug.getinfo(object.get, "S").linedefined
expect("object:__call", function(n) return (object(n)) end)
tests[#tests].line = debug.getinfo(getmetatable(object).__call, "S").linedefined
local mt = {}
mt.__index = function(self, n) local x = 0 for i = 1, n do x = x + i % 7 end return x end
expect("mt:__index", function(n) return (setmetatable({}, mt)[n]) end)
tests[#tests].line = debug.getinfo(mt.__index, "S").linedefined
local named = { __add = function(l, n) local x = 0 for i = 1, n do x = x + i % 7 end return x end }
expect("named.__add", function(n) return (setmetatable({}, named) + n) end)
tests[#tests].line = debug.getinfo(named.__add, "S").linedefined
local function new_object()
	return setmetatable({}, { __index = { inherited = function(n) local x = 0 for i = 1, n do x = x + i % 7 end return x end } })
end
expect("inherited", new_object().inherited)
local proxy = setmetatable({ own = function(n) local x = 0 for i = 1, n do x = x + i % 7 end return x end }, mt)
expect("proxy.own", rawget(proxy, "own"))

-- No name, or that of who returns it
local function maker()
	return function(n) local x = 0 for i = 1, n do x = x + i % 7 end return x end
end
expect("maker.return", maker())
local function outer()
	return function()
		return function(n) local x = 0 for i = 1, n do x = x + i % 7 end return x end
	end
end
expect("outer.return.return", outer()())
local wrapped = take_table(function(n) local x = 0 for i = 1, n do x = x + i % 7 end return x end)
expect("-", wrapped)
local in_call = (function()
	return (take_table(function(n) local x = 0 for i = 1, n do x = x + i % 7 end return x end))
end)()
expect("-", in_call)
local yielded = coroutine.wrap(function()
	coroutine.yield((take_table(function(n) local x = 0 for i = 1, n do x = x + i % 7 end return x end)))
end)()
expect("-", yielded)

-- Called otherwise
local function by_tail_call(n) local x = 0 for i = 1, n do x = x + i % 7 end return x end
local function calls_at_its_end(n) return by_tail_call(n) end
expect("by_tail_call", function(n) return (calls_at_its_end(n)) end)
tests[#tests].line = debug.getinfo(by_tail_call, "S").linedefined
local function protected(n) local x = 0 for i = 1, n do x = x + i % 7 end return x end
expect("protected", function(n) return (select(2, pcall(protected, n))) end)
tests[#tests].line = debug.getinfo(protected, "S").linedefined
local function compared(n)
	return function(l, r) local x = 0 for i = 1, n do x = x + i % 7 end return l < r end
end
expect("compared.return", function(n) return (table.sort({ 2, 1 }, compared(n))) end)
tests[#tests].line = debug.getinfo(compared(1), "S").linedefined
local function replaced(n)
	return function() local x = 0 for i = 1, n do x = x + i % 7 end return "" end
end
local function in_coroutine(n) local x = 0 for i = 1, n do x = x + i % 7 end return x end
expect("in_coroutine", function(n) return (coroutine.wrap(in_coroutine)(n)) end)
tests[#tests].line = debug.getinfo(in_coroutine, "S").linedefined
local function on_item(_, n) local x = 0 for i = 1, n do x = x + i % 7 end return nil end
expect("on_item", function(n) for _ in on_item, nil, n do end end)
tests[#tests].line = debug.getinfo(on_item, "S").linedefined
local function each(callback, n) return (callback(n)) end
local function given(n) local x = 0 for i = 1, n do x = x + i % 7 end return x end
expect("given", function(n) return (each(given, n)) end)
tests[#tests].line = debug.getinfo(given, "S").linedefined
expect("-", function(n)
	return (each(function(m)
		local x = 0 for i = 1, m do x = x + i % 7 end return x
	end, n))
end)
tests[#tests].line = tests[#tests].line + 1
expect("replaced.return", function(n) return (replaced(n)()) end)
tests[#tests].line = debug.getinfo(replaced(1), "S").linedefined

if expected then
	for _, test in ipairs(tests) do expected:write(test.line, " ", test.name, "\n") end
	expected:close()
end
io.write("ready\n")
io.flush()
local finish = os.clock() + seconds
repeat
	for _, test in ipairs(tests) do test.f(20000, test[1]) end
until os.clock() > finish

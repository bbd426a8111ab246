-- Ways in which a function calls the next one. Each takes the scenario and the step's name, level
-- and next function. "~" says that LuaJIT's own native frames may stand there.
local steps = {}

local function add(s, at, rest)
  rest.name, rest.level = at.name, at.level
  s:step(rest)
end

-- A way that one line says: `text` with NEXT for the next function.
local function way(name, text, through, before, after, callee)
  steps[name] = function(s, at)
    local function fill(line) return (line:gsub("NEXT", at.next)) end
    local first, last = {}, {}
    for i, line in ipairs(before or {}) do first[i] = fill(line) end
    for i, line in ipairs(after or {}) do last[i] = fill(line) end
    add(s, at, { call = fill(text), through = through, before = first, after = last,
      callee = callee })
  end
end

-- ---- Plain --------------------------------------------------------------------------------------

way("call", "local r = NEXT(1)")
way("method", "local r = t:m(1)", nil, { "local t = { m = NEXT }" })
way("pcall", "local ok, r = pcall(NEXT, 1)", { "F:pcall" })
way("xpcall", "local ok, r = xpcall(NEXT, print)", { "F:xpcall" })
way("c_call", "host.call(NEXT)")
way("c_pcall", "host.pcall(NEXT)")
way("c_nested", "host.nested(NEXT)")

-- ---- Library functions that call back -----------------------------------------------------------

way("gsub", "local r = string.gsub('word', '%w+', NEXT)", { "F:string.gsub" })
way("sort", "table.sort({ 2, 1 }, NEXT)", { "F:table.sort" })
way("gmatch", "for w in string.gmatch('a', '%w') do NEXT() end")
way("iterator", "for x in NEXT do end")
way("foreach", "table.foreach({ 1 }, NEXT)", { "B:foreach" })
way("foreachi", "table.foreachi({ 1 }, NEXT)", { "B:foreachi" })
way("tostring", "local r = pcall(tostring, p)", { "F:pcall" },
  { "local p = newproxy(true) getmetatable(p).__tostring = NEXT" }, nil, "F:tostring")

-- ---- Protected calls of C -----------------------------------------------------------------------

way("cpcall", "host.cpcall(NEXT)", nil)
way("c_load", "host.load(NEXT)")
way("load", "load(NEXT)", { "F:load" })

-- ---- Metamethods --------------------------------------------------------------------------------

local function metamethod(event, text)
  way("meta_" .. event, text, nil,
    { ("local p = newproxy(true) getmetatable(p).__%s = NEXT"):format(event) })
end
metamethod("index", "local r = p.x")
metamethod("newindex", "p.x = 1")
metamethod("add", "local r = p + 1")
metamethod("sub", "local r = 1 - p")
metamethod("mul", "local r = p * p")
metamethod("mod", "local r = p % 2")
metamethod("pow", "local r = p ^ 2")
metamethod("unm", "local r = -p")
metamethod("len", "local r = #p")
metamethod("concat", "local r = 'a' .. p")
metamethod("call", "local r = p(1)")
metamethod("lt", "local r = p < p")
metamethod("le", "local r = p <= p")
way("meta_concat_many", "local r = p .. 'x' .. 'y'", nil,
  { "local p = newproxy(true) getmetatable(p).__concat = NEXT" })
way("meta_eq", "local r = p == q", nil,
  { "local m = { __eq = NEXT } local p, q = setmetatable({}, m), setmetatable({}, m)" })
way("meta_le_by_lt", "local r = p <= q", nil,
  { "local m = { __lt = NEXT } local p, q = setmetatable({}, m), setmetatable({}, m)" })
way("meta_index_number", "local r = p[1]", nil,
  { "local p = setmetatable({}, { __index = NEXT })" })

-- ---- Varargs and tail calls ---------------------------------------------------------------------

local function values(n)
  local list = {}
  for i = 1, n do list[i] = tostring(i) end
  return table.concat(list, ", ")
end

-- A vararg function with some arguments, called by a function that passes them.
local function vararg(name, tail)
  steps[name] = function(s, at)
    local inner, n = at.name .. "v", math.random(0, 40)
    local call = ("local r = %s(...)"):format(at.next)
    s:step { name = inner, level = at.level + 1, params = "...", tail = tail,
      call = tail and ("return %s(...)"):format(at.next) or call }
    s:step { name = at.name, level = at.level, call = ("local r = %s(%s)"):format(inner,
      values(n)) }
  end
end
vararg("vararg", false)
vararg("vararg_tail", true)

-- What takes the place of a function pushes itself.
local function tail(name, text)
  steps[name] = function(s, at)
    local inner = at.name .. "t"
    s:step { name = inner, level = at.level + 1, tail = true, call = (text:gsub("NEXT", at.next)) }
    s:step { name = at.name, level = at.level, call = ("local r = %s()"):format(inner) }
  end
end
tail("tail", "return NEXT(1)")
tail("tail_c", "return host.call(NEXT)")

-- A tail call of a library function: the caller takes its frame away again.
steps.tail_pcall = function(s, at)
  local inner = at.name .. "t"
  s:step { name = inner, level = at.level + 1, tail = true,
    call = ("return pcall(%s)"):format(at.next) }
  s:step { name = at.name, level = at.level, through = { "F:pcall" },
    call = ("local r = %s()"):format(inner) }
  return 2
end

-- ---- Errors -------------------------------------------------------------------------------------

local thrower = "local function thrower() error('x') end"
way("error", "local r = NEXT(1)", nil, { thrower, "pcall(thrower)" })
way("error_runtime", "local r = NEXT(1)", nil,
  { "local function thrower() local t return t.x end", "pcall(thrower)" })
way("error_through_c", "local r = NEXT(1)", nil,
  { thrower, "local m = mark()",
    "pcall(function() host.nested(function() host.call(thrower) end) end)", "reset(m)" })
way("error_c_pcall", "local r = NEXT(1)", nil, { thrower, "host.pcall(thrower)" })
way("error_coroutine", "local r = NEXT(1)", nil,
  { thrower, "coroutine.resume(coroutine.create(thrower))" })
way("error_wrap", "local r = NEXT(1)", nil,
  { thrower, "local m = mark()", "pcall(coroutine.wrap(function() host.call(thrower) end))",
    "reset(m)" })

-- A handler that runs above the function which failed.
local function handler(name, text, frames)
  steps[name] = function(s, at)
    local inner, through = at.name .. "e", { "F:xpcall" }
    local first = s:emit(("local function %s()"):format(inner))
    through[2] = s:place(s:next_line(), inner)
    for _, frame in ipairs(frames) do through[#through + 1] = frame end
    s:emit(text)
    s:range(inner, at.level, first, s:emit("end"))
    s:step { name = at.name, level = at.level, through = through,
      call = ("local ok, r = xpcall(%s, %s)"):format(inner, at.next) }
  end
end
handler("handler_error", "error('x')", { "F:error", "~" })
handler("handler_runtime", "local t local x = t.x", { "~" })
handler("handler_arith", "local t local x = t + 1", { "~" })
handler("handler_call", "local t t()", { "~" })

-- ---- Coroutines ---------------------------------------------------------------------------------

way("resume", "local ok, r = coroutine.resume(co, 1)", { "F:coroutine.resume" },
  { "local co = coroutine.create(NEXT)" })
way("wrap", "local r = co(1)", { "F:coroutine.wrap_aux" }, { "local co = coroutine.wrap(NEXT)" })
way("c_resume", "host.resume(NEXT)")
way("dead", "local r = NEXT(1)", nil,
  { "local co = coroutine.create(function() return 1 end)", "coroutine.resume(co)",
    "coroutine.resume(co)" })
way("suspended", "local ok, r = coroutine.resume(co)", { "F:coroutine.resume" },
  { "local function deep(n) if n == 0 then coroutine.yield() else deep(n - 1) end return n end",
    "local other = coroutine.wrap(deep)", "other(7)", "local co = coroutine.create(NEXT)" })

-- The next function runs in a coroutine that has yielded before, out of what `text` calls.
local function yielding(name, yield, inner_text, frames, outer)
  steps[name] = function(s, at)
    local inner, body = at.name .. "y", at.name .. "b"
    local first = s:emit(("local function %s()"):format(inner))
    local body_line = s:next_line() + 6
    local push_line = s:emit(yield)
    local pushed = { s:place(body_line, body) }
    for _, frame in ipairs(frames) do pushed[#pushed + 1] = frame end
    pushed[#pushed + 1] = s:place(push_line + 2, inner)
    local quoted = {}
    for i, frame in ipairs(pushed) do quoted[i] = ("%q"):format(frame) end
    s:emit(("push(%s)"):format(table.concat(quoted, ", ")))
    s:emit(("local r = %s(1)"):format(at.next))
    s:emit(("pop(%d)"):format(#pushed))
    s:range(inner, at.level, first, s:emit("end"))
    first = s:emit(("local function %s()"):format(body))
    assert(s:emit((inner_text:gsub("INNER", inner))) == body_line)
    s:range(body, at.level, first, s:emit("end"))
    s:step { name = at.name, level = at.level, through = outer.through, before = outer.before(body),
      call = outer.call(body) }
  end
end
local by_resume = {
  through = { "F:coroutine.resume" },
  before = function(body) return { ("local co = coroutine.create(%s)"):format(body),
    "coroutine.resume(co)" } end,
  call = function() return "local ok, r = coroutine.resume(co)" end,
}
local by_c = {
  before = function() return {} end,
  call = function(body) return ("host.resume(%s)"):format(body) end,
}
yielding("yield_pcall", "coroutine.yield()", "local ok, r = pcall(INNER)", { "F:pcall" }, by_resume)
yielding("yield_xpcall", "coroutine.yield()", "local ok, r = xpcall(INNER, print)", { "F:xpcall" },
  by_resume)
yielding("yield_meta", "coroutine.yield()",
  "local r = setmetatable({}, { __index = INNER }).x", {}, by_resume)
yielding("yield_iterator", "coroutine.yield()", "for x in INNER do end", {}, by_resume)
yielding("yield_c", "host.yield()", "local ok, r = pcall(INNER)", { "F:pcall" }, by_c)
yielding("yield_lua_by_c", "coroutine.yield()", "local r = INNER()", {}, by_c)

-- ---- VMs ----------------------------------------------------------------------------------------

way("other", "host.other((host.number() + 1) % 3, 'NEXT')")
way("back", "host.other((host.number() + 2) % 3, 'NEXT')")
way("fresh", "host.fresh('NEXT')")
way("thread", "host.thread('NEXT')")

-- ---- Hooks --------------------------------------------------------------------------------------

-- Hooks do not nest, so a hook turns itself off and goes on.
local function hook(name, set, lines)
  steps[name] = function(s, at)
    local inner = at.name .. "h"
    s:step { name = inner, level = at.level + 1, before = { "debug.sethook()" },
      call = ("local r = %s(1)"):format(at.next) }
    lines(s, at, (set:gsub("HOOK", inner)), { "~" })
  end
end
local function here(s, at, set, through)
  s:step { name = at.name, level = at.level, call = set .. " local x = 1", through = through }
end
local function c_hook(name, kind, lines)
  steps[name] = function(s, at)
    lines(s, at, ("host.set_hook(%s, '%s')"):format(at.next, kind), { "~" })
  end
end
-- The hook runs in the line behind the one that sets it.
local function line_behind(s, at, set, through)
  local first = s:emit(("local function %s()"):format(at.name))
  s:emit(("push(%q, %q)"):format(s:place(s:next_line() + 2, at.name), through[1]))
  s:emit(set)
  s:emit("local x = 1")
  s:emit("pop(2)")
  s:range(at.name, at.level, first, s:emit("end"))
end
local function callee_behind(s, at, set, through)
  local callee, first = at.name .. "c"
  local line = s:emit(("local function %s(x) return x end"):format(callee))
  s:range(callee, at.level, line, line)
  first = s:emit(("local function %s()"):format(at.name))
  s:emit(("push(%q, %q, %q)"):format(s:place(s:next_line() + 2, at.name), s:place(line, callee),
    through[1]))
  s:emit(set)
  s:emit(("local x = %s(1)"):format(callee))
  s:emit("pop(3)")
  s:range(at.name, at.level, first, s:emit("end"))
end
hook("hook_count", "debug.sethook(HOOK, '', 1)", here)
hook("hook_line", "debug.sethook(HOOK, 'l')", line_behind)
hook("hook_call", "debug.sethook(HOOK, 'c')", callee_behind)
c_hook("c_hook_count", "n", here)
c_hook("c_hook_line", "l", line_behind)
c_hook("c_hook_call", "c", callee_behind)

-- ---- Finalizers ---------------------------------------------------------------------------------

way("gc_collect", "collectgarbage()", { "F:collectgarbage", "~" },
  { "getmetatable(newproxy(true)).__gc = NEXT" })

-- A finalizer that an allocation of the interpreter starts, in the line that allocates.
local function by_allocation(name, text)
  steps[name] = function(s, at)
    local inner = at.name .. "g"
    s:emit("local done")
    local line = s:emit(("local function %s()"):format(inner))
    s:emit("if done then return end done = true")
    local at_line = s:next_line() + 1
    s:emit(("push(%q)"):format(s:place(at_line, inner)))
    s:emit(("local r = %s(1)"):format(at.next))
    s:emit("pop(1)")
    s:range(inner, at.level + 1, line, s:emit("end"))
    s:step { name = at.name, level = at.level, through = { "~" },
      before = { "done = false", ("getmetatable(newproxy(true)).__gc = %s"):format(inner),
        "collectgarbage('setpause', 100) collectgarbage('setstepmul', 1000)", "local n = 0" },
      call = text }
  end
end
by_allocation("gc_allocate", "repeat local t = {} until done")
by_allocation("gc_concat", "repeat n = n + 1 local t = 'a' .. n until done")
by_allocation("gc_closure", "repeat local t = function() return n end until done")

-- ---- ffi ----------------------------------------------------------------------------------------

way("callback", "C.host_ffi_apply(cb)", { "F:*", "~" },
  { "local ffi = require('ffi') ffi.cdef('void host_ffi_apply(void (*)(void));') local C = ffi.C",
    "local cb = ffi.cast('void (*)(void)', NEXT)" }, { "cb:free()" })
way("ffi_gc", "collectgarbage()", { "F:collectgarbage", "~" },
  { "local ffi = require('ffi') local c = ffi.gc(ffi.new('int[1]'), NEXT) c = nil" })

-- ---- Native stacks ------------------------------------------------------------------------------

way("deep_native", "host.deep(NEXT)")
way("context", "host.context(NEXT)")
way("context_boost", "host.context_boost(NEXT)")
way("context_same", "host.context_same(NEXT)")
way("bare", "call(NEXT)", nil, { "local call = host.symbol('bare_call')" })
way("fp", "call(NEXT)", nil, { "local call = host.symbol('fp_call')" })

-- A coroutine's stack has 65,500 slots, three a frame, so that 60,000 frames take several
-- coroutines.
local COROUTINES, DEPTH = 5, 12000
steps.deep_lua = function(s, at)
  local recurse, bottom, last = at.name .. "r", at.name .. "b", "last" .. at.level
  s:emit(("local %s"):format(last))
  local first = s:emit(("local function %s(n)"):format(recurse))
  local turn = s:emit(("if n == 0 then local r = %s() return r end"):format(last))
  local down = s:emit(("local r = %s(n - 1)"):format(recurse))
  s:emit("return r")
  s:range(recurse, at.level, first, s:emit("end"))
  first = s:emit(("local function %s(n)"):format(bottom))
  s:emit(("local co = coroutine.create(%s)"):format(bottom))
  local closure = s:emit(("local function %sc()"):format(at.name))
  local over = s:emit("local ok, r = coroutine.resume(co, n - 1)")
  s:range(at.name .. "c", at.level, closure, s:emit("end"))
  s:emit(("if n == 1 then %s = %s else %s = %sc end"):format(last, at.next, last, at.name))
  local begin = s:emit(("local r = %s(%d)"):format(recurse, DEPTH))
  s:range(bottom, at.level, first, s:emit("end"))
  local through = {}
  local function frame(text, count)
    through[#through + 1] = { text = text, count = count or 1 }
  end
  for i = 1, COROUTINES do
    frame(s:place(begin, bottom))
    frame(s:place(down, recurse), DEPTH)
    frame(s:place(turn, recurse))
    if i < COROUTINES then
      frame(s:place(over, at.name .. "c"))
      frame("F:coroutine.resume")
    end
  end
  s:step { name = at.name, level = at.level, through = through,
    call = ("%s(%d)"):format(bottom, COROUTINES) }
end

return steps

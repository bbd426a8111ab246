-- The last function of a scenario: it writes the record and stays for a while.
local leaves = {}

local function c_leaf(name, call, before, through)
  leaves[name] = function(s, at)
    s:step { name = at.name, level = at.level, call = call, before = before, through = through }
  end
end
c_leaf("spin", "host.spin()")
c_leaf("vdso", "host.vdso()")
c_leaf("bare_spin", "spin()", { "local spin = host.symbol('bare_spin')" })
c_leaf("fp_spin", "spin()", { "local spin = host.symbol('fp_spin')" })
c_leaf("plt_spin", "spin()", { "local spin = host.symbol('plt_spin')" })
c_leaf("ffi_spin", "C.host_ffi_spin()",
  { "local ffi = require('ffi') ffi.cdef('void host_ffi_spin(void);') local C = ffi.C" }, { "F:*",
    "~" })

-- Loops on one line; "|" separates what may stand above it.
local function loop(name, body, patterns, before)
  leaves[name] = function(s, at)
    s:leaf { name = at.name, level = at.level, patterns = "C:host_expired|" .. patterns,
      before = before,
      call = ("repeat for i = 1, 200 do %s end until host.expired()"):format(body) }
  end
end
local x = { "local x = 1.5" }
loop("floor", "x = floor(i / 3) + ceil(i / 7)", "F:math.floor|F:math.ceil", x)
loop("modulo", "x = (x * 1.25 + i) % 97.5", "", x)
loop("pow", "x = (i % 7) ^ (x % 1.5)", "", x)
loop("minmax", "x = math.max(i, x % 10) + math.min(i, 3) + math.sqrt(i)",
  "F:math.max|F:math.min|F:math.sqrt", x)

-- Entry and exit sequences: nearly all the time goes into calls that do nothing. A function of its
-- own is at the line of its definition, which is the first line of the leaf's function but one.
local function calls(name, body, patterns, tiny, before, after)
  leaves[name] = function(s, at)
    local line
    local function fill(text)
      return (text:gsub("TINY_FRAME", s:place(line, at.name .. "t")):gsub("TINY", at.name .. "t"))
    end
    line = s:next_line()
    s:emit(fill(("local function TINY(...) %s end"):format(tiny or "return ...")))
    s:range(at.name .. "t", at.level, line, line)
    local first = { "local co, pcall = coroutine.wrap, pcall",
      "local tiny, nothing = host.tiny, host.nothing" }
    if before then first[3] = fill(before) end
    s:leaf { name = at.name, level = at.level, patterns = "C:host_expired|" .. fill(patterns),
      before = first, after = after,
      call = ("repeat for i = 1, 100 do %s end until host.expired()"):format(fill(body)) }
  end
end
calls("tiny_pcall", "pcall(TINY)", "F:pcall;TINY_FRAME")
calls("tiny_xpcall", "xpcall(TINY, TINY)", "F:xpcall;TINY_FRAME")
calls("tiny_c", "nothing()", "C:host_nothing")
calls("tiny_lua_call", "tiny(TINY)", "C:host_tiny;TINY_FRAME")
calls("tiny_wrap", "co(TINY)()", "F:coroutine.wrap|F:coroutine.wrap_aux;TINY_FRAME")
calls("tiny_call", "TINY()", "TINY_FRAME")
calls("tiny_error", "pcall(TINY)", "F:pcall;TINY_FRAME;F:error", "error()")
calls("tiny_error_c", "pcall(tiny, TINY)", "F:pcall;C:host_tiny;TINY_FRAME;F:error", "error()")
calls("tiny_error_wrap", "pcall(co(TINY))",
  "F:coroutine.wrap|F:pcall;F:coroutine.wrap_aux;TINY_FRAME;F:error", "error()")
calls("tiny_error_runtime", "pcall(TINY, nil)", "F:pcall;TINY_FRAME", "return (...).x")

-- Errors of C, which the C unwinder takes through C frames. Lua has let go of functions that still
-- stand on the native stack; then they are native functions above those that Lua knows.
local function throws(name, body, patterns, tiny)
  calls(name, body, patterns, tiny, "local throw, deep, through = host.throw, " ..
    "host.throw_deep, host.through local catch, catch_c = host.catch, host.catch_c")
end
throws("throw_pcall", "pcall(throw)", "F:pcall;C:host_throw|F:pcall;N:host_throw")
throws("throw_deep", "pcall(deep, 12)",
  "F:pcall;C:host_throw_deep;N:host_throw_frame*12;N:host_throw|" ..
  "F:pcall;N:host_throw_frame*12;N:host_throw")
local below = "F:pcall;C:host_through;N:host_through_frame;"
local gone = below .. "N:host_throw|F:pcall;N:host_through_frame;N:host_throw"
throws("throw_through", "pcall(through, throw)", below .. "C:host_throw|" .. gone)
throws("throw_nested", "pcall(through, TINY)", below .. "TINY_FRAME;C:host_throw|" .. gone,
  "host.throw()")
throws("throw_wrap", "pcall(co(throw))", "F:coroutine.wrap|" ..
  "F:pcall;F:coroutine.wrap_aux;C:host_throw|F:pcall;F:coroutine.wrap_aux;N:host_throw")
throws("throw_catch", "catch(throw)", "C:host_catch;C:host_throw|C:host_catch;N:host_throw")
throws("throw_catch_c", "catch_c()", "C:host_catch_c;C:host_throw|C:host_catch_c;N:host_throw")

-- A coroutine's stack begins small and grows; the collector makes that of the one that runs smaller.
calls("grow_wrap", "co(TINY)(120)", "F:coroutine.wrap|F:coroutine.wrap_aux;TINY_FRAME*121",
  "local n = ... if n > 0 then return 1 + TINY(n - 1) end return 0")
calls("grow_c", "co(grow)(4000)", "F:coroutine.wrap|F:coroutine.wrap_aux;C:host_grow", nil,
  "local grow = host.grow")
calls("grow_values", "co(unpack)(values, 1, 5000)",
  "F:coroutine.wrap|F:coroutine.wrap_aux;F:unpack", nil, "local values = {}")
calls("grow_shrink", "TINY(600) step('step', 10)", "TINY_FRAME*601|F:collectgarbage",
  "local n = ... if n > 0 then return 1 + TINY(n - 1) end return 0",
  "local step = collectgarbage")
calls("tiny_sort", "table.sort({ 2, 1 }, TINY)", "F:table.sort;TINY_FRAME", "return false")

calls("tiny_resume", "yielding()", "F:coroutine.wrap_aux;TINY_FRAME;F:coroutine.yield",
  "while true do coroutine.yield() end", "local yielding = co(TINY)")
calls("tiny_vararg", "TINY(i, i, i)", "TINY_FRAME")
calls("tiny_tail", "TINYu(i)", "TINY_FRAME",
  "return ... end local function TINYu(...) return TINY(...)")
calls("tiny_meta", "local a, b, c, d = p + 1, p.x, p < p, p .. 'a' p.x = a", "TINY_FRAME",
  "return 1", "local p = newproxy(true) local m = getmetatable(p) m.__add, m.__index, m.__lt, " ..
  "m.__concat, m.__newindex = TINY, TINY, TINY, TINY, TINY")

-- A hook at each instruction, line or call.
local function hooked(name, set, patterns)
  calls(name, "local x = i tiny(TINY)", patterns ..
    "|C:host_tiny;TINY_FRAME|C:host_tiny;TINY_FRAME;" .. patterns ..
    "|C:host_tiny;" .. patterns .. "|C:host_expired;" .. patterns, nil, set, { "debug.sethook()" })
end
hooked("hooked_count", "debug.sethook(TINY, '', 1)", "~;TINY_FRAME")
hooked("hooked_line", "debug.sethook(TINY, 'l')", "~;TINY_FRAME")
hooked("hooked_call", "debug.sethook(TINY, 'c')", "~;TINY_FRAME")
hooked("hooked_by_c", "host.tiny_hook()", "~;N:host_tiny_hook")

-- A signal while Lua code runs, or C code, or out of a system call.
local alternate = { "true", "false" }
local function arm() return ("host.arm(%d, %s)"):format(math.random(50, 900),
  alternate[math.random(2)]) end
leaves.signal_lua = function(s, at)
  s:leaf { name = at.name, level = at.level, before = { "local x = 1", arm() },
    patterns = "F:math.floor|C:host_handled",
    call = "repeat x = floor(x) + 1 until host.handled()" }
end
leaves.signal_c = function(s, at)
  s:step { name = at.name, level = at.level, before = { arm() }, call = "host.wait()" }
end
leaves.signal_raise = function(s, at)
  s:step { name = at.name, level = at.level,
    before = { "host.arm(999999, true)" }, call = "host.raise()" }
end

return leaves

-- Drives the twins: programs that run with and without the compiler and know their own profile.
-- Usage: luajit PROGRAM.lua [warm=N] [round=N] [seconds=N] [stop=FILE] [jit=off] [graph=FILE]
-- Prints "ready" after a warm-up; runs N seconds, or until there is a FILE of that name; and prints
-- at the end, with tabs between:
--   ROUND  milliseconds of each round of all phases
--   TRUTH  phase function  percent of the time of all phases      @chunk:line
--   SELF   phase function  percent of that time in its leaf alone @chunk:line of the leaf
-- where the leaf may be the phase function itself.
-- With graph=FILE it runs one round without the compiler and writes to FILE:
--   fast  number  name          a built-in function, once for each of its names
--   line  function  line        each line with code of it
--   call  caller  line  callee  from that line; -1 if the caller has no lines
-- where a function is @chunk:line of its begin, #number of a built-in one, or - for nothing.
local ffi = require("ffi")
ffi.cdef [[
struct twin_time { long s, ns; };
int clock_gettime(int, struct twin_time *);
int access(const char *, int);
]]
local MONOTONIC, THREAD_CPU = 1, 3 -- CLOCK_MONOTONIC, CLOCK_THREAD_CPUTIME_ID of Linux
local twin = {}
-- A round ends with system calls, and a thread that is to stop often does so only there. Once in 20 ms that
-- moves few samples; part of a round more or less is little of a recording.
local options = { warm = "0.3", round = "0.02", seconds = "1", stop = "", jit = "on" }
for _, word in ipairs(arg) do
  local key, value = word:match("^(%w+)=(.*)$")
  options[assert(key, word)] = value
end
if options.jit == "off" or options.graph then jit.off() end

-- ---- Clocks ------------------------------------------------------------------------------------

local now = ffi.new("struct twin_time")
local clock_gettime, access = ffi.C.clock_gettime, ffi.C.access
local function clock(id)
  clock_gettime(id or THREAD_CPU, now)
  return tonumber(now.s) + tonumber(now.ns) * 1e-9
end

local function is_over(finish)
  return access(options.stop, 0) == 0 or clock(MONOTONIC) >= finish
end

-- Interpreted, so that a phase function is always called, and its time begins and ends there. How
-- long a phase lasts is drawn: where the machine lets recorder or program run in time slices, samples
-- would else come at the same few places of each round.
local repeats = 1
local random = math.random
local function rounds(phases, seconds)
  local begin, finish, count = clock(), clock(MONOTONIC) + seconds, 0
  repeat
    for i = 1, #phases do
      local phase = phases[i]
      local before = clock()
      for _ = 1, random(2 * repeats - 1) do phase.run() end
      phase.spent = phase.spent + (clock() - before)
    end
    count = count + 1
  until is_over(finish)
  return (clock() - begin) / count
end
jit.off(rounds)

-- ---- Call graph --------------------------------------------------------------------------------
-- Hooks are global, so those of coroutines are seen too. The stack is looked at when a function is
-- entered: below a tail call or a metamethod stands then what stands there in every later sample.
-- Built-in functions in assembler have the same entry as others, so they are seen too.

local numbers = {} -- names of built-in functions, which LuaJIT prints as "builtin#20"
local lines = {} -- what is written, each once
local identities = {} -- of functions that were seen: their lines are written
local calls = {} -- that were seen, by callee, caller and line
local function identify(f)
  if identities[f] then return identities[f] end
  local info = debug.getinfo(f, "S")
  if info.what == "C" then
    identities[f] = "#" .. (tostring(f):match("builtin#(%d+)") or tostring(f))
    return identities[f]
  end
  local id = info.source .. ":" .. info.linedefined
  identities[f] = id
  lines["line\t" .. id .. "\t" .. info.linedefined] = true
  for line in pairs(debug.getinfo(f, "L").activelines) do
    lines["line\t" .. id .. "\t" .. line] = true
  end
  return id
end
local function note_call(caller, line, callee)
  local callers = calls[callee] or {}
  local from = callers[caller] or {}
  calls[callee], callers[caller] = callers, from
  if from[line] then return end
  from[line] = true
  lines["call\t" .. caller .. "\t" .. line .. "\t" .. callee] = true
end
local resume -- the one that was called last: what calls a coroutine's first function
local getinfo = debug.getinfo
local function hook()
  local called, below = getinfo(2, "f").func, getinfo(3, "lf")
  if called == debug.sethook then return end
  local callee = identify(called)
  note_call(below and identify(below.func) or resume, below and below.currentline or -1, callee)
  if numbers[callee] == "coroutine.resume" or numbers[callee] == "coroutine.wrap_aux" then
    resume = callee
  end
end

local function name_functions(out)
  local function name(f, text)
    local number = type(f) == "function" and tostring(f):match("builtin(#%d+)")
    if number then
      numbers[number] = text
      out:write("fast\t", number, "\t", text, "\n")
    end
  end
  for module, functions in pairs(package.loaded) do
    for key, f in pairs(type(functions) == "table" and functions or {}) do
      name(f, module == "_G" and key or module .. "." .. tostring(key))
    end
  end
  name(ipairs({}), "ipairs_aux")
  name(string.gmatch("", ""), "string.gmatch_aux")
  name(coroutine.wrap(clock), "coroutine.wrap_aux")
  for _, method in ipairs({ "close", "read", "write", "lines", "seek", "flush", "setvbuf" }) do
    name(io.stdout[method], "io.method." .. method)
  end
  -- Those of the FFI's own objects are in their metatables, which only debug gives.
  local found, ffi = pcall(require, "ffi")
  for kind, object in pairs(found and { meta = ffi.new("int64_t"), clib = ffi.C } or {}) do
    for key, f in pairs(debug.getmetatable(object)) do name(f, "ffi." .. kind .. "." .. tostring(key)) end
  end
end

-- Called by twin.run, which the main chunk called.
local function start_graph()
  local run, main = getinfo(2, "f").func, getinfo(3, "lf")
  note_call("-", -1, identify(main.func))
  note_call(identify(main.func), main.currentline, identify(run))
  debug.sethook(hook, "c")
end

local function write_graph(out)
  debug.sethook()
  for line in pairs(lines) do out:write(line, "\n") end
  assert(out:close())
end

-- ---- The run -----------------------------------------------------------------------------------

local function reset(phases)
  for _, phase in ipairs(phases) do phase.spent = 0 end
end

local function report(phases)
  local all, lines = 0, {}
  local function add(kind, name, f, spent)
    local info = debug.getinfo(f, "S")
    lines[#lines + 1] = string.format("%s\t%s\t%.3f\t%s:%d\n", kind, name, 100 * spent / all,
      info.source, info.linedefined)
  end
  for _, phase in ipairs(phases) do all = all + phase.spent end
  for _, phase in ipairs(phases) do
    add("TRUTH", phase.name, phase.run, phase.spent)
    if phase.leaf then add("SELF", phase.name, phase.leaf, phase.spent) end
  end
  return table.concat(lines)
end

-- Phases are tables of a name and a function to run; and of a leaf where the clock of the phase is
-- that of one function's own code, however it is compiled. Such a function is either
--   the phase function, which does all in loops of its own and calls nothing in Lua;
--   one that it calls once or twice and that calls nothing but itself;
--   or one that it calls in a plain loop, which compiled code has inlined.
-- The last kind needs care. Where branches vary, each other way is a side trace, which goes on at
-- the start of the root trace: there the values that it has just stored are loaded and checked, in
-- code of the caller, and that can take more time than all of the leaf. So none of the leaf's
-- branches varies: one root trace stays in its loop and takes no exit. The leaf begins with a
-- comparison of a number that the loop counts, since nothing tells what a function does before its
-- first guard from what its caller does. Lookups of methods do not depend on the loop, so they
-- stand before it. Then (-jdump, x64) the loop's code has 100 to 160 instructions, or 50 and four
-- calls of C that take long, and the caller's snapshots hold 5 at most: its count, its sum and the
-- leaf's first comparison. The leaf's are loads with checks of their types, comparisons, divisions.
-- So the caller's part is below 5 % of the phase.
function twin.run(phases)
  local out = options.graph and assert(io.open(options.graph, "w"))
  reset(phases)
  if out then
    name_functions(out)
    start_graph()
  end
  if not out then repeats = math.ceil(tonumber(options.round) / rounds(phases, tonumber(options.warm))) end
  reset(phases)
  io.write("ready\n")
  io.flush()
  local round = rounds(phases, out and 0 or tonumber(options.seconds))
  io.write(("ROUND\t%.3f\n"):format(1000 * round), report(phases))
  if out then write_graph(out) end
end

return twin

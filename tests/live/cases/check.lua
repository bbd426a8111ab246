-- Compare recorded chains with what the program recorded about itself.
-- Usage: luajit check.lua RECORD CHAINS [once]
-- Prints wrong chains, then: leaf samples, other samples, wrong ones, partial ones, scenarios seen,
-- partial ones and those of them that lack frames of Lua, and of how many, with "once" only
-- different ones: of one scenario, or one after the other.
--
-- A full chain must be that of its scenario's record, frame by frame and line by line, up to the
-- leaf; above it only what the leaf allows. While a scenario is built up or unwound the chain must
-- be a part of the record from the root, the last function of Lua perhaps at another of its lines,
-- and above that no function of the scenario but those defined within that one. A partial chain
-- must leave frames out, not invent any.
local scenarios = {}

-- ---- The program's record -----------------------------------------------------------------------

local function split(text, separator)
  local list = {}
  for item in (text .. separator):gmatch("(.-)%" .. separator) do
    if item ~= "" then list[#list + 1] = item end
  end
  return list
end

-- "TEXT*COUNT", count 1 where it is left out. A line of Lua: "L@CHUNK:LINE:NAME[:FIRST]".
local function parse(item)
  local text, count = item:match("^(.*)%*(%d+)$")
  local frame = { kind = item:sub(1, 1), text = text or item, count = tonumber(count) or 1 }
  if frame.kind == "L" then
    -- The name of a method has a colon.
    frame.chunk, frame.line, frame.name, frame.first =
      frame.text:match("^L(.-):(%d+):(.*):(-?%d+)$")
    if not frame.chunk then
      frame.chunk, frame.line, frame.name, frame.first =
        frame.text:match("^L(.-):(%d+):([^:]*):?(-?%d*)$")
    end
    if frame.first == "-1" then -- built into LuaJIT as bytecode
      frame.kind, frame.text = "B", "B:" .. frame.chunk
      return frame
    end
    frame.line = tonumber(frame.line)
    frame.scenario = frame.chunk:match("^@s(%d+_%d+)$")
    frame.text = ("L%s:%d"):format(frame.chunk, frame.line)
  elseif frame.kind == "N" then
    frame.symbol, frame.module = frame.text:match("^N:([^@]*)@?(.*)$")
    frame.text = "N:" .. frame.symbol
  end
  return frame
end

local function add(list, frame)
  local last = list[#list]
  if last and last.text == frame.text and not frame.glue then
    last.count = last.count + frame.count
  else
    list[#list + 1] = frame
  end
end

local function parse_expected(text)
  local list, glue = { switches = {} }, false
  for _, item in ipairs(split(text, ";")) do
    local frame = parse(item)
    if frame.text == "~" then
      glue = true
    elseif frame.text == "^" then -- another native stack, and another coroutine
      list.switches[#list.switches + 1] = #list
      glue = true
    elseif frame.text == "%" then -- another native stack
      glue = true
    else
      frame.glue, glue = glue, false
      add(list, frame)
    end
  end
  return list
end

local function read_record(path)
  for line in io.lines(path) do
    local fields = {}
    for field in (line .. "\t"):gmatch("(.-)\t") do fields[#fields + 1] = field end
    local id = fields[2]
    local scenario = scenarios[id] or { ranges = {}, by_name = {} }
    scenarios[id] = scenario
    if fields[1] == "S" then
      for _, item in ipairs(split(fields[3], ";")) do
        local name, level, first, last, tail, callee =
          item:match("^([^,]*),(%d+),(%d+),(%d+),(%d),(.*)$")
        local range = { name = name, level = tonumber(level), first = tonumber(first),
          last = tonumber(last), tail = tail == "1", callee = callee }
        scenario.ranges[#scenario.ranges + 1] = range
        scenario.by_name[name] = range
      end
    else
      -- A thread for one scenario runs the same source under a name of its own.
      local base = id:match("^1(%d+_%d+)$")
      if base then fields[4] = fields[4]:gsub("@s" .. base .. ":", "@s" .. id .. ":") end
      scenario.expected = parse_expected(fields[4])
      scenario.patterns = {}
      for _, pattern in ipairs(split(fields[3], "|")) do
        scenario.patterns[#scenario.patterns + 1] = parse_expected(pattern)
      end
    end
  end
end

-- ---- Samples ------------------------------------------------------------------------------------

-- Native functions of the host that stand in its record; others of it, and all of the libraries',
-- do not, and may stand above C functions only.
local function set(prefix, names, suffix)
  local items = {}
  for name in names:gmatch("%S+") do items[prefix .. name .. (suffix or "")] = true end
  return items
end
local noted = set("N:", [[
  main host_run host_thread host_side_thread host_tiny_hook host_nested_frame host_reader host_hook
  host_ffi_spin host_ffi_apply host_deep_frame host_context_entry host_boost_entry bare_inner fp_inner host_throw_frame host_throw
  host_through_frame
  far_function]])
-- C functions that do not call on.
local helpers = set("C:host_", [[
  push push_many pop mark reset record ready scenario time symbol begin expired nothing tiny handled
  arm set_hook set_tiny_hook number yield stopped]])
-- What the line of a call may call besides.
local besides = set("F:", "string.gmatch string.gmatch_aux debug.sethook")
-- Where a leaf stays: nobody else is there.
local staying = set("", [[
  N:host_work C:host_spin N:host_ffi_spin C:host_vdso C:bare_spin C:fp_spin C:plt_spin C:host_wait
  C:host_raise]])
-- What the collector does stands once, above all of Lua. Another frame of its kind is a gap.
local activity = "^P:%[gc[ %]]"

local function parse_sample(text)
  local chain, glue, items = {}, false, split(text, ";")
  for j, item in ipairs(items) do
    local frame = parse(item)
    -- A handler runs above whatever it interrupted, which must be right by itself.
    if frame.text == "N:host_on_signal" then break end
    if staying[frame.text] then chain.stays = true end
    -- A thread's first functions, so they stand at the root alone. A creator is in clone3 too.
    local creator = j > 1 and items[j - 1]:find("^N:__clone_internal")
    if frame.symbol == "clone3" and j > 1 and not creator or
       frame.symbol == "start_thread" and j > 2 then
      chain.another_root = true
    end
    if frame.kind == "N" and not noted[frame.text] then
      glue = true
    elseif frame.text:find(activity) and not chain.activity then
      chain.activity = true
    else
      if frame.kind == "P" or chain.activity and frame.kind:find("[LFC]") then
        chain.gap = true
      end
      if frame.scenario then chain.scenario = chain.scenario or frame.scenario end
      frame.glue, glue = glue, false
      local last = chain[#chain]
      if last and last.text == frame.text and not frame.glue then
        last.count = last.count + frame.count
      else
        chain[#chain + 1] = frame
      end
    end
  end
  return chain
end

local function same(expected, frame)
  if expected.kind ~= frame.kind then return false end
  -- A function of a library is without a name until the names are read.
  if expected.text == "F:*" or frame.text:match("^F:builtin") then return true end
  return expected.text == frame.text
end

-- Native frames of LuaJIT stand between two functions of Lua only where the record says so.
local function glue_fits(expected, below)
  return expected.glue or not below or below.kind ~= "L"
end

-- Innermost function of the scenario at a line.
local function range_at(scenario, line)
  local found
  for _, range in ipairs(scenario.ranges) do
    if line >= range.first and line <= range.last and
      (not found or range.last - range.first <= found.last - found.first) then
      found = range
    end
  end
  return found
end

-- Function of a frame. A line that ends a function within another is both's; the first line tells.
local function range_of(scenario, frame)
  local first = tonumber(frame.first)
  for _, range in ipairs(scenario.ranges) do
    if frame.name == range.name and not first or range.first == first and
      frame.line <= range.last then
      return range
    end
  end
  return range_at(scenario, frame.line)
end

-- A frame of Lua belongs to a function that exists, under its own name.
local function frame_exists(scenario, frame)
  local range = range_of(scenario, frame)
  if not range or frame.first == "0" then return true end
  local first = tonumber(frame.first)
  if first > range.first and first <= range.last then return true end -- defined within that one
  if first ~= range.first then return false, "another first line" end
  if frame.name:match("^f%d+_%d+_%d+") and frame.name:sub(1, #range.name) ~= range.name then
    return false, "another name"
  end
  return true
end

-- May the function of this frame stand in place of expected[i], being on its way there?
local function on_its_way(scenario, expected, i, frame)
  local range, nearest = range_of(scenario, frame)
  if not range or frame.first == "0" then return true end -- the chunk itself
  for j = i, #expected do
    if expected[j].scenario then nearest = j break end
  end
  if not nearest then return false end
  local target = range_of(scenario, expected[nearest])
  if range == target or range.level == target.level and not range.tail then return true end
  if range.level > target.level then return false end
  for _, between in ipairs(scenario.ranges) do
    if between.level >= range.level and between.level < target.level and not between.tail then
      return false
    end
  end
  return true
end

-- The same at any place from expected[i] on: frames between may be left out.
local function on_its_way_later(scenario, expected, i, frame)
  for j = i, #expected do
    if on_its_way(scenario, expected, j, frame) then return true end
  end
  return false
end

local function within(scenario, outer, frame)
  local range, limit = range_of(scenario, frame), range_of(scenario, outer)
  if not limit or outer.first == "0" then return true end
  return range and (range.level == limit.level or range.level == limit.level + 1)
end

-- What stands above the last frame that matched while the scenario is under way.
local function check_rest(scenario, chain, from, outer)
  for j = from, #chain do
    local frame = chain[j]
    if frame.kind == "L" then
      if frame.scenario and not (outer and outer.scenario and within(scenario, outer, frame)) and
        frame.first ~= "0" then
        return "a function out of place"
      end
    elseif frame.kind == "N" then
      if not outer then return "a native function out of place" end
    end
  end
end

-- Whether what the function at a frame calls through the library, of which the last is below, is
-- that: one that the next function of the scenario takes the place of.
local function is_callee(scenario, below, caller, frame)
  if not below or below.kind ~= "F" or not caller or not caller.scenario then return false end
  local range = range_of(scenario, caller)
  return range and range.callee == frame.text
end

local function check_transition(scenario, chain, i, offset)
  local expected, frame = scenario.expected, chain[i]
  if not frame then return end
  if i == 1 then return "another root" end
  i = i + offset
  local below, above = expected[i - 1], i - offset + 1
  if frame.kind == "L" then
    if frame.scenario and not on_its_way(scenario, expected, i,
      frame) then return "a wrong function" end
    if not frame.scenario and not (expected[i] and expected[i].kind == "L" and
      not expected[i].scenario) then
      return "a function of the driver"
    end
    return check_rest(scenario, chain, above, frame)
  end
  -- At the line of the call only what calls on, and what LuaJIT does by itself.
  if below.kind == "L" and not helpers[frame.text] and not besides[frame.text] then
    return "a wrong callee"
  end
  if below.kind == "F" and not helpers[frame.text] and
    not is_callee(scenario, below, expected[i - 2], frame) then
    return "a wrong callee of the library"
  end
  return check_rest(scenario, chain, above, nil)
end

local function matches_pattern(pattern, chain, from, skipped)
  for j = from, #chain do
    local item = pattern[j - from + 1 + skipped]
    if not item or not same(item, chain[j]) or chain[j].count > item.count then return false end
    if chain[j].glue and not glue_fits(item, chain[j - 1]) then return false end
  end
  return true
end

-- Whether what stands above the record is what its leaf allows.
local function matches_leaf(scenario, chain, from)
  for _, pattern in ipairs(scenario.patterns) do
    if matches_pattern(pattern, chain, from, 0) then return true end
  end
  return false
end

-- The same of a partial chain, which may lack the first of these frames as it may those of the
-- record.
local function ends_leaf(scenario, chain, from)
  for _, pattern in ipairs(scenario.patterns) do
    for skipped = 1, #pattern - 1 do
      if matches_pattern(pattern, chain, from, skipped) then return true end
    end
  end
  return false
end

-- The chain against expected[offset + 1] and what follows. @return what is wrong, else nil and the
-- kind.
local function check_from(scenario, chain, offset)
  local expected, i = scenario.expected, 1
  while expected[i + offset] and chain[i] and same(expected[i + offset], chain[i]) do
    local item = expected[i + offset]
    if i > 1 and chain[i].glue and not glue_fits(item, expected[i + offset - 1]) then
      return "native frames between functions of Lua"
    end
    if chain[i].count > item.count then return "another number of equal frames" end
    if chain[i].count < item.count then return check_rest(scenario, chain, i + 1, chain[i]),
      "other" end
    i = i + 1
  end
  if expected[i + offset] then
    return check_transition(scenario, chain, i, offset), "other"
  end
  if i > #chain then return nil, "leaf" end
  if matches_leaf(scenario, chain, i) then return nil, "leaf" end
  if helpers[chain[i].text] and i == #chain then return nil, "other" end
  return "a wrong leaf"
end

local function check_full(scenario, chain)
  for _, frame in ipairs(chain) do
    if frame.scenario then
      local ok, why = frame_exists(scenario, frame)
      if not ok then return why end
    end
  end
  if chain.gap then return "a gap in a full chain" end
  if not scenario.expected then return nil, "other" end -- ended before its leaf
  local wrong, kind = check_from(scenario, chain, 0)
  for _,
    offset in ipairs(scenario.expected.switches) do -- the chain may begin with its native stack
    if wrong then
      local again, other = check_from(scenario, chain, offset)
      if not again then wrong, kind = nil, other end
    end
  end
  if not wrong and chain.stays and kind ~= "leaf" then return "a leaf with another chain" end
  return wrong, kind
end

-- Whether these frames of the record, all left out, are frames that a VM knows; those below a
-- switch to another native stack and another coroutine are another chain's.
local function lacks_lua(expected, from, to)
  from = math.max(from, 1 + (expected.switches[#expected.switches] or 0))
  for i = from, to do
    if expected[i].kind ~= "N" then return true end
  end
  return false
end

-- Stands for all frames of a coroutine, so what calls the leaf may be among them.
local lost_mark = "P:[Lua frames missing]"

-- Frames of a partial chain stand in the record in the same order.
local function check_partial(scenario, chain)
  local expected, at, missing, lost = scenario.expected, 0, false, false
  if not expected then return end
  for j, frame in ipairs(chain) do
    local found
    for k = at + 1, #expected do
      if same(expected[k], frame) then found = k break end
    end
    if found then
      if frame.count > expected[found].count then return "too many equal frames" end
      missing = missing or lacks_lua(expected, at + 1, found - 1) or
        expected[found].kind == "L" and frame.count < expected[found].count
      at = found
    elseif frame.text == lost_mark then
      lost = true
    elseif (at == #expected or lost) and matches_leaf(scenario, chain, j) then
      return nil, not missing and not lost
    elseif (at == #expected or lost) and ends_leaf(scenario, chain, j) then
      return nil, false
    elseif frame.scenario then
      local ok, why = frame_exists(scenario, frame)
      if not ok then return why end
      if not on_its_way_later(scenario, expected, at + 1, frame) then
        return "a wrong function in a partial chain"
      end
      return check_rest(scenario, chain, j + 1, frame)
    elseif frame.kind == "C" and not helpers[frame.text] and at < #expected and
      not (lost and frame.text:match("^C:luaopen_")) then -- of a VM that is being made
      return "a wrong C function in a partial chain"
    end
  end
  return nil, not missing and not lacks_lua(expected, at + 1, #expected)
end

-- A chain without a function of a scenario: before one, or after it.
local function check_driver(chain)
  if chain.stays then return "a leaf without its caller" end
  for _, frame in ipairs(chain) do
    if frame.kind == "C" and not helpers[frame.text] and not frame.text:match("^C:luaopen_") then
      return "a C function without its caller"
    end
  end
end

-- ---- All ----------------------------------------------------------------------------------------

local record, chains, once = ...
read_record(record)
local numbers = { leaf = 0, other = 0, wrong = 0, partial = 0, lacking = 0, lacking_lua = 0, counted = 0 }
local seen, seen_count = {}, 0
local known, last = {}, nil
for line in io.lines(chains) do
  local fullness, text = line:match("^(%a+)\t(.*)$")
  if fullness then
    local chain = parse_sample(text)
    local scenario, wrong, kind = scenarios[chain.scenario]
    local again = once and (known[text] or text == last)
    if not again then numbers.counted = numbers.counted + 1 end
    known[text], last = scenario and true, text
    if chain.another_root then
      wrong = "the root of a thread within a chain"
    elseif chain.scenario and not scenario then
      wrong = "an unknown scenario"
    elseif fullness == "partial" then
      kind = "partial"
      local all_lua
      if scenario then wrong, all_lua = check_partial(scenario, chain) end
      if not again then
        numbers.lacking = numbers.lacking + 1
        if not all_lua then numbers.lacking_lua = numbers.lacking_lua + 1 end
      end
    elseif scenario then
      wrong, kind = check_full(scenario, chain)
    else
      wrong, kind = check_driver(chain), "other"
    end
    if wrong then
      kind = "wrong"
      print(("wrong: %s: %s %s"):format(wrong, fullness, text))
      local stack = {}
      for i, frame in ipairs(scenario and scenario.expected or {}) do
        stack[i] = frame.text .. "*" .. frame.count
      end
      print("    expected: " .. table.concat(stack, ";"))
    elseif kind == "leaf" and not seen[chain.scenario] then
      seen[chain.scenario] = true
      seen_count = seen_count + 1
    end
    numbers[kind] = numbers[kind] + 1
  end
end
print(("%d %d %d %d %d %d %d %d"):format(numbers.leaf, numbers.other, numbers.wrong, numbers.partial,
  seen_count, numbers.lacking, numbers.lacking_lua, numbers.counted))

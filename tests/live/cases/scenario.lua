-- A scenario: a chunk of functions each of which calls the next one in some way, and the last of
-- which stays for a while. Each function pushes what stands on the stack while it calls.
local Scenario = {}
Scenario.__index = Scenario

function Scenario.new(id)
  local self = setmetatable({ id = id, lines = {}, ranges = {} }, Scenario)
  self:emit("local host = ...")
  self:emit("local push, pop, mark, reset = host.push, host.pop, host.mark, host.reset")
  self:emit("local floor, ceil = math.floor, math.ceil")
  return self
end

-- Append a line and return its number.
function Scenario:emit(text)
  self.lines[#self.lines + 1] = text
  return #self.lines
end

function Scenario:next_line()
  return #self.lines + 1
end

function Scenario:place(line, name)
  return ("L@s%s:%d:%s"):format(self.id, line, name)
end

-- Note a function for the checker: level 1 is called first; the functions of one level are one
-- step.
function Scenario:range(name, level, first, last, tail, callee)
  self.ranges[#self.ranges + 1] = ("%s,%d,%d,%d,%d,%s"):format(name, level, first, last,
    tail and 1 or 0, callee or "")
end

-- The text that pushes these frames, each a string or { text =, count = }.
local function push_text(frames)
  local calls = {}
  for i, frame in ipairs(frames) do
    if type(frame) == "table" then
      calls[i] = ("host.push_many(%q, %d)"):format(frame.text, frame.count)
    else
      calls[i] = ("push(%q)"):format(frame)
    end
  end
  return table.concat(calls, " ")
end

--[[
  A function of one call.
    name, level  its own
    params       its parameters, none by default
    before       lines that run before, with nothing pushed
    call         the line that calls on; the frames of the function and of `through` are pushed
    through      frames between this function and the next one, leaf last
    after        lines that run when the call is over
    tail         true: the call replaces the function, so nothing is pushed
    callee       what the last of `through` calls, and the next function takes the place of
]]
function Scenario:step(step)
  local first = self:emit(("local function %s(%s)"):format(step.name, step.params or ""))
  for _, line in ipairs(step.before or {}) do self:emit(line) end
  if step.tail then
    self:emit(step.call)
  else
    local frames = { self:place(self:next_line() + 1, step.name) }
    for _, frame in ipairs(step.through or {}) do frames[#frames + 1] = frame end
    self:emit(push_text(frames))
    self:emit(step.call)
    self:emit(("pop(%d)"):format(#frames))
  end
  for _, line in ipairs(step.after or {}) do self:emit(line) end
  local last = self:emit("end")
  self:range(step.name, step.level, first, last, step.tail, step.callee)
end

-- A leaf in Lua: `call` is a loop on one line; `patterns` may stand above it.
function Scenario:leaf(step)
  local first = self:emit(("local function %s(%s)"):format(step.name, step.params or ""))
  for _, line in ipairs(step.before or {}) do self:emit(line) end
  self:emit(push_text { self:place(self:next_line() + 2, step.name) })
  self:emit(("host.record(%q) host.begin()"):format(step.patterns))
  self:emit(step.call)
  self:emit("pop(1)")
  for _, line in ipairs(step.after or {}) do self:emit(line) end
  local last = self:emit("end")
  self:range(step.name, step.level, first, last)
end

function Scenario:source(names)
  local items = {}
  for i, name in ipairs(names) do items[i] = ("%s = %s"):format(name, name) end
  self:emit(("return { %s }"):format(table.concat(items, ", ")))
  return table.concat(self.lines, "\n")
end

return Scenario

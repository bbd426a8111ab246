-- A program that runs itself again and again in its place (exec), each time after some milliseconds of Lua.
-- Usage: luajit execs.lua TIMES SECONDS: so often, after so much processor time each
jit.off()
local ffi = require("ffi")
ffi.cdef [[
int execvp(const char *file, char *const argv[]);
char *strdup(const char *text);
]]
local times, seconds = tonumber(arg[1]), tonumber(arg[2])
local begin = os.clock()
function burn(n)
  local x = 0.5
  for i = 1, n do x = (x * x + i) % 1000.25 end
  return x
end
while os.clock() - begin < seconds do burn(20000) end
if times > 0 then
  local words = { "luajit", arg[0], tostring(times - 1), arg[2] }
  local argv = ffi.new("char *[?]", #words + 1)
  for i, word in ipairs(words) do argv[i - 1] = ffi.C.strdup(word) end
  ffi.C.execvp("luajit", argv)
  os.exit(1)
end

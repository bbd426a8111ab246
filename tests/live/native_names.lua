-- Work inside of LuaJIT's own functions: strings, tables, patterns, numbers, sorting, garbage.
-- Usage: luajit native_names.lua SECONDS STOP [--jit]: it ends after that time or when there is a file STOP.
if arg[3] ~= "--jit" then jit.off() end
io.write("ready\n") io.flush()
local stop = os.time() + tonumber(arg[1])
local function work(n)
  local list, set = {}, {}
  for i = 1, n do
    local text = string.format("%d:%s:%.3f", i, ("x"):rep(i % 30), i / 7)
    list[#list + 1] = text:gsub("%d+", function(digits) return digits .. "," end)
    set[text] = { i, tostring(i), name = text }
  end
  table.sort(list)
  local joined = table.concat(list, ";")
  local count = 0
  for word in joined:gmatch("[^;]+") do count = count + #word end
  for key, value in pairs(set) do count = count + #key + #value end
  return count + (joined:find("999,", 1, true) or 0) + #joined:upper() + tonumber("0x10")
end
while os.time() < stop and not io.open(arg[2]) do work(2000) end

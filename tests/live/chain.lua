-- One chain with a known answer: main, Lua, pcall, Lua, coroutine.resume, Lua, string.gsub, Lua,
-- math.floor. The numbers are what the test expects.
jit.off()
local floor = math.floor
local n = 0
function callback(word)
  for i = 1, 400 do
    n = n + floor(i / 3)                    -- 8
  end
  return word
end
function replace(text)
  local result = string.gsub(text, "%w+", callback) -- 13
  return result
end
function guarded(text)
  local thread = coroutine.create(replace)
  local ok, result = coroutine.resume(thread, text) -- 18
  return result
end
function outer(text)
  local ok, result = pcall(guarded, text)   -- 22
  return result
end
io.write("ready\n") io.flush()
local stop = os.time() + tonumber(arg[1])
while os.time() < stop do
  outer("alpha beta gamma delta")           -- 28
end

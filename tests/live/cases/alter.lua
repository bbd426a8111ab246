-- Make wrong chains of right ones, to see that check.lua finds them: of each full chain at its leaf
-- one frame is left out, doubled, or put on another line. Usage: luajit alter.lua CHAINS; prints
-- the altered chains. Not of those in which the leaf notes that it begins or ends: around that moment
-- a chain with it is as right as one without.
local ways = {
  function(frames, i) table.remove(frames, i) end,
  function(frames, i) table.insert(frames, i, frames[i]) end,
  function(frames, i)
    while not frames[i]:match("^L@s") do i = i % #frames + 1 end
    frames[i] = frames[i]:gsub(":(%d+):", function(line) return (":%d:"):format(line + 1) end, 1)
  end,
}
for line in io.lines(arg[1]) do
  local text = line:match("^full\t(.*@s.*;C:host_spin%*1.*)$")
  if text and not text:find("N:shadow_", 1, true) then
    local frames, known = {}, {}
    for frame in (text .. ";"):gmatch("(.-);") do
      frames[#frames + 1] = frame
      if frame:match("^[LFC][@:]") then known[#known + 1] = #frames end
    end
    ways[math.random(#ways)](frames, known[math.random(#known)])
    print("full\t" .. table.concat(frames, ";"))
  end
end

-- Runs two functions for the same time, the first from the very beginning.
jit.off()
local clock = os.clock
function early()
  local stop = clock() + 0.4
  repeat local x = 0 for i = 1, 20000 do x = (x + i) % 7 end until clock() >= stop
end
function late()
  local stop = clock() + 0.4
  repeat local x = 0 for i = 1, 20000 do x = (x + i) % 7 end until clock() >= stop
end
early()
late()

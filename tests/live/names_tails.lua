-- Runs names_encoder.lua for some seconds; with "gone" once its main chunk has been collected. Else package.preload
-- holds it: what a stack happens to hold may be collected at any time.
package.preload.names_encoder = assert(loadfile(arg[0]:match("^.*/") .. "names_encoder.lua"))
local encoder = require("names_encoder")
local seconds, how = tonumber(arg[1]), arg[2]
local values = {}
for i = 1, 20 do
	values[i] = { name = "item " .. i, list = { i, 2 * i, true, { deep = { i, "x" } } }, flag = i % 2 == 0 }
end
if how == "gone" then
	package.preload.names_encoder = nil
	encoder.encode_all(encoder, values)
	collectgarbage()
	collectgarbage()
end
io.write("ready\n")
io.flush()
local finish = os.clock() + seconds
repeat encoder:encode_all(values) until os.clock() > finish

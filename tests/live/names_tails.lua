-- Runs names_encoder.lua for some seconds; with "gone" once its main chunk has been collected.
package.path = arg[0]:match("^.*/") .. "?.lua;" .. package.path
local encoder = require("names_encoder")
local seconds, how = tonumber(arg[1]), arg[2]
local values = {}
for i = 1, 20 do
	values[i] = { name = "item " .. i, list = { i, 2 * i, true, { deep = { i, "x" } } }, flag = i % 2 == 0 }
end
if how == "gone" then
	encoder.encode_all(encoder, values)
	collectgarbage()
	collectgarbage()
end
io.write("ready\n")
io.flush()
local finish = os.clock() + seconds
repeat encoder:encode_all(values) until os.clock() > finish

-- An encoder whose functions call each other by tail calls, as a module; the name of each stands behind
-- its first line, and then, where nothing else is left once the module's main chunk has been collected, by who
-- it is held.
local M = {}
local buffer, size = {}, 0

local function write(text) --: write
	size = size + 1
	buffer[size] = text
end

local encode_value

local function encode_string(value) --: encode_string
	local sum = 0
	for i = 1, #value do sum = (sum * 31 + value:byte(i)) % 65521 end
	return write('"' .. value .. sum .. '"')
end

local function encode_number(value) --: encode_number | encoders.number
	local digits = 0
	for i = 1, 40 do digits = digits + (value * i) % 7 end
	return write(digits .. "")
end

local function encode_boolean(value) --: encode_boolean | encoders.boolean
	local n = 0
	for i = 1, 40 do n = n + i % 3 end
	return write(value and "true" or "false" .. n)
end

local function encode_items(list, i) --: encode_items
	if i > #list then return write("]") end
	encode_value(list[i])
	return encode_items(list, i + 1)
end

local function encode_list(list) --: encode_list | encoders.list
	write("[")
	return encode_items(list, 1)
end

local function encode_fields(map, key) --: encode_fields
	local value
	key, value = next(map, key)
	if key == nil then return write("}") end
	encode_string(key)
	encode_value(value)
	return encode_fields(map, key)
end

local encoders = {
	string = encode_string,
	number = encode_number,
	boolean = encode_boolean,
	list = encode_list,
	map = function(map) --: encoders.map
		write("{")
		return encode_fields(map)
	end,
}

function encode_value(value) --: encode_value
	local kind = type(value)
	if kind == "table" then kind = #value > 0 and "list" or "map" end
	return encoders[kind](value)
end

function M.encode(value) --: M.encode | names_encoder.encode
	size = 0
	encode_value(value)
	return table.concat(buffer, ",", 1, size)
end

function M:encode_all(values) --: M:encode_all | names_encoder:encode_all
	for _, value in ipairs(values) do self.encode(value) end
end

return M

-- SPDX-License-Identifier: MIT
-- Half of the time in a loop of machine code that is not LuaJIT's, which a trace calls; half in a trace.
-- Usage: foreign_code.lua SECONDS
local ffi = require("ffi")
ffi.cdef [[
void *mmap(void *, size_t, int, int, int, long);
int mprotect(void *, size_t, int);
]]

local code = {
	-- mov ecx, 200000; again: dec ecx; jnz again; ret
	x64 = "\xb9\x40\x0d\x03\x00\xff\xc9\x75\xfc\xc3",
	-- movz w0, #0x3, lsl #16; again: subs w0, w0, #1; b.ne again; ret
	arm64 = "\x60\x00\xa0\x52\x00\x04\x00\x71\xe1\xff\xff\x54\xc0\x03\x5f\xd6",
}
local text = code[jit.arch]
local READ_WRITE, READ_EXEC, PRIVATE_ANONYMOUS = 3, 5, 0x22
local area = ffi.cast("uint8_t *", ffi.C.mmap(nil, 4096, READ_WRITE, PRIVATE_ANONYMOUS, -1, 0))
ffi.copy(area, text, #text)
ffi.C.mprotect(area, 4096, READ_EXEC)
local run = ffi.cast("void (*)(void)", area)

local function by_code(n)
	for _ = 1, n do
		run()
	end
end

local function by_trace(n)
	local x = 0
	for i = 1, n do
		x = (x * 7 + i) % 1000003
	end
	return x
end

by_code(100)
by_trace(1e5)
print("ready")
io.stdout:flush()
local end_s = os.time() + tonumber(arg[1])
while os.time() < end_s do
	local begin, middle = os.clock()
	repeat
		by_code(20)
		middle = os.clock()
	until middle - begin > 0.005
	repeat
		by_trace(2e5)
	until os.clock() - middle > 0.005
end

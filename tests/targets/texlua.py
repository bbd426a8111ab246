# SPDX-License-Identifier: MIT
"""texlua.py LIBRARY FILE: run a Lua file in a VM of that library."""
import ctypes
import sys

lua = ctypes.CDLL(sys.argv[1], mode=ctypes.RTLD_GLOBAL)
lua.luaL_newstate.restype = ctypes.c_void_p
lua.lua_tolstring.restype = ctypes.c_char_p
state = ctypes.c_void_p(lua.luaL_newstate())
if not state:
    sys.exit("no Lua state")
lua.luaL_openlibs(state)
if lua.luaL_loadfile(state, sys.argv[2].encode()) or lua.lua_pcall(state, 0, 0, 0):
    sys.exit((lua.lua_tolstring(state, -1, None) or b"error").decode())

#!/bin/bash
# SPDX-License-Identifier: MIT
# Tarantool 2.6: its own fork of LuaJIT inside the program, with symbols, not GC64; three fibers, each
# with a native stack of its own. Only unpacked, as the package brings a service.
# shellcheck source=lib.sh
source "$(dirname "$0")/lib.sh"
need_packages tarantool
say_target tarantool
say_vm tarantool tarantool
hide program "$(path_of tarantool usr/bin/tarantool)"
write_program "$WORK/main.lua" <<'LUA'
local fiber = require("fiber")
local running = 3
local function burner()
  while burn_elapsed() < SECONDS do
    burn_round()
    fiber.yield()
  end
  running = running - 1
end
for i = 1, running do fiber.create(burner):name("burner" .. i) end
while running > 0 do fiber.sleep(0.02) end
burn_report()
os.exit(0)
LUA
# shellcheck disable=SC2154 # set by hide
run_alone tarantool "$program" "$WORK/main.lua"

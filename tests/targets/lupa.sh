#!/bin/bash
# SPDX-License-Identifier: MIT
# LuaJIT in Python, by the module lupa: chains begin in the interpreter of another language.
# shellcheck source=lib.sh
source "$(dirname "$0")/lib.sh"
: "${suite:=bookworm}"
need_packages python3-lupa
say_target python3-lupa
choose_library
echo 'burn_for(SECONDS) burn_report()' | write_program "$WORK/main.lua"
cat >"$WORK/main.py" <<PYTHON
import lupa
lupa.LuaRuntime().execute(open("$WORK/main.lua").read())
PYTHON
run_alone python /usr/bin/python3 "$WORK/main.py"

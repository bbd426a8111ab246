#!/bin/bash
# SPDX-License-Identifier: MIT
# LuaTeX's LuaJIT (a library of another name, not GC64), loaded into a Python process while it runs.
# shellcheck source=lib.sh
source "$(dirname "$0")/lib.sh"
# Debian's own, which has ctypes, and not one that comes first in somebody's PATH.
python=/usr/bin/python3
[[ -x $python ]] || skip "python3 is not installed"
"$python" -c 'import ctypes' 2>/dev/null || skip "python3 has no ctypes"
file=$(find /usr/lib -name libtexluajit.so.2 2>/dev/null | head -n 1)
[[ -n $file ]] || skip "libtexluajit2 is not installed"
say_target python3
say_vm texlua libtexluajit2
hide library "$file"
echo 'burn_for(SECONDS) burn_report()' | write_program "$WORK/main.lua"
# shellcheck disable=SC2154 # set by hide
run_alone python3 "$python" "$TARGETS/texlua.py" "$library" "$WORK/main.lua"

#!/bin/bash
# SPDX-License-Identifier: MIT
# Neovim without a terminal: Lua in its main thread, LuaJIT as a library.
# shellcheck source=lib.sh
source "$(dirname "$0")/lib.sh"
find_program neovim nvim
choose_library
echo 'burn_for(SECONDS) burn_report()' | write_program "$WORK/main.lua"
mkdir "$WORK/home"
# shellcheck disable=SC2154 # set by hide
run_alone nvim env -u XDG_RUNTIME_DIR HOME="$WORK/home" XDG_CONFIG_HOME="$WORK/home" \
	XDG_DATA_HOME="$WORK/home" XDG_STATE_HOME="$WORK/home" XDG_CACHE_HOME="$WORK/home" \
	LD_LIBRARY_PATH="$LIBRARY_FOLDER" \
	"$program" --headless --clean -n -i NONE --cmd "luafile $WORK/main.lua" --cmd 'qa!'

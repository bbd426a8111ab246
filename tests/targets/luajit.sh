#!/bin/bash
# SPDX-License-Identifier: MIT
# Debian's luajit: the main line in a program of its own, stripped.
# shellcheck source=lib.sh
source "$(dirname "$0")/lib.sh"
find_program luajit luajit
if [[ -n $suite ]]; then
	choose_library
else
	say_vm mainline luajit
fi
echo 'burn_for(SECONDS) burn_report()' | write_program "$WORK/main.lua"
# shellcheck disable=SC2154 # set by hide
run_alone luajit "$program" "$WORK/main.lua"

#!/bin/bash
# SPDX-License-Identifier: MIT
# Debian's luajit: the main line in a program of its own, stripped.
# shellcheck source=lib.sh
source "$(dirname "$0")/lib.sh"
need_command luajit
say_target luajit
say_vm mainline luajit
hide program "$(command -v luajit)"
echo 'burn_for(SECONDS) burn_report()' | write_program "$WORK/main.lua"
# shellcheck disable=SC2154 # set by hide
run_alone luajit "$program" "$WORK/main.lua"

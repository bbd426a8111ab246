#!/bin/bash
# SPDX-License-Identifier: MIT
# Debian's luajit2: OpenResty's fork in a program of its own, stripped. It excludes luajit as a
# package, so it is only unpacked.
# shellcheck source=lib.sh
source "$(dirname "$0")/lib.sh"
need_package luajit2
say_target luajit2
say_vm openresty luajit2
hide program "$CACHE/luajit2/usr/bin/luajit"
echo 'burn_for(SECONDS) burn_report()' | write_program "$WORK/main.lua"
# shellcheck disable=SC2154 # set by hide
run_alone luajit2 "$program" "$WORK/main.lua"

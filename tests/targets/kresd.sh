#!/bin/bash
# SPDX-License-Identifier: MIT
# Knot Resolver, whose configuration is a Lua program: the workload is that, in the process that serves later.
# shellcheck source=lib.sh
source "$(dirname "$0")/lib.sh"
: "${suite:=bookworm}"
find_program knot-resolver kresd
choose_library
echo 'burn_for(SECONDS) burn_report() os.exit(0)' | write_program "$WORK/main.lua"
mkdir "$WORK/cache"
# shellcheck disable=SC2154 # set by find_program
run_alone kresd "$program" -n -q -c "$WORK/main.lua" "$WORK/cache"

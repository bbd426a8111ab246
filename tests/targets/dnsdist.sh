#!/bin/bash
# SPDX-License-Identifier: MIT
# dnsdist, a load balancer for DNS whose configuration is a Lua program: the workload is that.
# shellcheck source=lib.sh
source "$(dirname "$0")/lib.sh"
: "${suite:=bookworm}"
find_program dnsdist dnsdist
choose_library
echo 'burn_for(SECONDS) burn_report() os.exit(0)' | write_program "$WORK/main.lua"
# shellcheck disable=SC2154 # set by find_program
run_alone dnsdist "$program" --supervised --disable-syslog -C "$WORK/main.lua"

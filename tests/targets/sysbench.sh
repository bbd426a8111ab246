#!/bin/bash
# SPDX-License-Identifier: MIT
# sysbench with a test of our own: two threads, each with a VM; no database.
# shellcheck source=lib.sh
source "$(dirname "$0")/lib.sh"
find_program sysbench sysbench
choose_library
write_program "$WORK/main.lua" <<'LUA'
function thread_init() end
function event() burn_round() end
function thread_done() burn_report() end
LUA
READY_LINES=2
# shellcheck disable=SC2154 # set by hide
run_alone sysbench env LD_LIBRARY_PATH="$LIBRARY_FOLDER" \
	"$program" --threads=2 --time="$seconds" --events=0 --report-interval=0 "$WORK/main.lua" run

#!/bin/bash
# SPDX-License-Identifier: MIT
# wrk: two threads, each with a VM, and one more VM in the main thread; nginx answers.
# shellcheck source=lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=web.sh
source "$TARGETS/web.sh"
need_package nginx
find_program wrk wrk
choose_library
port=$(free_port)
echo | write_web_config "$WORK/nginx.conf" "$port"
start "$CACHE/nginx/usr/sbin/nginx" -p "$WORK/web/" -c "$WORK/nginx.conf"
wait_until is_open "$port"
write_program "$WORK/main.lua" <<'LUA'
local threads = {}
function setup(thread)
  thread:set("is_thread", true)
  threads[#threads + 1] = thread
end
-- The main thread asks for one request too, before there are threads.
function request()
  if is_thread then
    burn_round()
    line = burn_line("-")
  end
  return wrk.format("GET", "/")
end
function done()
  for _, thread in ipairs(threads) do burn_report(thread:get("line")) end
end
LUA
# Enough connections that a thread finds an answer whenever it asks, and does not wait for nginx.
READY_LINES=2
# shellcheck disable=SC2154 # set by hide
run_alone wrk env LD_LIBRARY_PATH="$LIBRARY_FOLDER" \
	"$program" -t 2 -c 16 -d "${seconds}s" -s "$WORK/main.lua" "http://127.0.0.1:$port/"

#!/bin/bash
# SPDX-License-Identifier: MIT
# nginx with one worker that does a unit of work for each request and counts them; under load from wrk, or
# idle. Takes BENCH_COUNT, the file of the count, and BENCH_IDLE from the environment; says and skips as
# the starters in tests/targets do.
# shellcheck source=../targets/lib.sh
source "$(dirname "$0")/../targets/lib.sh"
# shellcheck source=../targets/web.sh
source "$TARGETS/web.sh"
HERE=$(cd "$(dirname "$0")" && pwd)
need_command wrk
for package in nginx libnginx-mod-http-ndk libnginx-mod-http-lua lua-resty-core lua-resty-lrucache; do
	need_package "$package"
done
fork=openresty
choose_library >/dev/null
modules=usr/lib/nginx/modules
lua=usr/share/lua/5.1
port=$(free_port)
last=$(($(nproc) - 1))
write_web_config "$WORK/nginx.conf" "$port" <<CONF
load_module $CACHE/libnginx-mod-http-ndk/$modules/ndk_http_module.so;
load_module $CACHE/libnginx-mod-http-lua/$modules/ngx_http_lua_module.so;
worker_processes 1;
lua {
	lua_package_path "$CACHE/lua-resty-core/$lua/?.lua;$CACHE/lua-resty-lrucache/$lua/?.lua;;";
	init_by_lua_block {
		local works, open_count = dofile("$HERE/bench_works.lua")
		work, count = works.mixed, open_count("$BENCH_COUNT")
	}
}
location {
	content_by_lua_block {
		for _ = 1, 10 do work() end
		count[0] = count[0] + 1
		ngx.print("ok")
	}
}
CONF
# The worker has a processor of its own, as far as there are two.
start env LD_LIBRARY_PATH="$LIBRARY_FOLDER" taskset -c "$last" "$CACHE/nginx/usr/sbin/nginx" \
	-p "$WORK/web/" -c "$WORK/nginx.conf"
master=$PID
wait_until is_open "$port"
has_worker() { [[ -n $(child_of "$master") ]]; }
wait_until has_worker
[[ -n ${BENCH_IDLE-} ]] || start taskset -c 0 wrk -t 1 -c 8 -d "${seconds}s" "http://127.0.0.1:$port/"
# Not before it answers, which also brings its code and the VM into memory.
answers() { [[ -n ${BENCH_IDLE-} ]] || (($(od -An -tu8 -N8 "$BENCH_COUNT") > 100)); }
wait_until answers
echo "PID $(child_of "$master") worker"
echo READY
start sleep "$seconds"
wait "$PID"

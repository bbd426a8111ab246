#!/bin/bash
# SPDX-License-Identifier: MIT
# nginx with the Lua module: two workers that run as www-data, under load from wrk. Only unpacked: the
# module depends on OpenResty's LuaJIT, whose package excludes the main line's, and nginx is a service.
# The module needs lua_setexdata, which only OpenResty's fork has, so the main line cannot serve it.
# shellcheck source=lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=web.sh
source "$TARGETS/web.sh"
((EUID == 0)) || skip "workers that run as another user take root"
need_command wrk
need_packages nginx libnginx-mod-http-ndk libnginx-mod-http-lua lua-resty-core lua-resty-lrucache
say_target nginx
[[ ${fork:=openresty} == openresty ]] || die "Debian's module takes OpenResty's LuaJIT only"
choose_library
modules=usr/lib/nginx/modules
hide program "$(path_of nginx usr/sbin/nginx)"
hide kit_module "$(path_of libnginx-mod-http-ndk $modules/ndk_http_module.so)"
hide lua_module "$(path_of libnginx-mod-http-lua $modules/ngx_http_lua_module.so)"
lua_path="$(path_of lua-resty-core usr/share/lua/5.1)/?.lua;$(path_of lua-resty-lrucache usr/share/lua/5.1)/?.lua"
workers=2
echo | write_program "$WORK/main.lua"
port=$(free_port)
# shellcheck disable=SC2154 # set by hide
write_web_config "$WORK/nginx.conf" "$port" <<CONF
load_module $kit_module;
load_module $lua_module;
user www-data;
worker_processes $workers;
lua {
	lua_package_path "$lua_path;;";
	init_by_lua_file $WORK/main.lua;
	exit_worker_by_lua_block { burn_report(burn_line(ngx.worker.pid())) }
}
location {
	content_by_lua_block { burn_round() ngx.print("ok") }
}
CONF
# shellcheck disable=SC2154 # set by hide
start_target env LD_LIBRARY_PATH="$LIBRARY_FOLDER" "$program" -p "$WORK/web/" -c "$WORK/nginx.conf"
master=$PID
wait_until is_open "$port"

has_workers() {
	(($(children_of "$master" | wc -w) == workers))
}
wait_until has_workers
inside=()
read -r -a pids <<<"$(children_of "$master")"
for pid in "${pids[@]}"; do
	echo "PID $pid worker"
	inside+=("$(pid_inside "$pid")")
done
# Many connections, so that the kernel gives each worker some.
start wrk -t 1 -c 16 -d "$((seconds + 20))s" "http://127.0.0.1:$port/"
load=$PID
say_ready "$workers"
# Not in the foreground, where a signal would have to wait for it.
start sleep "$seconds"
wait "$PID" || true
kill "$load"
wait "$load" || true
STARTED=("$TARGET" "$master")
kill -QUIT "$master"
finish
for i in "${!pids[@]}"; do say_truth "${pids[i]}" "${inside[i]}"; done

#!/bin/bash
# SPDX-License-Identifier: MIT
# nginx with one worker that serves the shop, under load from wrk, for scripts/pictures. Prints and skips like
# the starters in tests/targets.
# shellcheck source=../targets/lib.sh
source "$(dirname "$0")/../targets/lib.sh"
# shellcheck source=../targets/web.sh
source "$TARGETS/web.sh"
HERE=$(cd "$(dirname "$0")" && pwd)
need_command wrk
for package in nginx libnginx-mod-http-ndk libnginx-mod-http-lua lua-resty-core lua-resty-lrucache lua-cjson; do
	need_package "$package"
done
fork=openresty
choose_library >/dev/null
modules=usr/lib/nginx/modules

# nginx runs in the folder of the Lua files, so that places are short.
mkdir "$WORK/lua"
cp -r "$CACHE"/lua-resty-{core,lrucache}/usr/share/lua/5.1/* "$HERE/shop.lua" "$WORK/lua"
cp -L "$(find "$CACHE/lua-cjson/usr/lib" -path '*/lua/5.1/cjson.so' | head -n 1)" "$WORK/lua"
port=$(free_port)
write_web_config "$WORK/nginx.conf" "$port" <<CONF
load_module $CACHE/libnginx-mod-http-ndk/$modules/ndk_http_module.so;
load_module $CACHE/libnginx-mod-http-lua/$modules/ngx_http_lua_module.so;
worker_processes 1;
lua {
	lua_package_path "?.lua";
	lua_package_cpath "./?.so";
	lua_shared_dict pages 1m;
	lua_shared_dict carts 1m;
	init_by_lua_block { shop = require("shop") }
	init_worker_by_lua_block { shop.start() }
}
location {
	content_by_lua_block { shop.serve() }
}
CONF
cd "$WORK/lua"
# The worker has a processor of its own, as far as there are two.
start env LD_LIBRARY_PATH="$LIBRARY_FOLDER" taskset -c $(($(nproc) - 1)) "$CACHE/nginx/usr/sbin/nginx" \
	-p "$WORK/web/" -c "$WORK/nginx.conf"
master=$PID
wait_until is_open "$port"
has_worker() { [[ -n $(child_of "$master") ]]; }
wait_until has_worker
start taskset -c 0 wrk -t 1 -c 8 -d "${seconds}s" -s "$HERE/visitors.lua" "http://127.0.0.1:$port/"
load=$PID
echo "PID $(child_of "$master") worker"
echo READY
wait "$load"

# shellcheck shell=bash
# SPDX-License-Identifier: MIT
# For the starters that need nginx; sourced after lib.sh.

is_open() {
	(exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null
}

# A port below those that the kernel hands out, where nobody listens now.
free_port() {
	local port
	while :; do
		port=$((20000 + RANDOM % 12000))
		is_open "$port" || break
	done
	echo "$port"
}

# write_web_config FILE PORT: an nginx that keeps to $WORK/web. Standard input: what else it says at
# the top; in "lua { }" what it says for http, in "location { }" what for the only location.
write_web_config() {
	local top http location folder=$WORK/web
	top=$(cat)
	http=$(sed -n '/^lua {$/,/^}$/p' <<<"$top" | sed '1d;$d')
	location=$(sed -n '/^location {$/,/^}$/p' <<<"$top" | sed '1d;$d')
	top=$(sed '/^lua {$/,/^}$/d; /^location {$/,/^}$/d' <<<"$top")
	mkdir -m 777 "$folder"
	cat >"$1" <<-CONF
		daemon off;
		pid $folder/pid;
		error_log $folder/error.log notice;
		$top
		events { worker_connections 256; }
		http {
			access_log off;
			keepalive_requests 1000000;
			client_body_temp_path $folder/body;
			proxy_temp_path $folder/proxy;
			fastcgi_temp_path $folder/fastcgi;
			uwsgi_temp_path $folder/uwsgi;
			scgi_temp_path $folder/scgi;
			$http
			server {
				listen 127.0.0.1:$2 reuseport;
				location / { ${location:-return 200 "ok";} }
			}
		}
	CONF
}

# shellcheck shell=bash
# SPDX-License-Identifier: MIT
# Packages of another suite of Debian, from the archive that apt has in its sources; nothing is installed and
# apt's own state is left alone. Sourced.

# suite_begin SUITE WORK [ARCHITECTURE]: have `apart` work on SUITE, with its state in the folder WORK.
suite_begin() {
	local site
	APART=$2
	APART_ARCHITECTURE=${3:-$(dpkg --print-architecture)}
	# The machine's own mirror has all suites. The format is apt's.
	# shellcheck disable=SC2016
	site=$(apt-get indextargets --format '$(SITE) $(ORIGIN)' 'Created-By: Packages' 2>/dev/null |
		awk '$2 == "Debian" && $1 !~ /security/ { print $1; exit }')
	[[ -n $site ]] || {
		echo "apt has no archive of Debian in its sources, or no lists yet: apt-get update" >&2
		return 1
	}
	mkdir -p "$APART"/{etc/apt.conf.d,etc/preferences.d,etc/sources.list.d,state/lists/partial,cache/archives/partial}
	: >"$APART/status"
	echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $site $1 main" >"$APART/etc/sources.list"
	apart apt-get -qq update
}

# apart TOOL ARGUMENT...: apt-get or apt-cache of that suite, in which nothing is installed yet.
apart() {
	local tool=$1
	shift
	"$tool" -o Dir::Etc="$APART/etc" -o Dir::State="$APART/state" -o Dir::State::status="$APART/status" \
		-o Dir::Cache="$APART/cache" -o APT::Sandbox::User=root -o Debug::NoLocking=1 \
		-o APT::Architecture="$APART_ARCHITECTURE" -o APT::Architectures="$APART_ARCHITECTURE" "$@"
}

# shellcheck shell=bash
# SPDX-License-Identifier: MIT
# Packages of another suite of Debian, from the archive that apt has in its sources; nothing is installed and
# apt's own state is left alone. Also the names of their functions, where they have symbols. Sourced.

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

# apart_unpack PACKAGE FOLDER: with its version in the file VERSION. Does nothing if it is there.
apart_unpack() {
	local work
	[[ ! -e $2/VERSION ]] || return 0
	work=$(mktemp -d)
	mkdir -p "$(dirname "$2")"
	if (cd "$work" && apart apt-get -qq download "$1") >/dev/null 2>&1; then
		mkdir "$work/tree"
		dpkg -x "$work/$1"_*.deb "$work/tree"
		dpkg-deb -f "$work/$1"_*.deb Version >"$work/tree/VERSION"
		chmod 755 "$work/tree"
		mv -T "$work/tree" "$2" 2>/dev/null || true # another run may have been faster
	fi
	rm -rf "$work"
	[[ -e $2/VERSION ]]
}

# link_archive ARCHIVE PROGRAM: a program with all its code, and with its symbols, by $CC. It never runs: its C library
# may be newer than ours.
link_archive() {
	local work status=0
	work=$(mktemp -d)
	echo 'int main(void) { return 0; }' >"$work/main.c"
	# shellcheck disable=SC2086 # it may have options
	${CC:-cc} -pie -o "$work/program" "$work/main.c" -Wl,--whole-archive "$1" -Wl,--no-whole-archive -Wl,-z,muldefs \
		-Wl,--unresolved-symbols=ignore-all >"$work/log" 2>&1 && mv "$work/program" "$2" || status=1
	rm -rf "$work"
	return "$status"
}

# functions_of FILE [OPTION]...: "ADDRESS NAME" of its functions by nm, or $NM, with these options; "?" is the name where there
# are two. Without what compilers append to the names of copies and parts.
functions_of() {
	local file=$1
	shift
	"${NM:-nm}" "$@" "$file" 2>/dev/null | awk '
		$2 ~ /^[tTwWi]$/ {
			at = $1; name = $3
			sub(/^0+/, "", at)
			sub(/@.*/, "", name)
			while (sub(/\.(constprop|isra|part|cold|lto_priv)(\.[0-9]+)?$/, "", name));
			if (at in names && names[at] != name) name = "?"
			names[at] = name
		}
		END { for (at in names) print at, names[at] }'
}

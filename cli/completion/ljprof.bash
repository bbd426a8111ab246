# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# Completion of ljrecord, ljreport, ljtop and ljdump for bash 4.1 and later. Installed under the name of
# each command, by which bash-completion finds it; it may be sourced without that package too.

# _ljprof_options COMMAND: its options, one a line: letter (- for none), name, what follows it, and
# the words where that is one of some. tests/cli/options_test.py compares them with the command.
_ljprof_options() {
	case $1 in
	ljrecord)
		echo "p pid pids
			n name text
			- children nothing
			- root words none process
			- wait text
			o output file
			- rotate text
			- keep text
			d duration text
			- limit-samples text
			- limit-bytes text
			F frequency text
			w wall nothing
			- capture words auto kernel stop
			m mode words callgraph leaf default
			f format words sysprof pprof callgrind folded svg html speedscope cpuprofile trace-event firefox perf
			- lines words current function
			- trace-samples words full record
			- stats file
			- save-images folder
			- debuginfod nothing
			- explain nothing
			q quiet nothing
			h help nothing
			V version nothing"
		;;
	ljreport)
		echo "f format words top folded svg html pprof callgrind speedscope cpuprofile trace-event firefox perf json markdown counters leaks
			o output file
			- lines words line function
			- annotate words jit trace kind
			- roots words process thread
			- title text
			- memory words inuse_space inuse_objects alloc_space alloc_objects
			- leak-only nothing
			- human-readable nothing
			- diff file
			- fail-on text
			- budget file
			- junit file
			- summary file
			q quiet nothing
			h help nothing
			V version nothing"
		;;
	ljtop)
		echo "p pid pids
			- name text
			- children nothing
			F frequency text
			w wall nothing
			- capture words auto kernel stop
			- delay text
			- window text
			d duration text
			b batch nothing
			- json nothing
			n iterations text
			- view words functions lines modules traces coroutines threads processes
			- sort words self total window-self window-total name
			- filter text
			- no-native nothing
			M no-mouse nothing
			- rows text
			- width text
			h help nothing
			V version nothing"
		;;
	ljdump)
		echo "p pid pids
			- core file
			- sysroot folder
			a all-threads nothing
			l locals nothing
			- depth text
			c coroutines nothing
			- max-pause text
			t traces nothing
			- profile file
			- json nothing
			h help nothing
			V version nothing"
		;;
	esac
}

# Sets what follows option $1, --NAME (or its beginning, as getopt takes it) or -LETTER, to the
# caller's kind and values.
_ljprof_find() {
	local letter name what words
	kind=""
	while read -r letter name what words; do
		if [[ "-$letter" == "$1" || "--$name" == "$1" ]]; then
			kind=$what values=$words
			return
		fi
		[[ $1 == --?* && "--$name" == "$1"* && -z $kind ]] || continue
		kind=$what values=$words
	done <<<"$options"
}

# The same for the value that is missing behind word $1, if one is.
_ljprof_open() {
	local word=$1 i
	kind=nothing
	if [[ $word == --* ]]; then
		[[ $word == *=* ]] || _ljprof_find "$word"
		return
	fi
	# Letters may stand together; a value may stand at its letter.
	for ((i = 1; i < ${#word}; i++)); do
		_ljprof_find "-${word:i:1}"
		[[ $kind == nothing ]] && continue
		((i + 1 == ${#word})) || kind=nothing
		return
	done
}

# Complete the command that begins at word $1.
_ljprof_command() {
	local function
	for function in _comp_command_offset _command_offset; do
		if declare -F "$function" >/dev/null; then
			"$function" "$1"
			return
		fi
	done
	compopt -o default
	((COMP_CWORD > $1)) || mapfile -t COMPREPLY < <(compgen -c -- "$cur")
}

# Complete a value of the caller's kind; $1 stands before it in the same word.
_ljprof_value() {
	local lead=$1 list
	case $kind in
	words) mapfile -t COMPREPLY < <(compgen -P "$lead" -W "$values" -- "$cur") ;;
	pids)
		list=${cur%"${cur##*,}"}
		values=$(cd /proc && echo [0-9]*)
		mapfile -t COMPREPLY < <(compgen -P "$lead$list" -W "$values" -- "${cur##*,}")
		;;
	# What comes from readline is quoted as it has to be.
	file) compopt -o default ;;
	folder) compopt -o dirnames ;;
	esac
}

_ljprof() {
	local program=${1##*/} cur=${COMP_WORDS[COMP_CWORD]} kind=nothing values="" options word i
	options=$(_ljprof_options "$program")
	COMPREPLY=()
	for ((i = 1; i < COMP_CWORD; i++)); do
		word=${COMP_WORDS[i]}
		if [[ $kind != nothing ]]; then
			# readline takes --name=value for three words.
			[[ $word == "=" && ${COMP_WORDS[i - 1]} == --* ]] || kind=nothing
		elif [[ $word == -- || $word != -?* ]]; then
			[[ $program == ljrecord ]] || continue
			[[ $word != -- ]] || ((i++))
			_ljprof_command "$i"
			return
		else
			_ljprof_open "$word"
		fi
	done
	[[ $cur != "=" ]] || cur=""
	if [[ $kind != nothing ]]; then
		_ljprof_value ""
	elif [[ $cur == --*=* ]]; then
		_ljprof_find "${cur%%=*}"
		word=${cur%%=*}=
		cur=${cur#*=}
		_ljprof_value "$word"
	elif [[ $cur == -* || $program != ljre* || $program$cur == ljrecord ]]; then
		values=""
		while read -r word i _; do
			values+="--$i "
			[[ $word == - ]] || values+="-$word "
		done <<<"$options"
		mapfile -t COMPREPLY < <(compgen -W "$values" -- "$cur")
	elif [[ $program == ljrecord ]]; then
		_ljprof_command "$COMP_CWORD"
	else
		compopt -o default
	fi
}

complete -F _ljprof ljrecord ljreport ljtop ljdump

# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# Completion of ljrecord, ljreport, ljtop and ljdump for bash 4.1 and later. Installed under the name of
# each command, by which bash-completion finds it; it may be sourced without that package too.

# Sets the caller's tables to what command $1 lists: print_list() in cli/common/options.c says in
# which form.
_ljprof_read() {
	local command=$1 record first name what option
	[[ $command != \~/* ]] || command=$HOME${command:1}
	while IFS=$'\t' read -r record first name what _; do
		case $record in
		operand) operand=$first ;;
		word) words[$option]+="$first " ;;
		option)
			option=--$name
			offered+=("$option")
			kinds[$option]=$what
			[[ $first != - ]] || continue
			offered+=("-$first")
			longs[-$first]=$option
			;;
		esac
	done < <(command "$command" --list-options 2>/dev/null </dev/null)
}

# Sets what follows option $1, --NAME (or its beginning, as getopt takes it) or -LETTER, to the
# caller's kind and values.
_ljprof_find() {
	local option=${longs[$1]-$1} name
	if [[ -z ${kinds[$option]-} && $option == --?* ]]; then
		for name in "${offered[@]}"; do
			[[ $name == "$option"* ]] && option=$name && break
		done
	fi
	kind=${kinds[$option]-} values=${words[$option]-}
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
	processes)
		# compgen expands words, and processes choose their names.
		values=$(cd /proc && echo [0-9]* &&
			cat [0-9]*/comm 2>/dev/null | grep -xE '[A-Za-z0-9][A-Za-z0-9._+-]*')
		mapfile -t COMPREPLY < <(compgen -P "$lead" -W "$values" -- "$cur" | sort -u)
		;;
	# What comes from readline is quoted as it has to be.
	file) compopt -o default ;;
	folder) compopt -o dirnames ;;
	esac
}

_ljprof() {
	local cur=${COMP_WORDS[COMP_CWORD]} kind=nothing values="" operand="" word i
	local -a offered=()
	local -A kinds=() words=() longs=()
	local IFS=$' \t\n' # words are separated by blanks, whatever the user's shell takes
	COMPREPLY=()
	_ljprof_read "$1"
	for ((i = 1; i < COMP_CWORD; i++)); do
		word=${COMP_WORDS[i]}
		if [[ $kind != nothing ]]; then
			# readline takes --name=value for three words.
			[[ $word == "=" && ${COMP_WORDS[i - 1]} == --* ]] || kind=nothing
		elif [[ $word == -- || $word != -?* ]]; then
			[[ $operand == *command && $word != +([0-9,]) ]] || continue
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
	elif [[ $cur == -* || $operand == none || $operand$cur == *command ]]; then
		mapfile -t COMPREPLY < <(compgen -W "${offered[*]}" -- "$cur")
	elif [[ $operand == process* && ($operand == process || $cur == [0-9]*) ]]; then
		kind=processes
		_ljprof_value ""
	elif [[ $operand == *command ]]; then
		_ljprof_command "$COMP_CWORD"
	else
		compopt -o default
	fi
}

complete -F _ljprof ljrecord ljreport ljtop ljdump

# SPDX-License-Identifier: MIT
# Check each chain of a folded profile against the templates in traces.lua.
# Usage: awk -v kind=KIND -v program=@/path/traces.lua -f traces.awk traces.lua folded
# Prints what is impossible, and at last the numbers of chains, of impossible ones, of chains with a
# function from a template, and of those functions by their numbers.

# ---- First file: the program --------------------------------------------------------------------

# allow WHERE: what its annotation lets a line call.
function allow(where,    at, count, items, part, parts, i) {
	at = index($0, "-->")
	if (!at)
		return
	count = split(substr($0, at + 3), items, " ")
	for (i = 1; i <= count; i++) {
		parts = split(items[i], part, "/")
		allowed[where, part[1]] = 1
		if (parts == 2)
			allowed[where "/" part[1], part[2]] = 1
	}
}

# A line that begins or ends a function runs in the chunk, too: the closure is made there.
function read_template(line) {
	line = FNR - start
	lines = line
	owner[line] = inside == "" ? "chunk" : inside
	if (match($0, /^local function [a-z]+_/)) {
		inside = substr($0, 16, RLENGTH - 16)
		owner[line] = inside
		makes[line] = 1
	} else if ($0 == "end") {
		inside = ""
		makes[line] = 1
	}
	allow(line)
}

NR == FNR {
	if ($0 == "template." kind " = [[")
		start = FNR
	else if ($0 == "]]")
		start = 0
	else if (start)
		read_template()
	else
		allow("program:" FNR)
	next
}

# ---- Second file: the profile -------------------------------------------------------------------

function bad(text) {
	print "impossible: " text ": " chain
	impossible += samples
}

# Kind of a frame: sets number (of the function from a template, or ""), line (0 in a library's
# function) and name. @return 0 for native code, traces and activities.
function parse(frame,    at, part) {
	number = ""
	name = frame
	line = 0
	if (frame ~ /^(coroutine\.[a-z_]+|loadstring|assert|error|pcall|require)$/)
		return 1
	if (frame ~ /^(\[|trace [0-9])/)
		return 0
	at = match(frame, /@gen[0-9]+:[0-9]+\)?$/)
	if (at) {
		split(substr(frame, at + 4), part, ":")
		name = substr(frame, 1, at - 3) # "NAME (", or nothing
		number = part[1] + 0
		# Each begins with some empty lines.
		line = part[2] - number % 7
		return 1
	}
	at = index(frame, program ":")
	if (!at)
		return 0
	line = substr(frame, at + length(program) + 1) + 0
	return 1
}

# Whether the name, as the profile has it, is one of the function that the line is of.
function is_named(function_name) {
	if (function_name == "chunk")
		return name == "main chunk"
	# A name is that at a call: loop_N is called as an element of a table.
	return name == function_name "_" number || name !~ /_[0-9]+$/ && name != "main chunk"
}

# The frame's function, of those that the line is of, that may stand above. Where nothing is known of the
# caller its name tells: a chunk's is always known.
function meaning(is_lost,    function_name) {
	# A chunk's first instruction is in no line.
	if (name == "main chunk" && line == -(number % 7))
		return "chunk"
	if (line < 1 || line > lines) {
		bad("line " line " of " number)
		return ""
	}
	function_name = owner[line]
	if (line in makes && (is_lost ? name == "main chunk" : !((key, function_name) in allowed)))
		function_name = "chunk"
	if (!is_named(function_name)) {
		bad(name " is no " function_name "_" number)
		return ""
	}
	return function_name
}

# One chain's frames from the root on: key is the last line, and library functions above it.
function check(    i, count, frames, of, function_name, is_generated, is_lost) {
	key = ""
	of = ""
	is_lost = 0
	count = split($0, frames, ";")
	for (i = 1; i <= count; i++) {
		# Nothing is known of what calls the next one.
		if (frames[i] == "[Lua frames missing]") {
			is_lost = 1
			of = ""
			continue
		}
		if (!parse(frames[i]))
			continue
		if (is_lost) {
			if (number != "" && meaning(1) == "")
				return 0
			is_lost = 0
			of = number
			key = line ? line : name
			continue
		}
		if (number == "" && line) {
			if (of != "") {
				bad("the program is called by " of)
				return 0
			}
			key = "program:" line
			continue
		}
		if (number == "") {
			if (of != "" && !((key, name) in allowed)) {
				bad(key " calls " name)
				return 0
			}
			key = key "/" name
			continue
		}
		function_name = meaning(0)
		if (function_name == "")
			return 0
		if (of != "" && of != number || !((key, function_name) in allowed)) {
			bad((of == "" ? key : "line " key " of " of) " calls " function_name "_" number)
			return 0
		}
		of = number
		seen[number] = 1
		key = line
		is_generated = 1
	}
	return is_generated
}

{
	samples = $NF
	chain = $0
	sub(/ [0-9]+$/, "")
	total += samples
	if (check())
		generated += samples
}

END {
	for (number in seen)
		functions++
	printf "%d %d %d %d\n", total, impossible, generated, functions
}

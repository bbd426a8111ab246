# SPDX-License-Identifier: MIT
# Check each chain of a folded profile against the call graph written in graph.lua.
# Usage: awk -v chunk=@/path/graph.lua -f graph.awk graph.lua folded

# ---- First file: the program --------------------------------------------------------------------

# A line that begins or ends a function runs in both: the outer one makes the closure there.
function open_function(name) {
	outer[FNR] = owner[FNR]
	depth++
	stack[depth] = name
	owner[FNR] = name
}

NR == FNR {
	owner[FNR] = depth ? stack[depth] : "main chunk"
	if (match($0, /^local function [a-z_]+/))
		open_function(substr($0, 16, RLENGTH - 15))
	else if (match($0, /^point\.__[a-z]+ = function/))
		open_function(substr($0, 1, index($0, " ") - 1))
	else if ($0 ~ /= function\(x\)$/)
		open_function("closure")
	else if ($0 ~ /^end$/ || $0 ~ /^    end$/ && stack[depth] == "closure") {
		depth--
		outer[FNR] = depth ? stack[depth] : "main chunk"
	}
	at = index($0, "-->")
	if (at) {
		count = split(substr($0, at + 3), items, " ")
		for (i = 1; i <= count; i++) {
			parts = split(items[i], part, "/")
			allowed[FNR, part[1]] = 1
			# A tail call replaces its caller: what it calls may stand in the caller's place.
			if (parts == 2)
				allowed[FNR "/" part[1], part[2]] = 1
		}
	}
	next
}

# ---- Second file: the profile -------------------------------------------------------------------

function bad(text) {
	print "impossible: " text ": " line_text
	impossible += samples
}

# Kind of a frame: sets frame_line (0 if it is no Lua frame) and frame_name.
function parse(frame,    at) {
	frame_line = 0
	frame_name = frame
	at = index(frame, chunk ":")
	if (!at)
		return
	frame_line = substr(frame, at + length(chunk) + 1) + 0
	frame_name = owner[frame_line]
}

# Functions of LuaJIT's libraries that the program names; all else between guest frames is native.
function is_library(name) {
	return name ~ /^(string|table|coroutine|math|os)\.[a-z_]+$/ ||
		name ~ /^(select|pcall|xpcall|error|tostring|setmetatable|pairs|next|ipairs|ipairs_aux)$/
}

{
	samples = $NF
	line_text = $0
	sub(/ [0-9]+$/, "")
	total += samples
	count = split($0, frames, ";")
	above = ""
	key = ""
	for (i = 1; i <= count; i++) {
		# A trace in which it is not known what runs is no function.
		if (frames[i] ~ /^\[?trace [0-9]/)
			continue
		# Nothing is known of what calls the next one.
		if (frames[i] == "[Lua frames missing]") {
			above = "missing"
			continue
		}
		parse(frames[i])
		if (!frame_line && !is_library(frame_name))
			continue
		if (frame_line && !(frame_line in owner)) {
			bad("line " frame_line " is in no function")
			break
		}
		if (frame_line in outer && !((key, frame_name) in allowed))
			frame_name = outer[frame_line]
		if (above == "" && frame_name == "main chunk" || above == "missing" ||
		    (key, frame_name) in allowed) {
			# possible
		} else {
			bad((above == "" ? "nothing" : above) " calls " frame_name)
			break
		}
		if (frame_line)
			key = frame_line
		else
			key = key "/" frame_name
		above = frame_name
		seen[frame_name] = 1
	}
}

END {
	functions = 0
	for (name in seen)
		functions++
	printf "%d %d %d\n", total, impossible, functions
}

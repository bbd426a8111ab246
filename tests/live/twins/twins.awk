# SPDX-License-Identifier: MIT
# Check each chain of a profile against the call graph that twin.lua wrote, and compare the profile
# with the clocks of the program.
# Usage: awk [-v alter=1] -f twins.awk GRAPH OUTPUT FUNCTIONS LINES
#   GRAPH      call graph of the program without the compiler
#   OUTPUT     what the program printed while it was recorded
#   FUNCTIONS  its folded profile by function: Lua functions with the line where they begin
#   LINES      the same by line
# Prints offenders and then, with tabs between:
#   kind, name, truth, measured                         of each phase function and leaf, in percent
#   chains, impossible, impossible by line, in a phase  samples; the last line
# With alter=1 the innermost two functions of each chain change places first; chains without two are
# left out.
# Looked at are Lua functions and built-in ones. Native frames, traces and what stands in brackets
# are not of the graph: they may stand anywhere.
BEGIN { FS = "\t" }

FNR == 1 { file++ }

# ---- The graph and the clocks --------------------------------------------------------------------

file == 1 && $1 == "fast" { number[$3] = $2 }
file == 1 && $1 == "call" {
	calls[$2, $4] = calls[$2, $3, $4] = 1
	known[$2] = known[$4] = 1
}
# Where one function is written within another a line may have code of both.
file == 1 && $1 == "line" {
	place = $2
	sub(/:[0-9]+$/, ":" $3, place)
	owners[place] = (place in owners ? owners[place] FS : "") $2
}
file == 2 && ($1 == "TRUTH" || $1 == "SELF") {
	rows++
	kind[rows] = $1
	name[rows] = $2
	truth[rows] = $3
	function_of[rows] = $4
	if ($1 == "TRUTH")
		is_phase[$4] = 1
}

# ---- The profile ---------------------------------------------------------------------------------

# The place of a Lua frame, or the number of a built-in function; "" if it is neither. What has a
# place in a way that is not known is itself, which is in no graph.
function identify(frame) {
	if (frame ~ /^\[/ || frame ~ /^trace [0-9]/)
		return ""
	if (match(frame, /@[^()]*:[0-9]+\)?$/)) {
		frame = substr(frame, RSTART)
		sub(/\)$/, "", frame)
		return frame
	}
	if (frame ~ /@.*:[0-9]/)
		return frame
	if (frame ~ /^builtin#[0-9]+$/)
		return substr(frame, 8)
	return number[frame]
}

# Sets samples, ids[1..count]; headless where it is not known what called the first of them.
function split_chain(    frames, all, i, id) {
	samples = substr($0, match($0, /[0-9]+$/))
	all = split(substr($0, 1, RSTART - 2), frames, ";")
	count = headless = 0
	for (i = 1; i <= all; i++) {
		if (frames[i] == "[Lua frames missing]") {
			count = 0
			headless = 1
		}
		id = identify(frames[i])
		if (id != "")
			ids[++count] = id
	}
	if (alter && count > 1) {
		id = ids[count]
		ids[count] = ids[count - 1]
		ids[count - 1] = id
	}
}

function offend(what, caller, callee) {
	print "impossible " what ": " callee " called by " caller ": " $0
	impossible[what] += samples
}

file == 3 {
	split_chain()
	if (alter && count < 2)
		next
	chains += samples
	above = "-"
	leaf = phase = ""
	for (i = 1; i <= count; i++) {
		if (!(headless && i == 1) && !((above, ids[i]) in calls)) {
			offend("function", above, (ids[i] in known ? "" : "unknown ") ids[i])
			break
		}
		above = ids[i]
		if (above in is_phase)
			phase = above
		if (above ~ /^@/)
			leaf = above
	}
	if (phase != "") {
		in_phase += samples
		total[phase] += samples
		self[leaf] += samples
	}
}

# The functions that may own id, if one of those above it called it from that line: a list.
function callees(above, line, id,    i, j, all, most, candidates, callers, found) {
	all = split(id ~ /^@/ ? owners[id] : id, candidates, FS)
	most = split(above, callers, FS)
	found = ""
	for (i = 1; i <= all; i++)
		for (j = 1; j <= most; j++)
			if ((callers[j], line, candidates[i]) in calls) {
				found = found FS candidates[i]
				break
			}
	return substr(found, 2)
}

file == 4 {
	split_chain()
	if (alter && count < 2)
		next
	above = "-"
	line = -1
	for (i = 1; i <= count; i++) {
		if (headless && i == 1)
			found = ids[i] ~ /^@/ ? owners[ids[i]] : ids[i]
		else
			found = callees(above, line, ids[i])
		if (found == "") {
			offend("line", above " in line " line, ids[i])
			break
		}
		above = found
		line = ids[i] ~ /^@/ ? substr(ids[i], match(ids[i], /[0-9]+$/)) : -1
	}
}

END {
	for (i = 1; i <= rows; i++) {
		own = kind[i] == "SELF" ? self[function_of[i]] : total[function_of[i]]
		printf "%s\t%s\t%s\t%.3f\n", kind[i], name[i], truth[i], in_phase ? 100 * own / in_phase : 0
	}
	printf "%d\t%d\t%d\t%d\n", chains, impossible["function"], impossible["line"], in_phase
}

# SPDX-License-Identifier: MIT
# What the VM does in each chain of a folded report, and whether it stands above a marked line.
# Usage: awk -v f=@FILE -f work.awk FILE FOLDED
# Prints for each kind of activity, tab-separated: its name, samples, samples above a marked line;
# "odd" with the samples in which something does not belong above an activity; and for each marked
# function "over NAME" with the samples above one of its lines, "in NAME" with those among them that
# have an activity. "wrong KIND" is followed by a chain in which it does not stand above a marked line.
FNR == 1 { file++ }

file == 1 {
	if (match($0, /--> [a-z]+$/)) {
		marked[substr($0, RSTART + 4) " (" f ":" FNR ")"] = 1
		name[FNR] = substr($0, RSTART + 4)
	}
	next
}

# The marked function of a frame, also of one without a name; "" if it is none.
function name_of(frame, line) {
	if (!index(frame, f ":"))
		return ""
	line = substr(frame, index(frame, f ":") + length(f) + 1) + 0
	return line in name ? name[line] : ""
}

{
	count = $NF
	sub(/ [0-9]+$/, "")
	depth = split($0, frames, ";")
	kind = ""
	split("", met)
	for (i = 1; i <= depth; i++) {
		if (kind != "" && frames[i] ~ /^\[(gc|jit) ?|\(@|^@/)
			odd += count
		met[name_of(frames[i])] = 1
		if (frames[i] !~ /^\[(gc|jit)[] ]/)
			continue
		kind = frames[i]
		samples[kind] += count
		below = frames[i - 1]
		if (below !~ /[(]/)
			below = frames[i - 2] # a library function
		if (below in marked)
			right[kind] += count
		else
			printf "wrong %s\t%s\n", kind, $0
	}
	for (one in met) {
		over[one] += count
		within[one] += kind != "" ? count : 0
	}
}

END {
	for (kind in samples)
		printf "%s\t%d\t%d\n", kind, samples[kind], right[kind]
	for (one in over)
		printf "over %s\t%d\nin %s\t%d\n", one, over[one], one, within[one]
	printf "odd\t%d\n", odd
}

#!/bin/bash
# SPDX-License-Identifier: MIT
# usage: ljreport_diff_test.sh LJREPORT GOLDEN_FOLDER
# What ljreport tells of two profiles, and of rules: output, exit codes and messages.

ljreport=$1
memory=$2/gc64/memprof_jitoff.bin
stream=$2/gc64/sysprof_l_jitoff.bin
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 1
failures=0

fail() {
	echo "FAIL: $*" >&2
	failures=$((failures + 1))
}

# check CODE ARGUMENT...
check() {
	local code=$1 got
	shift
	"$ljreport" "$@" >out 2>err
	got=$?
	[ $got -eq "$code" ] || fail "$*: exit code $got, not $code: $(cat err)"
}

# says PATTERN: what the last one said on standard error.
says() {
	grep -q -- "$1" err || fail "says $(cat err), not $1"
}

printf 'main;work (@a.lua:3);encode 1000\nmain;rest 9000\n' >base
printf 'main;work (@a.lua:3);encode 1500\nmain;rest 8500\n' >new

# Differences
check 0 --diff base new
grep -q '^10000 samples before, 10000 now' out || fail 'diff: head'
grep -Eq '^ +10\.00 +15\.00 +\+5\.00\*.* encode$' out || fail "diff: encode: $(cat out)"
check 0 --diff=base -f text new
grep -q 'encode$' out || fail 'diff: text'
check 0 --diff=base --lines=line new
grep -q 'work (@a.lua:3)$' out || fail 'diff: lines'
check 0 --diff base -f json new
python3 - <<'END' || fail 'diff: json'
import json
d = json.load(open("out"))
assert d["profiles"]["samples"] == {"base": 10000, "new": 10000}, d
row = next(r for r in d["functions"] if r["function"] == "encode")
assert row["self"] == {"base": 1000, "new": 1500}, row
assert row["self_change"]["certain"] and abs(row["self_change"]["value"] - 0.05) < 1e-6, row
assert row["self_change"]["low"] < 0.05 < row["self_change"]["high"], row
END
check 0 -f json new
python3 - <<'END' || fail 'json'
import json
d = json.load(open("out"))
assert d["profile"]["samples"] == 10000, d
row = next(r for r in d["functions"] if r["name"] == "work")
assert row["location"] == "@a.lua:3" and row["total"] == 1500 and row["self"] == 0, row
END

# Rules
check 0 --fail-on 'self>90%' new
check 3 --fail-on 'self>10%' new
says 'ljreport: broken: self>10%: rest itself has 85.00 % '
says 'encode itself has 15.00 %'
check 3 --diff base --fail-on '+2%' new
says 'broken: +2%: encode itself has 15.00 %, +5.00 ('
check 0 --diff base --fail-on '+2%' base
printf '# rules\nself>90%%\n\n  +2%% # of any function\n' >budget
check 3 --diff base --budget budget --junit junit.xml new
says 'broken: +2%'
grep -q 'tests="2" failures="1"' junit.xml || fail 'junit'
python3 -c 'import xml.dom.minidom, sys; xml.dom.minidom.parse("junit.xml")' || fail 'junit is no XML'
check 0 --budget budget --diff base base
# The report is there, broken or not.
check 3 --fail-on 'self>10%' new
grep -q '^10000 samples' out || fail 'no report beside a broken rule'

# The order of samples tells how much they say: fifty in a row are no more than one.
python3 - <<'END' || fail 'no streams'
import random

def number(n):
    out = b""
    while n > 0x7f:
        out += bytes([n & 0x7f | 0x80])
        n >>= 7
    return out + bytes([n])

def write(path, share, copies):
    data = b"ljs\3\0\0\0\x80ljp\2\0\0\0"
    for address, name in ((0x401000, b"a"), (0x402000, b"b")):
        data += b"\x0b" + number(address) + number(len(name)) + name
    leaves = [0x402000] * round(6000 * share / copies)
    leaves += [0x401000] * (6000 // copies - len(leaves))
    random.Random(1).shuffle(leaves)
    for address in leaves:
        data += (b"\0" + number(address) + b"\0") * copies
    open(path, "wb").write(data + b"\x80")

write("base.bin", 0.30, 1)
write("more.bin", 0.40, 1)
write("alike.bin", 0.40, 50)
END
check 3 --diff base.bin --fail-on '+2%' more.bin
says 'broken: +2%: b itself has 40.00 %, +10.00 ('
check 0 --diff base.bin --fail-on '+2%' alike.bin
check 3 --fail-on 'func:b>35%' more.bin
check 0 --fail-on 'func:b>35%' alike.bin

# Wrong usage
many=()
for i in $(seq 1001); do many+=("--fail-on=self>5%"); done
check 1 "${many[@]}" new
says 'cannot keep more rules: limit reached'
check 1 --fail-on 'self>5' new
says "not self>5: "
check 1 --fail-on '+2%' new
says 'goes with --diff=BASE'
check 1 --junit x new
says 'goes with --fail-on'
check 1 --diff base -f folded new
says 'no --diff with --format folded'
check 1 --budget nothing new
says 'nothing: No such file'
printf '\0self>5%%\n' >zero
check 1 --budget zero new
says 'zero: a zero byte in line 1'
printf '# nothing\n' >none
check 1 --budget none new
says 'none: no rule in it'
printf '\357\273\277self>90%%\r\n' >dos
check 0 --budget dos new
check 3 --fail-on 'func:encdoe<1%' new
says 'no function of that name'
check 0 --fail-on 'func:encdoe>1%' new
says 'kept: func:encdoe>1%: no function has that name'
printf 'self>5%%\nself\n' >wrong
check 1 --budget wrong new
says 'wrong: not a rule .* in line 2'

# Input and output
check 6 --diff nothing new
says 'nothing: No such file'
check 6 --fail-on 'gc>5%' new
# States are kept on the way through pprof's form.
stream=$2/gc64/sysprof_c_full_jitoff.bin
"$ljreport" -o states.pb.gz "$stream" || fail 'cannot write states'
"$ljreport" -f counters "$stream" >expected
"$ljreport" -f counters states.pb.gz >found
diff expected found >difference || fail "states behind pprof's form: $(cat difference)"
says 'which some samples lack'
check 6 --diff base -f json "$memory"
says 'this profile counts allocations'
check 6 --diff "$memory" base
says "$memory: --diff and rules need sample counts; this profile counts allocations"
check 1 -o x.bin new
says 'give --format with --output x.bin'
check 0 --diff base -o x.svg new
grep -q 'change +5.00 points' x.svg || fail '-o x.svg is no differential flame graph'
check 0 --diff base -o x.html new
grep -q '^"base":10000,' x.html || fail '-o x.html has no base'
check 0 -o x.json new
python3 -m json.tool x.json >/dev/null || fail '-o x.json is no JSON'
check 0 -o x.folded.gz new
gzip -dc x.folded.gz | cmp -s - <(sort new) || fail '-o x.folded.gz is not compressed chains'
# Judged, also where nobody reads the report to its end.
for i in $(seq 30000); do echo "main;function_$i 1"; done >big
"$ljreport" --fail-on 'total>50%' big 2>err | head -n 1 >/dev/null
[ "${PIPESTATUS[0]}" -eq 3 ] || fail 'a closed pipe hides a broken rule'
says 'broken: total>50%: main'
# Kinds are not told by all forms: the same samples are no change.
"$ljreport" -o same.folded "$stream"
check 0 --diff "$stream" --fail-on '+0%' same.folded
check 4 --fail-on 'self>90%' --junit no/folder new
says 'no/folder: No such file'

# A broken rule is reported whatever else fails.
check 3 --fail-on 'self>10%' --junit no/folder new
check 3 --fail-on 'self>10%' --summary no/folder new
says 'no/folder: No such file'

# As in a job: no terminal, no standard input, no home. The codes are the same.
job() {
	local code=$1 got
	shift
	env -i "$ljreport" "$@" <&- >out 2>err
	got=$?
	[ $got -eq "$code" ] || fail "in a job: $*: exit code $got, not $code: $(cat err)"
}
job 0 --quiet new
[ ! -s err ] || fail "--quiet says $(cat err)"
job 0 -q --diff base --fail-on 'self>90%' --junit junit.xml --summary page.md -o out.md new
job 1 --nothing new
job 3 -q --diff base --fail-on '+2%' --junit junit.xml --summary page.md -o out.json new
job 4 -q -o no/folder new
job 6 -q nothing
job 6 -q -
# Nothing gets the numbers of files that are closed.
env -i "$ljreport" -q --fail-on 'self>10%' -o out.folded new <&- >&- 2>&-
[ $? -eq 3 ] || fail 'closed standard files: another exit code'
cmp -s <(sort new) out.folded || fail "closed standard files: $(cat out.folded)"
env -i "$ljreport" -q new <&- >&- 2>err
[ $? -eq 4 ] || fail 'closed standard output: another exit code'

[ $failures -eq 0 ] && echo "all checks passed"
exit $((failures > 0))

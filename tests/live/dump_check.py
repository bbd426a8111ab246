# SPDX-License-Identifier: MIT
"""What ljdump says of dump.lua against what LuaJIT says of itself.

dump_check.py truth DUMP TRUTH PROGRAM GC64   numbers as NAME=VALUE lines
dump_check.py churn PROGRAM DUMP...           wrong things, while traces come and go
"""
import json
import re
import sys

LINKS = ["none", "root", "loop", "tail-recursion", "up-recursion", "down-recursion",
         "interpreter", "return", "stitch"]


def marks(program):
    """Lines of the program by the words in their comments."""
    found = {}
    with open(program, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            mark = re.search(r"-- ([A-Z_]+)$", line.rstrip())
            if mark:
                found[mark.group(1)] = number
    return found


def read_truth(name):
    traces = {}
    with open(name, encoding="utf-8") as file:
        for line in file:
            word = line.split()
            traces[int(word[1])] = {
                "link": word[2], "link_trace": int(word[3]), "exits": int(word[4]),
                "ir_instructions": int(word[5]), "ir_constants": int(word[6]),
                "chunk": word[7], "line": int(word[8]), "defined": int(word[9]),
                "parent": int(word[10]), "exit": int(word[11]),
                "mcode": "0x%x" % int(word[12]), "mcode_bytes": int(word[13]),
                "functions": {int(n) for n in word[14].split(",")}}
    return traces


def complain(what):
    print(what, file=sys.stderr)
    return 1


def compare(ours, truth):
    """Differences of one trace."""
    wrong = 0
    got = {"link": ours["link"], "link_trace": ours["link_trace"], "exits": len(ours["exits"]),
           "ir_instructions": ours["ir_instructions"], "ir_constants": ours["ir_constants"],
           "chunk": ours["start"]["chunk"], "line": ours["start"]["line"],
           "mcode": ours["mcode"], "mcode_bytes": ours["mcode_bytes"],
           "parent": ours["parent"]}
    for key, value in got.items():
        if value != truth[key]:
            wrong += complain(f"trace {ours['trace']}: {key} is {value}, not {truth[key]}")
    kind = ours["kind"]
    if truth["parent"] == 0:
        good = kind in ("loop", "function", "return")
    elif truth["exit"] == -1:
        good = kind == "stitched"
    else:
        good = kind == "side" and ours["parent_exit"] == truth["exit"]
    return wrong + (0 if good else complain(f"trace {ours['trace']}: {kind}, {truth}"))


def family(number, traces):
    """Functions of a trace and of those that lead to it."""
    functions, seen = set(), set()
    while number in traces and number not in seen:
        seen.add(number)
        functions |= traces[number]["functions"] | {traces[number]["defined"]}
        number = traces[number]["parent"]
    return functions


def check_functions(vm, truth):
    """Functions shown as inlined that were not recorded; and recorded ones that are not shown."""
    invented = missed = named = 0
    for trace in vm["traces"]:
        number = trace["trace"]
        inlined = {f["line"] for f in trace["inlined"]}
        shown = inlined | {f["line"] for f in trace["used"]}
        named += sum(f["name"] is not None for f in trace["inlined"])
        for line in inlined - family(number, truth):
            invented += complain(f"trace {number}: line {line} was not recorded")
        for line in truth[number]["functions"] - shown - {truth[number]["defined"]}:
            missed += complain(f"trace {number}: line {line} is not shown")
    return invented, missed, named


def check_sides(vm):
    """Each side trace begins at an exit that says so."""
    traces = {t["trace"]: t for t in vm["traces"]}
    wrong = 0
    for trace in vm["traces"]:
        if trace["kind"] != "side":
            continue
        exits = traces[trace["parent"]]["exits"]
        exit_ = exits[trace["parent_exit"]]
        if not exit_["linked"] or exit_.get("trace") != trace["trace"]:
            wrong += complain(f"trace {trace['trace']}: its parent's exit is {exit_}")
    most = vm["jit"]["parameters"]["hotexit"] + vm["jit"]["parameters"]["tryside"] + 1
    for trace in vm["traces"]:
        for exit_ in trace["exits"]:
            if not exit_["linked"] and exit_["count"] > most:
                wrong += complain(f"trace {trace['trace']}: {exit_}")
    return wrong


def truth_of(dump, truth_name, program, gc64):
    vm = dump["processes"][0]["vms"][0]
    truth = read_truth(truth_name)
    line = marks(program)
    ours = {t["trace"]: t for t in vm["traces"]}
    for number in ours.keys() ^ truth.keys():
        complain(f"trace {number}: only {ours.get(number) or truth[number]}")
    wrong = sum(compare(ours[n], truth[n]) for n in ours.keys() & truth.keys())
    invented, missed, named = check_functions(vm, truth)
    closed = {(f["line"], f["why"], f["calls"], tuple(f["loops"])) for f in vm["not_compiled"]}
    names = {f["line"]: f["name"] for f in vm["not_compiled"]}
    aborts = {p["line"]: (p["reason_name"], p["blacklisted"]) for p in vm["penalties"]}
    # What the last abort before the list was is up to how the loop was met.
    given_up = aborts.get(line["BLACKLISTED_LOOP"], ("", False))
    mcode = vm["machine_code"]
    numbers = {
        "vms": len(dump["processes"][0]["vms"]),
        "traces": len(truth),
        "same": len(ours.keys() & truth.keys()) if ours.keys() == truth.keys() else -1,
        "wrong": wrong,
        "kinds": len({t["kind"] for t in vm["traces"]}),
        "links": len({t["link"] for t in vm["traces"]}),
        "invented": invented,
        "missed": missed,
        "named": named,
        "sides": sum(t["kind"] == "side" for t in vm["traces"]),
        "wrong_sides": check_sides(vm),
        "blacklisted": int((line["BLACKLISTED"], "blacklisted", False,
                            (line["BLACKLISTED_LOOP"],)) in closed
                           and names[line["BLACKLISTED"]] == "makes_closures"),
        "off": int((line["OFF"], "jit.off", True, (line["OFF_LOOP"],)) in closed or
                   (line["OFF"], "jit.off", False, (line["OFF_LOOP"],)) in closed),
        "others": sum(f["why"] == "blacklisted" and f["line"] != line["BLACKLISTED"]
                      for f in vm["not_compiled"]),
        "penalty": int(aborts.get(line["SOMETIMES_LOOP"]) == ("NYIBC", False) and given_up[1] and
                       given_up[0] in ("NYIBC", "LLEAVE", "LINNER")),
        "mcode": int(mcode["trace_bytes"] == sum(t["mcode_bytes"] for t in truth.values()) and
                     0 < mcode["trace_bytes"] <= mcode["area_bytes"] - mcode["free_bytes"] and
                     mcode["areas"] >= 1 and mcode["area_bytes"] % 4096 == 0 and
                     mcode["area_bytes"] <= mcode["limit_bytes"]),
        "jit": int(vm["jit"]["on"] and "loop" in vm["jit"]["optimisations"] and
                   vm["jit"]["parameters"]["hotloop"] == 56),
        "layout": int((", GC64," in vm["layout"]) == (gc64 == "gc64")),
        "whole": int(vm["all_traces"] and vm["all_functions"] and
                     dump["processes"][0]["all_vms"]),
    }
    for key, value in numbers.items():
        print(f"{key}={value}")


def churn(program, dumps):
    """Whatever is shown must be the program's."""
    traces = wrong = 0
    with open(program, encoding="utf-8") as file:
        last = sum(1 for _ in file)
    for dump in dumps:
        for trace in (t for vm in dump["processes"][0]["vms"] for t in vm["traces"]):
            traces += 1
            places = [trace["start"]] + trace["exits"] + trace["inlined"] + trace["used"]
            for place in places:
                if place["chunk"] is None:
                    continue
                if place["chunk"] != "@" + program or not 0 <= place["line"] <= last:
                    wrong += complain(f"trace {trace['trace']}: {place}")
            if trace["link"] not in LINKS or trace["kind"] == "other":
                wrong += complain(f"trace {trace['trace']}: {trace['kind']}, {trace['link']}")
    print(traces, wrong)


def load(name):
    with open(name, encoding="utf-8") as file:
        return json.load(file)


if sys.argv[1] == "truth":
    truth_of(load(sys.argv[2]), *sys.argv[3:])
else:
    churn(sys.argv[2], map(load, sys.argv[3:]))

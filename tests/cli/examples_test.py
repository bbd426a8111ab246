#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The jobs in examples/ are what CI servers read, and their commands what they promise.

Usage: examples_test.py LJRECORD LJREPORT MAKE_STREAM EXAMPLES

Options of ljrecord are taken by its own parser; what it would record is made here. Of ljreport all
is real: a profile like the base is good, one with a new hot function exits with 3. The tarball that
jobs install is one like that of scripts/package; as root they install it, in a mount namespace.
"""
import glob
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import xml.dom.minidom

try:
    import yaml
except ImportError:
    print("skipped: python3-yaml is not installed")
    sys.exit(77)

LJRECORD, LJREPORT, MAKE_STREAM, EXAMPLES = (os.path.realpath(path) for path in sys.argv[1:])
GITLAB_GLOBAL = {"stages", "default", "variables", "workflow", "include", "image"}
# A registry's name is nothing to be repeated in examples.
HOSTS = re.compile(r"\b(ghcr|docker|quay|gcr|npmjs|pypi|crates|rubygems|luarocks)\.(io|com|org)\b|registry\.", re.I)
failures = 0


def check(good, what):
    global failures
    if not good:
        failures += 1
        print("FAILED:", what)


class Reference(list):
    """GitLab's !reference [job, key]."""


class Loader(yaml.SafeLoader):
    pass


Loader.add_constructor("!reference", lambda loader, node: Reference(loader.construct_sequence(node)))


def load(name):
    with open(os.path.join(EXAMPLES, name), encoding="utf-8") as file:
        text = file.read()
    check(not HOSTS.search(text), "%s names a registry" % name)
    check("sudo ljrecord" in text and "CAP_SYS_PTRACE" in text, "%s tells what root is for" % name)
    return yaml.load(text, Loader)


def github():
    """The commands of its one job, and whether they run after a failure too; its artifacts."""
    flow = load("github-actions.yml")
    # YAML 1.1 takes the key "on" for a truth.
    check({"name", True, "permissions", "env", "jobs"} == set(flow), "keys of the workflow: %s" % list(flow))
    check(all(value == "${{ vars.%s }}" % name for name, value in flow["env"].items()), "variables: %s" % flow["env"])
    check({"pull_request", "push"} == set(flow[True]), "events: %s" % flow[True])
    (job,) = flow["jobs"].values()
    check(isinstance(job["runs-on"], str) and job["timeout-minutes"] > 0, "the job's machine")
    for step in job["steps"]:
        check(("run" in step) != ("uses" in step), "a step either runs or uses: %s" % step)
        check(set(step) <= {"name", "run", "uses", "with", "if"}, "a step's keys: %s" % step)
        # An expression in a command would be pasted into it.
        check("${{" not in step.get("run", ""), "an expression in %s" % step.get("run"))
        check("uses" not in step or re.fullmatch(r"actions/[a-z/-]+@v\d+", step["uses"]), step)
    (upload,) = [step for step in job["steps"] if "upload-artifact" in step.get("uses", "")]
    check("!cancelled()" in upload["if"], "artifacts of a job that failed")
    commands = [(step["run"], "!cancelled()" in step.get("if", "")) for step in job["steps"] if "run" in step]
    return commands, upload["with"]["path"].split()


def flat(jobs, script):
    for entry in script:
        if isinstance(entry, Reference):
            yield from flat(jobs, jobs[entry[0]][entry[1]])
        else:
            check(isinstance(entry, str), "an entry of a script: %s" % entry)
            yield entry


def gitlab(which):
    """The same of that job."""
    jobs = load("gitlab-ci.yml")
    for name, job in jobs.items():
        if name in GITLAB_GLOBAL:
            continue
        whole = dict(jobs[job["extends"]], **job) if "extends" in job else job
        check(whole["stage"] in jobs["stages"], "the stage of %s" % name)
        check(isinstance(whole["script"], list) and whole["script"], "the script of %s" % name)
        check(name.startswith(".") or whole["rules"] and whole["artifacts"]["paths"], "job %s" % name)
        check(set(whole) <= {"stage", "timeout", "tags", "before_script", "script", "extends",
                             "rules", "cache", "artifacts"}, "keys of %s: %s" % (name, list(whole)))
    whole = dict(jobs[jobs[which]["extends"]], **jobs[which])
    # As the runner has it, both are one script.
    commands = [(command, False) for command in whole["before_script"] + list(flat(jobs, whole["script"]))]
    artifacts = whole["artifacts"]
    return commands, artifacts["paths"] + list(artifacts.get("reports", {}).values())


def containers():
    """Pods have the rights that docs/permissions.md names, and commands that ljrecord takes."""
    for name, shares in (("sidecar", "shareProcessNamespace"), ("node", "hostPID")):
        with open("%s/container/%s.yaml" % (EXAMPLES, name), encoding="utf-8") as file:
            whole = yaml.safe_load(file)
        spec = whole["spec"] if whole["kind"] == "Pod" else whole["spec"]["template"]["spec"]
        check(spec[shares] is True, "%s: %s" % (name, shares))
        (container,) = [one for one in spec["containers"] if one["name"] == "ljprof"]
        rights = container["securityContext"]
        check(rights == {"runAsUser": 0, "capabilities": {"add": ["SYS_PTRACE", "BPF", "PERFMON"]}}, rights)
        mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
        check(set(mounts) == {volume["name"] for volume in spec["volumes"]}, "%s: volumes" % name)
        check(container["command"][0] == "ljrecord", container["command"])
        output = container["command"][container["command"].index("-o") + 1]
        check(os.path.dirname(output) in mounts.values(), "%s: writes to %s" % (name, output))
        command = [LJRECORD] + container["command"][1:]
        # With an output that cannot be made it ends before it looks for processes, all options taken.
        command[command.index("-o") + 1] = "/proc/none/" + os.path.basename(output)
        done = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
        check(done.returncode == 4 and "cannot open /proc/none/" in done.stderr, "%s: %s" % (name, done.stderr))


# ---- Running them


def script(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write("#!/bin/sh\n" + text)
    os.chmod(path, 0o755)


def prepare(folder):
    """Commands in their place: each ljrecord is parsed to its end, and leaves what it was asked for."""
    os.makedirs(folder + "/bin")
    script(folder + "/bin/sudo", 'exec "$@"\n')
    os.symlink(LJREPORT, folder + "/bin/ljreport")
    # With an output that cannot be made it ends before it looks for processes, all options taken.
    script(folder + "/bin/ljrecord", """
        "{0}" "$@" --help >/dev/null || exit
        "{0}" "$@" -o "{1}/none/out.pb.gz" 2>"{1}/said"
        [ $? = 4 ] && grep -q 'cannot open {1}/none/out.pb.gz' "{1}/said" || {{ cat "{1}/said"; exit 1; }}
        cp "{1}/recorded.pb.gz" profile.pb.gz && echo '{{}}' >stats.json && echo "$@" >>"{1}/recordings"
        """.format(LJRECORD, folder))
    # Of another form than their names tell, which readers do not look at: one that tells all states.
    for name, chains in (("base", 3000), ("hot", 20)):
        subprocess.run([MAKE_STREAM, "20000", str(chains), "%s/%s.pb.gz" % (folder, name)], check=True)


def install(folder, what, commands):
    """The job's commands that install a tarball like ours, in a mount namespace where /usr/local is empty."""
    lines = [line for command, _ in commands for line in command.splitlines()]
    lines = [line for line in lines if "ljprof.tar.gz" in line]
    check(len(lines) == 3, "%s: installs by %s" % (what, lines))
    if os.geteuid() != 0 or not shutil.which("curl"):
        print("left out: installing the tarball (this needs root and curl)")
        return
    place = "%s/%s-install" % (folder, what)
    os.makedirs(place + "/ljprof-1-linux/bin")
    script(place + "/ljprof-1-linux/bin/ljreport", "echo installed\n")
    tarball = place + "/tarball"
    subprocess.run(["tar", "-C", place, "-czf", tarball, "ljprof-1-linux"], check=True)
    with open(tarball, "rb") as file:
        digest = hashlib.sha256(file.read()).hexdigest()
    for given, expected in ((digest, "installed"), ("0" * 64, "")):
        env = {"PATH": folder + "/bin:/usr/bin:/bin", "LJPROF_URL": "file://" + tarball, "LJPROF_SHA256": given}
        done = subprocess.run(
            ["unshare", "-m", "bash", "-e", "-c", "mount -t tmpfs tmpfs /usr/local\n%s\n/usr/local/bin/ljreport" %
             "\n".join(lines)], cwd=place, env=env, capture_output=True, text=True, check=False)
        check(done.stdout.split("\n")[-2:-1] == [expected] if expected else done.returncode != 0,
              "%s: installing: %s%s" % (what, done.stdout, done.stderr))


def play(folder, what, commands, artifacts, profile, base):
    """Run a job's commands of ours. @return the first exit code of a failure."""
    place = "%s/%s" % (folder, what)
    os.makedirs(place + "/ci")
    shutil.copy(EXAMPLES + "/budget", place + "/ci/budget")
    shutil.copy("%s/%s.pb.gz" % (folder, profile), folder + "/recorded.pb.gz")
    if base:
        os.makedirs(place + "/base")
        shutil.copy("%s/%s.pb.gz" % (folder, base), place + "/base/profile.pb.gz")
    env = {"PATH": folder + "/bin:" + os.environ["PATH"], "GITHUB_STEP_SUMMARY": place + "/profile.md"}
    code = 0
    for command, always in commands:
        if not re.search(r"\blj(record|report) |\bbase\b", command):
            continue  # yours
        if code and not always:
            continue
        done = subprocess.run(["bash", "-e", "-o", "pipefail", "-c", command], cwd=place, env=env,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        code = code or done.returncode
        check(done.returncode in (0, 3), "%s: %d of %s: %s" % (what, done.returncode, command, done.stderr))
    for path in artifacts:
        check(os.path.exists(place + "/" + path), "%s: no %s" % (what, path))
    return code, place


def judge(folder, name, commands, artifacts):
    with_page = any("--summary" in command for command, _ in commands)
    for what, profile, base, expected in (("first", "base", None, 0), ("good", "base", "base", 0),
                                          ("bad", "hot", "base", 3)):
        if not with_page and expected:
            continue
        code, place = play(folder, name + "-" + what, commands, artifacts, profile, base)
        check(code == expected, "%s: the job ends with %d where it is %s" % (name, code, what))
        if not with_page:
            continue
        suite = xml.dom.minidom.parse(place + "/junit.xml").getElementsByTagName("testsuite")[0]
        check((suite.getAttribute("failures") != "0") == (expected == 3), "%s: junit.xml" % what)
        with open(place + "/profile.md", encoding="utf-8") as file:
            page = file.read()
        check(("**FAILED**" in page) == (expected == 3) and "### Profile" in page, "%s: page: %s" % (what, page))
        check(expected == 0 or re.search(r"\| `\+2%` \| \*\*FAILED\*\* \| `.* has ", page), "reason: " + page)


def main():
    with tempfile.TemporaryDirectory() as folder:
        prepare(folder)
        containers()
        install(folder, "github", github()[0])
        install(folder, "gitlab", gitlab("profile")[0])
        judge(folder, "github", *github())
        judge(folder, "gitlab", *gitlab("profile"))
        judge(folder, "gitlab-base", *gitlab("profile-base"))
        with open(folder + "/recordings", encoding="utf-8") as file:
            recordings = file.read().splitlines()
        check(len(recordings) == 8 and set(recordings) == {
            "--name nginx --children --wait 30 -d 30 -o profile.pb.gz --stats stats.json"}, recordings)
        bases = {os.path.basename(path[:-len("/base/profile.pb.gz")]): os.path.getsize(path)
                 for path in glob.glob(folder + "/*/base/profile.pb.gz")}
        check({"github-first", "gitlab-base-first"} <= set(bases) and "gitlab-first" not in bases and
              bases["github-bad"] == bases["gitlab-bad"] == os.path.getsize(folder + "/base.pb.gz"), bases)
    print("%d recordings" % len(recordings))
    sys.exit(failures > 0)


main()

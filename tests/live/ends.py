# SPDX-License-Identifier: MIT
"""Be a parent, or a terminal, of what the test of ends looks at.

Usage: ends.py AT_ONCE_S stops LJRECORD PROFILE COUNT PROGRAM...
           Start the program, record it, and stop and continue it COUNT times at random instants. Its
           parent hears of each by wait(2), and of nothing else: not of the recorder's stops. Prints
           how many it has sent, how many it heard of, how many times the program ran on while it was
           stopped, and how many times it did not run on afterwards.
       ends.py AT_ONCE_S suspended LJRECORD PROFILE COUNT PROGRAM...
           Start the program, record it with stops, and suspend the recorder COUNT times at random instants,
           as Ctrl-Z does. Prints how many times it stopped, how many times the program did not run on
           meanwhile, and the recorder's exit code.
       ends.py AT_ONCE_S terminal hangup|ignored PROFILE COMMAND...
           Run the command in a terminal of its own, with SIGHUP as it is or ignored. The terminal is closed
           once the command has written to the profile or to the terminal. Prints the exit code, or "stuck".
       ends.py AT_ONCE_S killed LJRECORD LJREPORT PROFILE COUNT PROGRAM...
           Record COUNT programs, each of which is killed at a random instant. Prints how many could not
           be reaped at once, how many recorders were stuck or failed, and how many profiles cannot be
           read, of how many.
       What has to happen at once does so within AT_ONCE_S seconds.
"""
import os
import pty
import random
import signal
import subprocess
import sys
import time

PATIENCE_S = 60
AT_ONCE_S = int(sys.argv[1])


def start(program):
    target = subprocess.Popen(program, stdout=subprocess.PIPE)
    assert target.stdout.readline() == b"ready\n"
    return target


def used(pid):
    """Processor time of all its threads in ns."""
    total = 0
    for tid in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{tid}/schedstat") as text:
            total += int(text.read().split()[0])
    return total


def told(pid, wanted):
    """What wait(2) tells next, if it is what is wanted."""
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        got, status = os.waitpid(pid, os.WUNTRACED | os.WCONTINUED | os.WNOHANG)
        if got:
            return wanted(status)
        time.sleep(0.0005)
    return False


def stands(pid):
    """Where in its own code the program stands, once it does. A recorder that looked just before the stop
    may meet it: then the thread changes over to "t" and back, some microseconds in the kernel."""
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        with open(f"/proc/{pid}/stat") as stat:
            state = stat.read().rsplit(")", 1)[1].split()[0]
        with open(f"/proc/{pid}/syscall") as text:
            place = text.read()
        if state == "T" and place != "running\n":
            return place
        time.sleep(0.0005)
    return None


def goes_on(pid, before):
    end = time.monotonic() + AT_ONCE_S
    while time.monotonic() < end:
        if used(pid) > before + 1000000:
            return True
        time.sleep(0.001)
    return False


def remove(profile):
    if os.path.exists(profile):
        os.remove(profile)


def await_samples(profile):
    """The recorder has found the VM, and its first samples are written."""
    end = time.monotonic() + PATIENCE_S
    while not (os.path.exists(profile) and os.path.getsize(profile) > 0) and time.monotonic() < end:
        time.sleep(0.01)


def stops(ljrecord, profile, count, *program):
    target = start(program)
    remove(profile)
    recorder = subprocess.Popen([ljrecord, "-q", "-F", "4999", "-p", str(target.pid), "-o", profile])
    await_samples(profile)
    known = ran = stuck = 0
    for number in range(int(count)):
        time.sleep(random.random() * 0.02)
        target.send_signal(signal.SIGSTOP)
        known += told(target.pid, lambda s: os.WIFSTOPPED(s) and os.WSTOPSIG(s) == signal.SIGSTOP)
        place = stands(target.pid)
        # The last ones are after the signal that ends the recorder, which it does while all stands.
        if number == int(count) - 2:
            recorder.send_signal(signal.SIGTERM)
            recorder.wait(AT_ONCE_S)
        time.sleep(random.random() * 0.02)
        ran += place is None or stands(target.pid) != place
        before = used(target.pid)
        target.send_signal(signal.SIGCONT)
        known += told(target.pid, os.WIFCONTINUED)
        stuck += not goes_on(target.pid, before)
    more, _ = os.waitpid(target.pid, os.WUNTRACED | os.WCONTINUED | os.WNOHANG)
    target.kill()
    target.wait()
    print("sent", 2 * int(count), "told", known + (more != 0), "ran", ran, "stuck", stuck,
          "code", recorder.returncode)


def suspended(ljrecord, profile, count, *program):
    target = start(program)
    remove(profile)
    # In a group of its own, whose parent is in another one: else the signal has no effect.
    recorder = subprocess.Popen([ljrecord, "-q", "--capture=stop", "-F", "9999", "-p", str(target.pid),
                                 "-o", profile], preexec_fn=os.setpgrp)
    await_samples(profile)
    known = held = 0
    for _ in range(int(count)):
        time.sleep(random.random() * 0.02)
        recorder.send_signal(signal.SIGTSTP)
        known += told(recorder.pid, os.WIFSTOPPED)
        held += not goes_on(target.pid, used(target.pid))
        recorder.send_signal(signal.SIGCONT)
        known += told(recorder.pid, os.WIFCONTINUED)
    recorder.send_signal(signal.SIGTERM)
    recorder.wait(AT_ONCE_S)
    target.kill()
    target.wait()
    print("told", known, "held", held, "code", recorder.returncode)


def has_begun(profile, master):
    try:
        if os.read(master, 65536):
            return True
    except BlockingIOError:
        pass
    return os.path.exists(profile) and os.path.getsize(profile) > 0


def terminal(hangup, profile, *command):
    pid, master = pty.fork()
    if pid == 0:
        if hangup == "ignored":
            signal.signal(signal.SIGHUP, signal.SIG_IGN)
        os.execvp(command[0], command)
    end = time.monotonic() + PATIENCE_S
    os.set_blocking(master, False)
    while not has_begun(profile, master) and time.monotonic() < end:
        time.sleep(0.01)
    os.close(master)
    end = time.monotonic() + AT_ONCE_S
    while time.monotonic() < end:
        got, status = os.waitpid(pid, os.WNOHANG)
        if got:
            print(os.waitstatus_to_exitcode(status))
            return
        time.sleep(0.01)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    print("stuck")


def is_unreadable(ljreport, profile):
    return subprocess.run([ljreport, "-f", "counters", profile], stdout=subprocess.DEVNULL).returncode != 0


def await_written(path, recorder):
    """Until a recorder has written something; on a busy machine its start takes a while."""
    end = time.monotonic() + AT_ONCE_S
    while time.monotonic() < end and recorder.poll() is None:
        if os.path.exists(path) and os.path.getsize(path) > 0:
            return
        time.sleep(0.01)


# Half of the programs at any moment from the recorder's start, the others once there is something to read.
def killed(ljrecord, ljreport, profile, count, *program):
    kept = stuck = failed = unreadable = read = 0
    for number in range(int(count)):
        target = start(program)
        if os.path.exists(profile):
            os.unlink(profile)
        recorder = subprocess.Popen([ljrecord, "-q", "-F", "9999", "-p", str(target.pid), "-o", profile],
                                    stderr=subprocess.PIPE)
        if number % 2:
            await_written(profile, recorder)
        time.sleep(random.random() * 0.2)
        target.kill()
        try:
            target.wait(AT_ONCE_S)
        except subprocess.TimeoutExpired:
            kept += 1
        try:
            why = recorder.communicate(timeout=AT_ONCE_S)[1]
            # 5: it ended before the first sample; 3: it was met before we have reaped it.
            code = recorder.returncode
            failed += code not in (0, 5) and not (code == 3 and b"zombie" in why)
        except subprocess.TimeoutExpired:
            stuck += 1
            recorder.kill()
            recorder.wait()
        target.wait()
        if os.path.exists(profile):
            read += 1
            unreadable += is_unreadable(ljreport, profile)
    print("kept", kept, "stuck", stuck, "failed", failed, "unreadable", unreadable, "read", read)


{"stops": stops, "suspended": suspended, "terminal": terminal, "killed": killed}[sys.argv[2]](*sys.argv[3:])

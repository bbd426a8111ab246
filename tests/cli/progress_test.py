#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The progress bar of ljreport: on a terminal only, after a second only, and gone at the end.

Usage: progress_test.py LJREPORT MAKE_STREAM
"""
import concurrent.futures
import os
import pty
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time

LJREPORT, MAKE_STREAM = (os.path.realpath(path) for path in sys.argv[1:])
ERASE = "\r\x1b[K"
failures = 0


def check(good, what):
    global failures
    if not good:
        failures += 1
        print("FAILED:", what)


class Terminal:
    """Takes what comes, until nobody has the other end."""

    def __init__(self):
        self.master, self.slave = pty.openpty()
        self.text = ""
        self.thread = threading.Thread(target=self.take)
        self.thread.start()

    def take(self):
        while True:
            try:
                got = os.read(self.master, 65536)
            except OSError:
                return
            self.text += got.decode()

    def end(self):
        os.close(self.slave)
        self.thread.join()
        os.close(self.master)
        return self.text


def slowly(process, terminal, enough):
    """Stopped most of the time, until the terminal shows enough."""
    while process.poll() is None and not enough(terminal.text):
        process.send_signal(signal.SIGSTOP)
        time.sleep(0.1)
        process.send_signal(signal.SIGCONT)
        time.sleep(0.005)


def run(arguments, enough=None, stdin=subprocess.DEVNULL, feed=None, code=0):
    """@return what the terminal got, and how long it took."""
    terminal = Terminal()
    begin = time.monotonic()
    process = subprocess.Popen([LJREPORT, *arguments], stdin=stdin, stderr=terminal.slave)
    if enough:
        slowly(process, terminal, enough)
    if feed:
        feed(process.stdin, terminal)
    check(process.wait() == code, "%s: exit code %d" % (arguments, process.returncode))
    took = time.monotonic() - begin
    return terminal.end(), took


def percents(text):
    return [int(number) for number in re.findall(r"\rreading: +(\d+) %", text)]


def some(text):
    return len(set(percents(text))) >= 3


def feed_slowly(pipe, terminal):
    """A part, and the rest once the bar tells of all of it."""
    with open("big", "rb") as file:
        pipe.write(file.read(3 << 20))
        pipe.flush()
        end = time.monotonic() + 60
        while "3.0 MiB" not in terminal.text and time.monotonic() < end:
            time.sleep(0.05)
        pipe.write(file.read())
    pipe.close()


def feed_late(pipe, _):
    time.sleep(1.3)
    pipe.write(b"main;work 10\n")
    pipe.close()


def check_bar(text, took):
    shown = percents(text)
    check(len(set(shown)) >= 3 and shown == sorted(shown) and shown[-1] <= 100, "percents: %s" % shown)
    check(took > 1 and len(shown) <= 10 * took, "%d updates in %.2f s" % (len(shown), took))
    check(all(len(bar) == 30 and abs(bar.count("#") - int(percent) * 0.3) <= 1
              for percent, bar in re.findall(r"reading: +(\d+) % ([#.]+)", text)), "bars: %r" % text)
    check(text.endswith(ERASE), "not erased: %r" % text[-80:])


def a_file():
    text, took = run(["-o", "file.folded", "big"], some)
    check_bar(text, took)
    check("writing" not in text or text.index("writing") > text.rindex("reading"), "phases: %r" % text)


def compressed_and_one_of_several():
    text, took = run(["-o", "two.json", "--diff=big", "-f", "json", "big.pb.gz"], some)
    check_bar(text, took)


def a_pipe():
    text, _ = run(["-o", "pipe.folded", "-"], None, subprocess.PIPE, feed_slowly)
    check("\rreading: 3.0 MiB\x1b[K" in text and text.endswith(ERASE), "a pipe: %r" % text)


def erased_before_a_message():
    text, _ = run(["-o", "none.folded", "big", "nothing"], some, code=6)
    check(re.search(r"\r\x1b\[Kljreport: nothing: No such file[^\r]*\r\n$", text), "a message: %r" % text[-200:])


def not_wanted():
    text, _ = run(["-q", "-o", "quiet.folded", "-"], None, subprocess.PIPE, feed_late)
    check(text == "", "--quiet: %r" % text)


def no_time():
    with open("small", "w", encoding="utf-8") as file:
        file.write("main;work 10\n")
    text, took = run(["-o", "small.folded", "small"])
    check(text == "" or took > 1, "a small file: %r" % text)


def nobody_looks():
    slow = subprocess.Popen([LJREPORT, "-o", "late.folded", "-"], stdin=subprocess.PIPE, stderr=subprocess.PIPE)
    time.sleep(1.3)
    _, said = slow.communicate(b"main;work 10\n")
    check(slow.returncode == 0 and said == b"", "no terminal: %r" % said)


def main():
    subprocess.run([MAKE_STREAM, "150000", "8000", "big"], check=True)
    subprocess.run([LJREPORT, "-o", "big.pb.gz", "big"], check=True)
    cases = (a_file, compressed_and_one_of_several, a_pipe, erased_before_a_message, not_wanted, no_time,
             nobody_looks)
    # Each waits for more than a second: all at once.
    with concurrent.futures.ThreadPoolExecutor(len(cases)) as pool:
        for done in [pool.submit(case) for case in cases]:
            done.result()
    sys.exit(failures > 0)


with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    main()

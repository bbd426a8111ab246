# SPDX-License-Identifier: MIT
"""A browser to test pages in: headless Chromium, spoken to over a pipe.

    with chromium.start() as browser:
        page = browser.open("out.html")
        page.click(100, 200)
        page.evaluate("document.title")

Source: Chrome DevTools protocol 1.3; --remote-debugging-pipe reads commands from descriptor 3 and
writes answers to 4, each JSON with a zero byte behind.
"""
import base64
import fcntl
import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time

PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "chrome")
START_S = 60
ANSWER_S = 30


class Failure(Exception):
    """The browser does not answer, or refuses a command."""


def find():
    """The path of a browser; None where there is none."""
    return next(filter(None, map(shutil.which, PROGRAMS)), None)


def start(width=1280, height=800):
    return Browser(find(), width, height)


class Browser:
    def __init__(self, program, width, height):
        self.size = (width, height)
        self.folder = tempfile.mkdtemp(prefix="ljprof-chromium-")
        commands, self.write_fd = high_pipe()
        self.read_fd, answers = high_pipe()
        self.buffer = b""
        self.last_id = 0
        self.pages = {}

        def use_pipes():
            os.dup2(commands, 3)
            os.dup2(answers, 4)

        # A session of its own, so that nothing else is ended with it.
        self.process = subprocess.Popen(
            [program, "--headless=new", "--no-sandbox", "--remote-debugging-pipe",
             "--user-data-dir=" + self.folder, "--no-first-run", "--no-default-browser-check",
             "--disable-background-networking", "--disable-component-update", "--disable-sync",
             "--disable-extensions", "--disable-gpu", "--disable-dev-shm-usage", "--mute-audio",
             "--password-store=basic", "--window-size=%d,%d" % self.size, "about:blank"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            pass_fds=(3, 4), preexec_fn=use_pipes, start_new_session=True,
            env=dict(os.environ, HOME=self.folder))
        os.close(commands)
        os.close(answers)
        try:
            self.version = self.call("Browser.getVersion", seconds=START_S)["product"]
        except BaseException:
            self.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        """End the browser and all that it started, and remove what it wrote."""
        for fd in (self.write_fd, self.read_fd):
            os.close(fd)
        try:
            self.process.wait(1)
        except subprocess.TimeoutExpired:
            pass
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()
        # What is dying may still write there.
        for _ in range(50):
            shutil.rmtree(self.folder, ignore_errors=True)
            if not os.path.exists(self.folder):
                break
            time.sleep(0.05)

    def call(self, method, session=None, seconds=ANSWER_S, **params):
        """Give a command and take its answer; events that come before go to their pages."""
        self.last_id += 1
        message = {"id": self.last_id, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        os.write(self.write_fd, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + seconds
        while True:
            answer = self.receive(deadline, method)
            if answer.get("id") == self.last_id:
                break
        if "error" in answer:
            raise Failure("%s: %s" % (method, answer["error"].get("message")))
        return answer["result"]

    def receive(self, deadline, what):
        while b"\0" not in self.buffer:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.read_fd], [], [], left)[0]:
                raise Failure("no answer to " + what)
            part = os.read(self.read_fd, 1 << 16)
            if not part:
                raise Failure("the browser ended at " + what)
            self.buffer += part
        line, self.buffer = self.buffer.split(b"\0", 1)
        message = json.loads(line)
        page = self.pages.get(message.get("sessionId"))
        if page and "method" in message:
            page.take(message["method"], message["params"])
        return message

    def open(self, path, dark=False, fragment=""):
        """A page with a file, or with one of the browser's own addresses, once it is loaded."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = Page(self, session, target)
        self.pages[session] = page
        url = path if "://" in path else "file://" + os.path.abspath(path)
        page.load(url + ("#" + fragment if fragment else ""), dark)
        return page


def high_pipe():
    """A pipe whose descriptors are not those that the browser wants."""
    made = []
    for fd in os.pipe():
        made.append(fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 10))
        os.close(fd)
    return made


class Page:
    """`errors`: what the console has; `requests`: all addresses but the page's own."""

    def __init__(self, browser, session, target):
        self.browser = browser
        self.session = session
        self.target = target
        self.url = None
        self.errors = []
        self.requests = []
        self.dialogs = []
        self.is_loaded = False

    def call(self, method, **params):
        return self.browser.call(method, session=self.session, **params)

    def take(self, method, params):
        if method == "Runtime.exceptionThrown":
            details = params["exceptionDetails"]
            self.errors.append(details.get("exception", {}).get("description", details["text"]))
        elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "assert", "warning"):
            self.errors.append(" ".join(str(a.get("value", a.get("description")))
                                        for a in params["args"]))
        elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.errors.append(params["entry"]["text"])
        elif method == "Network.requestWillBeSent" and params["request"]["url"] != self.url:
            self.requests.append(params["request"]["url"])
        elif method == "Page.javascriptDialogOpening":
            self.dialogs.append(params["message"])
        elif method == "Page.loadEventFired":
            self.is_loaded = True

    def load(self, url, dark):
        self.url = url
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(domain + ".enable")
        width, height = self.browser.size
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        self.call("Page.navigate", url=url)
        deadline = time.monotonic() + ANSWER_S
        while not self.is_loaded:
            self.browser.receive(deadline, "load of " + url)
        self.settle()

    def wait_for(self, expression):
        """Until that is true."""
        deadline = time.monotonic() + ANSWER_S
        while not self.evaluate(expression):
            if time.monotonic() > deadline:
                raise Failure("never true: " + expression)
            time.sleep(0.05)

    def settle(self):
        """Until what was begun is drawn."""
        self.evaluate("new Promise(function (done) { requestAnimationFrame(function () {"
                      " requestAnimationFrame(done); }); }).then(function () { return 0; })")

    def evaluate(self, expression):
        """The value of JavaScript; of a promise what it ends in."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True,
                           awaitPromise=True)
        if "exceptionDetails" in answer:
            details = answer["exceptionDetails"]
            raise Failure(details.get("exception", {}).get("description", details["text"]))
        return answer["result"].get("value")

    def mouse(self, kind, x, y, shift=False, pressed=False):
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, modifiers=8 if shift else 0,
                  button="none" if kind == "mouseMoved" and not pressed else "left",
                  buttons=1 if pressed or kind == "mousePressed" else 0,
                  clickCount=0 if kind == "mouseMoved" else 1)

    def move(self, x, y):
        self.mouse("mouseMoved", x, y)
        self.settle()

    def click(self, x, y, shift=False):
        self.mouse("mouseMoved", x, y, shift)
        self.mouse("mousePressed", x, y, shift)
        self.mouse("mouseReleased", x, y, shift)
        self.settle()

    def drag(self, from_x, to_x, y):
        self.mouse("mouseMoved", from_x, y)
        self.mouse("mousePressed", from_x, y)
        for x in (from_x + (to_x - from_x) / 2, to_x):
            self.mouse("mouseMoved", x, y, pressed=True)
        self.mouse("mouseReleased", to_x, y)
        self.settle()

    def click_on(self, selector):
        """Click the middle of an element."""
        place = self.evaluate("(function () { const r = document.querySelector(%s)"
                              ".getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2];"
                              " }())" % json.dumps(selector))
        self.click(*place)

    def key(self, key):
        """Press a key by its name, "Escape", or by what it writes, "/"."""
        codes = {"Escape": 27, "Enter": 13, "Backspace": 8, "ArrowUp": 38, "ArrowDown": 40,
                 "ArrowLeft": 37, "ArrowRight": 39}
        text = {"Enter": "\r"}.get(key, key if len(key) == 1 else "")
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, text=text,
                  windowsVirtualKeyCode=codes.get(key, ord(key[0].upper())))
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key,
                  windowsVirtualKeyCode=codes.get(key, ord(key[0].upper())))
        self.settle()

    def type(self, text):
        self.call("Input.insertText", text=text)
        self.settle()

    def screenshot(self, path):
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))

    def close(self):
        self.browser.call("Target.closeTarget", targetId=self.target)
        self.browser.pages.pop(self.session, None)

#!/usr/bin/env python3
"""scripts/demo.py against a stand-in daemon: it passes what is right, finds what is wrong, and leaves nothing.

Method: two small programs with the names and answers of fopd and fopctl; FAULT in their text breaks one answer. They
are started some 400 times, so Python looks for no modules of others first (-IS). A file stands for the admin socket: it
is renamed into place when it is complete, and nobody answers from it once the process it names has ended.
"""

import os
import signal
import stat
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

DEMO = Path(__file__).resolve().parent.parent / "demo.py"

FOPD = """#!{python} -IS
import http.server, json, os, signal, sys, threading
FAULT = {fault!r}
node = sys.argv[sys.argv.index("--dev") + 1]
host, port = sys.argv[sys.argv.index("--metrics") + 1].split(":")
os.makedirs(node + "/objects", exist_ok=True)
def stop(*_):
    if FAULT == "hangs": return
    if FAULT != "socket stays": os.unlink(node + "/admin.sock")
    os._exit(3 if FAULT == "exit code" else 0)
signal.signal(signal.SIGTERM, stop)
class Metrics(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"fopd_up 1\\n" + (b"" if FAULT == "metrics" else b"# EOF\\n"))
    def log_message(self, *_): pass
server = http.server.HTTPServer((host, int(port)), Metrics)
if FAULT == "start": sys.exit("fopd: no such luck")
open(node + "/fopd.yaml", "w").write("node: {{}}\\n")
with open(node + "/admin.new", "w") as file:
    json.dump({{"state": "ready", "pid": os.getpid(), "localities": [1], "log_level": "info"}}, file)
os.rename(node + "/admin.new", node + "/admin.sock")
open(node + "/env.sh", "w").write("export FOPD_ADMIN='" + node + "/admin.sock'\\n")
print("fopd.daemon.ready", flush=True)
server.serve_forever()
"""

FOPCTL = """#!{python} -IS
import json, os, sys
FAULT = {fault!r}
socket = os.environ["FOPD_ADMIN"]
words = [word for word in sys.argv[1:] if word not in ("--json", "--long", "--pool", "cold")]
objects = os.path.dirname(socket) + "/objects/"
def path_of(name): return objects + name.replace("/", "%")
if not os.path.exists(socket): sys.exit(69)
status = json.load(open(socket))
try: os.kill(status["pid"], 0)
except ProcessLookupError: sys.exit(69)
if words == ["status"]:
    print("it is ready" if FAULT == "json" and os.path.exists(socket + ".asked") else json.dumps(status))
    open(socket + ".asked", "w")
elif words[0] == "log-level":
    if FAULT != "level": status["log_level"] = words[1]
    json.dump(status, open(socket, "w"))
elif words[0] == "bench":
    print(json.dumps({{"ops": 9, "ops_per_s": 9.0, "p99_us": 9.0, "errors": 1 if FAULT == "bench" else 0}}))
elif words[0] == "devices":
    print(json.dumps({{"devices": [{{"state": "good", "free": 8 << 30}}] * 2}}))
elif words[0] == "put":
    if words[-1] == "--no-replace": sys.exit(0 if FAULT == "replaces" else 1)
    open(path_of(words[2]), "wb").write(open(words[1], "rb").read())
elif words[0] == "get":
    if not os.path.exists(path_of(words[1])): sys.exit(66)
    if FAULT != "bytes": open(words[2], "wb").write(open(path_of(words[1]), "rb").read())
    else: open(words[2], "wb").write(b"others")
elif words[0] == "stat":
    print(json.dumps({{"allocated": 4096 if FAULT == "not released" else 0}}))
elif words[0] == "mv":
    os.rename(path_of(words[1]), path_of(words[2]))
elif words[0] == "rm":
    for name in words[1:]: os.unlink(path_of(name))
elif words[0] == "ls":
    names = sorted(name.replace("%", "/") for name in os.listdir(objects))
    print(json.dumps({{"objects": [{{"name": name}} for name in names[FAULT == "lost":]]}}))
elif words[0] == "sessions":
    print(json.dumps({{"sessions": []}}))
elif words[0] == "keygen":
    open(words[1], "w").write("key")
elif "--key" in words:
    sys.exit(0 if FAULT == "stranger" else 77)
elif words == ["reload"]:
    bad = "no_such_key" in open(os.path.dirname(socket) + "/fopd.yaml").read()
    print(json.dumps({{"problems": ["no_such_key"]}} if bad else {{"changed": []}}))
    sys.exit(78 if bad and FAULT != "reload" else 0)
"""


class DemoTest(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.addCleanup(self.scratch.cleanup)
        self.tmp = Path(self.scratch.name) / "tmp"
        self.tmp.mkdir()

    def command(self, fault):
        for name, text in (("fopd", FOPD), ("fopctl", FOPCTL)):
            program = Path(self.scratch.name) / name
            program.write_text(text.format(python=sys.executable, fault=fault))
            program.chmod(program.stat().st_mode | stat.S_IXUSR)
        return [sys.executable, str(DEMO), self.scratch.name]

    def run_demo(self, fault=None):
        return subprocess.run(self.command(fault), env=os.environ | {"TMPDIR": str(self.tmp)}, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=60)

    def assert_nothing_left(self):
        self.assertEqual(list(self.tmp.iterdir()), [])
        running = []
        for process in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                command = process.read_bytes()
            except OSError:  # It ended meanwhile.
                continue
            if self.scratch.name.encode() in command:
                running.append(command)
        self.assertEqual(running, [])

    def test_a_good_session_passes(self):
        done = self.run_demo()
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("demo: all of it worked", done.stdout)
        self.assert_nothing_left()

    def test_each_wrong_answer_is_found(self):
        for fault, message in [
            ("start", "before it was ready"), ("metrics", "OpenMetrics"), ("level", "log level"), ("json", "no JSON"),
            ("bench", "1 errors"), ("stranger", "exit code 0, not 77"), ("replaces", "exit code 0, not 1"),
            ("bytes", "not the bytes"), ("lost", "after the kill"), ("not released", "still on the disk"),
            ("reload", "a bad file was taken"), ("exit code", "fopd ended with 3"), ("socket stays", "still there"),
        ]:
            with self.subTest(fault=fault):
                done = self.run_demo(fault)
                self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
                self.assertIn(message, done.stderr)
                self.assert_nothing_left()

    def test_an_interrupted_session_leaves_nothing(self):
        demo = subprocess.Popen(self.command("hangs"), env=os.environ | {"TMPDIR": str(self.tmp)},
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        for line in demo.stdout:
            if "kill -TERM" in line:
                break
        demo.send_signal(signal.SIGTERM)
        demo.stdout.close()
        self.assertEqual(demo.wait(30), 128 + signal.SIGTERM)
        self.assert_nothing_left()


if __name__ == "__main__":
    unittest.main()

"""Runs the real fopd as a process, for tests: its files, its log, its answers, its end.

FOPD and FOPCTL name the programs; FOPD_CXX_FLAGS says how they were built. Nothing waits a fixed time: whatever is
waited for is looked at again and again until a deadline, which is far above what is needed.
"""

import atexit
import collections
import contextlib
import ctypes
import http.client
import json
import os
import re
import resource
import shutil
import signal
import socket
import stat
import struct
import subprocess
import tempfile
import time
import unittest
from pathlib import Path


def copied(program, directory):
    """A copy of a program in a directory, `bin/` there, without the plug-in, which is not beside it then."""
    folder = Path(directory) / "bin"
    folder.mkdir(exist_ok=True)
    return Path(shutil.copy(program, folder))


def plug_in_of(program):
    """The plug-in for libfabric that belongs to a program, and its path from the prefix of both."""
    prefix = Path(program).resolve().parent.parent
    file = next(prefix.glob("lib/**/fopd-ofi.so"))
    return file, file.relative_to(prefix)


def reachable_by_all(program):
    """The program, or a copy of it: some tests are another user, who may not enter each directory that root may."""
    path = Path(program).resolve()
    if os.geteuid() != 0 or all(each.stat().st_mode & stat.S_IXOTH for each in path.parents):
        return program
    directory = Path(tempfile.mkdtemp(prefix="fopd-programs-"))
    atexit.register(shutil.rmtree, directory)
    directory.chmod(0o755)
    plug_in, target = plug_in_of(path)
    (directory / target).parent.mkdir(parents=True)
    shutil.copy(plug_in, directory / target)
    return copied(path, directory)


FOPD = reachable_by_all(os.environ.get("FOPD", "build/release/bin/fopd"))
FOPCTL = reachable_by_all(os.environ.get("FOPCTL", "build/release/bin/fopctl"))
CXX_FLAGS = os.environ.get("FOPD_CXX_FLAGS", "")
# Of the addresses that daemons listen at.
SCHEME = os.environ.get("FOPD_SCHEME", "tcp")
PROTECT = os.environ.get("FOPD_PROTECT", "seal")  # fopctl looks there, too.
IS_SANITIZED = "-fsanitize=" in CXX_FLAGS
# How many times as long as in other builds everything may take, also on a machine that has other work.
SLOWNESS = 5 if "-fsanitize=thread" in CXX_FLAGS else 3 if IS_SANITIZED else 1

DONE, USAGE, INTERNAL, SYSTEM, DATA_DIR, IN_USE, KEY_FILE, CONFIG = 0, 2, 70, 71, 73, 75, 77, 78
# What the library that parses command lines calls types.
LIBRARY_WORDS = re.compile(r"\b(TEXT|UINT|INT|FLOAT|REQUIRED|Env:|Excludes:)")
NO_SERVER = 69

DEADLINE_SECONDS = 30 * SLOWNESS
PROGRAM_SECONDS = 4 * DEADLINE_SECONDS  # For one that has work to do.
POLL_SECONDS = 0.002
LOCK_NAME = "fopd.lock"
GOOD_KEY = "0123456789abcdef" * 4
CLIENT_KEY = "fedcba9876543210" * 4
# Somebody who is nobody on this machine; only root can become them.
OTHER_USER = 61234
IS_ROOT = os.geteuid() == 0
needs_root = unittest.skipUnless(IS_ROOT, "only root can become another user")
ALL_CHILDREN = 0x40000000  # __WALL of waitpid(2): threads, too.
DETACH, SEIZE, INTERRUPT = 17, 0x4206, 0x4207  # Of ptrace(2).
# In a full run, scripts/test has installed it, or the test fails.
needs_promtool = unittest.skipUnless("FOPD_FULL_RUN" in os.environ or shutil.which("promtool"), "promtool is not installed")

# What a shell in the background, or nohup, had ignored would be ignored by what is started here.
for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
    signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)

_REPORT = re.compile(r"(?:Address|Leak|Thread|UndefinedBehavior)Sanitizer|runtime error:")


def wait_until(condition, what, seconds=DEADLINE_SECONDS):
    """Returns the first true value of condition(); `what` is for the failure."""
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds} s: {what}")
        time.sleep(POLL_SECONDS)  # Between two looks; nothing depends on its length.


def bench(output_of, *arguments):
    """The result of a short bench, or of a longer one if no operation completed in the short one: how long the first one
    takes depends on the load of the machine. output_of(*arguments) runs fopctl and returns what it printed."""
    for seconds in ("0.3", "3", "30"):
        result = json.loads(output_of("bench", *arguments, "--seconds", seconds, "--json"))
        if result["ops"] or result["errors"]:
            break
    return result


def run_program(*arguments, seconds=PROGRAM_SECONDS, **options):
    """Runs a program to its end, which must come in time, and returns it with its output as text."""
    options = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options
    return subprocess.run([str(each) for each in arguments], text=True, errors="replace", timeout=seconds, **options)


def run_fopd(*arguments, **options):
    return run_program(FOPD, *arguments, **options)


def as_other_user(user=OTHER_USER, **options):
    return options | {"user": user, "group": user, "extra_groups": []}


def limit(what, value):
    """For preexec_fn: a limit of the resource module."""
    return lambda: resource.setrlimit(what, (value, value))


def limit_locked_memory(size_bytes):
    return limit(resource.RLIMIT_MEMLOCK, size_bytes)


def limit_file_size(size_bytes):
    """Writes beyond it fail with EFBIG. For preexec_fn."""
    lower = limit(resource.RLIMIT_FSIZE, size_bytes)

    def install():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        lower()
    return install


def refuse_system_call(number, os_errno):
    """What a seccomp filter of a container does: the call with this number fails. For preexec_fn."""
    load, jump_if_equal, give = 0x20, 0x15, 0x06
    allow, refuse = 0x7FFF0000, 0x00050000
    program = b"".join(struct.pack("HBBI", *row) for row in (
        (load, 0, 0, 0), (jump_if_equal, 0, 1, number), (give, 0, 0, refuse | os_errno), (give, 0, 0, allow)))

    def install():
        set_seccomp, filter_mode, no_new_privileges = 22, 2, 38
        libc = ctypes.CDLL(None, use_errno=True)
        code = ctypes.create_string_buffer(program)
        header = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(code))
        if libc.prctl(no_new_privileges, 1, 0, 0, 0) or libc.prctl(set_seccomp, filter_mode, header, 0, 0):
            raise OSError(ctypes.get_errno(), "seccomp")
    return install


def fill_pipe(writer):
    """To the last byte, so that whoever writes to it next must wait."""
    os.set_blocking(writer, False)
    for size in (4096, 1):
        try:
            while True:
                os.write(writer, b"\n" * size)
        except BlockingIOError:
            pass
    os.set_blocking(writer, True)


def can_mount():
    return IS_ROOT and shutil.which("unshare") and run_program("unshare", "--mount", "true").returncode == 0


def _ptrace(request, thread):
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes = [ctypes.c_long] * 4
    libc.ptrace.restype = ctypes.c_long
    if libc.ptrace(request, thread, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "ptrace")


def stop_thread(daemon, name):
    """Stops one thread of a daemon, as no signal can, and returns its number."""
    thread = next(int(each.name) for each in Path(f"/proc/{daemon.pid}/task").iterdir()
                  if (each / "comm").read_text().strip() == name)
    for request in (SEIZE, INTERRUPT):
        _ptrace(request, thread)
    stopped, _ = os.waitpid(thread, ALL_CHILDREN)
    assert stopped == thread
    return thread


@contextlib.contextmanager
def stopped_thread(daemon, name):
    """One thread of a daemon stands still within."""
    thread = stop_thread(daemon, name)
    try:
        yield
    finally:
        _ptrace(DETACH, thread)


def resident_bytes(pid, kind):
    """Of a process: all of it (VmRSS), or what no file is behind (RssAnon)."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(re.search(rf"{kind}:\s+(\d+) kB", status)[1]) << 10


def is_stopped(pid):
    return all((each / "stat").read_text().rpartition(")")[2].split()[0] == "T"
               for each in Path(f"/proc/{pid}/task").iterdir())


def files_count(pid):
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=DEADLINE_SECONDS)
        self._path = path

    def connect(self):
        self.sock = connect_unix(self._path)


def connect_unix(path):
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.connect(str(path))  # With a time limit it would not wait for room in the queue.
    except OSError:
        connection.close()
        raise
    connection.settimeout(DEADLINE_SECONDS)
    return connection


class NotifySocket:
    """What systemd does for a service of type notify: hears what it says."""

    def __init__(self, path):
        self.path = path
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(str(path))
        self._socket.setblocking(False)
        self.heard = []  # (when, text)

    def close(self):
        self._socket.close()
        if not str(self.path).startswith("\0"):
            Path(self.path).unlink(missing_ok=True)

    def listen(self):
        while True:
            try:
                text = self._socket.recv(4096).decode()
            except BlockingIOError:
                return [text for _, text in self.heard]
            self.heard.append((time.monotonic(), text))

    def wait_for(self, text, count=1):
        wait_until(lambda: self.listen().count(text) >= count, f"{text} said {count} times")

    def lines(self, *starts):
        """Of all messages, those that begin so."""
        lines = "\n".join(self.listen()).splitlines()
        return [each for each in lines if each.startswith(starts)]

    def times_of(self, text):
        self.listen()
        return [when for when, said in self.heard if said == text]


class Daemon:
    """A fopd that was started. Its standard error goes to a file, or where the test says."""

    def __init__(self, arguments, log_path, *, socket_path=None, stderr=None, program=(), **options):
        self.log_path = log_path
        self.socket_path = socket_path
        self.started_at = time.monotonic()
        command = [*program, FOPD, *arguments]
        with open(log_path, "ab") as log:
            options = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL,
                       "stderr": log if stderr is None else stderr} | options
            self.process = subprocess.Popen([os.fspath(each) for each in command], start_new_session=True, **options)

    @property
    def pid(self):
        return self.process.pid

    def log(self):
        return self.log_path.read_text(errors="replace")

    def events(self, name=None):
        """The log's events, of one name or all; the log is JSON. A line that is being written is left out."""
        lines = self.log().split("\n")[:-1]
        events = [json.loads(line) for line in lines]
        return [each for each in events if name in (None, each["event"])]

    @property
    def address(self):
        """The first that it listens at; the log is JSON."""
        return self.events("fopd.fabric.listening")[0]["address"]

    def wait_event(self, name, count=1):
        def has_come():
            found = self.events(name)
            if len(found) >= count:
                return found
            if self.process.poll() is not None and len(self.events(name)) < count:
                raise AssertionError(f"fopd ended with {self.process.returncode} without {name}:\n{self.log()}")
            return None
        return wait_until(has_come, f"{name} in the log, {count} times")

    def wait_ready(self):
        self.wait_event("fopd.daemon.ready")
        return self

    def wait_end(self, seconds=DEADLINE_SECONDS):
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"fopd did not end within {seconds} s:\n{self.log()}") from None

    def signal(self, number):
        self.process.send_signal(number)

    def signal_at_once(self, *numbers):
        """All of them are there when it looks at the first."""
        self.signal(signal.SIGSTOP)
        wait_until(self.is_stopped, "the process is stopped")
        for number in numbers:
            self.signal(number)
        self.signal(signal.SIGCONT)

    def is_stopped(self):
        return is_stopped(self.pid)

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()

    def ctl(self, *arguments, **options):
        return run_program(FOPCTL, "--admin", self.socket_path, *arguments, **options)

    def status(self):
        """As a script sees it: fopctl --json."""
        done = self.ctl("--json", "status")
        if done.returncode != 0:
            raise AssertionError(f"fopctl status: exit code {done.returncode}: {done.stderr}")
        return json.loads(done.stdout)

    def ask(self, method, target):
        """One request of the admin socket without fopctl: status and answer. Raises ConnectionError when cut off."""
        status, text = self._ask_text(method, target)
        return status, json.loads(text)

    def _ask_text(self, method, target, headers=None):
        connection = _UnixConnection(self.socket_path)
        try:
            connection.request(method, target, headers=headers or {})
            reply = connection.getresponse()
            return reply.status, reply.read()
        finally:
            connection.close()

    def metrics_text(self, accept="application/openmetrics-text"):
        status, text = self._ask_text("GET", "/metrics", {"Accept": accept})
        if status != 200:
            raise AssertionError(f"/metrics: status {status}: {text}")
        return text.decode()

    def metrics(self):
        """By name, that of all localities together, and by name with labels, as they are written."""
        figures = collections.Counter()
        for line in self.metrics_text().splitlines():
            if line.startswith("#"):
                continue
            series, value = line.rsplit(" ", 1)
            for key in {series, series.partition("{")[0]}:
                figures[key] += float(value)
        return figures

    def _proc(self, name):
        return Path(f"/proc/{self.pid}/{name}")

    def files_count(self):
        return files_count(self.pid)

    def file_target(self, fd):
        return os.readlink(self._proc(f"fd/{fd}"))

    def file_targets(self):
        targets = []
        for each in self._proc("fd").iterdir():
            try:
                targets.append(os.readlink(each))
            except FileNotFoundError:
                pass  # It has just been closed.
        return targets

    def threads(self):
        names = []
        for each in self._proc("task").iterdir():
            try:
                names.append((each / "comm").read_text().strip())
            except (FileNotFoundError, ProcessLookupError):
                pass  # It has just ended.
        return sorted(names)

    def resident_bytes(self):
        return resident_bytes(self.pid, "VmRSS")

    def cpu_seconds(self):
        fields = self._proc("stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Node:
    """A directory with what one fopd needs: a configuration, a data directory, and one for its socket."""

    def __init__(self, test, path):
        self.test = test
        self.path = path
        self.config_path = path / "fopd.yaml"
        self.data_dir = path / "data"
        self.socket_path = path / "admin.sock"
        self.principals_path = path / "principals.yaml"
        self.starts_count = 0
        path.mkdir()
        self.data_dir.mkdir()
        self.write_principals({"name": "tester", "key": CLIENT_KEY, "rights": ["read", "write", "admin"]})
        self.settings = {
            "node": {"name": "node-a", "data_dir": str(self.data_dir), "drain_timeout": "5s"},
            "fabric": {"listen": [f"{SCHEME}://127.0.0.1:0"], "protect": PROTECT},
            "localities": {"cores": 1, "buffers": "256KiB"},
            "auth": {"principals": str(self.principals_path)},
            "admin": {"socket": str(self.socket_path), "metrics": "none"},
            "log": {"level": "info", "format": "json"},
        }
        self.write_config()

    def write_config(self, **sections):
        """Changes the keys that are given, `node={"name": "b"}`, and writes the file at once, as editors do."""
        for section, keys in sections.items():
            self.settings.setdefault(section, {}).update(keys)
        draft = self.path / "fopd.yaml.new"
        draft.write_text(json.dumps(self.settings, indent=1))  # JSON is YAML.
        draft.replace(self.config_path)
        return self

    def write_principals(self, *principals):
        """Who may connect: written beside its place, with the mode it needs, and renamed."""
        draft = self.path / "principals.yaml.new"
        draft.touch(0o600)
        draft.write_text(json.dumps({"principals": principals}))
        draft.replace(self.principals_path)
        return self

    def give_to_other_user(self, user=OTHER_USER):
        for path in (self.path, *self.path.rglob("*")):
            os.chown(path, user, user)

    def start(self, *arguments, **options):
        """Starts fopd and returns at once."""
        self.starts_count += 1
        daemon = Daemon(arguments or ("--config", self.config_path),
                        self.test.directory / f"{self.path.name}-{self.starts_count}.log",
                        socket_path=self.socket_path, **options)
        self.test.daemons.append(daemon)
        return daemon

    def start_ready(self, *arguments, **options):
        return self.start(*arguments, **options).wait_ready()

    def left_behind(self):
        """What a fopd that ended should have taken away."""
        paths = (self.socket_path, self.data_dir / LOCK_NAME)
        return [str(each) for each in paths if each.is_symlink() or each.exists()]

    def stop(self, daemon, number=signal.SIGTERM):
        """Stops it as systemd does; it must end well and leave nothing."""
        daemon.signal(number)
        self.expect_end(daemon)

    def expect_end(self, daemon, exit_code=DONE):
        self.test.assertEqual(daemon.wait_end(), exit_code, daemon.log())
        self.test.assertEqual(self.left_behind(), [])

    def refused(self, exit_code, *words, left=(), **options):
        """Starts a fopd that must not come up: one line says why, and it leaves nothing. Returns that line."""
        daemon = self.start(**options)
        self.test.assertEqual(daemon.wait_end(), exit_code, daemon.log())
        problems = daemon.events("fopd.daemon.cannot_start")
        self.test.assertEqual(len(problems), 1, daemon.log())
        self.test.assertEqual(problems[0]["exit_code"], exit_code)
        self.test.assertEqual(daemon.events("fopd.daemon.ready"), [])
        for word in words:
            self.test.assertIn(str(word), problems[0]["problem"])
        self.test.assertEqual(self.left_behind(), [str(each) for each in left])
        return problems[0]["problem"]


class ProcessTestCase(unittest.TestCase):
    """A test with a directory and daemons of its own; none of them outlives it."""

    maxDiff = None

    def setUp(self):
        self.directory = Path(tempfile.mkdtemp(prefix="fopd-process-"))
        self.directory.chmod(0o755)
        self.daemons = []
        self.addCleanup(shutil.rmtree, self.directory, ignore_errors=True)
        self.addCleanup(self._end_daemons)

    def _end_daemons(self):
        for daemon in self.daemons:
            daemon.kill()
        for daemon in self.daemons:
            self.assertNotRegex(daemon.log(), _REPORT, "a sanitizer found something")

    def node(self, name="node"):
        return Node(self, self.directory / name)

    def assert_no_report(self, text):
        self.assertNotRegex(text, _REPORT, "a sanitizer found something")

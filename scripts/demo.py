#!/usr/bin/env python3
"""One session with a daemon of its own: start, status, disks, the network, objects over a kill, tape, metrics, reload, stop.

    scripts/demo.py BIN     BIN is where fopd and fopctl are

Prints each command and what it answered, and ends with 0 only if every answer was right. Leaves no process and no file.
"""

import json
import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

READY_SECONDS = 30
STOP_SECONDS = 45  # Above the default drain_timeout.
COMMAND_SECONDS = 15
REFUSED = 1
NOT_THERE = 66
NO_SERVER = 69
NOT_ALLOWED = 77


class Failed(Exception):
    """What was wrong, for people."""


def expect(condition, message):
    if not condition:
        raise Failed(message)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Session:
    def __init__(self, bin_dir, scratch):
        self.fopd = str(bin_dir / "fopd")
        self.fopctl = str(bin_dir / "fopctl")
        self.dir = scratch / "node"
        self.log = scratch / "fopd.log"
        self.metrics = f"127.0.0.1:{free_port()}"
        self.listen = f"tcp://127.0.0.1:{free_port()}"
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith("FOPD_")}
        self.daemon = None

    def run(self, *arguments, code=0, quiet=False, data=None):
        """Runs fopctl and returns what it printed."""
        command = [self.fopctl, *arguments]
        done = subprocess.run(command, env=self.environment, input=(data or b"").decode(), stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=COMMAND_SECONDS)
        if not quiet:
            print(f"$ fopctl {shlex.join(arguments)}")
            print("".join(f"    {line}\n" for line in done.stdout.splitlines()), end="", flush=True)
        if code is not None:
            expect(done.returncode == code, f"fopctl {shlex.join(arguments)}: exit code {done.returncode}, not {code}:\n"
                                            f"{done.stdout}")
        return done

    def answer(self, *arguments, **options):
        """Runs fopctl --json and returns what it printed."""
        done = self.run(*arguments, "--json", **options)
        try:
            answer = json.loads(done.stdout)
        except ValueError as error:
            raise Failed(f"fopctl {shlex.join(arguments)} --json printed no JSON: {error}") from None
        expect(isinstance(answer, dict), f"fopctl {shlex.join(arguments)} --json printed no object")
        return answer

    def start(self):
        arguments = ["--dev", str(self.dir), "--metrics", self.metrics, "--listen", self.listen]
        print(f"$ fopd {shlex.join(arguments)} &", flush=True)
        with self.log.open("w") as log:
            self.daemon = subprocess.Popen([self.fopd, *arguments], env=self.environment, stdin=subprocess.DEVNULL,
                                           stdout=log, stderr=log, start_new_session=True)
        began = time.monotonic()
        while not self._is_ready():
            expect(self.daemon.poll() is None, f"fopd ended with {self.daemon.returncode} before it was ready")
            expect(time.monotonic() - began < READY_SECONDS, f"fopd was not ready after {READY_SECONDS} s")
            time.sleep(0.02)  # Between two questions; nothing depends on its length.
        print(f"    ready after {time.monotonic() - began:.2f} s")

    def _is_ready(self):
        if not (self.dir / "env.sh").exists():
            return False
        exports = subprocess.run(["sh", "-c", '. "$1" && env', "sh", str(self.dir / "env.sh")],
                                 env=self.environment, capture_output=True, text=True)
        if exports.returncode != 0 or "FOPD_ADMIN" not in exports.stdout:
            return False
        self.environment |= dict(line.split("=", 1) for line in exports.stdout.splitlines()
                                 if line.startswith("FOPD_"))
        done = self.run("status", "--json", code=None, quiet=True)
        return done.returncode == 0 and json.loads(done.stdout).get("state") == "ready"

    def status(self):
        self.run("status")
        status = self.answer("status")
        expect(status.get("state") == "ready", f"status: the state is {status.get('state')}, not ready")
        expect(status.get("pid") == self.daemon.pid, "status: the pid is another process's")
        expect(status.get("localities"), "status: there is no locality")

    def disks(self):
        self.run("devices")
        devices = self.answer("devices", quiet=True).get("devices", [])
        expect([each.get("state") for each in devices] == ["good", "good"], "devices: not two that are good")
        expect(all(each["free"] > 7 << 30 for each in devices), "devices: they are not empty")

    def use_the_network(self):
        self.run("ping", "--count", "3", "--interval", "0.1")
        for op in ("echo", "bulk_echo"):
            figures = self.answer("bench", "--op", op, "--size", "4k", "--depth", "8", "--seconds", "1")
            expect(figures.get("ops", 0) > 0, f"bench {op}: nothing was done")
            expect(figures.get("errors") == 0, f"bench {op}: {figures.get('errors')} errors")
            print(f"    {figures['ops_per_s']:.0f} {op} of 4 KiB a second, p99 {figures['p99_us']:.0f} us")
        sessions = self.answer("sessions")
        expect("sessions" in sessions, "sessions: no list")
        stranger = self.dir / "stranger.key"
        self.run("keygen", str(stranger))
        self.run("--key", str(stranger), "ping", "--count", "1", code=NOT_ALLOWED)

    def store_objects(self):
        """As their users do; with the daemon killed in the middle."""
        whole, part, again = self.dir / "whole", self.dir / "part", self.dir / "again"
        whole.write_bytes(os.urandom(8 << 20))
        part.write_bytes(os.urandom(5000))
        self.run("put", str(whole), "results/run-1")
        self.run("put", str(part), "notes")
        self.run("put", str(part), "results/run-1", "--no-replace", code=REFUSED)
        self.run("mv", "notes", "results/notes")
        self.run("ls", "results/", "--long")
        self.run("stat", "results/run-1")

        print("$ kill -KILL $!", flush=True)
        self.kill()
        self.start()
        self.run("get", "results/run-1", str(again))
        expect(again.read_bytes() == whole.read_bytes(), "get: these are not the bytes that were put")
        names = [each.get("name") for each in self.answer("ls", quiet=True).get("objects", [])]
        expect(names == ["results/notes", "results/run-1"], f"ls: {names} after the kill")
        self.run("append", "results/notes", data=b"and more\n")
        self.run("read", "results/notes", "--offset", "5000")
        self.run("truncate", "results/run-1", "1M")
        for op in ("read", "write"):
            figures = self.answer("bench", "--op", op, "--durable", "--depth", "32", "--seconds", "1", quiet=True)
            expect(figures.get("errors") == 0 and figures.get("ops", 0) > 0, f"bench {op}: {figures}")
            print(f"    {figures['ops_per_s']:.0f} {op}s of 4 KiB a second, p99 {figures['p99_us']:.0f} us")
        self.run("scrub", "--quiet")
        self.run("rm", "results/run-1", "results/notes")
        expect(self.answer("ls", quiet=True) == {"objects": []}, "ls: something is left")
        self.run("df")
        self.run("get", "results/run-1", "-", code=NOT_THERE)

    def use_tape(self):
        """An object goes to a cartridge of the virtual library, leaves the disk, and comes back."""
        data, again = self.dir / "data-for-tape", self.dir / "from-tape"
        data.write_bytes(os.urandom(8 << 20))
        self.run("put", str(data), "archive/run-1", "--pool", "cold")
        self.run("sync", "--pool", "cold")
        self.run("release", "archive/run-1", "--pool", "cold")
        allocated = self.answer("stat", "archive/run-1", "--pool", "cold", quiet=True).get("allocated")
        expect(allocated == 0, f"release: {allocated} bytes are still on the disk")
        self.run("get", "archive/run-1", str(again), "--pool", "cold")
        expect(again.read_bytes() == data.read_bytes(), "get: these are not the bytes that were put")
        self.run("media")
        self.run("rm", "archive/run-1", "--pool", "cold")

    def read_metrics(self):
        url = f"http://{self.metrics}/metrics"
        print(f"$ curl {url}")
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        # Only this format shows where the text ends.
        request = urllib.request.Request(url, headers={"Accept": "application/openmetrics-text"})
        with opener.open(request, timeout=COMMAND_SECONDS) as reply:
            lines = reply.read().decode().splitlines()
        samples = [line for line in lines if line.startswith("fopd_")]
        print("".join(f"    {line}\n" for line in samples[:3]), end="")
        print(f"    ... {len(samples)} samples")
        expect(samples, "metrics: there is no sample")
        expect(lines[-1] == "# EOF", "metrics: the text does not end as OpenMetrics does")

    def change_log_level(self):
        self.run("log-level", "debug")
        expect(self.answer("status", quiet=True).get("log_level") == "debug", "the log level is not debug")
        self.run("log-level", "info")
        expect(self.answer("status", quiet=True).get("log_level") == "info", "the log level is not info again")

    def reload(self):
        file = self.dir / "fopd.yaml"
        good = file.read_text()
        expect(isinstance(self.answer("reload").get("changed"), list), "reload: it does not say what changed")
        print(f"$ echo 'no_such_key: 1' >> {file.name}")
        file.write_text(good + "\nno_such_key: 1\n")
        refused = self.run("reload", code=None)
        expect(refused.returncode != 0, "reload: a bad file was taken")
        expect("no_such_key" in refused.stdout, "reload: the bad key is not named")
        file.write_text(good)
        self.answer("reload", quiet=True)
        expect(self.answer("status", quiet=True).get("state") == "ready", "reload: it is not ready any more")

    def stop(self):
        print("$ kill -TERM $!", flush=True)
        self.daemon.send_signal(signal.SIGTERM)
        try:
            code = self.daemon.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            raise Failed(f"fopd did not stop within {STOP_SECONDS} s") from None
        expect(code == 0, f"fopd ended with {code}")
        expect(not Path(self.environment["FOPD_ADMIN"]).exists(), "the admin socket is still there")
        self.run("status", code=NO_SERVER)

    def kill(self):
        if self.daemon and self.daemon.poll() is None:
            self.daemon.kill()
            self.daemon.wait()


def give_up(number, _frame):
    raise SystemExit(128 + number)


def main(arguments):
    if len(arguments) != 1:
        sys.exit(__doc__)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, give_up)
    scratch = Path(tempfile.mkdtemp(prefix="fopd-demo-"))
    session = Session(Path(arguments[0]).resolve(), scratch)
    try:
        session.start()
        session.status()
        session.disks()
        session.use_the_network()
        session.store_objects()
        session.use_tape()
        session.read_metrics()
        session.change_log_level()
        session.reload()
        session.stop()
    except (Failed, OSError, ValueError, subprocess.SubprocessError) as error:
        if session.log.exists():
            print("fopd said:\n" + session.log.read_text(errors="replace"), file=sys.stderr)
        print(f"demo: failed: {error}", file=sys.stderr)
        return 1
    finally:
        session.kill()
        shutil.rmtree(scratch)
    print("demo: all of it worked")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

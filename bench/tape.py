#!/usr/bin/env python3
"""Measures a virtual tape library beside `dd conv=fsync` on the same file system.

    bench/tape.py [--bin build/release/bin] [--dir /var/tmp] [--mib 1024] [--objects 16] [--rounds 5]
    bench/tape.py --json      # for programs: seconds of each round, and ratios
    bench/tape.py --waiting 10000 [--seconds 5]   # what so many recalls that wait cost those who use the disk

Each round writes so many MiB with dd, puts as many into a tape pool, and takes the time of the migration (`sync --pool`)
and, after the bytes have left the disk, of their recall (`stage`, and then until no object waits). Rounds alternate, so
that whatever else runs meets all three. With `timing: none` drives are as fast as their files; staging disk and
cartridges are files in one directory. Starts daemons of its own, and removes everything again.

With --waiting, two daemons have the same objects on tape, and one of them has as many recalls that wait for a cartridge;
both are read from in turns.
"""

import argparse
import contextlib
import json
import os
import pathlib
import platform
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

import peers
from objects import processor

MIB = 1 << 20
POOL = ("--pool", "cold")


class Daemon:
    def __init__(self, programs, top, tape):
        self.programs = programs
        self.address = f"tcp://127.0.0.1:{peers.free_port()}"
        self.admin = top / "admin.sock"
        self.config = top / "fopd.yaml"
        (top / "data").mkdir(parents=True)
        self.config.write_text(json.dumps({  # Which is YAML, too.
            "node": {"data_dir": str(top / "data")},
            "fabric": {"listen": [self.address]},
            "auth": {"mode": "none"},
            "admin": {"socket": str(self.admin), "metrics": "none"},
            "io_sched": {"tape": {"read_algo": "grouped_read", "write_algo": "grouped_write"} | tape},
            "pools": [{"name": "fast", "family": "disk"}, {"name": "cold", "family": "tape", "staging": "fast"}],
            "devices": [{"name": "d0", "path": str(top / "d0.img"), "size": "16GiB", "thin": True, "pool": "fast"}],
            "libraries": [{"name": "vtl0", "path": str(top / "vtl0"), "drives": 1, "cartridges": 2, "timing": "none",
                           "pool": "cold", "staging_high": 0, "migrate_age": "1d", "migrate_bytes": "1TiB"}],
        }, indent=1))
        ready_path = top / "notify"
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as ready, open(top / "log", "ab") as log:
            ready.bind(str(ready_path))
            self.process = subprocess.Popen([programs / "fopd", "--config", self.config], stdout=log, stderr=log,
                                            env=os.environ | {"NOTIFY_SOCKET": str(ready_path)})
            ready.settimeout(30)
            while b"READY=1" not in ready.recv(4096):
                pass

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()

    def ctl(self, *arguments, **options):
        command = [self.programs / "fopctl", "--server", self.address, "--admin", self.admin, "--timeout", "600", *arguments]
        done = subprocess.run(command, capture_output=True, **options)
        if done.returncode != 0:
            sys.exit(f"fopctl {' '.join(map(str, arguments))}: {done.stderr.decode().strip()}")
        return done.stdout

    def cpu(self):
        return peers.cpu_seconds(self.process.pid)

    def recalls(self):
        return json.loads(self.ctl("queue", "--json"))["recalls"]


def seconds_of(work):
    begun = time.monotonic()
    work()
    return time.monotonic() - begun


def one_round(daemon, top, asked, number):
    """Seconds of dd, of the migration and of the recall, and the daemon's CPU of the last two."""
    plain = top / "plain"
    dd = ["dd", f"if={top / 'content'}", f"of={plain}", "bs=1M", "conv=fsync", "status=none"]
    dd_s = seconds_of(lambda: subprocess.run(dd, check=True))
    plain.unlink()

    names = [f"r{number}/o{each}" for each in range(asked.objects)]
    size = asked.mib * MIB // asked.objects
    with open(top / "content", "rb") as content:
        for name in names:
            daemon.ctl("put", "-", name, *POOL, input=content.read(size))
    os.sync()
    before = daemon.cpu()
    migrated_s = seconds_of(lambda: daemon.ctl("sync", *POOL))
    migrated_cpu = daemon.cpu() - before
    for name in names:
        daemon.ctl("release", name, *POOL)
    os.sync()

    def recall():
        daemon.ctl("stage", *names, *POOL)
        while daemon.recalls():
            time.sleep(0.005)

    before = daemon.cpu()
    recalled_s = seconds_of(recall)
    recalled_cpu = daemon.cpu() - before
    daemon.ctl("rm", *names, *POOL)
    return dd_s, migrated_s, recalled_s, migrated_cpu, recalled_cpu


def p99_us(daemon, depth, seconds):
    return json.loads(daemon.ctl("bench", "--op", "read", "--size", "4k", "--depth", depth, "--seconds", seconds,
                                 "--pool", "fast", "--json"))["p99_us"]


def beside_waiting(top, asked):
    """Ratios of the 99th percentile with recalls that wait to that without, by depth."""
    # No cartridge is loaded before more wait than there are.
    criteria = {"grouped_read_mount_bytes": "1TiB", "grouped_read_mount_files": 1000000, "grouped_read_mount_age": "1d",
                "grouped_read_max_wait": "7d"}
    files = top / "files"
    files.mkdir()
    for number in range(asked.waiting):
        (files / f"{number:06}").write_bytes(os.urandom(1000))
    daemons = {}
    try:
        for kind in ("without", "with"):
            daemon = daemons[kind] = Daemon(asked.bin.resolve(), top / kind, criteria)
            daemon.ctl("put", "-r", files, "o/", *POOL)
            daemon.ctl("sync", *POOL)
            names = [f"o/{number:06}" for number in range(asked.waiting)]
            for at in range(0, len(names), 500):
                daemon.ctl("release", *names[at:at + 500], *POOL)
            daemon.ctl("unload", "vtl0-drive0")
        for at in range(0, len(names), 500):
            daemon.ctl("stage", *names[at:at + 500], *POOL)
        if not daemons["with"].recalls():
            sys.exit("no recall waits")
        ratios = {}
        for depth in ("1", "32"):
            found = {"without": [], "with": []}
            for _ in range(asked.rounds):
                for kind, daemon in daemons.items():
                    found[kind].append(p99_us(daemon, depth, str(asked.seconds)))
            ratios[depth] = statistics.median(found["with"]) / statistics.median(found["without"])
            print(f"4 KiB read, depth {depth:2}: p99 {statistics.median(found['without']):.0f} us; beside"
                  f" {asked.waiting} recalls that wait {statistics.median(found['with']):.0f} us,"
                  f" {ratios[depth]:.2f} times", flush=True)
        return ratios
    finally:
        for daemon in daemons.values():
            daemon.end()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", type=pathlib.Path, default=pathlib.Path("build/release/bin"))
    parser.add_argument("--dir", type=pathlib.Path, default=pathlib.Path("/var/tmp"))
    parser.add_argument("--mib", type=int, default=1024)
    parser.add_argument("--objects", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true", help="one document on stdout, text on stderr")
    parser.add_argument("--waiting", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=5)
    asked = parser.parse_args()
    with contextlib.redirect_stdout(sys.stderr if asked.json else sys.stdout):
        result = measure(asked)
    if asked.json:
        print(json.dumps(result))


def measure(asked):
    """Prints figures as they come, and returns them for programs."""
    about = {"processor": processor(), "linux": platform.release()}
    print(f"{about['processor']}, Linux {about['linux']}")
    with tempfile.TemporaryDirectory(prefix="fopd-tape-", dir=asked.dir) as directory:
        top = pathlib.Path(directory)
        if asked.waiting:
            ratios = beside_waiting(top, asked)
            return about | {"waiting": asked.waiting, "p99_ratios": ratios}
        print(f"{asked.objects} objects, {asked.mib} MiB together", flush=True)
        with open(top / "content", "wb") as content:
            for _ in range(asked.mib):
                content.write(os.urandom(MIB))
        daemon = Daemon(asked.bin.resolve(), top / "node", {})
        rounds = []
        try:
            for number in range(asked.rounds):
                each = one_round(daemon, top, asked, number)
                rounds.append(each)
                dd_s, migrated_s, recalled_s, migrated_cpu, recalled_cpu = each
                print(f"dd {asked.mib / dd_s:6.0f} MiB/s"
                      f"   migrated {asked.mib / migrated_s:6.0f} MiB/s, {dd_s / migrated_s:4.2f} of dd, {migrated_cpu:4.1f} s CPU"
                      f"   recalled {asked.mib / recalled_s:6.0f} MiB/s, {dd_s / recalled_s:4.2f} of dd, {recalled_cpu:4.1f} s CPU",
                      flush=True)
        finally:
            daemon.end()
    migrated = statistics.median(each[0] / each[1] for each in rounds)
    recalled = statistics.median(each[0] / each[2] for each in rounds)
    print(f"median of the rounds: migrated {migrated:.2f} of dd, recalled {recalled:.2f}")
    names = ("dd_s", "migrated_s", "recalled_s", "migrated_cpu_s", "recalled_cpu_s")
    return about | {"mib": asked.mib, "objects": asked.objects, "migrated_ratio": migrated, "recalled_ratio": recalled,
                    "rounds": [dict(zip(names, each)) for each in rounds]}


if __name__ == "__main__":
    main()

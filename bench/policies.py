#!/usr/bin/env python3
"""Measures what request-scheduling policies are worth to clients, and what they cost, by turns on daemons of its own.

    bench/policies.py [--bin build/release/bin] [--dir /var/tmp] [--policies fifo,crr] [--seconds 5] [--rounds 1]
                      [--turns 20] [--disk-rate BYTES]

reader   a client reads 4 KiB at a time, one after the other, beside one that streams 1 MiB writes, 32 at a time
shares   16 clients of very different appetite, 1 to 128 reads of 4 KiB at a time each: what the slowest of those that
         always have something waiting gets of a fair share
cost     one client reads 4 KiB, 32 at a time, on one daemon whose policies take turns of a second: the medians, and
         that of what each had of the first one's rate in the same round

With --disk-rate the daemon's disks are made as slow as that by the kernel (a control group, so as root): then it is the
disk that one waits for, as it is on most nodes, and not the two cores of a small machine.
"""

import argparse
import contextlib
import json
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import tempfile

from objects import Daemon, processor
from peers import cpu_seconds

APPETITES = [1, 1, 2, 2, 4, 4, 8, 8, 16, 16, 32, 32, 64, 64, 128, 128]


class Client:
    def __init__(self, daemon, *options):
        self.process = subprocess.Popen(
            [daemon.programs / "fopctl", "bench", "--server", daemon.address, "--json", *options],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def result(self):
        out, err = self.process.communicate()
        if self.process.returncode != 0:
            sys.exit(err.strip())
        return json.loads(out)


def disk_of(folder):
    """Of the file system of a folder: its whole disk, as major:minor."""
    number = os.stat(folder).st_dev
    block = pathlib.Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}").resolve()
    return ((block.parent if (block / "partition").exists() else block) / "dev").read_text().strip()


@contextlib.contextmanager
def slow_disk(asked):
    """Who may join the group whose disk is slow."""
    if not asked.disk_rate:
        yield lambda process: None
        return
    disk = disk_of(asked.dir)
    old = pathlib.Path("/sys/fs/cgroup/blkio")
    group = (old if old.exists() else pathlib.Path("/sys/fs/cgroup")) / f"fopd-bench-{os.getpid()}"
    group.mkdir()
    try:
        if old.exists():
            for way in ("read", "write"):
                (group / f"blkio.throttle.{way}_bps_device").write_text(f"{disk} {asked.disk_rate}")
        else:
            (group / "io.max").write_text(f"{disk} rbps={asked.disk_rate} wbps={asked.disk_rate}")
        yield lambda process: (group / "cgroup.procs").write_text(str(process.pid))
    finally:
        group.rmdir()


@contextlib.contextmanager
def daemon_with(asked, policy):
    with slow_disk(asked) as join, started_daemon(asked, policy) as daemon:
        join(daemon.process)
        yield daemon


@contextlib.contextmanager
def started_daemon(asked, policy):
    with tempfile.TemporaryDirectory(prefix="fopd-bench-", dir=asked.dir) as name:
        daemon = Daemon(asked.bin, pathlib.Path(name), 1, 1)
        settings = json.loads(daemon.config.read_text())
        settings["lrs"] = {"policy": policy, **({"io_wait_goal": asked.io_wait_goal} if asked.io_wait_goal else {})}
        daemon.config.write_text(json.dumps(settings, indent=1))
        try:
            daemon.start()
            Client(daemon, "--op", "write", "--object", "small", "--size", "4k", "--depth", "32",
                   "--seconds", "0.5").result()
            Client(daemon, "--op", "write", "--object", "large", "--size", "1M", "--depth", "8", "--seconds", "1").result()
            yield daemon
        finally:
            daemon.end()


def reader(daemon, seconds):
    writer = Client(daemon, "--op", "write", "--object", "large", "--size", "1M", "--depth", "32",
                    "--seconds", str(seconds + 2))
    reads = Client(daemon, "--op", "read", "--object", "small", "--size", "4k", "--depth", "1",
                   "--seconds", str(seconds)).result()
    writes = writer.result()
    return f"reader p50 {reads['p50_us'] / 1000:6.2f} p99 {reads['p99_us'] / 1000:6.2f} ms beside {writes['ops_per_s']:4.0f} MiB/s"


def shares(daemon, seconds):
    clients = [Client(daemon, "--op", "read", "--object", "small", "--size", "4k", "--depth", str(depth),
                      "--seconds", str(seconds)) for depth in APPETITES]
    rates = [client.result()["ops_per_s"] for client in clients]
    total = sum(rates)
    # Who has less waiting than its share of what runs gets what it asks for; the others share the rest.
    hungry = [rate for rate, depth in zip(rates, APPETITES) if depth >= 32]
    return f"16 clients {total:7.0f}/s: {' '.join(f'{rate:.0f}' for rate in rates)};" \
           f" least of the hungry {min(hungry) / (sum(hungry) / len(hungry)):.2f} of a fair share"


def cost(asked):
    policies = asked.policies.split(",")
    with daemon_with(asked, policies[0]) as daemon:
        rounds = [[turn(daemon, policy) for policy in policies] for _ in range(asked.turns)]
    for policy, turns in zip(policies, zip(*rounds)):
        rates, used = zip(*turns)
        of_first = statistics.median(rate / first[0][0] for rate, first in zip(rates, rounds))
        print(f"{policy:8} one client {statistics.median(rates):7.0f}/s, {of_first:.3f} of {policies[0]}'s;"
              f" server's CPU {statistics.median(used):.1f} us each", flush=True)


def turn(daemon, policy):
    subprocess.run([daemon.programs / "fopctl", "--admin", daemon.admin, "lrs", "set", policy], check=True,
                   stdout=subprocess.DEVNULL)
    before = cpu_seconds(daemon.process.pid)
    reads = Client(daemon, "--op", "read", "--object", "small", "--size", "4k", "--depth", "32", "--seconds", "1").result()
    return reads["ops_per_s"], (cpu_seconds(daemon.process.pid) - before) * 1e6 / reads["ops"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, default=pathlib.Path("build/release/bin"))
    parser.add_argument("--dir", default="/var/tmp")
    parser.add_argument("--policies", default="fifo,crr")
    parser.add_argument("--io-wait-goal", help="lrs.io_wait_goal, such as none")
    parser.add_argument("--disk-rate", type=int, metavar="BYTES", help="a second, that the disks read, and write, at most")
    parser.add_argument("--parts", default="reader,shares,cost")
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--turns", type=int, default=20, help="of each policy, for what it costs")
    asked = parser.parse_args()
    print(f"{processor()}, {len(os.sched_getaffinity(0))} cores, Linux {platform.release()}; files in {asked.dir}")
    parts = asked.parts.split(",")
    for _ in range(asked.rounds):
        for name, part in (("reader", reader), ("shares", shares)):
            for policy in asked.policies.split(",") if name in parts else []:
                with daemon_with(asked, policy) as daemon:
                    print(f"{policy:8} {part(daemon, asked.seconds)}", flush=True)
    if "cost" in parts:
        cost(asked)


if __name__ == "__main__":
    main()

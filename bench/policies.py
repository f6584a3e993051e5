#!/usr/bin/env python3
"""Measures what request-scheduling policies are worth to clients, and what they cost, by turns on daemons of its own.

    bench/policies.py [--bin build/release/bin] [--dir /var/tmp] [--policies fifo,crr] [--seconds 5] [--rounds 1]

reader   a client reads 4 KiB at a time, one after the other, beside one that streams 1 MiB writes, 32 at a time
shares   16 clients of very different appetite, 1 to 128 reads of 4 KiB at a time each: what the slowest of those that
         always have something waiting gets of a fair share
cost     one client reads 4 KiB, 32 at a time
"""

import argparse
import contextlib
import json
import os
import pathlib
import platform
import subprocess
import sys
import tempfile

from objects import Daemon, processor

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


def started(asked, policy, top):
    daemon = Daemon(asked.bin, top, 1, 1)
    settings = json.loads(daemon.config.read_text())
    settings["lrs"] = {"policy": policy, **({"io_wait_goal": asked.io_wait_goal} if asked.io_wait_goal else {})}
    daemon.config.write_text(json.dumps(settings, indent=1))
    daemon.start()
    Client(daemon, "--op", "write", "--object", "small", "--size", "4k", "--depth", "32", "--seconds", "0.5").result()
    Client(daemon, "--op", "write", "--object", "large", "--size", "1M", "--depth", "8", "--seconds", "1").result()
    return daemon


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


def cost(daemon, seconds):
    reads = Client(daemon, "--op", "read", "--object", "small", "--size", "4k", "--depth", "32",
                   "--seconds", str(seconds)).result()
    return f"one client {reads['ops_per_s']:7.0f}/s"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, default=pathlib.Path("build/release/bin"))
    parser.add_argument("--dir", default="/var/tmp")
    parser.add_argument("--policies", default="fifo,crr")
    parser.add_argument("--io-wait-goal", help="lrs.io_wait_goal, such as none")
    parser.add_argument("--parts", default="reader,shares,cost")
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--rounds", type=int, default=1)
    asked = parser.parse_args()
    print(f"{processor()}, {len(os.sched_getaffinity(0))} cores, Linux {platform.release()}; files in {asked.dir}")
    parts = {"reader": reader, "shares": shares, "cost": cost}
    for _ in range(asked.rounds):
        for part in asked.parts.split(","):
            for policy in asked.policies.split(","):
                with tempfile.TemporaryDirectory(prefix="fopd-bench-", dir=asked.dir) as name, \
                        contextlib.ExitStack() as at_end:
                    daemon = started(asked, policy, pathlib.Path(name))
                    at_end.callback(daemon.end)
                    print(f"{policy:8} {parts[part](daemon, asked.seconds)}", flush=True)


if __name__ == "__main__":
    main()

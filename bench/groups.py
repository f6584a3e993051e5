#!/usr/bin/env python3
"""Whether it helps applications that their servers serve the same one at a time: fifo beside the policy epoch_groups.

    bench/groups.py [BIN] [--daemons N] [--apps M] [--mib SIZE] [--rounds R] [--length TIME]

Starts N daemons (3) on loopback that move from epoch to epoch together. In each round M applications (4) begin at the same
time, each with a file of SIZE MiB (64) for each daemon, `fopctl --job put`; an application is done when all of its files are
stored. Rounds with fifo and with epoch_groups, whose epochs last at most TIME (50ms), take turns. Prints for both the mean time
of an application, of all applications and rounds, and the mean time until the last one is done.
"""

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "scripts"))
import cluster as clusters  # noqa: E402


class Bench:
    def __init__(self, asked, directory, names):
        self.asked, self.directory, self.names = asked, directory, names
        self.fopctl = asked.bin / "fopctl"
        self.file = directory / "file"
        self.file.write_bytes(os.urandom(asked.mib << 20))

    def set_policy(self, words):
        for name in self.names:
            subprocess.run([self.fopctl, "--admin", self.directory / name / "admin.sock", "lrs", "set", *words],
                           stdout=subprocess.DEVNULL, check=True)

    def put(self, server, app):
        environment = os.environ | {"FOPD_SERVER": clusters.address_of(server), "FOPD_KEY": str(self.directory / "client.key")}
        return subprocess.Popen([self.fopctl, "--job", f"app{app}", "put", self.file, f"app{app}"], env=environment,
                                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)

    def run_round(self):
        """The time of each application, the shortest first."""
        began = time.monotonic()
        puts = {self.put(server, app): app for app in range(self.asked.apps) for server in range(len(self.names))}
        ended = {}
        while puts:
            pid, status = os.wait()
            put = next(each for each in puts if each.pid == pid)
            if status != 0:
                sys.exit(f"fopctl put failed with {os.waitstatus_to_exitcode(status)}")
            ended[puts.pop(put)] = time.monotonic() - began
        return sorted(ended.values())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("bin", nargs="?", default="build/release/bin", type=Path)
    parser.add_argument("--daemons", type=int, default=3)
    parser.add_argument("--apps", type=int, default=4)
    parser.add_argument("--mib", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--length", default="50ms")
    asked = parser.parse_args()
    policies = {"fifo": ["fifo"], "epoch_groups": ["epoch_groups", f"length={asked.length}"]}
    times = {policy: [] for policy in policies}
    with tempfile.TemporaryDirectory(prefix="fopd-groups-") as scratch:
        directory, names = Path(scratch), clusters.names_of(asked.daemons)
        clusters.make_files(directory, names)
        bench, cluster = Bench(asked, directory, names), clusters.Cluster(asked.bin, directory, names)
        try:
            cluster.start()
            if not cluster.wait_together():
                sys.exit("the daemons did not find each other")
            bench.run_round()  # Makes the objects.
            for _ in range(asked.rounds):
                for policy, words in policies.items():
                    bench.set_policy(words)
                    times[policy].append(bench.run_round())
        finally:
            cluster.stop()
    result = {policy: {"mean_s": round(statistics.mean(each for one in rounds for each in one), 3),
                       "last_s": round(statistics.mean(one[-1] for one in rounds), 3)} for policy, rounds in times.items()}
    change = 100 * (result["epoch_groups"]["mean_s"] / result["fifo"]["mean_s"] - 1)
    print(json.dumps({"daemons": asked.daemons, "apps": asked.apps, "mib": asked.mib, "rounds": asked.rounds,
                      "length": asked.length, **result, "mean_change_percent": round(change, 1)}))
    return 0


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.exit(main())

#!/usr/bin/env python3
"""How long an epoch of several daemons on this machine takes, beside an echo of 64 bytes.

    bench/epochs.py [BIN] [--daemons N] [--seconds S]

Starts N daemons (3) on loopback whose epochs follow each other every 50 ms, and prints the median and the 99th percentile of
the time from a daemon being ready until the epoch begins there. It contains the wait for the other daemons, which are ready
a moment earlier or later; so it is an upper bound for the time from the last one that is ready to the last one that has
begun. Beside it: `fopctl ping` between two processes that sleep in between, before and after.
"""

import argparse
import json
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "scripts"))
import cluster as clusters  # noqa: E402

TIMEOUT = "100ms"  # A scheduler that nothing keeps is ready after half of it.


def ping_us(fopctl, environment):
    done = subprocess.run([fopctl, "--json", "ping", "--count", "1000"], env=environment, stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)["avg_us"]


def shown(fopctl, node):
    done = subprocess.run([fopctl, "--admin", node / "admin.sock", "--json", "epoch", "show"], stdout=subprocess.PIPE,
                          check=True)
    return json.loads(done.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("bin", nargs="?", default="build/release/bin", type=Path)
    parser.add_argument("--daemons", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=20)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="fopd-epochs-") as scratch:
        directory, names = Path(scratch), clusters.names_of(asked.daemons)
        clusters.make_files(directory, names)
        for name in names:
            file = directory / name / "fopd.yaml"
            settings = json.loads(file.read_text())
            settings["eh"] |= {"timeout": TIMEOUT, "grace": "50ms"}
            file.write_text(json.dumps(settings))
        cluster = clusters.Cluster(asked.bin, directory, names)
        environment = {"FOPD_SERVER": clusters.address_of(0), "FOPD_KEY": str(directory / "client.key")}
        try:
            cluster.start()
            if not cluster.wait_together():
                sys.exit("the daemons did not find each other")
            echoes = [ping_us(cluster.fopctl, environment)]
            before = shown(cluster.fopctl, directory / names[0])["epoch"]
            time.sleep(asked.seconds)  # What is measured happens meanwhile.
            states = [shown(cluster.fopctl, directory / name) for name in names]
            echoes.append(ping_us(cluster.fopctl, environment))
        finally:
            cluster.stop()
    medians = [round(each["median_s"] * 1e6) for each in states]
    print(json.dumps({"daemons": asked.daemons, "epochs": states[0]["epoch"] - before, "median_us": medians,
                      "p99_us": [round(each["p99_s"] * 1e6) for each in states], "ping_avg_us": echoes,
                      "median_in_pings": round(max(medians) / (sum(echoes) / len(echoes)), 2)}))
    return 0


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.exit(main())

#!/usr/bin/env python3
"""How long an epoch of several daemons on this machine takes, beside an echo of 64 bytes.

    bench/epochs.py [BIN] [--daemons N] [--seconds S]

Starts N daemons (3) on loopback whose epochs follow each other every 50 ms, and prints the median and the 99th percentile of
the time from the last daemon that is ready until the epoch has begun at all of them, as their logs tell with the level debug.
Beside it: average and median of `fopctl ping` at the same intervals, before and after, and how many of the median pings the median
epoch takes. Daemons and fopctl sleep in between.
"""

import argparse
import json
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import datetime
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "scripts"))
import cluster as clusters  # noqa: E402

TIMEOUT = "100ms"  # A scheduler that nothing keeps is ready after half of it.
BETWEEN_S = 0.05  # So an echo finds the processors as asleep, and the caches as cold, as an epoch does.


def pings_us(fopctl, environment):
    done = subprocess.run([fopctl, "ping", "--interval", str(BETWEEN_S), "--count", "100"], env=environment,
                          stdout=subprocess.PIPE, text=True, check=True)
    return [float(each) for each in re.findall(r" time=([\d.]+) us$", done.stdout, re.MULTILINE)]


def epochs_of(log):
    """When the daemon was ready for each epoch and when the epoch began there, in seconds."""
    times = {}
    for line in log.read_text(encoding="utf-8").splitlines():
        event = json.loads(line)
        if event["event"] == "fopd.eh.epoch":
            began = datetime.fromisoformat(event["time"]).timestamp()
            times[event["epoch"]] = (began - event["waited_us"] / 1e6, began)
    return times


def last_ready_to_last_begun_us(logs):
    """Of the epochs that all daemons had."""
    epochs = [epochs_of(log) for log in logs]
    spans = []
    for epoch in set.intersection(*(set(each) for each in epochs)):
        ready, began = zip(*(each[epoch] for each in epochs))
        spans.append((max(began) - max(ready)) * 1e6)
    return sorted(spans)


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
            settings["log"] = {"level": "debug", "format": "json"}
            file.write_text(json.dumps(settings))
        cluster = clusters.Cluster(asked.bin, directory, names)
        environment = {"FOPD_SERVER": clusters.address_of(0), "FOPD_KEY": str(directory / "client.key")}
        try:
            cluster.start()
            if not cluster.wait_together():
                sys.exit("the daemons did not find each other")
            pings = [pings_us(cluster.fopctl, environment)]
            time.sleep(asked.seconds)  # What is measured happens meanwhile.
            pings.append(pings_us(cluster.fopctl, environment))
        finally:
            cluster.stop()
        spans = last_ready_to_last_begun_us([directory / name / "fopd.log" for name in names])
    median, p99 = spans[len(spans) // 2], spans[len(spans) * 99 // 100]
    print(json.dumps({"daemons": asked.daemons, "epochs": len(spans), "median_us": round(median), "p99_us": round(p99),
                      "ping_avg_us": [round(statistics.fmean(each)) for each in pings],
                      "ping_median_us": [round(statistics.median(each)) for each in pings],
                      "median_in_pings": round(median / statistics.median(sum(pings, [])), 2)}))
    return 0


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.exit(main())

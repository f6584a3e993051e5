"""What the algorithms for tape drives are worth: bench/README.md has the limits. A release build."""

import json
import os
import subprocess
import unittest

TRIES = 3


def measure():
    done = subprocess.run([os.environ["BENCH_IO_SCHED"], "--json"], check=True, capture_output=True, text=True, timeout=300)
    print(done.stdout)
    return json.loads(done.stdout)


def problems(figures):
    found = []

    def hold(what, value, limit):
        if value > limit:
            found.append(f"{what}: {value:.3f}, at most {limit}")

    hold("mounts, grouped", figures["grouped_mounts"], 10)
    hold("time, grouped against fifo", figures["grouped_s"] / figures["fifo_s"], 1 / 4.5)
    for count in ("16", "128", "512"):
        linear = figures["locate_linear_s"][count]
        hold(f"locates of {count}, auto against linear", figures["locate_auto_s"][count] / linear, 0.55)
    for order in ("arrival", "linear", "scan", "sltf"):
        for count, mean in figures[f"locate_{order}_s"].items():
            hold(f"locates of {count}, auto against {order}", figures["locate_auto_s"][count], mean)
    hold("planning 2000 files, ms", figures["plan_2000_ms"], 50)
    for weights in ("", "_1_1_1", "_4_2_1", "_8_1_1", "_shifting"):
        hold(f"share error{weights}, percent", figures["fair_share_error_percent" + weights], 5)
        hold(f"moves of drives per hour{weights}", figures["fair_share_moves_per_hour" + weights], 600)
    hold("bytes of a request", figures["request_bytes"], 300)
    for what in ("push_ns", "peek_ns", "peek_busy_ns"):
        hold(what, figures[what], 2000)
    hold("99th percentile of a disk beside 10 000 that wait for cartridges", figures["disk_p99_beside_10k_us"] / figures["disk_p99_us"], 1.1)
    for size, rate in figures["written_each_mb_s_by_file_mb"].items():
        hold(f"files of {size} MB, each durable by itself, against batches", rate / figures["written_batches_mb_s_by_file_mb"][size], 1.001)
    return found


class BenchIoSchedTest(unittest.TestCase):
    def test_limits(self):
        for _ in range(TRIES):
            found = problems(measure())
            if not found:
                return
        self.fail("; ".join(found))


if __name__ == "__main__":
    unittest.main(verbosity=2)

"""What sessions and RPC may cost, on whatever machine this is: a release build on a quiet one.

Guards against falling back: bench/README.md says what is aimed at. Ratios compare things that took turns in one run,
but what wakes up and who else uses the cores is up to the kernel, so that every figure gets three tries: a regression
fails them all.
"""

import json
import os
import subprocess
import unittest

TRIES = 3
# The part of bench_fabric, the figure, its limit.
AT_MOST = [
    ("echoes", "echo_64_ratio", 2.5),
    ("echoes", "echo_4k_ratio", 2.5),
    ("echoes", "echo_64_asleep_ratio", 1.8),
    ("echoes", "echo_4k_asleep_ratio", 1.8),
    ("calls", "rpc_server_cpu_us", 6),
    ("calls", "rpc_one_by_one_server_cpu_us", 6),
    ("calls", "rpc_64_sessions_server_cpu_us", 8),
    ("idle", "session_kib", 8),
    ("idle", "idle_1000_sessions_cpu_percent", 0.8),
]
AT_LEAST = [
    ("connects", "connects_per_s", 1500),
    ("bulk", "rma_read_ratio", 0.5),
    ("bulk", "rma_write_ratio", 0.5),
]


def measure(part):
    done = subprocess.run([os.environ["BENCH_FABRIC"], "--json", part], check=True, capture_output=True, text=True,
                          timeout=120)
    print(done.stdout)
    return json.loads(done.stdout)


@unittest.skipIf(len(os.sched_getaffinity(0)) < 2, "a server and its clients need a core each")
class BenchFabricTest(unittest.TestCase):
    def hold(self, part, holds):
        """The figures of the part that missed their limits in every try."""
        failed = None
        for _ in range(TRIES):
            figures = measure(part)
            missed = {name: figures[name] for name, limit in holds
                      if figures[name] is not None and not limit(figures[name])}
            failed = missed if failed is None else {name: missed[name] for name in failed if name in missed}
            if not failed:
                break
        return failed

    def test_limits(self):
        for part in sorted({row[0] for row in AT_MOST + AT_LEAST}):
            holds = [(name, lambda value, limit=limit: value <= limit)
                     for row_part, name, limit in AT_MOST if row_part == part]
            holds += [(name, lambda value, limit=limit: value >= limit)
                      for row_part, name, limit in AT_LEAST if row_part == part]
            with self.subTest(part=part):
                self.assertEqual(self.hold(part, holds), {})


if __name__ == "__main__":
    unittest.main()

"""What sessions and RPC may cost, on whatever machine this is: a release build on a quiet one.

Guards against falling back: bench/README.md says what is aimed at. Ratios compare things that took turns in one run,
but what wakes up and who else uses the cores is up to the kernel, so that every figure gets three tries: a regression
fails them all.
"""

import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench"))
import peers  # noqa: E402
from objects import Daemon  # noqa: E402

TRIES = 3
# The daemon's system calls for each read of 4 KiB, by how many reads are under way.
CALLS_MAX = {1: 5, 32: 1.5}
PING_CPU_S_MAX = 0.020
PINGS = 20
# The part of bench_fabric, the figure, its limit.
AT_MOST = [
    ("echoes", "echo_64_ratio", 2),
    ("echoes", "echo_4k_ratio", 2),
    ("echoes", "echo_64_asleep_ratio", 1.6),
    ("echoes", "echo_4k_asleep_ratio", 1.6),
    ("calls", "rpc_server_cpu_us", 4),
    ("calls", "rpc_one_by_one_server_cpu_us", 4),
    ("calls", "rpc_64_sessions_server_cpu_us", 5.5),
    ("idle", "session_kib", 7),
    ("idle", "idle_1000_sessions_cpu_percent", 0.4),
]
AT_LEAST = [
    ("connects", "connects_per_s", 2500),
    ("bulk", "rma_read_ratio", 0.65),
    ("bulk", "rma_write_ratio", 0.9),
    ("encrypted", "encrypted_4k_ratio", 0.7),
    ("encrypted", "encrypted_echo_4k_ratio", 0.75),
    ("encrypted", "encrypted_read_ratio", 0.35),
    ("encrypted", "encrypted_write_ratio", 0.25),
]


def measure(part):
    done = subprocess.run([os.environ["BENCH_FABRIC"], "--json", part], check=True, capture_output=True, text=True,
                          timeout=200)
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


def cpu_seconds(command):
    """Of a process from its start to its end."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise subprocess.CalledProcessError(process.returncode, command)
    return usage.ru_utime + usage.ru_stime


class DaemonTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="fopd-bench-", dir="/var/tmp")
        cls.addClassCleanup(folder.cleanup)
        cls.daemon = Daemon(pathlib.Path(os.environ["FOPD_BIN"]), pathlib.Path(folder.name), 1, 1)
        cls.addClassCleanup(cls.daemon.end)
        cls.daemon.start()

    def test_system_calls_of_a_read(self):
        for depth, limit in CALLS_MAX.items():
            with self.subTest(depth=depth):
                self.assertLessEqual(self.system_calls(depth, limit), limit)

    def system_calls(self, depth, limit):
        server, load = peers.Fopd(self.daemon), peers.Load("", "read", 4096, depth)
        for _ in range(TRIES):
            calls = peers.system_calls(server, load, 2)
            if calls is None:
                self.skipTest("perf is not installed, or may not count system calls here")
            print(f"{depth} at a time: {calls:.2f} system calls for each read", flush=True)
            if calls <= limit:
                break
        return calls

    def test_cpu_of_a_ping(self):
        ping = [self.daemon.programs / "fopctl", "ping", "--count", "1", "--server", self.daemon.address]
        took = statistics.median(cpu_seconds(ping) for _ in range(PINGS))
        print(f"fopctl ping: {took * 1000:.1f} ms of CPU", flush=True)
        self.assertLessEqual(took, PING_CPU_S_MAX)


if __name__ == "__main__":
    unittest.main()

"""How soon a daemon with a million objects is ready again, how long removals take, and the memory that load takes: bench/README.md has
the limits. A release build on a quiet machine."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench"))
from objects import Daemon, anonymous_mib  # noqa: E402
from peers import cpu_seconds  # noqa: E402

OBJECTS = 1_000_000
READY_S_MAX = 5
REMOVALS = 30_000
REMOVALS_S_MAX = 2
# As they are by default, and what everything else may take.
BUFFERS_MIB = 64  # Of each locality.
OVERLAY_MIB = 64  # Of each disk.
ELSE_MIB = 60
LOADS = [
    ["--op", "write", "--object", "small", "--size", "4k", "--depth", "128"],
    ["--op", "write", "--durable", "--object", "small", "--size", "4k", "--depth", "128"],
    ["--op", "write", "--object", "large", "--size", "1M", "--depth", "32"],
    ["--op", "read", "--object", "large", "--size", "1M", "--depth", "32"],
    ["--op", "read", "--object", "small", "--size", "4k", "--depth", "128"],
    ["--op", "create", "--object", "made", "--depth", "128"],
]


def memory_max(localities, disks):
    return localities * BUFFERS_MIB + disks * OVERLAY_MIB + ELSE_MIB


class ObjectsLimitsTest(unittest.TestCase):
    def daemon(self, count, parent="/var/tmp"):
        folder = tempfile.TemporaryDirectory(prefix="fopd-bench-", dir=parent)
        self.addCleanup(folder.cleanup)
        daemon = Daemon(pathlib.Path(os.environ["FOPD_BIN"]), pathlib.Path(folder.name), count, count)
        self.addCleanup(daemon.end)
        daemon.start()
        return daemon

    def test_start_with_many_objects(self):
        daemon = self.daemon(1)
        made = 0
        while made < OBJECTS:
            made += daemon.bench("created", "--op", "create", "--object", "o", "--depth", "256", "--seconds", "10")["ops"]
        daemon.end(signal.SIGKILL)
        killed, memory = daemon.start(), anonymous_mib(daemon.process.pid)
        daemon.end()
        stopped = daemon.start()
        print(f"{made} objects: ready {killed:.2f} s after kill -9, {stopped:.2f} s after a stop, {memory} MiB", flush=True)
        self.assertLess(killed, READY_S_MAX)
        self.assertLess(stopped, READY_S_MAX)
        self.assertLessEqual(memory, memory_max(1, 1))

    def remove_tree(self):
        """Returns how many seconds so many removals take. The disks are in memory: flushes of a disk that has other work take
        several times as long as all else."""
        daemon = self.daemon(1, parent="/dev/shm")
        made = 0
        while made < REMOVALS:
            made += daemon.bench("created", "--op", "create", "--object", "t/o", "--depth", "64", "--seconds", "0.3")["ops"]
        begun, used = time.monotonic(), cpu_seconds(daemon.process.pid)
        done = subprocess.run([daemon.programs / "fopctl", "--server", daemon.address, "--json", "rm", "-r", "t/", "--yes"],
                              capture_output=True, text=True)
        seconds, used = time.monotonic() - begun, cpu_seconds(daemon.process.pid) - used
        self.assertEqual(done.returncode, 0, done.stderr)
        removed = json.loads(done.stdout)["objects"]
        self.assertGreaterEqual(removed, made)
        print(f"{removed} objects removed in {seconds:.2f} s: {removed / seconds:.0f}/s, {used / removed * 1e6:.1f} us CPU", flush=True)
        daemon.end()
        return seconds * REMOVALS / removed

    @unittest.skipIf(shutil.disk_usage("/dev/shm").free < 2 << 30, "there is no room for a disk in memory")
    def test_removals_of_a_tree(self):
        self.assertLess(min(self.remove_tree() for _ in range(3)), REMOVALS_S_MAX)

    def test_memory_under_load(self):
        for count in (1, 4):
            with self.subTest(localities=count):
                daemon = self.daemon(count)
                taken = []
                for load in LOADS:
                    daemon.bench(" ".join(load[1:5]), *load, "--seconds", "5")
                    taken.append(anonymous_mib(daemon.process.pid))
                daemon.end()
                self.assertLessEqual(max(taken), memory_max(count, count), taken)


if __name__ == "__main__":
    unittest.main(verbosity=2)

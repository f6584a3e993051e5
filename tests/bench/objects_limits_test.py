"""How soon a daemon with a million objects is ready again, and the memory that load makes it take: bench/README.md has
the limits. A release build on a quiet machine."""

import os
import pathlib
import signal
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench"))
from objects import Daemon, anonymous_mib  # noqa: E402

OBJECTS = 1_000_000
READY_S_MAX = 5
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
    def daemon(self, count):
        folder = tempfile.TemporaryDirectory(prefix="fopd-bench-", dir="/var/tmp")
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

"""A daemon that has nothing to do does next to nothing."""

import time
import unittest

from epochs_process import EpochsTestCase
from fopd_process import IS_SANITIZED, ProcessTestCase, wait_until
from storage_process import StorageTestCase, content

IDLE_SECONDS = 30
TRIES = 3  # What counts is the best: with other work on the machine, whatever wakes up costs more.
IDLE_CPU_SHARE_MAX = 0.003


def share_of_half_a_minute(daemon):
    before, begun = daemon.cpu_seconds(), time.monotonic()
    wait_until(lambda: time.monotonic() > begun + IDLE_SECONDS, "half a minute", seconds=2 * IDLE_SECONDS)
    return (daemon.cpu_seconds() - before) / (time.monotonic() - begun)


def check_idle(test, daemon):
    shares = []
    while len(shares) < TRIES and (not shares or shares[-1] >= IDLE_CPU_SHARE_MAX):
        shares.append(share_of_half_a_minute(daemon))
    print(", ".join(f"{each:.4f}" for each in shares), "of a core ", end="")
    test.assertLess(shares[-1], IDLE_CPU_SHARE_MAX)


@unittest.skipIf(IS_SANITIZED, "the sanitizers take more than the daemon")
class IdleTest(ProcessTestCase):
    def test_processor_time(self):
        node = self.node()
        node.write_config(localities={"cores": 2})
        daemon = node.start_ready()
        check_idle(self, daemon)
        node.stop(daemon)


@unittest.skipIf(IS_SANITIZED, "the sanitizers take more than the daemon")
class IdleLibraryTest(StorageTestCase):
    def test_a_library_with_a_loaded_cartridge(self):
        cold = ("--pool", "cold")
        self.put("a", content(5000), *cold)
        self.ctl("sync", *cold)
        self.ctl("release", "a", *cold)
        check_idle(self, self.daemon)
        self.assertEqual(self.ctl("get", "a", "-", *cold), content(5000))


@unittest.skipIf(IS_SANITIZED, "the sanitizers take more than the daemon")
class IdleEpochsTest(EpochsTestCase):
    """Members that have nothing to do go from epoch to epoch."""

    times = {}  # The defaults.

    def test_a_root_and_a_member(self):
        for node in self.nodes.values():
            node.write_config(localities={"cores": 2}, lrs={"policy": "fifo"})
        daemons = self.start_all()
        before = self.epochs(daemons["b"])
        check_idle(self, daemons["a"])
        check_idle(self, daemons["b"])
        after = self.epochs(daemons["b"])
        self.assertEqual(after["view"], before["view"])
        self.assertGreater(after["epoch"], before["epoch"] + 4)


if __name__ == "__main__":
    unittest.main()

"""A daemon that has nothing to do does next to nothing."""

import time
import unittest

from fopd_process import IS_SANITIZED, ProcessTestCase, wait_until

IDLE_SECONDS = 30
IDLE_CPU_SHARE_MAX = 0.003


class IdleTest(ProcessTestCase):
    @unittest.skipIf(IS_SANITIZED, "the sanitizers take more than the daemon")
    def test_processor_time(self):
        node = self.node()
        node.write_config(localities={"cores": 2})
        daemon = node.start_ready()
        before = daemon.cpu_seconds()
        end = time.monotonic() + IDLE_SECONDS
        wait_until(lambda: time.monotonic() > end, "half a minute", seconds=2 * IDLE_SECONDS)
        share = (daemon.cpu_seconds() - before) / IDLE_SECONDS
        print(f"{share:.4f} of a core ", end="")
        self.assertLess(share, IDLE_CPU_SHARE_MAX)
        node.stop(daemon)


if __name__ == "__main__":
    unittest.main()

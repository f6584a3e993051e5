"""A locality with a core to spare looks for more work before it sleeps."""

import os
import unittest

from fopd_process import FOPCTL, ProcessTestCase, bench, run_program


class SpinTest(ProcessTestCase):
    def read_one_at_a_time(self, spin):
        """How often the locality found work while it spun, and how many reads it served."""
        node = self.node(f"spin-{spin}")
        node.settings["pools"] = [{"name": "default"}]
        node.settings["devices"] = [{"name": "d0", "path": str(node.path / "d0.img"), "pool": "default", "size": "64MiB"}]
        node.write_config(localities={"buffers": "2MiB", "spin": spin}, auth={"mode": "none"},
                          admin={"metrics": "127.0.0.1:0"})
        daemon = node.start_ready()
        server = daemon.address

        def output_of(*arguments):
            done = run_program(FOPCTL, *arguments, "--server", server)
            self.assertEqual(done.returncode, 0, done.stderr)
            return done.stdout

        reads = bench(output_of, "--op", "read", "--object-size", "64k", "--size", "4k", "--depth", 1)["ops"]
        won = daemon.metrics()["fopd_locality_spins_won_total"]
        node.stop(daemon)
        return won, reads

    @unittest.skipIf(len(os.sched_getaffinity(0)) < 2, "a locality spins only if it leaves a core to others")
    def test_with_a_disk(self):
        won, reads = self.read_one_at_a_time("1ms")
        self.assertGreater(won, reads / 10)
        self.assertEqual(self.read_one_at_a_time("0s")[0], 0)


if __name__ == "__main__":
    unittest.main()

"""What an epoch costs among many members, and brings, in virtual time: bench/README.md has the limits."""

import json
import os
import subprocess
import unittest

LATENCY_10K_US_MAX = 500
GROWTH_MAX = 2.4
# Beyond three messages for each member but the root.
EXTRA_MESSAGES_MAX = 20
# Of the reduction of the mean time, and of the time until the last application is done.
POINTS = 0.02


class EpochsLimitsTest(unittest.TestCase):
    def test_epochs_are_quick_and_cheap(self):
        done = subprocess.run([os.environ["BENCH_EPOCHS"], "--json"], check=True, capture_output=True, text=True,
                              timeout=200)
        print(done.stdout)
        figures = json.loads(done.stdout)
        self.assertLessEqual(figures["latency_10k_us"], LATENCY_10K_US_MAX)
        self.assertLessEqual(figures["growth_per_factor"], GROWTH_MAX)
        for cost in figures["latency"]:
            least = 3 * (cost["members"] - 1)
            self.assertGreaterEqual(cost["messages"], least)
            self.assertLessEqual(cost["messages"], least + EXTRA_MESSAGES_MAX)
        for each in figures["coordination"]:
            servers, apps = each["servers"], each["apps"]
            fifo = apps - sum((k / apps) ** servers for k in range(1, apps))
            self.assertAlmostEqual(each["reduction"], 1 - (apps + 1) / 2 / fifo, delta=POINTS, msg=str(each))
            self.assertLessEqual(each["makespan"], 1 + POINTS, msg=str(each))
        pairs = {(each["servers"], each["apps"]) for each in figures["coordination"]}
        self.assertTrue({(1, 4), (4, 4), (16, 8), (64, 16)} <= pairs, pairs)


if __name__ == "__main__":
    unittest.main()

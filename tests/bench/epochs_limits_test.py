"""What an epoch costs among many members, in virtual time: bench/README.md has the limits."""

import json
import os
import subprocess
import unittest

LATENCY_10K_US_MAX = 500
GROWTH_MAX = 2.4
# Beyond three messages for each member but the root.
EXTRA_MESSAGES_MAX = 20


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


if __name__ == "__main__":
    unittest.main()

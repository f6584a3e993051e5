"""How fast objects go to a virtual library's cartridges and come back, beside `dd conv=fsync` on the same file system: bench/README.md has
the limit. A release build on a quiet machine."""

import json
import os
import subprocess
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
OPTIONS = ["--rounds", "3"]
RATIO_MIN = 0.5
TRIES = 3


def measure():
    command = [sys.executable, "-B", ROOT / "bench" / "tape.py", "--json", "--bin", os.environ["FOPD_BIN"], *OPTIONS]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, timeout=600)
    print(done.stdout, flush=True)
    return json.loads(done.stdout)


def problems(figures):
    return [f"{name}: {figures[name]:.2f}, at least {RATIO_MIN}"
            for name in ("migrated_ratio", "recalled_ratio") if figures[name] < RATIO_MIN]


class TapeLimitsTest(unittest.TestCase):
    def test_a_migration_and_a_recall_reach_half_of_what_dd_does(self):
        for _ in range(TRIES):
            found = problems(measure())
            if not found:
                return
        self.fail("; ".join(found))


if __name__ == "__main__":
    unittest.main(verbosity=2)

#!/usr/bin/env python3
"""The programs of bench/ in Python, and the tests of their limits, can be loaded: they are run seldom, and share functions."""

import subprocess
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
MODULES = sorted([*(ROOT / "bench").glob("*.py"), *(ROOT / "tests" / "bench").glob("*_test.py")])


class BenchTest(unittest.TestCase):
    def test_each_can_be_loaded(self):
        self.assertGreater(len(MODULES), 5)
        for path in MODULES:
            with self.subTest(path.name):
                done = subprocess.run([sys.executable, "-B", "-c", f"import {path.stem}"], cwd=path.parent, capture_output=True,
                                      text=True, timeout=60)
                self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    unittest.main()

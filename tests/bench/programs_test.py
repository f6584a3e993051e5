"""The programs of bench/ in Python run to their end, called as docs/measurements.md calls them, with less to measure. What they find is
not looked at: that a program still starts daemons, loads them and reads their answers is all that so short a run can say."""

import json
import os
import shlex
import subprocess
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SECONDS_MAX = 600
# Command of the page, and what is put behind it: the last of two equal options counts.
BIN = "--bin {bin}"
COMMANDS = {
    "bench/epochs.py --seconds 10": "{bin} --seconds 0.5",
    "bench/groups.py --rounds 5": "{bin} --rounds 1 --mib 2",
    "bench/objects.py --seconds 3": f"{BIN} --seconds 0.05",
    "bench/objects.py --start 1000000": f"{BIN} --start 1000 --seconds 0.1",
    "bench/objects.py --explain 200 --seconds 0.7 --dir /dev/shm": f"{BIN} --explain 2 --seconds 0.05",
    "bench/policies.py --dir /dev/shm --parts cost --policies fifo,crr,orr,tbf,mclock --turns 60":
        f"{BIN} --turns 2 --seconds 0.05",
    "bench/policies.py --parts reader,shares --policies fifo,crr --seconds 8 --disk-rate 100000000":
        f"{BIN} --seconds 0.2",
    "bench/policies.py --parts reader": f"{BIN} --seconds 0.2",
    "bench/tape.py": f"{BIN} --mib 16 --objects 2 --rounds 1",
    "bench/tape.py --json": f"{BIN} --mib 16 --objects 2 --rounds 1",
}


class BenchProgramsTest(unittest.TestCase):
    def test_the_commands(self):
        programs = shlex.quote(os.environ["FOPD_BIN"])
        for command, more in COMMANDS.items():
            with self.subTest(command):
                words = shlex.split(f"{command} {more.format(bin=programs)}")
                done = subprocess.run([sys.executable, "-B", *words], cwd=ROOT, capture_output=True, text=True, timeout=SECONDS_MAX)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                if "--json" in words:
                    json.loads(done.stdout)  # One document, and nothing else.


if __name__ == "__main__":
    unittest.main()

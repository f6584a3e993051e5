"""What nodes leave on the tapes of a simulated library, over crashes and faults, is read by programs of others."""

import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "store" / "tape"))
from written_tapes import check_tapes  # noqa: E402


class TapeImagesTest(unittest.TestCase):
    def test_images_of_the_swarm(self):
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([os.environ["TEST_SIM_TAPES"], "[.tape-images]"], cwd=folder, check=True,
                           stdout=subprocess.DEVNULL, timeout=900)
            self.assertGreater(check_tapes(self, Path(folder)), 20)


if __name__ == "__main__":
    unittest.main()

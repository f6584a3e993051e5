"""The alert of fops that hang: a disk does not answer for more than two minutes."""

import unittest

from alerts_process import AlertTestCase, Scrape, fires
from fopd_process import needs_promtool, wait_until
from held_disk import READ, needs_held_disk
from storage_process import MIB, content

HUNG = 'fopd_foms_hung_total{locality="0"}'
HUNG_AFTER_SECONDS = 120


@needs_promtool
@needs_held_disk
class HangTest(AlertTestCase):
    @fires("FopdFopsHang")
    def test_fops_that_hang(self):
        disk = self.start_on_held_disk("localities: { cores: 1 }\n")
        self.put("a", content(MIB))
        earlier = Scrape(self.daemon)
        disk.hold(READ)
        self.start_ctl("read", "a", "--length", "4k", "--timeout", 600)
        wait_until(lambda: self.daemon.metrics()[HUNG] == 1, "the read hangs", seconds=3 * HUNG_AFTER_SECONDS)
        self.assertEqual(self.daemon.log().count("fopd.reqh.hung_fom "), 1)
        self.expect_firing(earlier, more=["FopdHealthWarning"])  # The disk is suspect.


if __name__ == "__main__":
    unittest.main()

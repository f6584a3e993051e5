"""kill -9 of either side, again and again, while bulk data is on its way in both directions."""

import unittest

from fopd_process import IS_SANITIZED
from network_process import KillsTestCase

# Of either side. The sanitizers find a leak of one, and take long.
KILLS_COUNT = 25 if IS_SANITIZED else 100


class NetworkKillsTest(KillsTestCase):
    def test_of_clients(self):
        self.n.write_config(localities={"cores": 2})
        self.check_killed_clients(KILLS_COUNT, warm_up=20)

    def test_of_servers(self):
        self.check_killed_servers(KILLS_COUNT, warm_up=10)


if __name__ == "__main__":
    unittest.main()

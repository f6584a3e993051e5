"""kill -9 of either side, again and again, while bulk data is on its way in both directions."""

import unittest

from fopd_process import IS_SANITIZED
from network_process import KillsTestCase

# The sanitizers find a leak of one, and take long.
KILLED_CLIENTS = 25 if IS_SANITIZED else 500
KILLED_SERVERS = 25 if IS_SANITIZED else 100


class NetworkKillsTest(KillsTestCase):
    def test_of_clients(self):
        self.n.write_config(localities={"cores": 2})
        self.check_killed_clients(KILLED_CLIENTS, warm_up=20)

    def test_of_servers(self):
        self.check_killed_servers(KILLED_SERVERS, warm_up=10)


if __name__ == "__main__":
    unittest.main()

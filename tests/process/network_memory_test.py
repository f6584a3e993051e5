"""What many clients with a key have used at once is given back: a minute later the daemon has a tenth more at most than
before, however they ended. Attacks by strangers and by twenty clients together look at that in tests of their own.

What a locality keeps for fops and messages stays when it was used for the first time: some bytes of a limited number.
So each attack comes twice, and only the first may add these."""

import signal
import time
import unittest

from fopd_process import IS_SANITIZED, wait_until
from network_peers import Repeating
from network_process import ManySessionsTestCase


@unittest.skipIf(IS_SANITIZED, "the sanitizers keep what was freed")
class MemoryBackTest(ManySessionsTestCase):
    SESSIONS = 1000
    KEPT_FACTOR_MAX = 1.1
    BACK_SECONDS = 60
    STOPPED_CLIENTS = 20
    STOPPED_SECONDS = 5
    MESSAGES_COUNT = 50_000
    # The 512 buffers of 36 KiB from which a locality sends, and 1024 fops of some kilobytes.
    FIRST_USE_BYTES = 24 << 20

    def setUp(self):
        super().setUp()
        # The size that daemons have by default, of which the growth is a part.
        self.n.write_config(localities={"buffers": "64MiB"})
        self.start()
        for op in ("ping", "echo", "bulk_echo"):
            self.ctl("bench", "--op", op, "--depth", "8", "--seconds", "1")
        self.wait_at_rest()

    def load(self, op, size, depth):
        return self.fopctl("bench", "--op", op, "--size", size, "--depth", depth, "--seconds", "600")

    def check(self, attack, what, first_use_bytes=0):
        """After `attack` its clients are gone."""
        for stays in (first_use_bytes, 0):
            before = self.daemon.resident_bytes()
            attack()
            at_end, begun = self.daemon.resident_bytes(), time.monotonic()
            self.wait_at_rest()
            at_most = self.KEPT_FACTOR_MAX * before + stays
            try:
                wait_until(lambda: self.daemon.resident_bytes() <= at_most, f"memory is back after {what}",
                           seconds=self.BACK_SECONDS)
            finally:
                print(f"{what}: {before >> 10} KiB before, {at_end >> 10} at the end, {self.daemon.resident_bytes() >> 10} "
                      f"after {time.monotonic() - begun:.0f} s", end="; ")
        self.n.stop(self.daemon)

    def end_sessions(self):
        for each in self.open_sessions(others=0):
            each.kill()

    def stop_clients(self):
        """With much to do."""
        bytes_before = self.daemon.metrics()["fopd_bulk_bytes_pushed_total"]
        loads = [("bulk_echo", "64k"), ("echo", "12k")]
        clients = [self.load(*loads[i % len(loads)], depth=64) for i in range(self.STOPPED_CLIENTS)]
        self.wait_figure("fopd_sessions", self.STOPPED_CLIENTS)
        self.wait_figure("fopd_bulk_bytes_pushed_total", bytes_before + (16 << 20))
        for each in clients:
            each.signal(signal.SIGSTOP)
        self.wait_elapsed(self.STOPPED_SECONDS)
        for each in clients:
            each.kill()

    def repeat_messages(self):
        counted_before = self.daemon.metrics()["fopd_messages_unsealed_total"]
        relay = self.relay()
        victim = self.start_pings(1, server=relay.address)[0]
        wait_until(lambda: len(relay.client_turns()) > 4, "somebody to listen to")
        message = relay.client_turns()[3]
        with Repeating(lambda: relay.say(100 * message), per_second=1000) as flood:
            wait_until(lambda: 100 * flood.count >= self.MESSAGES_COUNT, "the flood")
        self.wait_figure("fopd_messages_unsealed_total", counted_before + self.MESSAGES_COUNT)
        victim.kill()
        relay.close()

    def test_sessions_that_end_at_once(self):
        self.check(self.end_sessions, f"{self.SESSIONS} sessions")

    def test_clients_that_are_stopped(self):
        self.check(self.stop_clients, f"{self.STOPPED_CLIENTS} stopped clients", self.FIRST_USE_BYTES)

    def test_messages_that_are_repeated(self):
        self.check(self.repeat_messages, f"{self.MESSAGES_COUNT} repeated messages")


if __name__ == "__main__":
    unittest.main()

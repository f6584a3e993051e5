"""Clients that are stopped with all the fops they may have: others do not notice, from the first second to the end of
the lease."""

import json
import signal
import statistics

from fopd_process import DEADLINE_SECONDS, IS_SANITIZED, wait_until
from network_process import P99_FLOOR_US, NetworkTestCase, Witness

CLIENTS = 32


class StoppedClientsTest(NetworkTestCase):
    LEASE_SECONDS = 30
    WINDOW_SECONDS = 1
    WINDOWS_COUNT = 5
    # The first is for the median of all windows, the second for each of them.
    RATE_KEPT, RATE_KEPT_EACH = (0.2, 0.02) if IS_SANITIZED else (0.9, 0.6)
    P99_FACTOR_MAX = 2
    PING_US_MAX = 50_000

    def setUp(self):
        super().setUp()
        self.use_disk("4GiB")
        # Fewer pieces than the stopped clients have fops.
        self.n.write_config(localities={"buffers": "64MiB"})

    def reads(self, seconds=WINDOW_SECONDS):
        """Of a client that comes for them, as scripts do."""
        done = json.loads(self.ctl("bench", "--op", "read", "--size", "4k", "--object-size", "1M", "--object", "ours",
                                   "--depth", "4", "--pool", "fast", "--seconds", str(seconds), "--json").stdout)
        self.assertEqual(done["errors"], 0)
        return done["ops"] / done["seconds"], done["p99_us"]

    def sessions_with_fops(self):
        return sum(each["fops"] > 0 for each in json.loads(self.ctl("sessions", "--json").stdout)["sessions"])

    def stop_clients(self):
        """In the middle of their work."""
        clients = [self.fopctl("bench", "--op", ("read", "write")[i % 2], "--size", "1M", "--object-size", "8M",
                               "--depth", "64", "--pool", "fast", "--seconds", "600") for i in range(CLIENTS)]
        for op in ("read", "write"):
            # Behind the writes that make their objects.
            self.wait_figure(f'fopd_fops_total{{op="{op}",result="done"}}', 1)
        wait_until(lambda: self.sessions_with_fops() >= CLIENTS, "all of them are at work",
                   seconds=4 * DEADLINE_SECONDS)
        for each in clients:
            each.signal(signal.SIGSTOP)

    def test_others_do_not_notice(self):
        """Beside pings of another daemon, which meet all that keeps the machine busy."""
        other = self.node("other").start_ready()
        self.start()
        witness = self.witness()
        elsewhere = self.fopctl("ping", "--interval", "0.0005", kind=Witness,
                                server=other.events("fopd.fabric.listening")[0]["address"])
        self.reads()
        before = [self.reads() for _ in range(self.WINDOWS_COUNT)]
        self.stop_clients()
        since, since_elsewhere, during = len(witness.times_us()), len(elsewhere.times_us()), []
        while self.daemon.metrics()["fopd_sessions"] > 1:
            during.append(self.reads())
        pings, pings_elsewhere = witness.times_us()[since:], elsewhere.times_us()[since_elsewhere:]
        after = [self.reads() for _ in range(self.WINDOWS_COUNT)]

        # As it was before, or is afterwards: the machine may have become busy with something else.
        rate = min(statistics.median(rate for rate, _ in quiet) for quiet in (before, after))
        p99 = max(P99_FLOOR_US, *(statistics.median(p99 for _, p99 in quiet) for quiet in (before, after)))
        rates, p99s = zip(*during)
        print(f"{CLIENTS} stopped: {rate:.0f} reads/s, p99 {p99:.0f} us; in {len(during)} windows meanwhile "
              f"{statistics.median(rates):.0f} and {min(rates):.0f} at least, p99 {statistics.median(p99s):.0f} us "
              f"and {max(p99s):.0f} at most; pings {max(pings):.0f} us at most, at another daemon "
              f"{max(pings_elsewhere):.0f}", end="; ")
        self.assertGreater(statistics.median(rates), self.RATE_KEPT * rate)
        self.assertGreater(min(rates), self.RATE_KEPT_EACH * rate)
        if not IS_SANITIZED:
            self.assertLess(statistics.median(p99s), self.P99_FACTOR_MAX * p99)
            self.assertLess(max(pings), max(self.PING_US_MAX, 2 * max(pings_elsewhere)))
        self.expect_content(witness)

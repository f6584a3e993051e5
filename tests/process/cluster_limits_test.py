"""Daemons that share the limits of rules with scope=cluster."""

import json
import subprocess
import time
import unittest

from epochs_process import EpochsTestCase
from fopd_process import DONE, FOPCTL, wait_until


class ClusterLimitsBase(EpochsTestCase):
    """Daemons with a rule of the policy tbf that limits them together."""

    def make_node(self, name, **options):
        # Nobody is left out because the machine is busy for a second.
        node = super().make_node(name, **options, timeout="10s", grace="2s", root_silent="4s")
        node.settings["auth"] = {"mode": "none", "peer_key": node.settings["auth"]["peer_key"]}
        # The daemons and their clients share the cores of one machine.
        node.settings["localities"] = {"cores": 1, "buffers": "2MiB", "spin": "0s"}
        node.settings["pools"] = [{"name": "fast"}]
        node.settings["devices"] = [{"name": "d0", "path": str(node.path / "d0.img"), "pool": "fast", "size": "256MiB"}]
        return node.write_config(lrs={"policy": "tbf", "tbf": {"rules": [self.rule()]}})

    def start_bench(self, name, *arguments):
        """One that goes on until what is returned is called, at most until the end of the test."""
        bench = subprocess.Popen([FOPCTL, "--server", self.addresses[name], "bench", *arguments, "--seconds", "600"],
                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

        def end():
            bench.kill()
            bench.wait()
        self.addCleanup(end)
        return end

    @staticmethod
    def limited(daemon):
        """The class of the rule in lrs show; nothing before its first request."""
        done = daemon.ctl("--json", "lrs", "show")
        if done.returncode != DONE:
            raise AssertionError(f"lrs show: exit code {done.returncode}: {done.stderr}")
        return next((each for each in json.loads(done.stdout)["classes"] if each["name"].startswith("limited")), None)


class ClusterLimitsTest(ClusterLimitsBase):
    names = ("a", "b")
    rate = 100

    def rule(self):
        return f"limited op=write rate={self.rate}/s burst=1 scope=cluster by=none"

    def start_writing(self, name):
        return self.start_bench(name, "--op", "write", "--object", "o", "--object-size", "64k", "--depth", "8")

    def cluster(self, daemon):
        found = self.limited(daemon)
        return found["cluster"] if found else {"share": -1, "cut_off": True, "differs": False}

    def served(self, daemons):
        return sum(self.limited(each)["served"] for each in daemons.values())

    def check_rate(self, daemons, seconds):
        """The time includes that of both looks, so more than the rate is never a matter of when they were taken."""
        begin, before = time.monotonic(), self.served(daemons)
        wait_until(lambda: self.served(daemons) - before >= self.rate * seconds, "so many are served")
        count = self.served(daemons) - before
        # With a limit for each of them, nearly twice as many would be.
        self.assertLessEqual(count, 1.2 * self.rate * (time.monotonic() - begin) + 4)

    def test_two_daemons_share_a_rate_by_what_their_clients_want(self):
        daemons = self.start_all()
        end_a = self.start_writing("a")
        self.start_writing("b")
        wait_until(lambda: all(0.25 <= self.cluster(each)["share"] <= 0.75 for each in daemons.values()), "both have a part")
        self.check_rate(daemons, seconds=3)
        self.assertLessEqual(sum(self.cluster(each)["share"] for each in daemons.values()), 1.1)
        self.assertRegex(daemons["a"].ctl("lrs", "show").stdout, r"(?s)SHARE.*limited.* [\d.]+%")
        self.assertGreater(daemons["a"].metrics()["fopd_lrs_class_share"], 0)
        self.assertEqual(daemons["a"].events("fopd.lrs.rule_differs"), [])

        end_a()
        wait_until(lambda: self.cluster(daemons["b"])["share"] > 0.9, "b has what a does not need")
        self.check_rate(daemons, seconds=1)

        daemons["a"].kill()
        wait_until(lambda: self.cluster(daemons["b"])["cut_off"], "b knows that it is alone")
        self.assertLessEqual(self.cluster(daemons["b"])["share"], 0.501)
        self.assertIn("cut off", daemons["b"].ctl("lrs", "show").stdout)

    def test_a_rule_that_reads_otherwise_at_another_daemon_is_named(self):
        daemons = self.start_all()
        for name in self.names:
            self.start_writing(name)
        wait_until(lambda: all(self.cluster(each)["share"] > 0 for each in daemons.values()), "both have a part")
        done = daemons["b"].ctl("lrs", "rule", "change", "limited", f"rate={2 * self.rate}/s")
        self.assertEqual(done.returncode, DONE, done.stderr)
        for each in daemons.values():
            self.assertEqual(each.wait_event("fopd.lrs.rule_differs")[0]["rule"], "limited")
        wait_until(lambda: "rules differ" in daemons["a"].ctl("lrs", "show").stdout, "lrs show says that the rules differ")


class SkewedLoadTest(ClusterLimitsBase):
    """Three daemons with unequal load and a rule that limits them together, counted second by second."""

    names = ("a", "b", "c")
    rate = 500
    # Tokens are kept for 0.1 s. A thread that gets no processor for as long loses none of them.
    burst = 50
    seconds = 6
    # How many requests the clients of each daemon keep waiting, one load after the other.
    loads = ({"a": 64, "b": 8, "c": 1}, {"a": 1, "b": 0, "c": 64})

    def rule(self):
        return f"limited * rate={self.rate}/s burst={self.burst} scope=cluster by=none"

    def load(self, depths):
        """Returns what ends the clients, after the third epoch in which the demand of all was counted."""
        ends = [self.start_bench(name, "--op", "echo", "--size", "64", "--depth", str(depth))
                for name, depth in depths.items() if depth]
        busy = [self.running[name] for name, depth in depths.items() if depth]
        before = [self.served_at(each) for each in busy]
        wait_until(lambda: all(self.served_at(each) > count for each, count in zip(busy, before)), "all are busy")
        # The epoch after one in which shares move repeats the demands, so that of six epochs three have new ones.
        last = self.epochs(self.running["a"])["epoch"]
        for each in self.running.values():
            self.wait_epoch_after(each, last + 6)
        return ends

    def served_at(self, daemon):
        found = self.limited(daemon)
        return found["served"] if found else 0

    def look(self):
        """How many requests have been served, and between which two times all daemons were asked."""
        begin = time.monotonic()
        return sum(map(self.served_at, self.running.values())), begin, time.monotonic()

    def counts(self):
        """Looks at the daemons once a second, and returns what they saw."""
        looks, first = [self.look()], time.monotonic()
        for second in range(1, self.seconds + 1):
            time.sleep(max(0, first + second - time.monotonic()))  # A second is what is measured.
            looks.append(self.look())
        return looks

    def check_counts(self, looks):
        # Each daemon may serve one request too early: one that costs more than the daemon's part of the burst.
        early = len(self.names)
        # Hard, for each span between two looks: what was served within is at most the rate for the whole time, from
        # before the first daemon was asked until after the last one was, and all tokens that were kept.
        for i, (before, begin, _) in enumerate(looks):
            for count, _, end in looks[i + 1:]:
                self.assertLessEqual(count - before, self.rate * (end - begin) + self.burst + early)
        # Of a second, only the time between the looks is certain to be within what was counted; and of each daemon, the
        # request that is due at its begin or at its end may be counted with the second before or after.
        good = 0
        for (before, begin, begun), (count, ending, end) in zip(looks, looks[1:]):
            least = 0.98 * self.rate * (ending - begun) - early
            most = 1.01 * self.rate * (end - begin) + early
            good += least <= count - before <= most
        # A daemon that got no processor for some time serves its tokens in the second after. So a busy machine may spoil
        # a pair of seconds, but neither most of them nor their sum: there the tokens that were kept are the only doubt.
        self.assertGreater(2 * good, len(looks) - 1, looks)
        (before, begin, begun), (count, ending, end) = looks[0], looks[-1]
        self.assertGreaterEqual(count - before, 0.98 * self.rate * (ending - begun) - self.burst - early)
        self.assertLessEqual(count - before, 1.01 * self.rate * (end - begin) + early)

    def test_three_daemons_serve_the_rate_in_most_seconds_whatever_the_skew(self):
        self.running = self.start_all()
        for depths in self.loads:
            with self.subTest(depths=depths):
                ends = self.load(depths)
                self.check_counts(self.counts())
                for end in ends:
                    end()
        # A daemon that was left out would serve what it keeps besides the rate, and the bounds have no room for that.
        for each in self.running.values():
            self.assertEqual(each.events("fopd.eh.evicts"), [])


if __name__ == "__main__":
    unittest.main()

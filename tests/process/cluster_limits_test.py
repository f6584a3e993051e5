"""Daemons that share the limits of rules with scope=cluster."""

import json
import subprocess
import time
import unittest

from epochs_process import EpochsTestCase
from fopd_process import DONE, FOPCTL, wait_until


class ClusterLimitsTest(EpochsTestCase):
    """Two daemons with a rule of the policy tbf that limits both together."""

    names = ("a", "b")
    rate = 100

    def make_node(self, name, **options):
        # Nobody is left out because the machine is busy for a second.
        node = super().make_node(name, **options, timeout="10s", grace="2s", root_silent="4s")
        node.settings["auth"] = {"mode": "none", "peer_key": node.settings["auth"]["peer_key"]}
        node.settings["localities"] = {"cores": 1, "buffers": "2MiB"}
        node.settings["pools"] = [{"name": "fast"}]
        node.settings["devices"] = [{"name": "d0", "path": str(node.path / "d0.img"), "pool": "fast", "size": "256MiB"}]
        rule = f"limited op=write rate={self.rate}/s burst=1 scope=cluster by=none"
        return node.write_config(lrs={"policy": "tbf", "tbf": {"rules": [rule]}})

    def start_writing(self, name):
        bench = subprocess.Popen([FOPCTL, "--server", self.addresses[name], "bench", "--op", "write", "--object", "o",
                                  "--object-size", "64k", "--depth", "8", "--seconds", "600"],
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


if __name__ == "__main__":
    unittest.main()

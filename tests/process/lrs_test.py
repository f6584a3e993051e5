"""Which fop is next, as an administrator sets it: in the file, and while the node works."""

import json
import threading

from fopd_process import CONFIG, DONE, wait_until
from lrs_process import LrsTestCase
from storage_process import NOT_FOUND


class RequestSchedulingTest(LrsTestCase):
    def reload(self, code=DONE, **lrs):
        self.fopd.settings["lrs"] = lrs
        self.fopd.write_config()
        return self.ctl("reload", code=code)

    def test_a_rule_holds_for_the_node(self):
        """However many localities and sessions there are."""
        # So low that any machine writes more without the rule.
        self.start(policy="tbf", tbf={"rules": ["slow op=write rate=10/s burst=1"]})
        self.assertLessEqual(self.write(seconds=2, jobs=3), 2 * 10 + 2)
        self.reload(policy="tbf", tbf={"rules": ["slow op=write rate=20/s burst=1"]})
        self.assertLessEqual(self.write(seconds=2, jobs=3), 2 * 20 + 2)
        self.reload(policy="tbf", tbf={"rules": ["slow op=write rate=unlimited"]})
        self.assertGreater(self.write(seconds=2, jobs=3), 2 * 20 + 2)
        self.fopd.stop(self.daemon)

    def test_a_rule_for_a_pool_holds_for_all_that_is_in_it(self):
        """Also for fops that name none, as `lrs which` says."""
        self.start(policy="tbf", tbf={"rules": ["slow pool=fast&op=write rate=50/s burst=1"]})
        self.assertLessEqual(self.write(seconds=2), 2 * 50 + 2)
        self.assertIn("class slow{op=write pool=fast}", self.ctl("lrs", "which", "op=write", "pool=fast").stdout)
        self.assertIn("there is no pool slow", self.ctl("lrs", "which", "op=write", "pool=slow", code=NOT_FOUND).stderr)
        self.fopd.stop(self.daemon)

    def test_a_get_explains_that_it_waited_for_its_turn(self):
        self.start(policy="tbf", tbf={"rules": ["slow op=read rate=1/s burst=1"]})
        self.ctl("put", "-", "a", input="bytes")
        file = self.fopd.path / "a"
        for _ in range(2):  # The second one waits.
            done = self.ctl("get", "a", file, "--explain", "--json")
        times = json.loads(done.stdout)["explain"]["slowest"]
        self.assertGreater(times["policy"], 0.8 * times["total"])
        self.assertRegex(self.ctl("get", "a", file, "--explain").stderr, r"waited for a turn in the policy +[\d.]+m?s +\d+ %")
        self.fopd.stop(self.daemon)

    def test_a_fop_that_its_rule_held_back_is_a_slow_one(self):
        self.start(policy="tbf", tbf={"rules": ["slow op=read rate=1/s burst=1"]})
        self.ctl("put", "-", "a", input="bytes")
        for _ in range(2):  # The second one waits for a second, which is longer than log.slow_fop.
            self.ctl("get", "a", self.fopd.path / "a")
        slow = next(each for each in json.loads(self.ctl("trace", "--slow", "--json").stdout)["fops"] if each["op"] == "read")
        self.assertEqual((slow["class"], slow["rule"]), ("slow{op=read}", "slow"))
        self.assertGreater(slow["spent"]["policy"], 0.8 * slow["spent"]["total"])
        self.assertRegex(self.ctl("trace", "--slow").stdout, r"policy \d+ % \(rule slow\)")
        self.assertEqual(slow["waited_for"], "its turn")
        self.assertGreater(slow["waited_s"], 0.8 * slow["spent"]["total"])
        self.assertIn("\nclass slow{op=read}  rule slow\nwaited longest for its turn: ", self.ctl("trace", slow["id"]).stdout)
        event = next(each for each in self.daemon.events("fopd.reqh.slow_fop") if each["fop"] == slow["id"])
        self.assertEqual((event["level"], event["class"], event["rule"]), ("info", "slow{op=read}", "slow"))
        self.assertGreater(event["policy_s"], 0.8 * event["seconds"])
        self.assertEqual(event["waited_for"], "its turn")
        self.assertGreater(event["waited_s"], 0.8 * event["seconds"])
        self.fopd.stop(self.daemon)

    def test_a_client_that_is_killed_leaves_nothing_in_the_queue(self):
        """Nor takes anything of its class."""
        self.start(policy="tbf", tbf={"rules": ["held op=create rate=0"]})
        client = self.start_bench("--op", "create", "--depth", "100")
        queued = lambda: self.daemon.metrics()["fopd_lrs_queued"]
        wait_until(lambda: queued() == 100, "all it wants to do waits")
        client.end()
        wait_until(lambda: queued() == 0, "nothing waits")
        served = [each["served"] for each in json.loads(self.ctl("lrs", "show", "--json").stdout)["classes"]
                  if each["name"] == "held{op=create}"]
        self.assertEqual(served, [0])
        self.fopd.stop(self.daemon)

    def test_trace_lists_what_a_rule_holds_back(self):
        self.start(policy="tbf", tbf={"rules": ["held op=create rate=0"]})
        bench = self.start_bench("--op", "create", "--depth", "20", job="nightly")
        listed = lambda: json.loads(self.ctl("trace", "--json").stdout)
        queued = lambda: [each for each in listed()["fops"] if each["state"] == "queued"]
        wait_until(lambda: len(queued()) == 20, "all that the client wants to do is listed")
        ages = [each["age_s"] for each in queued()]
        self.assertEqual(ages, sorted(ages, reverse=True))
        self.assertEqual(listed()["left_out"], 0)
        for each in queued():
            self.assertEqual((each["op"], each["phase"], each["waits_for"]), ("create", "queued", "the limit of its class"))
        table = self.ctl("trace").stdout.splitlines()
        self.assertEqual(table[0].split()[:4], ["FOP", "OP", "STATE", "AGE"])
        self.assertEqual(table[1].split()[1:3], ["create", "queued"])
        bench.end()
        wait_until(lambda: not queued(), "nothing waits")
        self.fopd.stop(self.daemon)

    def test_what_waits_hears_of_a_change(self):
        self.start(policy="tbf", tbf={"rules": ["held op=write rate=0"]})
        self.ctl("bench", "--op", "read", "--object", "o", "--object-size", "64k", "--seconds", "0.1")
        written = []
        load = threading.Thread(target=lambda: written.append(self.write(seconds=2)))
        load.start()
        wait_until(lambda: self.daemon.metrics()["fopd_lrs_queued"] == 8, "all that the sessions may ask for waits")
        self.reload(policy="fifo")
        load.join()
        self.assertEqual(len(written), 1)
        self.fopd.stop(self.daemon)

    def test_reservations_and_limits_hold_for_the_node(self):
        slow = {"cost_unit": "none", "rules": ["slow op=write limit=20/s"]}
        self.start(policy="mclock", mclock=slow)
        self.assertLessEqual(self.write(seconds=2, jobs=3), 2 * 20 + 2)
        # A write of 4 KiB is two.
        self.reload(policy="mclock", mclock=slow | {"cost_unit": "4KiB"})
        self.assertLessEqual(self.write(seconds=2, jobs=3), 2 * 10 + 2)
        refused = self.reload(code=CONFIG, policy="mclock", mclock={
            "capacity": "900/s", "rules": ["gold job={a b} reservation=400/s", "rest op=write reservation=200/s"]})
        self.assertIn("lrs.mclock.capacity", refused.stderr)
        self.assertIn("1000/s in all (gold 2 x 400/s, rest 200/s)", refused.stderr)
        self.reload(policy="mclock", mclock={"rules": ["slow op=write soft_limit=20/s"]})
        self.assertGreater(self.write(seconds=2, jobs=3), 2 * 20 + 2)
        self.fopd.stop(self.daemon)

    def test_policies_take_over_under_load(self):
        self.start(policy="fifo")
        counts = []
        load = threading.Thread(target=lambda: counts.append(self.write(seconds=4)))
        load.start()
        for policy in ("crr", "orr", "mclock", "trr", "delay", "tbf", "epoch_groups", "mclock", "delay", "deadline", "fifo", "crr"):
            self.assertIn("lrs.policy", self.reload(policy=policy).stdout)
        load.join()
        self.assertGreater(counts[0], 0)
        self.fopd.stop(self.daemon)

    def test_bad_rules_change_nothing(self):
        self.start(policy="tbf", tbf={"rules": ["slow op=write rate=50/s"]})
        for rule, words in (("slow op=write rate=-1/s", "rate"), ("slow colour=red rate=1/s", "colour"),
                            ("slow job={a b rate=1/s", "column"), ("slow op=write rate=1e30/s", "1e30"),
                            ("slow job=" + "*a" * 3000 + " rate=1/s", "column")):
            refused = self.reload(code=CONFIG, policy="tbf", tbf={"rules": [rule]})
            self.assertIn("lrs.tbf.rules[0]", refused.stderr)
            self.assertIn(words, refused.stderr)
        twice = self.reload(code=CONFIG, policy="tbf", tbf={"rules": ["a * rate=1/s", "a * rate=2/s"]})
        self.assertIn("lrs.tbf.rules[1]", twice.stderr)
        self.assertLessEqual(self.write(seconds=1), 50 + 2)
        self.fopd.stop(self.daemon)

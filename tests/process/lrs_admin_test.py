"""The request scheduler as an administrator sees and changes it while the node works."""

import json

from fopd_process import CONFIG, SLOWNESS, USAGE, as_other_user, needs_root, wait_until
from lrs_process import HELD_SECONDS, LrsAdminTestCase
from storage_process import REFUSED, TRY_LATER


class LrsAdminTest(LrsAdminTestCase):
    def settings(self):
        """Values by names that begin with the policy, if it is the policy's setting."""
        return {".".join(filter(None, (each["policy"], each["name"]))): each["value"] for each in self.lrs()["settings"]}

    # -- show --

    def test_the_classes_of_rules_are_shown(self):
        self.start(policy="tbf", tbf={"rules": ["held op=write&job=held rate=0", "free op=write&job=* rate=unlimited"]})
        ended = self.write_meanwhile(seconds=HELD_SECONDS, job="held")
        self.wait_queued(8)
        written = self.write(seconds=0.5, job="busy")
        busy = self.start_writing(job="busy")
        # Rates are those of the last one to two seconds.
        def shows_rates():
            free = self.class_named("free{job=busy op=write}")
            return free["rate"] > 0 and free["bytes_rate"] > 0
        wait_until(shows_rates, "rates are shown")
        busy.end()
        wait_until(lambda: self.lrs()["queued"] == 8, "nothing of the busy job waits")
        held = self.class_named("held{job=held op=write}")
        self.assertEqual((held["queued"], held["served"], held["rate"], held["throttled"]), (8, 0, 0, True))
        self.assertGreater(held["oldest_s"], 0.4)
        self.assertGreater(held["throttled_s"], 0.4)
        free = self.class_named("free{job=busy op=write}")
        self.assertEqual((free["queued"], free["throttled_s"]), (0, 0))
        self.assertGreaterEqual(free["served"], written)
        self.assertGreaterEqual(free["bytes"], written * 4096)
        page = self.ctl("lrs", "show").stdout
        self.assertTrue(page.startswith("policy tbf, 8 queued\n"), page)
        self.assertRegex(page, r"held\{job=held op=write\} +8 .* now ")
        self.daemon.ask("GET", "/v1/lrs")
        self.fopd.write_config(lrs={"policy": "fifo"})
        self.ctl("reload")
        ended()
        self.fopd.stop(self.daemon)

    def test_what_a_class_had_lasts_when_its_policy_forgets_it(self):
        self.start(policy="tbf", tbf={"rules": ["held op=write&job=held rate=20/s burst=1"]})
        self.write(seconds=0.3, job="held")
        name = "held{job=held op=write}"
        before = self.class_named(name)
        self.assertGreater(before["throttled_s"], 0)
        self.ctl("lrs", "set", "fifo")
        self.ctl("lrs", "set", "tbf")
        self.write(seconds=0.1, depth=1, jobs=1, job="held")
        after = self.class_named(name)
        for key in ("served", "bytes", "throttled_s"):
            self.assertGreaterEqual(after[key], before[key])
        self.assertGreater(after["served"], before["served"])
        served = self.daemon.metrics()["fopd_lrs_served_total" + '{class="' + name + '"}']
        self.assertGreaterEqual(served, before["served"])
        self.fopd.stop(self.daemon)

    def test_the_classes_of_crr_are_the_clients(self):
        self.start(policy="crr")
        first = self.write(seconds=0.3)
        second = self.write(seconds=0.3)
        served = sorted(each["served"] for each in self.lrs()["classes"])
        self.assertGreaterEqual(sum(served), first + second)
        for each in self.lrs()["classes"]:
            self.assertRegex(each["name"], "^unauthenticated client=[0-9a-f]{32}$")
        # A request that is described without a client may be of any of them.
        self.assertEqual(json.loads(self.ctl("lrs", "which", "op=read principal=ann", "--json").stdout)["class"], "principal=ann")
        self.fopd.stop(self.daemon)

    def test_sessions_have_the_names_that_crr_has_for_clients(self):
        self.start(policy="crr")
        load = self.start_writing()

        def clients_with_classes():
            found = json.loads(self.ctl("sessions", "--json").stdout)["sessions"]
            return {each["client"] for each in found} & {each["name"].split("=")[-1] for each in self.lrs()["classes"]}
        found = wait_until(clients_with_classes, "a session is of a client that has a class")
        load.end()
        self.assertRegex(found.pop(), "^[0-9a-f]{32}$")
        self.fopd.stop(self.daemon)

    def test_crr_goes_round_by_jobs(self):
        self.start(policy="crr", crr={"by": "job"})
        written = self.write(seconds=0.3, job="dd.0")
        self.assertGreaterEqual(self.class_named("job=dd.0")["served"], written)
        self.assertIn("crr: quantum=1 by=job\n", self.ctl("lrs", "show").stdout)
        self.ctl("lrs", "set", "by=user")
        written = self.write(seconds=0.3, job="dd.0")
        self.assertTrue([each for each in self.lrs()["classes"] if each["name"].startswith("user=")])
        self.assertRegex(self.ctl("lrs", "which", "user=ann").stdout, "class user=ann\n")
        self.fopd.stop(self.daemon)

    def test_without_classes_there_is_one_of_all(self):
        self.start(policy="fifo")
        written = self.write(seconds=0.3)
        lrs = self.lrs()
        self.assertEqual((lrs["policy"], lrs["queued"], len(lrs["classes"])), ("fifo", 0, 1))
        self.assertEqual(lrs["classes"][0]["name"], "all")
        self.assertGreaterEqual(lrs["classes"][0]["served"], written)
        self.fopd.stop(self.daemon)

    # -- set --

    def test_another_policy_acts_on_what_waits_and_lasts_until_a_reload(self):
        self.start(policy="tbf", tbf={"rules": ["held op=write rate=0"]})
        ended = self.write_meanwhile(seconds=HELD_SECONDS)
        self.wait_queued(8)
        hash_before = self.daemon.status()["config"]["hash"]
        done = json.loads(self.ctl("lrs", "set", "crr", "quantum=16", "--json").stdout)
        self.assertEqual(done["changed"], ["lrs.policy", "lrs.crr.quantum"])
        ended()
        self.assertEqual(self.lrs()["policy"], "crr")
        status = self.daemon.status()
        self.assertEqual(status["config"]["differs"], ["lrs.policy", "lrs.crr.quantum"])
        self.assertNotEqual(status["config"]["hash"], hash_before)
        self.assertIn("lrs.crr.quantum", self.ctl("status").stdout)
        self.assertIn("differs from the file: lrs.policy, lrs.crr.quantum", self.ctl("lrs", "show").stdout)
        events = self.daemon.events("fopd.daemon.config_changed")
        self.assertEqual([(each["key"], each["by"]) for each in events],
                         [("lrs.policy", "hand"), ("lrs.crr.quantum", "hand")])

        self.assertEqual(self.ctl("lrs", "set", "crr").stdout.splitlines()[0], "nothing changed")
        reloaded = json.loads(self.ctl("reload", "--json").stdout)
        self.assertEqual(reloaded["changed"], ["lrs.policy", "lrs.crr.quantum"])
        self.assertEqual(self.lrs()["policy"], "tbf")
        status = self.daemon.status()
        self.assertEqual((status["config"]["differs"], status["config"]["hash"]), ([], hash_before))
        self.fopd.stop(self.daemon)

    def test_all_of_the_section_is_set_by_hand_shown_and_saved(self):
        self.start_with("lrs:\n  policy: fifo\n")
        self.assertEqual(self.settings(), {"max_foms": 128, "io_wait_goal": 0.001})
        done = json.loads(self.ctl("lrs", "set", "max_foms=1", "io_wait_goal=none", "--json").stdout)
        self.assertEqual((done["policy"], done["changed"]), ("fifo", ["lrs.max_foms", "lrs.io_wait_goal"]))
        self.assertEqual(self.settings(), {"max_foms": 1, "io_wait_goal": None})
        self.assertTrue(self.ctl("lrs", "show").stdout.startswith("policy fifo, 0 queued\nmax_foms=1 io_wait_goal=none\ndiffers "))

        # It acts at once: of eight all but one wait.
        self.ctl("lrs", "set", "max_foms=128")
        load = self.start_writing()
        self.ctl("lrs", "set", "max_foms=1")
        wait_until(lambda: self.lrs()["queued"] >= 5, "all but one wait")
        load.end()

        self.ctl("lrs", "set", "deadline", "policy=crr", "wait_max=2s", "max_foms=2")
        self.ctl("lrs", "set", "wait_max=3s")
        self.assertEqual(self.settings(), {"max_foms": 2, "io_wait_goal": None, "deadline.policy": "crr", "deadline.wait_max": 3,
                                           "crr.quantum": 1, "crr.by": "client"})
        self.assertIn("\ndeadline: policy=crr wait_max=3s\n", self.ctl("lrs", "show").stdout)

        self.ctl("lrs", "save")
        self.assertIn("  max_foms: 2\n  io_wait_goal: none\n", self.fopd.config_path.read_text())
        self.assertEqual(json.loads(self.ctl("reload", "--json").stdout)["changed"], [])
        self.fopd.stop(self.daemon)

    def test_what_the_file_may_not_say_is_not_set(self):
        self.start(policy="fifo")
        for words, said in ((["fairest"], "lrs.policy"), (["crr", "quantum=0"], "lrs.crr.quantum"),
                            (["max_foms=0"], "lrs.max_foms"), (["quantum=1"], "fifo has nothing to set; known here: max_foms"),
                            (["crr", "policy=tbf"], "quantum, by of crr; max_foms, io_wait_goal of lrs"),
                            (["crr", "quantun=1"], "quantum"), (["fifo", "quantum=1"], "lrs.fifo"),
                            (["crr", "quantum=1\nw: 2"], "is not a value"),
                            (["tbf", "rules=[a job=a rate=-1/s]"], "lrs.tbf.rules[0]")):
            self.assertIn(said, self.ctl("lrs", "set", *words, code=CONFIG).stderr)
        self.ctl("lrs", "set", "crr", "quantum", code=USAGE)
        self.assertIn("quantum is given twice", self.ctl("lrs", "set", "crr", "quantum=5", "quantum=6", code=USAGE).stderr)
        self.assertEqual(self.daemon.ask("POST", "/v1/lrs/set?policy=crr&crr.quantum=5&crr.quantum=6")[0], 400)
        self.assertIn("nothing to set", self.ctl("lrs", "set", code=USAGE).stderr)
        self.assertEqual(self.daemon.ask("POST", "/v1/lrs/set")[0], 400)
        self.assertEqual(self.daemon.ask("POST", "/v1/lrs/set?policy=crr&quantum=1")[0], 400)
        self.assertEqual(self.daemon.ask("GET", "/v1/lrs/set?policy=crr")[0], 405)
        self.assertEqual(self.daemon.status()["config"]["differs"], [])
        self.assertEqual(self.lrs()["policy"], "fifo")
        self.fopd.stop(self.daemon)

    # -- save --

    def test_what_runs_can_be_saved(self):
        self.start_with("lrs:  # Whose turn it is.\n  policy: fifo  # As they come.\n\n# Who it is.\n")
        self.assertIn("has these settings already", self.ctl("lrs", "save").stdout)
        before = self.fopd.config_path.read_text()
        self.ctl("lrs", "set", "tbf")
        self.ctl("lrs", "rule", "add", "a job={\"x y\" z} rate=1/s")
        self.assertIn("lrs.policy, lrs.tbf.rules", self.ctl("lrs", "save").stdout)
        after = self.fopd.config_path.read_text()
        self.assertEqual(after, before.replace(
            "lrs:  # Whose turn it is.\n  policy: fifo  # As they come.\n",
            'lrs:\n  policy: tbf\n  tbf:\n    rules: ["a job={\\"x y\\" z} rate=1/s"]\n'))
        self.assertEqual(self.fopd.config_path.stat().st_mode & 0o777, 0o640)
        self.assertEqual(self.daemon.status()["config"]["differs"], [])
        self.assertEqual(json.loads(self.ctl("reload", "--json").stdout)["changed"], [])
        self.fopd.stop(self.daemon)
        self.daemon = self.fopd.start_ready()
        self.assertEqual(self.lrs()["policy"], "tbf")
        self.fopd.stop(self.daemon)

    def test_a_file_that_says_something_else_meanwhile_is_not_written(self):
        self.start_with("lrs:\n  policy: fifo\n")
        self.ctl("lrs", "set", "crr")
        text = self.fopd.config_path.read_text()
        changed = text.replace("policy: fifo", "policy: orr")
        self.fopd.config_path.write_text(changed)
        self.assertIn("lrs.policy was changed since it was read", self.ctl("lrs", "save", code=REFUSED).stderr)
        self.assertEqual(self.fopd.config_path.read_text(), changed)
        self.fopd.config_path.write_text(text + "nonsense: 1\n")
        self.assertIn("nonsense", self.ctl("lrs", "save", code=REFUSED).stderr)
        # Elsewhere it may have changed.
        elsewhere = text.replace("\nlog: {", "\nlog: {\"slow_fop\": \"7s\", ")
        self.assertNotEqual(elsewhere, text)
        self.fopd.config_path.write_text(elsewhere)
        self.ctl("lrs", "save")
        self.assertEqual(self.fopd.config_path.read_text(), elsewhere.replace("policy: fifo", "policy: crr"))
        self.assertEqual(json.loads(self.ctl("reload", "--json").stdout)["changed"], ["log.slow_fop"])
        self.fopd.stop(self.daemon)

    def test_a_file_that_is_not_by_lines_is_not_written(self):
        self.start(policy="fifo")
        self.ctl("lrs", "set", "crr")
        before = self.fopd.config_path.read_text()
        self.assertIn("below each other", self.ctl("lrs", "save", code=REFUSED).stderr)
        self.assertEqual(self.fopd.config_path.read_text(), before)
        self.assertEqual(self.daemon.ask("POST", "/v1/lrs/saved")[0], 409)
        self.assertEqual(self.daemon.status()["config"]["differs"], ["lrs.policy"])
        self.fopd.stop(self.daemon)

    @needs_root
    def test_who_may_not_write_the_file_may_not_save(self):
        self.start_with("lrs:\n  policy: fifo\n")
        self.ctl("lrs", "set", "crr")
        before = self.fopd.config_path.read_text()
        self.fopd.config_path.chmod(0o644)
        self.daemon.socket_path.chmod(0o666)
        for each in (self.fopd.path, self.directory):
            each.chmod(0o755)
        refused = self.ctl("lrs", "save", code=77, **as_other_user())
        self.assertIn("fopd.yaml", refused.stderr)
        self.assertEqual(self.fopd.config_path.read_text(), before)
        self.fopd.stop(self.daemon)

    def test_who_is_over_its_limit_is_told_so(self):
        self.start(policy="tbf", tbf={"rules": ["held job=held rate=0"]})
        told = self.ctl("--timeout", 2 * SLOWNESS, "stat", "o", job="held", code=TRY_LATER).stderr
        self.assertIn("over its limit", told)
        self.fopd.stop(self.daemon)

    # -- figures for machines --

    def test_totals_of_a_rule_go_on_when_it_is_back_in_force(self):
        self.start(policy="tbf", tbf={"rules": ["free op=write&job=* rate=unlimited"]})
        series = 'fopd_lrs_rule_served_total{rule="free"}'
        written = self.write(seconds=0.2, job="busy")
        wait_until(lambda: self.daemon.metrics()[series] >= written, "the writes are in the metrics")
        before = self.daemon.metrics()[series]
        self.ctl("lrs", "set", "crr")
        wait_until(lambda: series not in self.daemon.metrics(), "crr has no rules")
        self.ctl("lrs", "set", "tbf")
        wait_until(lambda: series in self.daemon.metrics(), "the rule is back in force")
        self.assertGreaterEqual(self.daemon.metrics()[series], before)
        self.ctl("lrs", "rule", "del", "free")
        wait_until(lambda: series not in self.daemon.metrics(), "the rule is gone")
        self.ctl("lrs", "rule", "add", "free op=write&job=* rate=unlimited")
        wait_until(lambda: series in self.daemon.metrics(), "the rule was added again")
        self.assertGreaterEqual(self.daemon.metrics()[series], before)
        self.fopd.stop(self.daemon)

    def test_metrics_and_log_tell_who_is_held_back(self):
        self.start(policy="tbf", tbf={"rules": ["held op=write&job=held rate=0", "free op=write&job=* rate=unlimited"]})
        written = self.write(seconds=0.3, job="busy")
        ended = self.write_meanwhile(seconds=HELD_SECONDS, job="held")
        held, free = '{class="held{job=held op=write}"}', '{class="free{job=busy op=write}"}'
        wait_until(lambda: self.daemon.metrics()["fopd_lrs_class_queued" + held] == 8, "all that waits is in the metrics")
        wait_until(lambda: self.daemon.metrics()["fopd_lrs_throttled_seconds_total" + held] > 0.1, "it is held back")
        metrics = self.daemon.metrics()
        self.assertGreaterEqual(metrics["fopd_lrs_served_total" + free], written)
        self.assertGreaterEqual(metrics["fopd_lrs_served_bytes_total" + free], written * 4096)
        self.assertEqual(metrics["fopd_lrs_served_total" + held], 0)
        self.assertGreaterEqual(metrics['fopd_lrs_rule_served_total{rule="free"}'], written)
        self.assertEqual(metrics['fopd_lrs_rule_queued{rule="held"}'], 8)
        self.assertGreater(metrics['fopd_lrs_rule_throttled_seconds_total{rule="held"}'], 0.1)
        self.assertIn('fopd_lrs_rule_served_total{rule="default"}', metrics)
        told = self.daemon.wait_event("fopd.lrs.class_throttled")
        self.assertEqual({each["class"] for each in told}, {"held{job=held op=write}"})
        self.assertEqual(told[0]["queued"], 8)
        self.assertGreater(told[0]["oldest_s"], 0)
        self.assertEqual(told[0]["ops_per_s"], 0)
        self.assertGreater(metrics["fopd_lrs_class_oldest_seconds" + held], 0.1)
        # What it had is not lost with its rule and its policy.
        self.ctl("lrs", "set", "fifo")
        ended()
        wait_until(lambda: self.daemon.metrics()['fopd_lrs_served_total{class="all"}'] > 0, "the new policy's class")
        self.assertGreaterEqual(self.daemon.metrics()["fopd_lrs_served_total" + free], written)
        wait_until(lambda: self.daemon.metrics()["fopd_lrs_class_queued" + held] == 0, "nothing waits any more")
        self.fopd.stop(self.daemon)

    def test_top_shows_the_classes(self):
        self.start(policy="tbf", tbf={"rules": ["held op=write&job=held rate=0"]})
        ended = self.write_meanwhile(seconds=HELD_SECONDS, job="held")
        self.wait_queued(8)
        top = json.loads(self.ctl("top", "--interval", "0.3", "--count", "1", "--json").stdout)
        first = top["classes"][0]
        self.assertEqual((first["name"], first["queued"], first["served_per_s"]), ("held{job=held op=write}", 8, 0))
        self.assertGreater(first["throttled_share"], 0.5)
        self.assertRegex(self.ctl("top", "--interval", "0.1", "--count", "1").stdout, r"held\{job=held op=write\} +8 ")
        self.ctl("lrs", "set", "fifo")
        ended()
        self.fopd.stop(self.daemon)

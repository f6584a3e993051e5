"""The rules of the request scheduler, of each policy that has some, as an administrator changes them while the node works."""

import json
import time

from fopd_process import CONFIG, USAGE, wait_until
from lrs_process import HELD_SECONDS, LrsAdminTestCase
from storage_process import NOT_FOUND, REFUSED


class LrsRulesTest(LrsAdminTestCase):
    def test_rules_come_change_and_go(self):
        self.start(policy="tbf", tbf={"rules": ["any   op=write rate=unlimited"]})
        version, texts = self.rules()
        self.assertEqual(texts, ["any op=write rate=unlimited", "default * rate=unlimited"])
        self.ctl("lrs", "rule", "add", "held op=write&job=held rate=0 rank=5")
        ended = self.write_meanwhile(seconds=HELD_SECONDS, job="held")
        self.wait_queued(8)
        self.write(seconds=0.2)
        served = self.class_named("any{op=write}")["served"]
        self.assertGreater(served, 0)
        self.ctl("lrs", "rule", "change", "held", "rate=unlimited")
        ended()
        self.assertGreater(self.class_named("held{job=held op=write}")["served"], 0)
        # Who is of another class keeps what it had.
        self.assertGreaterEqual(self.class_named("any{op=write}")["served"], served)
        self.assertEqual(self.rules(), (version + 2, ["held op=write&job=held rate=unlimited rank=5",
                                                      "any op=write rate=unlimited", "default * rate=unlimited"]))
        self.ctl("lrs", "rule", "del", "held")
        self.assertEqual(self.rules(), (version + 3, texts))
        self.fopd.stop(self.daemon)

    def test_a_bad_change_of_rules_changes_nothing(self):
        self.start(policy="tbf", tbf={"rules": ["a job=a rate=1/s"]})
        before = self.rules()
        file = self.directory / "rules"
        for text, said in (("b job=b rate=1/s\n\n# c\nc job=c rate=-1/s\n", "line 4, column 14"),
                           ("b job=b rate=1/s\nb job=c rate=1/s\n", "line 2"),
                           ("default job=a rate=1/s\n", "line 1")):
            file.write_text(text)
            self.assertIn(said, self.ctl("lrs", "rule", "load", file, code=CONFIG).stderr)
        file.write_bytes(b"\xef\xbb\xbfb\tjbo=b\trate=1/s\r\n\r\nc job=c\r\n")
        told = self.ctl("lrs", "rule", "load", file, code=CONFIG).stderr
        self.assertIn("line 1, column 3", told)
        self.assertIn("line 3, column 8", told)
        for words, said in ((["add", "a job=b rate=1/s"], "already"), (["add", "b job=b"], "column"),
                            (["add", "b job=b rate=1/s rate=2/s"], "column 18"), (["del", "default"], "default")):
            self.assertIn(said, self.ctl("lrs", "rule", *words, code=CONFIG).stderr)
        for words in (["change", "b rate=1/s"], ["del", "b"]):
            self.assertIn("no rule", self.ctl("lrs", "rule", *words, code=NOT_FOUND).stderr)
            error = json.loads(self.ctl("--json", "lrs", "rule", *words, code=NOT_FOUND).stderr)
            self.assertEqual((error["code"], error["exit_code"]), ("not_found", NOT_FOUND))
        self.assertEqual(self.rules(), before)
        self.assertEqual(self.daemon.status()["config"]["differs"], [])
        for mib in (5, 9):
            file.write_text("#" * (mib << 20) + "\nb job=b rate=1/s\n")
            self.assertIn("more than 5 MiB", self.ctl("lrs", "rule", "load", file, code=REFUSED).stderr)
        for words in (["rule", "load", "/dev/zero"], ["set", "tbf", "--rules", "/dev/zero"]):
            self.assertIn("/dev/zero: it has more than 5 MiB", self.ctl("lrs", *words, code=REFUSED).stderr)
        self.ctl("lrs", "rule", "load", self.directory, code=REFUSED)
        self.ctl("lrs", "rule", "load", self.directory / "none", code=REFUSED)
        self.assertEqual(self.rules(), before)
        self.fopd.stop(self.daemon)

    def test_a_file_of_rules_replaces_all_of_the_version_it_was_made_for(self):
        self.start(policy="fifo")
        version, _ = self.rules()
        file = self.directory / "rules"
        file.write_text("# Of jobs.\nsmall op=read&size<64k rate=20000/s\njobs job=* rate=10/s\n")
        loaded = self.ctl("lrs", "rule", "load", file, "--if-version", version)
        self.assertIn(f"3 rules, version {version + 1}", loaded.stdout)
        self.assertIn("the policy is fifo, which has no rules", loaded.stdout)
        refused = self.ctl("lrs", "rule", "load", file, "--if-version", version, code=REFUSED)
        self.assertIn(f"the rules have version {version + 1} meanwhile, not {version}", refused.stderr)
        for words in (["add", "b * rate=1/s"], ["change", "small rate=1/s"], ["del", "small"]):
            self.ctl("lrs", "rule", *words, "--if-version", version, code=REFUSED)
        # What is listed can be loaded again.
        page = self.ctl("lrs", "rule", "list").stdout
        self.assertTrue(page.startswith(f"# rules of tbf, version {version + 1}\nsmall op=read&size<64KiB rate=20000/s\njobs "), page)
        self.ctl("lrs", "rule", "load", "-", input=page)
        self.assertEqual(self.rules()[0], version + 2)
        self.assertIn(page.split("\n", 1)[1], self.ctl("lrs", "rule", "list").stdout)
        self.fopd.stop(self.daemon)

    def test_many_rules_can_be_loaded(self):
        self.start_with("lrs:\n  policy: tbf\n")
        text = "".join(f"rule{each:04} job={'x' * 4070}{each:04} rate=1/s\n" for each in range(1024))
        self.assertEqual(len(text), 1024 * 4097)
        self.ctl("lrs", "rule", "load", "-", input=text)
        self.assertIn("longer than 1MiB", self.ctl("lrs", "save", code=REFUSED).stderr)
        self.assertEqual(len(self.rules()[1]), 1025)
        self.assertIn("1024 rules", self.ctl("lrs", "rule", "load", "-", input=text + "one * rate=1/s\n", code=CONFIG).stderr)
        self.fopd.stop(self.daemon)

    def test_rules_look_at_where_a_client_comes_from(self):
        self.start(policy="tbf", tbf={"rules": ["here op=write&address=127.0.0.1 rate=unlimited by={address network}",
                                                "else op=write rate=unlimited"]})
        written = self.write(seconds=0.2)
        self.assertGreaterEqual(self.class_named("here{address=127.0.0.1 network=tcp}")["served"], written)
        for expression, is_held in (("address=127.0.0.0/8", True), ("address!=10.0.0.0/8", True), ("network=tcp", True),
                                    ("address=127.0.0.2..127.0.0.9", False), ("network=verbs", False)):
            self.ctl("lrs", "rule", "change", f"here op=write&{expression} rate=0 by=none")
            ended = self.write_meanwhile(seconds=HELD_SECONDS)
            if is_held:
                self.wait_queued(8)
                self.assertTrue(self.class_named("here")["throttled"])
            else:
                ended()
            self.ctl("lrs", "rule", "change", "here rate=unlimited")
            ended()
        self.fopd.stop(self.daemon)

    # -- which --

    def test_it_is_told_which_class_a_fop_would_be_of(self):
        self.start(policy="tbf", tbf={"rules": ["small op=read&size<64k rate=20000/s", "jobs job=* rate=10/s by={job user}"]})
        which = json.loads(self.ctl("lrs", "which", "op=read size=4k job=dd.0", "--json").stdout)
        self.assertEqual((which["class"], which["by_rules"]["rule"]), ("small{op=read}", "small"))
        page = self.ctl("lrs", "which", "op=read", "size=64k", "job=dd.0", "user=ann").stdout
        self.assertEqual(page, "policy tbf: class jobs{job=dd.0 user=ann}\nrule jobs job=* rate=10/s by={job user}\n")
        self.ctl("lrs", "set", "fifo")
        page = self.ctl("lrs", "which", "op=read size=1").stdout
        self.assertEqual(page, "policy fifo: class all\nwith tbf: class small{op=read}\n"
                               "rule small op=read&size<64KiB rate=20000/s\n")
        self.assertIn("colour", self.ctl("lrs", "which", "colour=red", code=USAGE).stderr)
        self.fopd.stop(self.daemon)

    # -- epoch_groups --

    def test_groups_have_turns_and_are_shown_and_set(self):
        self.start(policy="epoch_groups", max_foms=1, io_wait_goal="none", epoch_groups={"rules": ["heavy job=heavy weight=3"]})
        ended = [self.write_meanwhile(seconds=10, depth=10, job=job) for job in ("heavy", "a", "b")]
        names = ["heavy{job=heavy}", "default{job=a}", "default{job=b}"]

        def turns(name):
            classes = {each["name"]: each for each in self.lrs()["classes"]}
            return classes[name]["turns"] if name in classes else {"taken": 0}
        wait_until(lambda: all(turns(name)["taken"] > 2 for name in names), "all have turns")
        self.assertEqual([turns(name)["weight"] for name in names], [3, 1, 1])
        wait_until(lambda: any("queued_on_all_nodes" in turns(name) for name in names), "what waits in all is known")
        self.assertIn("ON ALL NODES", self.ctl("lrs", "show").stdout)

        page = self.ctl("lrs", "which", "op=write job=a").stdout
        self.assertEqual(page, "policy epoch_groups: class default{job=a}\nrule default * by=job\n")
        page = self.ctl("lrs", "rule", "list").stdout
        self.assertRegex(page, "^# rules of epoch_groups, version [0-9]+\nheavy ")
        # Settings apply to the policy that is there.
        taken = turns(names[1])["taken"]
        self.ctl("lrs", "set", "epoch_groups", "length=5ms", "at_end=pause", "others=wait")
        self.assertGreaterEqual(turns(names[1])["taken"], taken)
        self.assertIn("epoch_groups: length=5ms at_end=pause others=wait\n", self.ctl("lrs", "show").stdout)
        for words, said in ((["length=0s"], "lrs.epoch_groups.length"), (["others=none"], "lrs.epoch_groups.others"),
                            (['rules=["a job=a rate=1/s"]'], "lrs.epoch_groups.rules[0]")):
            self.assertIn(said, self.ctl("lrs", "set", "epoch_groups", *words, code=CONFIG).stderr)
        for words, said in ((["add", "heavy job=b"], "already"), (["change", "heavy weight=0"], "column 14"),
                            (["del", "default"], "default")):
            self.assertIn(said, self.ctl("lrs", "rule", *words, code=CONFIG).stderr)
        self.ctl("lrs", "rule", "add", "both job={a b} by=none weight=2")
        self.assertEqual(self.rules()[1], ["heavy job=heavy weight=3", "both job={a b} weight=2 by=none", "default * by=job"])
        wait_until(lambda: turns("both")["taken"] > 1, "the new group has turns")
        self.ctl("lrs", "rule", "load", "-", input=page)
        self.assertEqual(self.rules()[1], ["heavy job=heavy weight=3", "default * by=job"])
        self.ctl("lrs", "rule", "del", "heavy")
        self.ctl("lrs", "set", "deadline", "policy=epoch_groups", "wait_max=100ms")
        wait_until(lambda: turns(names[1])["taken"] > 1, "below deadline it has turns, too")
        self.assertEqual(self.daemon.status()["config"]["differs"],
                         ["lrs.policy", "lrs.deadline.policy", "lrs.deadline.wait_max", "lrs.epoch_groups.length",
                          "lrs.epoch_groups.at_end", "lrs.epoch_groups.others", "lrs.epoch_groups.rules"])
        for each in ended:
            each()
        self.fopd.stop(self.daemon)

    # -- mclock --

    def test_classes_and_rules_of_mclock_are_shown_and_set_as_a_whole(self):
        self.start(policy="mclock", mclock={"rules": ["held op=write&job=held limit=1/s", "free op=write&job=* weight=2"]})
        # More than are served until their class is looked at.
        ended = self.write_meanwhile(seconds=HELD_SECONDS, depth=10, job="held")
        wait_until(lambda: self.lrs()["queued"] > 0, "something waits")
        written = self.write(seconds=0.3, job="busy")
        free = self.class_named("free{job=busy op=write}")
        self.assertGreaterEqual(free["served"], written)
        self.assertEqual((free["queued"], free["throttled_s"]), (0, 0))
        held = self.class_named("held{job=held op=write}")
        self.assertTrue(held["throttled"])
        self.assertGreater(held["throttled_s"], 0.2)
        name = '{class="held{job=held op=write}"}'
        wait_until(lambda: self.daemon.metrics()["fopd_lrs_throttled_seconds_total" + name] > 0.1, "it is held back")

        page = self.ctl("lrs", "which", "op=write job=held").stdout
        self.assertEqual(page, "policy mclock: class held{job=held op=write}\nrule held op=write&job=held limit=1/s\n")
        page = self.ctl("lrs", "rule", "list").stdout
        self.assertRegex(page, "^# rules of mclock, version [0-9]+\nheld ")
        self.assertEqual(len(page.splitlines()), 4)
        for words, said in ((['rules=["a job=a weight=0"]'], "lrs.mclock.rules[0]"),
                            (["capacity=5/s", 'rules=["a job=a reservation=10/s"]'], "lrs.mclock.capacity")):
            self.assertIn(said, self.ctl("lrs", "set", "mclock", *words, code=CONFIG).stderr)
        self.assertEqual(self.daemon.status()["config"]["differs"], [])

        done = json.loads(self.ctl("lrs", "set", "mclock", 'rules=["each op=write"]', "--json").stdout)
        self.assertEqual(done["changed"], ["lrs.mclock.rules"])
        ended()
        self.assertGreater(self.class_named("each{op=write}")["served"], 0)
        self.ctl("lrs", "set", "tbf")
        self.ctl("lrs", "rule", "add", "a job=a rate=1/s")
        self.fopd.stop(self.daemon)

    def test_a_policy_takes_over_together_with_its_rules(self):
        self.start(policy="tbf", tbf={"rules": ["held op=write&job=held rate=0"]})
        file = self.directory / "shares"
        file.write_text("held op=write&job=held limit=1/s\nb jbo=b\nc job=c weight=0\n")
        told = self.ctl("lrs", "set", "mclock", "--rules", file, code=CONFIG).stderr
        self.assertIn("line 2, column 3", told)
        self.assertIn("line 3, column 16", told)
        file.write_text("held op=write&job=held reservation=5/s by=none\n")
        self.assertIn("lrs.mclock.capacity", self.ctl("lrs", "set", "mclock", "--rules", file, code=CONFIG).stderr)
        self.assertIn("fifo has no rules", self.ctl("lrs", "set", "fifo", "--rules", file, code=CONFIG).stderr)
        self.assertEqual(self.daemon.status()["config"]["differs"], [])

        # From one limit to another, and none of what waits passes between them.
        file.write_text("held op=write&job=held limit=1/s\n")
        ended = self.write_meanwhile(seconds=HELD_SECONDS, depth=10, job="held")
        self.wait_queued(20)
        begun = time.monotonic()
        done = json.loads(self.ctl("lrs", "set", "mclock", "--rules", file, "--json").stdout)
        self.assertEqual(done["changed"], ["lrs.policy", "lrs.mclock.rules"])
        self.assertEqual(self.rules()[1], ["held op=write&job=held limit=1/s", "default *"])
        served = self.class_named("held{job=held op=write}")["served"]
        self.assertLessEqual(served, 3 + (time.monotonic() - begun))
        self.ctl("lrs", "set", "--rules", "-", input="held op=write&job=held limit=100/s\n")
        ended()
        self.ctl("lrs", "set", "deadline", "policy=tbf", "--rules", "-", input="a job=a rate=1/s\n")
        self.assertEqual(self.rules()[1], ["a job=a rate=1/s", "default * rate=unlimited"])
        self.fopd.stop(self.daemon)

    def test_rules_of_mclock_come_change_and_go(self):
        self.start(policy="mclock", mclock={"capacity": "1000/s", "rules": ["held op=write&job=held limit=1/s"]})
        version, texts = self.rules()
        self.assertEqual(texts, ["held op=write&job=held limit=1/s", "default *"])
        ended = self.write_meanwhile(seconds=HELD_SECONDS, job="held")
        wait_until(lambda: self.lrs()["queued"] > 0, "something waits")
        # What is refused changes nothing.
        for words, said in ((["add", "held job=b"], "already"), (["add", "b job=b weight=0"], "column 16"),
                            (["change", "held rate=1/s"], "column 6"), (["del", "default"], "default"),
                            (["add", "b job={a b} reservation=600/s"], "b 2 x 600/s"),
                            (["change", "held reservation=2/s"], "below the reservation")):
            self.assertIn(said, self.ctl("lrs", "rule", *words, code=CONFIG).stderr)
        for words in (["change", "b weight=2"], ["del", "b"]):
            self.assertIn("no rule", self.ctl("lrs", "rule", *words, code=NOT_FOUND).stderr)
        text = "a job=a weight=2\n# of b\nb job=b rate=1/s\n"
        self.assertIn("line 3, column 9", self.ctl("lrs", "rule", "load", "-", input=text, code=CONFIG).stderr)
        self.assertEqual(self.rules(), (version, texts))
        self.assertEqual(self.daemon.status()["config"]["differs"], [])

        changed = self.ctl("lrs", "rule", "change", "held limit=none weight=4", "--if-version", version)
        self.assertIn(f"2 rules, version {version + 1}\n", changed.stdout)
        ended()
        self.ctl("lrs", "rule", "del", "held", "--if-version", version, code=REFUSED)
        self.ctl("lrs", "rule", "add", "gold job={a b} reservation=500/s soft_limit=800/s rank=1")
        self.assertEqual(self.rules(), (version + 2, ["gold job={a b} reservation=500/s soft_limit=800/s rank=1",
                                                      "held op=write&job=held weight=4", "default *"]))
        self.assertEqual(self.daemon.status()["config"]["differs"], ["lrs.mclock.rules"])
        # What is listed can be loaded again.
        page = self.ctl("lrs", "rule", "list").stdout
        self.ctl("lrs", "rule", "del", "gold")
        self.ctl("lrs", "rule", "load", "-", input=page)
        self.assertEqual(self.ctl("lrs", "rule", "list").stdout, page.replace(str(version + 2), str(version + 4)))

        written = self.write(seconds=0.3, job="a")
        gold = self.class_named("gold{job=a}")
        shares = gold["shares"]
        self.assertEqual((shares["reservation"], shares["weight"], shares["soft_limit"]), (500, 1, 800))
        self.assertNotIn("limit", shares)
        self.assertEqual(shares["served_reserved"] + shares["served_by_weight"] + shares["served_over_limit"], gold["served"])
        self.assertGreaterEqual(gold["served"], written)
        self.assertGreater(shares["served_reserved"], 0)
        shown = self.ctl("lrs", "show", "--wide").stdout
        self.assertRegex(shown, "RESERVED +BY WEIGHT +OVER LIMIT +GRANTED\n")
        self.assertRegex(shown, r"gold\{job=a\} .* 500/s x1 soft 800/s\n")

        # A restart forgets the changes, and no version comes again.
        before = self.rules()[0]
        self.fopd.stop(self.daemon)
        self.daemon = self.fopd.start_ready()
        after, listed = self.rules()
        self.assertEqual(listed, texts)
        self.assertGreater(after, before)
        self.fopd.stop(self.daemon)

"""The request scheduler as an administrator sees and changes it while the node works."""

import json
import threading
import time

from fopd_process import CONFIG, SLOWNESS, USAGE, as_other_user, needs_root, wait_until
from lrs_process import LrsTestCase

REFUSED, NOT_FOUND = 1, 66
TRY_LATER = 75
# Of a bench whose writes are held: each of its calls has begun by then.
HELD_SECONDS = 2


class LrsAdminTest(LrsTestCase):
    def start(self, **lrs):
        super().start(**lrs)
        self.ctl("bench", "--op", "read", "--object", "o", "--object-size", "64k", "--seconds", "0.1")

    def write_meanwhile(self, **options):
        """Begins to write; what is returned waits for the end, and has the number of writes then."""
        written = []
        load = threading.Thread(target=lambda: written.append(self.write(**options)))
        load.start()

        def ended():
            load.join()
            self.assertEqual(len(written), 1)
            return written[0]
        return ended

    def lrs(self):
        return json.loads(self.ctl("lrs", "show", "--json").stdout)

    def settings(self):
        """Values by names that begin with the policy, if it is the policy's setting."""
        return {".".join(filter(None, (each["policy"], each["name"]))): each["value"] for each in self.lrs()["settings"]}

    def class_named(self, name):
        found = [each for each in self.lrs()["classes"] if each["name"] == name]
        return found[0] if found else None

    def wait_queued(self, count):
        wait_until(lambda: self.lrs()["queued"] == count, f"{count} requests wait")

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

    # -- rules --

    def rules(self):
        listed = json.loads(self.ctl("lrs", "rule", "list", "--json").stdout)
        return listed["version"], [each["text"] for each in listed["rules"]]

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

    # -- save --

    def start_with(self, lrs):
        """With a file as people write it."""
        self.fopd.write_config()
        others = "".join(f"{key}: {json.dumps(value)}\n" for key, value in json.loads(self.fopd.config_path.read_text()).items())
        self.fopd.config_path.write_text("# A node to test with.\n" + lrs + others + "# The end.\n")
        self.fopd.config_path.chmod(0o640)
        self.daemon = self.fopd.start_ready()
        self.server = self.daemon.events("fopd.fabric.listening")[0]["address"]

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

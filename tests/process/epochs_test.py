"""Daemons that move from epoch to epoch together, from outside: they join, they are killed, stopped and drained, and they
refuse what does not fit."""

import json
import signal
import unittest
from pathlib import Path

from epochs_process import EpochsTestCase
from fopd_process import CONFIG, DONE, SCHEME, can_mount, run_fopd, stopped_thread, wait_until


class PartlyFailedNodeTest(EpochsTestCase):
    """No epoch is missed and nobody is evicted, so a busy machine must not look like a silent member."""

    times = {"timeout": "4s", "grace": "1s", "root_silent": "2s"}

    @unittest.skipUnless(can_mount(), "mounts are not allowed here")
    def test_a_full_disk_at_the_root_delays_members_and_no_epoch(self):
        node = self.nodes["a"]
        # A small file system that only the root sees.
        script = 'mount -t tmpfs -o size=4M none "$0" && exec "$@"'
        daemons = {"a": node.start_ready(program=("unshare", "--mount", "sh", "-c", script, node.data_dir)),
                   "b": self.nodes["b"].start_ready()}
        self.wait_members(daemons.values(), "ab")
        self.wait_epoch_after(daemons["b"], self.epochs(daemons["b"])["epoch"])
        failures = len(daemons["b"].events("fopd.eh.no_epochs"))
        ballast = Path(f"/proc/{daemons['a'].pid}/root{node.data_dir}/ballast")
        with ballast.open("wb", buffering=0) as file, self.assertRaisesRegex(OSError, "No space left"):
            while True:
                file.write(bytes(4096))
        before = self.epochs(daemons["b"])
        daemons["c"] = self.nodes["c"].start_ready()
        refused = daemons["a"].wait_event("fopd.eh.view_not_written", count=2)
        self.assertEqual({each["outcome"] for each in refused}, {"refused"})
        self.wait_epoch_after(daemons["b"], self.epochs(daemons["b"])["epoch"] + 1)
        self.assertEqual(self.epochs(daemons["b"])["view"], before["view"])
        self.assertEqual(self.members(daemons["c"]), ())
        self.assertEqual(len(daemons["b"].events("fopd.eh.no_epochs")), failures)
        ballast.unlink()
        self.assert_all_move(daemons)

    def test_a_locality_that_hangs_is_left_out_and_its_node_is_not(self):
        self.nodes["b"].write_config(localities={"cores": 2})
        daemons = self.start_all()
        before = self.epochs(daemons["a"])
        with stopped_thread(daemons["b"], "fopd-loc-1"):
            # More than the epoch to which it may have contributed already.
            self.wait_epoch_after(daemons["a"], self.epochs(daemons["a"])["epoch"] + 2)
            self.assertEqual(self.epochs(daemons["a"])["view"], before["view"])
            self.assertEqual(self.members(daemons["a"]), self.names)
        self.assertEqual(daemons["a"].events("fopd.eh.evicts"), [])
        self.assert_all_move(daemons)


class EpochsTest(EpochsTestCase):
    def test_three_daemons_are_in_the_same_epochs(self):
        daemons = self.start_all()
        first = self.epochs(daemons["b"])
        self.assertEqual((first["kind"], first["root"], first["last_error"]), ("peers", "a", ""))
        later = self.wait_epoch_after(daemons["b"], first["epoch"])
        self.assertLessEqual(abs(later - self.epochs(daemons["c"])["epoch"]), 2)
        page = daemons["a"].ctl("epoch", "show").stdout
        self.assertRegex(page, r"(?m)^root: a$")
        self.assertRegex(page, r"(?m)^b +(member|ready)$")
        figures = daemons["a"].metrics()
        self.assertEqual(figures["fopd_epoch_members"], 3)
        self.assertGreater(figures["fopd_epoch_seconds_count"], 0)
        for name, daemon in daemons.items():
            self.nodes[name].stop(daemon)

    def test_each_epoch_is_in_the_log_at_level_debug(self):
        daemons = self.start_all()
        self.assertEqual(daemons["b"].events("fopd.eh.epoch"), [])
        before = self.epochs(daemons["b"])["epoch"]
        self.assertEqual(daemons["b"].ctl("log-level", "debug").returncode, DONE)
        seen = daemons["b"].wait_event("fopd.eh.epoch", count=3)
        numbers = [each["epoch"] for each in seen]
        self.assertEqual(numbers, sorted(set(numbers)))
        self.assertGreater(numbers[0], before)
        self.assertTrue(all(each["waited_us"] >= 0 for each in seen))

    def test_a_list_of_members_that_is_deleted_is_missed_and_epochs_go_on(self):
        daemons = {name: self.nodes[name].start_ready() for name in "ab"}
        self.wait_members(daemons.values(), "ab")
        before = self.epochs(daemons["b"])
        (self.nodes["a"].data_dir / "epochs.view").unlink()
        # It wants to join, so the root looks at the list.
        daemons["c"] = self.nodes["c"].start_ready()
        lost = daemons["a"].wait_event("fopd.eh.view_lost")[0]
        self.assertEqual((lost["view"], lost["found"]), (before["view"], 0))
        self.assertIn("older list of members, or none", self.epochs(daemons["a"])["last_error"])
        self.wait_epoch_after(daemons["b"], self.epochs(daemons["b"])["epoch"] + 1)
        self.assertEqual(self.epochs(daemons["b"])["view"], before["view"])
        self.assertEqual(self.members(daemons["c"]), ())
        # What the event says is to be done.
        for daemon in daemons.values():
            daemon.signal(signal.SIGTERM)
        for name, daemon in daemons.items():
            self.nodes[name].expect_end(daemon)
        self.assert_all_move(self.start_all())

    def test_one_that_is_killed_or_hangs_is_evicted_and_returns(self):
        daemons = self.start_all()
        daemons["c"].kill()
        self.wait_members([daemons["a"], daemons["b"]], "ab")
        evicted = daemons["a"].wait_event("fopd.eh.evicts")[0]
        self.assertEqual(evicted["member"], "c")
        self.assertIn(evicted["reason"], ("silent", "did not acknowledge the epoch"))
        # Each member logs the view without it.
        for name in "ab":
            seen = wait_until(lambda name=name: [each for each in daemons[name].events("fopd.eh.view")
                                                 if each["view"] >= evicted["view"]], f"{name} logs the view without c")
            self.assertEqual((seen[0]["members"], seen[0]["root"]), (2, "a"))
        self.wait_epoch_after(daemons["b"], self.epochs(daemons["b"])["epoch"])
        self.assertIn("2 of 3 daemons take part in epochs", daemons["b"].ctl("health").stdout)

        daemons["c"] = self.nodes["c"].start_ready()
        self.wait_members(daemons.values(), "abc")

        daemons["b"].signal(signal.SIGSTOP)
        self.wait_members([daemons["a"], daemons["c"]], "ac")
        daemons["b"].signal(signal.SIGCONT)
        self.wait_members(daemons.values(), "abc")
        daemons["b"].wait_event("fopd.eh.epochs_again")

    def test_one_is_killed_while_it_joins_and_the_root_while_it_lets_it_in(self):
        daemons = {name: self.nodes[name].start_ready() for name in "ab"}
        self.wait_members(daemons.values(), "ab")
        for event in ("fopd.daemon.ready", "fopd.eh.joined"):
            daemon = self.start("c")
            daemon.wait_event(event)
            daemon.kill()
        daemons["c"] = self.nodes["c"].start_ready()
        before = self.epochs(daemons["b"])["epoch"]
        daemons["a"].kill()
        daemons["a"] = self.nodes["a"].start_ready()
        self.assert_all_move(daemons)
        self.assertGreater(self.epochs(daemons["b"])["epoch"], before)

    def test_without_the_root_there_are_none_until_it_returns(self):
        daemons = self.start_all()
        daemons["a"].kill()
        daemons["b"].wait_event("fopd.eh.no_epochs")
        before = self.epochs(daemons["b"])
        self.assertIn("epoch", before["last_error"])
        self.assertIn("no_epochs", daemons["b"].ctl("health", "--json").stdout)
        daemons["a"] = self.nodes["a"].start_ready()
        self.wait_members(daemons.values(), "abc")
        self.wait_epoch_after(daemons["b"], before["epoch"])
        daemons["b"].wait_event("fopd.eh.epochs_again")

    def test_an_administrator_lets_a_minority_go_on(self):
        daemons = self.start_all()
        daemons["b"].kill()
        daemons["c"].kill()
        daemons["a"].wait_event("fopd.eh.no_epochs")
        done = daemons["a"].ctl("epoch", "force")
        self.assertEqual(done.returncode, 1)
        self.assertIn("--yes", done.stderr)
        self.assertEqual(daemons["a"].ctl("epoch", "force", "--yes").returncode, DONE)
        daemons["a"].wait_event("fopd.eh.majority_waived")
        self.wait_members([daemons["a"]], "a")
        self.assertIn("epochs    1 of 3 daemons", daemons["a"].ctl("status").stdout)
        before = self.epochs(daemons["a"])["epoch"]
        self.wait_epoch_after(daemons["a"], before)
        for name in "bc":
            daemons[name] = self.nodes[name].start_ready()
        self.assert_all_move(daemons)

        done = daemons["b"].ctl("epoch", "force", "--yes")
        self.assertEqual((done.returncode, done.stderr), (1, "fopctl: epoch force: only the root can: a\n"))

    def test_all_get_other_addresses(self):
        daemons = self.start_all()
        before = self.epochs(daemons["a"])["epoch"]
        for name, daemon in daemons.items():
            self.nodes[name].stop(daemon)
        self.addresses = self.make_addresses()
        members = [{"name": each, "address": self.addresses[each]} for each in self.names]
        for name, node in self.nodes.items():
            node.write_config(fabric={"listen": [self.addresses[name]]}, eh={"members": members})
        daemons = self.start_all()
        self.wait_epoch_after(daemons["a"], before)

    def test_one_that_stops_leaves_and_nobody_waits_for_it(self):
        daemons = self.start_all()
        self.nodes["c"].stop(daemons["c"])
        self.assertEqual(len(daemons["c"].events("fopd.eh.left")), 1)
        self.wait_members([daemons["a"], daemons["b"]], "ab")
        self.assertEqual(daemons["a"].events("fopd.eh.evicts"), [])

    def test_without_the_key_of_the_others_nobody_joins(self):
        self.nodes["c"] = self.make_node("c", key="1" * 64, directory="stranger")
        daemons = {name: node.start_ready() for name, node in self.nodes.items()}
        self.wait_members([daemons["a"], daemons["b"]], "ab")
        daemons["c"].wait_event("fopd.eh.peer_unreachable")
        daemons["c"].wait_event("fopd.eh.no_epochs")
        self.assertEqual(self.members(daemons["c"]), ())

    def test_the_key_of_the_peers_is_changed_by_reloads_and_epochs_go_on(self):
        daemons = self.start_all()
        failures = {name: daemon.events("fopd.eh.no_epochs") for name, daemon in daemons.items()}
        for node in self.nodes.values():
            self.write_key(node, "new.key", "2" * 64)
        for files in (("new.key", "peer.key"), ("new.key",)):
            for name, daemon in daemons.items():
                node = self.nodes[name]
                node.write_config(auth={"peer_key": [str(node.path / each) for each in files]})
                done = daemon.ctl("--json", "reload")
                self.assertEqual((done.returncode, json.loads(done.stdout)["changed"]), (DONE, ["auth.peer_key"]), done.stderr)
                self.assert_all_move(daemons)
        self.assertEqual({name: daemon.events("fopd.eh.no_epochs") for name, daemon in daemons.items()}, failures)
        # The old key opens nothing any more.
        daemons["c"].kill()
        self.nodes["c"].write_config(auth={"peer_key": str(self.nodes["c"].path / "peer.key")})
        daemons["c"] = self.nodes["c"].start_ready()
        daemons["c"].wait_event("fopd.eh.no_epochs")
        self.wait_members([daemons["a"], daemons["b"]], "ab")

    def test_one_with_another_timeout_is_refused_and_both_say_so(self):
        self.nodes["c"] = self.make_node("c", directory="other", timeout="3s")
        daemons = {name: node.start_ready() for name, node in self.nodes.items()}
        self.wait_members([daemons["a"], daemons["b"]], "ab")
        self.assertEqual(daemons["a"].wait_event("fopd.eh.other_rules")[0]["member"], "c")
        daemons["c"].wait_event("fopd.eh.other_rules")

    def test_configurations_that_do_not_fit_are_refused_with_their_line(self):
        node = self.nodes["b"]
        good = node.settings["eh"] | {"expect": 1}
        for change, word in (({"members": good["members"][::2]}, "this node, b, is not in members"),
                             ({"store": {"kind": "static", "root": "z"}}, "z is not in members"),
                             ({"expect": 9}, "it is larger than the number of members"),
                             ({"grace": "3s"}, "it is longer than eh.timeout"),
                             ({"kind": "local"}, "kind: local has no members"),
                             ({"members": [{"name": "a", "address": self.addresses["a"]},
                                           {"name": "b", "address": f"{SCHEME}://127.0.0.1:1"}]}, "this node does not listen at"),
                             ({"members": good["members"] + [{"name": "d", "address": self.addresses["a"]}]},
                              "two members have this address"),
                             ({"members": good["members"] + [{"name": "a", "address": f"{SCHEME}://127.0.0.1:2"}]},
                              "the same as eh.members")):
            with self.subTest(word):
                node.write_config(eh=good | change)
                done = run_fopd("--config", node.config_path, "--check-config")
                self.assertEqual(done.returncode, CONFIG)
                self.assertRegex(done.stderr, rf"fopd.yaml:\d+:\d+: eh[^\n]*{word}")
        node.write_config(eh=good, auth={"peer_key": "none"})
        done = run_fopd("--config", node.config_path, "--check-config")
        self.assertEqual(done.returncode, CONFIG)
        self.assertIn("there is no auth.peer_key", done.stderr)

    def test_a_daemon_without_peers_has_epochs_of_its_own(self):
        node = self.node("alone")
        daemon = node.start_ready()
        first = self.epochs(daemon)
        self.assertEqual((first["kind"], first["state"]), ("local", "waiting"))
        self.wait_epoch_after(daemon, first["epoch"])


if __name__ == "__main__":
    unittest.main()

"""Daemons whose list of members is in etcd, from outside: another one becomes root, and etcd may be away."""

import base64
import signal
import unittest

from epochs_process import EpochsTestCase, free_ports
from etcd_process import Etcd, EtcdCluster, LossyProxy, needs_etcd
from fopd_process import CONFIG, KEY_FILE, SCHEME, run_fopd, wait_until

PASSWORD = "correct horse"
WRONG_PASSWORD = "battery staple"


@needs_etcd
class EtcdTest(EpochsTestCase):
    def prepare(self):
        self.etcd = Etcd(self.directory)
        self.addCleanup(self.etcd.stop)
        self.etcd.start()

    def store(self):
        return {"kind": "etcd", "endpoints": [self.etcd.url], "prefix": "/test", "timeout": "1s"}

    def make_node(self, name, **others):
        """None lists the others."""
        return super().make_node(name, **({"members": []} | others))

    def root(self, daemon):
        return self.epochs(daemon)["root"]

    def test_another_becomes_root_when_the_root_is_killed(self):
        daemons = self.start_all()
        first = self.root(daemons["a"])
        others = [name for name in self.names if name != first]
        before = self.epochs(daemons[others[0]])["epoch"]
        daemons[first].kill()
        self.wait_members([daemons[name] for name in others], others)
        self.wait_epoch_after(daemons[others[0]], before)
        self.assertIn(self.root(daemons[others[0]]), others)
        self.assertEqual(self.root(daemons[others[0]]), self.root(daemons[others[1]]))

        daemons[first] = self.nodes[first].start_ready()
        self.wait_members(daemons.values(), self.names)
        self.assertIn(self.root(daemons[first]), others)

    def test_another_becomes_root_when_the_root_hangs(self):
        daemons = self.start_all()
        first = self.root(daemons["a"])
        others = [name for name in self.names if name != first]
        daemons[first].signal(signal.SIGSTOP)
        self.wait_members([daemons[name] for name in others], others)
        daemons[first].signal(signal.SIGCONT)
        self.wait_members(daemons.values(), self.names)

    def test_a_root_that_is_stopped_hands_over(self):
        daemons = self.start_all()
        first = self.root(daemons["a"])
        others = [name for name in self.names if name != first]
        self.nodes[first].stop(daemons[first])
        self.wait_members([daemons[name] for name in others], others)
        self.wait_epoch_after(daemons[others[0]], self.epochs(daemons[others[0]])["epoch"])
        for name in others:
            self.assertEqual(daemons[name].events("fopd.eh.no_epochs"), [])

    def test_while_etcd_is_away_epochs_go_on(self):
        daemons = self.start_all()
        self.etcd.process.send_signal(signal.SIGSTOP)
        before = self.epochs(daemons["b"])
        self.wait_epoch_after(daemons["b"], before["epoch"] + 1)
        self.assertEqual(self.epochs(daemons["b"])["view"], before["view"])
        root = self.root(daemons["a"])
        lost = next(name for name in self.names if name != root)
        daemons[lost].kill()
        # The root has to evict it, and cannot write that.
        failed = daemons[root].wait_event("fopd.eh.etcd_failed")[0]
        self.assertEqual(failed["endpoint"], self.etcd.url)
        self.etcd.process.send_signal(signal.SIGCONT)
        self.wait_members([daemons[name] for name in self.names if name != lost], [name for name in self.names if name != lost])
        daemons[root].wait_event("fopd.eh.etcd_answers")

    def test_a_view_that_is_deleted_is_missed_and_epochs_go_on(self):
        members = [{"name": each, "address": self.addresses[each]} for each in self.names]
        for name in self.names:
            self.nodes[name].write_config(eh=self.nodes[name].settings["eh"] | {"members": members})
        daemons = {name: self.nodes[name].start_ready() for name in "ab"}
        self.wait_members(daemons.values(), "ab")
        before = self.epochs(daemons["b"])
        key = base64.b64encode(b"/test/view").decode()
        self.assertEqual(self.etcd.ask("/v3/kv/deleterange", {"key": key})["deleted"], "1")
        # It wants to join, so the root looks at the view.
        daemons["c"] = self.nodes["c"].start_ready()
        lost = daemons[before["root"]].wait_event("fopd.eh.view_lost")[0]
        self.assertEqual(lost["view"], before["view"])
        self.wait_epoch_after(daemons["b"], self.epochs(daemons["b"])["epoch"] + 1)
        self.assertEqual(self.epochs(daemons["b"])["view"], before["view"])
        # What the event says is to be done.
        for daemon in daemons.values():
            daemon.signal(signal.SIGTERM)
        for name, daemon in daemons.items():
            self.nodes[name].expect_end(daemon)
        self.assert_all_move(self.start_all())

    def test_all_are_killed_and_numbers_grow(self):
        daemons = self.start_all()
        before = self.epochs(daemons["a"])["epoch"]
        for daemon in daemons.values():
            daemon.kill()
        daemons = self.start_all()
        self.wait_epoch_after(daemons["a"], before)

    def test_a_daemon_with_a_wrong_address_says_so(self):
        """It finds the others by the list of members, and they do not find it."""
        wrong = f"{SCHEME}://127.0.0.1:{free_ports(1)[0]}"
        self.nodes["c"] = self.make_node("c", directory="wrong", address=wrong)
        daemons = {name: self.nodes[name].start_ready() for name in "ab"}
        self.wait_members(daemons.values(), "ab")
        daemons["c"] = self.nodes["c"].start_ready()
        reason = daemons["c"].wait_event("fopd.eh.no_epochs")[0]["reason"]
        self.assertIn(f"none of theirs arrives at {wrong}", reason)
        self.assertIn("eh.address", self.epochs(daemons["c"])["last_error"])
        self.assertIn("eh.address", daemons["c"].ctl("epoch", "show").stdout)

    def test_a_second_daemon_of_a_name_is_refused_and_both_say_so(self):
        # A busy machine takes nobody for dead.
        times = {"timeout": "10s", "grace": "2s", "root_silent": "4s"}
        self.nodes = {name: self.make_node(name, directory=f"slow-{name}", **times) for name in self.names}
        daemons = self.start_all()
        before = self.epochs(daemons["a"])
        name = next(name for name in self.names if name != before["root"])
        first, self.addresses[name] = self.addresses[name], f"{SCHEME}://127.0.0.1:{free_ports(1)[0]}"
        second = self.make_node(name, directory="second", **times).start_ready()
        for said, other in ((daemons[before["root"]], self.addresses[name]), (second, first)):
            event = said.wait_event("fopd.eh.second_of_name")[0]
            self.assertEqual((event["member"], event["address"]), (name, other))
        self.assertEqual(self.members(second), ())
        self.wait_members(daemons.values(), self.names)
        self.assertEqual(self.epochs(daemons[name])["view"], before["view"])

    def use_passwords(self):
        """Of c it is another one."""
        self.etcd.turn_authentication_on(PASSWORD)
        for name in self.names:
            path = self.nodes[name].path / "etcd.password"
            path.touch(0o600)
            path.write_text((WRONG_PASSWORD if name == "c" else PASSWORD) + "\n")
            store = self.store() | {"user": "root", "password_file": str(path)}
            self.nodes[name].write_config(eh=self.nodes[name].settings["eh"] | {"store": store})

    def test_a_user_with_a_password(self):
        self.use_passwords()
        daemons = {name: node.start_ready() for name, node in self.nodes.items()}
        self.wait_members([daemons["a"], daemons["b"]], "ab")
        daemons["c"].wait_event("fopd.eh.etcd_failed")
        self.assertEqual(self.members(daemons["c"]), ())
        for name, secret in (("a", PASSWORD), ("c", WRONG_PASSWORD)):
            self.assertNotIn(secret, daemons[name].log())

    def test_while_the_password_is_wrong_epochs_go_on_with_the_same_members(self):
        self.use_passwords()
        daemons = {name: self.nodes[name].start_ready() for name in "ab"}
        self.wait_members(daemons.values(), "ab")
        before = self.epochs(daemons["b"])
        self.etcd.change_password(PASSWORD, WRONG_PASSWORD)
        # It reads the view, and asks the root, whose password is wrong now.
        daemons["c"] = self.nodes["c"].start_ready()
        failed = daemons[before["root"]].wait_event("fopd.eh.etcd_failed")[0]
        self.assertIn("password", failed["reason"])
        self.wait_epoch_after(daemons["b"], self.epochs(daemons["b"])["epoch"] + 2)
        self.assertEqual(self.epochs(daemons["b"])["view"], before["view"])
        self.assertEqual(self.members(daemons["c"]), ())
        self.etcd.change_password(WRONG_PASSWORD, PASSWORD)
        self.assert_all_move(daemons)

    def test_configurations_that_do_not_fit_are_refused(self):
        node = self.nodes["b"]
        good = dict(node.settings["eh"])
        for change, word in (({"endpoints": []}, "etcd needs an endpoint"),
                             ({"endpoints": ["127.0.0.1:2379"]}, "an endpoint must begin with http"),
                             ({"root": "a"}, "any member can become root"),
                             ({"user": "u"}, "a user needs a password"),
                             ({"tls": {"ca": "/ca.pem"}}, "with certificates, all endpoints must begin with https"),
                             ({"kind": "static"}, "the list is empty")):
            with self.subTest(word):
                node.write_config(eh=good | {"store": good["store"] | change})
                done = run_fopd("--config", node.config_path, "--check-config")
                self.assertEqual(done.returncode, CONFIG)
                self.assertRegex(done.stderr, rf"fopd.yaml:\d+:\d+: eh[^\n]*{word}")
        node.write_config(eh=good | {"store": good["store"] | {"user": "u", "password_file": str(node.path / "absent")}})
        done = run_fopd("--config", node.config_path)
        self.assertEqual(done.returncode, KEY_FILE)
        self.assertRegex(done.stderr, "eh.store.password_file: [^\n]*absent")


@needs_etcd
class FullEtcdTest(EpochsTestCase):
    def prepare(self):
        self.etcd = Etcd(self.directory, arguments=["--quota-backend-bytes=4194304"])
        self.addCleanup(self.etcd.stop)
        self.etcd.start()

    def store(self):
        return {"kind": "etcd", "endpoints": [self.etcd.url], "prefix": "/test", "timeout": "1s"}

    def fill(self):
        """Somebody else does, with keys of their own."""
        value = base64.b64encode(bytes(512 * 1024)).decode()
        with self.assertRaisesRegex(AssertionError, "space exceeded"):
            for number in range(64):
                self.etcd.ask("/v3/kv/put", {"key": base64.b64encode(f"/other/{number}".encode()).decode(), "value": value})

    def make_room(self):
        """As epochs.md says."""
        begin, end = (base64.b64encode(each).decode() for each in (b"/other/", b"/other0"))
        header = self.etcd.ask("/v3/kv/deleterange", {"key": begin, "range_end": end})["header"]
        self.etcd.ask("/v3/kv/compaction", {"revision": header["revision"], "physical": True})
        self.etcd.ask("/v3/maintenance/defragment", {})
        self.etcd.ask("/v3/maintenance/alarm", {"action": "DEACTIVATE", "alarm": "NOSPACE", "memberID": header["member_id"]})

    def test_while_etcd_is_full_epochs_go_on_with_the_same_members(self):
        daemons = {name: self.nodes[name].start_ready() for name in "ab"}
        self.wait_members(daemons.values(), "ab")
        before = self.epochs(daemons["b"])
        self.fill()
        daemons["c"] = self.nodes["c"].start_ready()
        failed = daemons[before["root"]].wait_event("fopd.eh.etcd_failed")[0]
        self.assertIn("etcd is full", failed["reason"])
        self.wait_epoch_after(daemons["b"], self.epochs(daemons["b"])["epoch"] + 1)
        self.assertEqual(self.epochs(daemons["b"])["view"], before["view"])
        self.assertEqual(self.members(daemons["c"]), ())
        self.assertGreater(daemons[before["root"]].metrics()["fopd_epoch_store_failures_total"], 0)
        self.make_room()
        self.assert_all_move(daemons)


@needs_etcd
class LostAnswersTest(EpochsTestCase):
    """etcd writes each view, and the root never hears so."""

    # A busy machine takes nobody for dead: each view is one that the test has asked for.
    times = {"timeout": "4s", "grace": "1s", "root_silent": "3s"}

    def prepare(self):
        self.etcd = Etcd(self.directory)
        self.addCleanup(self.etcd.stop)
        self.etcd.start()
        self.proxy = LossyProxy(self.etcd)
        self.addCleanup(self.proxy.stop)

    def store(self):
        return {"kind": "etcd", "endpoints": [self.proxy.url], "prefix": "/test", "timeout": "1s"}

    def assert_is_stored(self, daemon):
        """etcd has the members of this daemon, and each view was written once."""
        view = self.epochs(daemon)["view"]
        self.assertEqual(view - self.first_view, self.proxy.lost)
        key = base64.b64encode(b"/test/view").decode()
        stored = base64.b64decode(self.etcd.ask("/v3/kv/range", {"key": key})["kvs"][0]["value"])
        self.assertEqual(int.from_bytes(stored[1:9], "little"), view)
        for name in self.names:
            address = self.addresses[name].encode()
            self.assertEqual(bytes([len(address)]) + address in stored, name in self.members(daemon))

    def test_epochs_go_on_with_the_members_that_etcd_has_and_another_joins(self):
        daemons = {name: self.nodes[name].start_ready() for name in "ab"}
        self.wait_members(daemons.values(), "ab")
        root = daemons[self.epochs(daemons["a"])["root"]]
        self.first_view = self.epochs(root)["view"]
        self.proxy.loses = True

        daemons["c"] = self.nodes["c"].start_ready()
        self.assert_all_move(daemons)
        self.assertEqual(root.wait_event("fopd.eh.view_not_written")[0]["outcome"], "unknown")
        self.assert_is_stored(root)

        daemons.pop("c").kill()
        root.wait_event("fopd.eh.evicts")
        self.assert_all_move(daemons)
        self.assert_is_stored(root)

        daemons["c"] = self.nodes["c"].start_ready()
        self.assert_all_move(daemons)
        self.assert_is_stored(root)
        self.assertGreaterEqual(self.proxy.lost, 3)
        self.assertEqual(root.events("fopd.eh.abdicates"), [])


@needs_etcd
class ThreeEtcdServersTest(EpochsTestCase):
    def prepare(self):
        self.etcd = EtcdCluster(self.directory)
        self.addCleanup(self.etcd.stop)
        self.etcd.start()

    def store(self):
        return {"kind": "etcd", "endpoints": [each.url for each in self.etcd.servers], "prefix": "/test", "timeout": "1s"}

    def test_etcd_loses_its_leader_then_its_majority(self):
        daemons = self.start_all()
        root = self.epochs(daemons["a"])["root"]
        member = next(name for name in self.names if name != root)
        lost = wait_until(self.etcd.leader, "etcd has a leader")
        lost.stop()
        # Two of three go on, also for a change of the members.
        daemons[member].kill()
        daemons[root].wait_event("fopd.eh.evicts")
        daemons[member] = self.nodes[member].start_ready()
        self.assert_all_move(daemons)

        wait_until(self.etcd.leader, "etcd has a leader").stop()
        before = self.epochs(daemons[root])
        after = self.wait_epoch_after(daemons[root], before["epoch"] + 3)
        self.wait_epoch_after(daemons[member], after)
        self.assertEqual(self.epochs(daemons[root])["view"], before["view"])

        lost.start()
        daemons[member].kill()
        self.wait_members([daemons[name] for name in self.names if name != member], [name for name in self.names if name != member])
        daemons[member] = self.nodes[member].start_ready()
        self.assert_all_move(daemons)


if __name__ == "__main__":
    unittest.main()

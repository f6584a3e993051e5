"""Disks that come to a running daemon and go: by hand, by a reload, while clients are at work, and killed in between.

The file is long because all ways of a change are tried on the same node, by the same steps."""

import contextlib
import hashlib
import json
import os
import signal
import subprocess
import threading

from fopd_process import CONFIG, DONE, FOPCTL, PROGRAM_SECONDS, USAGE, ProcessTestCase, wait_until
from storage_process import NOT_FOUND, REFUSED, TRY_LATER

MIB = 1 << 20
SECONDS = PROGRAM_SECONDS


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


class DeviceChangesTest(ProcessTestCase):
    def setUp(self):
        super().setUp()
        self.fopd = self.node()
        self.configure(self.fopd, "d0", "d1")

    def image(self, name, node=None):
        return (node or self.fopd).path / f"{name}.img"

    def configure(self, node, *names, **changed):
        """These disks, each in a file of its own; `changed` has other keys for some."""
        node.settings["pools"] = [{"name": "fast"}]
        node.settings["devices"] = [{"name": name, "path": str(self.image(name, node)), "pool": "fast", "size": "64MiB"}
                                    | changed.get(name, {}) for name in names]
        node.settings["auth"] = {"mode": "none"}
        node.settings["localities"] = {"cores": 2, "buffers": "2MiB"}
        node.write_config()

    def start(self, node=None):
        self.daemon = (node or self.fopd).start_ready()
        self.server = self.daemon.address
        return self.daemon

    def stop(self):
        self.fopd.stop(self.daemon)

    def command(self, *arguments):
        return [FOPCTL, "--server", self.server, "--admin", self.daemon.socket_path, *map(str, arguments)]

    def ctl(self, *arguments, code=DONE, data=None):
        done = subprocess.run(self.command(*arguments), input=data, capture_output=True, text=True, timeout=SECONDS)
        self.assertEqual(done.returncode, code, f"{done.stdout}{done.stderr}\n{self.daemon.log()[-2000:]}")
        return done.stdout if code == DONE else done.stdout + done.stderr

    def devices(self):
        return {each["name"]: each for each in json.loads(self.ctl("--json", "devices"))["devices"]}

    def states(self):
        return {name: each["state"] for name, each in self.devices().items()}

    def put(self, name, size=5000):
        self.ctl("put", "-", name, data="x" * size)

    def names(self):
        return set(self.ctl("ls").splitlines())

    def slot_of(self, name):
        return int(json.loads(self.ctl("--json", "stat", name))["fid"][:4], 16)

    def put_until_on(self, device):
        """A client begins at any of the disks. The objects that were put, and one that is there."""
        slot = self.devices()[device]["slot"]
        for count in range(100):
            name = f"{device}-{count}"
            self.put(name)
            if self.slot_of(name) == slot:
                return [f"{device}-{number}" for number in range(count + 1)], name
        self.fail(f"nothing comes to {device}")

    def empty(self, *devices):
        """Whatever is on them goes."""
        slots = {self.devices()[device]["slot"] for device in devices}
        for name in self.names():
            if self.slot_of(name) in slots:
                self.ctl("rm", name)

    def add(self, name, **options):
        return self.ctl("device", "add", name, **options)

    def remove(self, name, **options):
        return self.ctl("device", "remove", name, **options)

    # -- by hand --

    def test_a_disk_comes_and_serves_at_once(self):
        self.start()
        self.assertIn("not added", self.add("d2", code=NOT_FOUND))
        self.configure(self.fopd, "d0", "d1", "d2")
        answer = self.add("d2")
        self.assertIn("d2 is open: slot 3, pool fast", answer)
        self.assertEqual(self.states(), {"d0": "good", "d1": "good", "d2": "good"})
        _, name = self.put_until_on("d2")
        self.assertEqual(self.ctl("get", name, "-"), "x" * 5000)
        self.assertEqual(len(self.daemon.events("fopd.daemon.device_added")), 1)
        self.assertEqual(self.daemon.metrics()['fopd_device_up{device="d2",pool="fast"}'], 1)
        self.assertIn("is open already", self.add("d2", code=REFUSED))
        self.stop()
        self.start()
        self.assertEqual(self.devices()["d2"]["slot"], 3)
        self.assertEqual(self.ctl("get", name, "-"), "x" * 5000)
        self.stop()

    def test_unknown_names(self):
        self.start()
        words = self.add("nowhere", code=NOT_FOUND)
        self.assertIn("nowhere", words)
        self.assertIn(str(self.fopd.config_path), words)
        for arguments in (["device", "remove", "nowhere"], ["device", "forget", "nowhere"],
                          ["device", "forget", "nowhere", "--yes"], ["scrub", "nowhere"], ["store", "check", "nowhere"]):
            error = json.loads(self.ctl("--json", *arguments, code=NOT_FOUND))
            self.assertIn("nowhere", error["error"])
            self.assertEqual((error["code"], error["exit_code"]), ("not_found", NOT_FOUND))
        self.ctl("device", "forget", "--slot", 99, code=NOT_FOUND)
        self.ctl("device", "remove", "a b", code=USAGE)
        self.ctl("device", "add", code=USAGE)
        self.ctl("device", "evacuate", "d0", code=USAGE)
        self.fopd.config_path.write_text("node: { nmae: x }\n")
        self.assertIn("nmae", self.add("d2", code=CONFIG))
        self.assertEqual(self.states(), {"d0": "good", "d1": "good"})
        self.fopd.write_config()
        self.stop()

    def test_an_empty_disk_goes_and_comes_back(self):
        self.start()
        before = self.devices()["d1"]
        answer = self.remove("d1")
        self.assertIn("d1 is removed", answer)
        self.assertIn(f"{self.fopd.config_path} still names it", answer)
        self.assertEqual(self.states(), {"d0": "good", "d1": "removed"})
        self.assertEqual([each["device"] for each in json.loads(self.ctl("--json", "store", "check"))["checks"]], ["d0"])
        self.assertEqual(self.devices()["d1"]["slot"], before["slot"])
        self.assertNotIn('fopd_device_up{device="d1",pool="fast"}', self.daemon.metrics())
        self.assertEqual(len(self.daemon.events("fopd.daemon.device_removed")), 1)
        self.assertFalse(any(str(self.image("d1")) == each for each in self.open_files()))
        self.assertIn("was removed already", self.remove("d1", code=REFUSED))
        for count in range(4):
            self.put(f"object-{count}")
            self.assertEqual(self.slot_of(f"object-{count}"), self.devices()["d0"]["slot"])
        # An unchanged file opens nothing.
        self.assertEqual(self.ctl("reload"), "nothing changed\n")
        self.assertEqual(self.states()["d1"], "removed")
        self.add("d1")
        after = self.devices()["d1"]
        self.assertEqual((after["slot"], after["disk"]), (before["slot"], before["disk"]))
        _, name = self.put_until_on("d1")
        self.stop()
        self.start()
        self.assertEqual(self.ctl("get", name, "-"), "x" * 5000)
        self.stop()

    def open_files(self):
        files = []
        for each in self.daemon._proc("fd").iterdir():
            # One that the daemon has closed since the list was read is no longer open.
            with contextlib.suppress(FileNotFoundError):
                files.append(os.readlink(each))
        return files

    def test_a_restart_opens_what_was_removed(self):
        self.start()
        before = self.devices()["d1"]
        self.remove("d1")
        self.stop()
        self.start()
        self.assertEqual({key: self.devices()["d1"][key] for key in ("state", "slot", "disk")},
                         {key: before[key] for key in ("state", "slot", "disk")})
        self.stop()

    def test_what_lives_on_a_disk_keeps_it(self):
        self.start()
        self.put_until_on("d1")
        slot = self.devices()["d1"]["slot"]
        there = [name for name in self.names() if self.slot_of(name) == slot]
        words = self.remove("d1", code=REFUSED)
        self.assertRegex(words, rf"device d1 is not removed: it has {len(there)} objects?\b")
        self.assertEqual(self.states(), {"d0": "good", "d1": "good"})
        self.assertEqual(len(self.daemon.events("fopd.daemon.device_not_removed")), 1)
        self.put_until_on("d1")
        self.empty("d1")
        self.remove("d1")
        self.stop()

    def test_an_upload_keeps_it(self):
        self.start()
        self.remove("d0")
        upload = subprocess.Popen(self.command("put", "-", "upload"), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE)
        try:
            upload.stdin.write(b"x" * 20 * MIB)
            upload.stdin.flush()
            wait_until(lambda: self.uploads_on("d1"), "an upload on d1")
            self.assertIn("1 upload", self.remove("d1", code=REFUSED))
        finally:
            upload.kill()
            upload.communicate()
        self.assertEqual(self.states(), {"d1": "good", "d0": "removed"})
        self.stop()

    def uploads_on(self, device):
        return json.loads(self.ctl("--json", "store", "check", device))["checks"][0]["uploads"]

    def test_clients_of_other_disks_are_not_disturbed(self):
        self.start()
        self.put("mine")
        mine = self.slot_of("mine")
        other = next(name for name, each in self.devices().items() if each["slot"] != mine)
        bench = subprocess.Popen(self.command("--json", "bench", "--op", "mixed", "--size", "4k", "--depth", "8",
                                              "--seconds", "6", "--object", "mine"),
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        changes = 0
        while bench.poll() is None:
            self.remove(other)
            self.add(other)
            changes += 1
        out, err = bench.communicate()
        self.assertEqual(bench.returncode, DONE, err)
        result = json.loads(out)
        self.assertEqual(result["errors"], 0)
        self.assertGreater(result["ops"], 100)
        self.assertGreater(changes, 0)
        self.stop()

    def test_clients_that_put_find_another_disk(self):
        """Each put is on some disk, whatever goes and comes meanwhile."""
        self.start()
        ended = threading.Event()
        problems = []

        def work(number):
            count = 0
            while not ended.is_set():
                name = f"w{number}-{count % 3}"
                for arguments in (("put", "-", name), ("rm", name)):
                    done = subprocess.run(self.command(*arguments), input="y" * 4000, capture_output=True, text=True,
                                          timeout=SECONDS)
                    if done.returncode != DONE:
                        problems.append((arguments, done.stderr))
                count += 1
        threads = [threading.Thread(target=work, args=(number,)) for number in range(2)]
        for each in threads:
            each.start()
        try:
            for _ in range(3):
                for device in ("d0", "d1"):
                    done = subprocess.run(self.command("device", "remove", device), capture_output=True, text=True,
                                          timeout=SECONDS)
                    self.assertIn(done.returncode, (DONE, REFUSED, TRY_LATER), done.stderr)
                    if done.returncode == DONE:
                        self.add(device)
        finally:
            ended.set()
            for each in threads:
                each.join()
        self.assertEqual(problems, [])
        self.stop()

    # -- what goes on with it ends --

    def test_it_goes_during_a_scrub_and_a_check(self):
        self.fopd.settings["store"] = {"scrub_rate": "1MiB"}
        self.fopd.write_config()
        self.start()
        for _ in range(3):
            self.ctl("scrub", "d1")
            self.daemon.ask("POST", "/v1/store/check?device=d1&do=begin")
            self.remove("d1")
            self.assertEqual(self.states()["d1"], "removed")
            self.assertEqual(self.ctl("scrub", "d1", code=REFUSED), "fopctl: scrub: device d1 is removed\n")
            self.add("d1")
        checks = {each["device"]: each for each in json.loads(self.ctl("--json", "store", "check"))["checks"]}
        self.assertEqual({each["findings"] for each in checks.values()}, {0})
        self.stop()

    def test_a_scrub_goes_on_when_it_stays(self):
        self.fopd.settings["store"] = {"scrub_rate": "1MiB"}
        self.fopd.write_config()
        self.start()
        _, name = self.put_until_on("d1")
        self.ctl("rm", name)
        for number in range(12):
            self.put(f"big-{number}", size=2 * MIB)
        # By chance, all of these may be on the other disk.
        self.put_until_on("d1")
        self.ctl("scrub", "d1")
        self.remove("d1", code=REFUSED)
        self.assertIn(self.devices()["d1"]["scrub"]["state"], ("running", "done"))
        self.stop()

    # -- killed --

    def test_killed_while_it_comes(self):
        for count in range(1, 7):
            node = self.node(f"killed{count}")
            self.configure(node, "d0", "d1")
            self.start(node)
            self.configure(node, "d0", "d1", "d2")
            events = len(self.daemon.events())
            adding = subprocess.Popen(self.command("device", "add", "d2"), stdout=subprocess.PIPE,
                                      stderr=subprocess.PIPE)
            wait_until(lambda: len(self.daemon.events()) >= events + count // 2 or adding.poll() is not None, "events")
            self.daemon.kill()
            adding.communicate()
            self.start(node)
            self.assertEqual(self.states(), {"d0": "good", "d1": "good", "d2": "good"})
            self.assertEqual(len({each["slot"] for each in self.devices().values()}), 3)
            self.put_until_on("d2")
            self.stop()

    def test_killed_while_it_goes(self):
        self.start()
        for count in range(4):
            before = self.devices()["d1"]
            going = subprocess.Popen(self.command("device", "remove", "d1"), stdout=subprocess.PIPE,
                                     stderr=subprocess.PIPE)
            if count % 2 == 1:
                wait_until(lambda: self.daemon.events("fopd.daemon.device_closed") or going.poll() is not None, "closed")
            self.daemon.kill()
            going.communicate()
            self.start()
            after = self.devices()["d1"]
            self.assertEqual((after["state"], after["slot"], after["disk"]), ("good", before["slot"], before["disk"]))
        self.put_until_on("d1")
        self.stop()

    def test_stopped_while_it_comes(self):
        for _ in range(3):
            self.configure(self.fopd, "d0", "d1")
            self.start()
            self.configure(self.fopd, "d0", "d1", "d2")
            adding = subprocess.Popen(self.command("device", "add", "d2"), stdout=subprocess.PIPE,
                                      stderr=subprocess.PIPE)
            self.daemon.signal(signal.SIGTERM)
            adding.communicate()
            self.fopd.expect_end(self.daemon)

    # -- elsewhere --

    def test_an_emptied_disk_moves_to_another_node(self):
        self.start()
        _, name = self.put_until_on("d1")
        self.empty("d1")
        first = self.daemon
        other = self.node("other")
        self.configure(other, "o0", "moved", moved={"path": str(self.image("d1"))})
        self.configure(other, "o0")
        second = other.start_ready()
        self.configure(other, "o0", "moved", moved={"path": str(self.image("d1"))})
        refused = second.ctl("device", "add", "moved")
        self.assertEqual(refused.returncode, REFUSED)
        self.assertIn("in another daemon", refused.stderr)
        self.remove("d1")
        added = second.ctl("device", "add", "moved")
        self.assertEqual(added.returncode, DONE, added.stderr)
        # It is the other node's now.
        before = self.devices()
        self.assertEqual(before["d1"]["state"], "removed")
        self.assertIn("in another daemon", self.add("d1", code=REFUSED))
        other.stop(second)
        words = self.add("d1", code=REFUSED)
        self.assertIn("belongs to node", words)
        self.assertEqual(self.states()["d1"], "given-up")
        self.assertNotIn(name, self.names())
        self.fopd.stop(first)

    def test_a_foreign_disk_is_never_written(self):
        self.start()
        image = self.image("d2")
        image.write_bytes(b"precious\n".ljust(64 * MIB, b"\0"))
        before = digest(image)
        self.configure(self.fopd, "d0", "d1", "d2")
        self.assertIn(f"device d2 is not added: {image}: holds something else already", self.add("d2", code=REFUSED))
        self.assertEqual(self.states()["d2"], "given-up")
        self.assertTrue(any("device d2 " in each for each in self.daemon.status()["warnings"]))
        self.assertEqual(digest(image), before)
        # When it is one that may be taken it is.
        image.unlink()
        self.add("d2")
        self.assertEqual(self.states()["d2"], "good")
        self.assertFalse(any("device d2 " in each for each in self.daemon.status()["warnings"]))
        self.stop()

    def test_a_medium_that_is_pulled(self):
        self.start()
        self.remove("d1")
        self.image("d1").unlink()
        self.put("object")
        self.configure(self.fopd, "d0", "d1", d1={"size": "none"})
        self.assertIn("d1.img", self.add("d1", code=REFUSED))
        self.assertEqual(self.states(), {"d0": "good", "d1": "given-up"})
        # Pulled while it serves: the file lives as long as it is open.
        self.remove("d1")
        self.configure(self.fopd, "d0", "d1")
        self.add("d1")
        self.assertEqual(self.devices()["d1"]["slot"], 3)
        self.image("d1").unlink()
        self.remove("d1")
        self.assertEqual(self.ctl("get", "object", "-"), "x" * 5000)
        self.stop()

    # -- lost --

    def lose(self, device):
        """Starts anew with another disk in its place: its slot, and the names of what was on it and of the rest."""
        self.put_until_on(device)
        slot = self.devices()[device]["slot"]
        names = self.names()
        lost = {each for each in names if self.slot_of(each) == slot}
        self.stop()
        self.image(device).rename(self.image("away"))
        with self.image(device).open("wb") as file:
            file.truncate(64 * MIB)
        self.start()
        return slot, lost, names - lost

    def forget(self, *arguments, **options):
        return self.ctl("device", "forget", *arguments, **options)

    def test_a_disk_that_is_lost_is_written_off(self):
        self.start()
        self.put_until_on("d0")
        slot, lost, kept = self.lose("d1")
        self.assertEqual(self.devices()["d1"]["slot"], 3)
        self.assertIn("its disk is not there", self.ctl("get", min(lost), "-", code=REFUSED))
        self.assertIn("missing", self.ctl("put", "-", "new", "--no-replace", data="x", code=REFUSED))
        self.assertIn("missing", self.ctl("ls", code=REFUSED))
        warning = f"slot {slot} of pool fast is missing: disk "
        self.assertTrue(any(warning in each for each in self.daemon.status()["warnings"]))

        self.ctl("device", "forget", code=USAGE)
        self.ctl("device", "forget", "d1", "--slot", slot, code=USAGE)
        # The disk in its place has the same name.
        words = self.forget("d1", "--yes", code=REFUSED)
        self.assertIn(f"disks of the slots {slot}, 3 have that name; say which one with --slot; " + warning, words)
        self.assertEqual(self.states(), {"d0": "good", "d1": "good", f"slot-{slot}": "missing"})
        words = self.forget("--slot", slot, code=REFUSED)
        self.assertRegex(words, f": at least {len(lost)} objects? with a name would be lost")
        self.assertIn("its disk is not there", self.ctl("get", min(lost), "-", code=REFUSED))
        answer = json.loads(self.forget("--slot", slot, "--yes", "--json"))
        self.assertEqual((answer["result"], answer["lost"]["slot"], answer["lost"]["objects"]),
                         ("forgotten", slot, len(lost)))
        self.assertEqual(len(self.daemon.events("fopd.daemon.device_forgotten")), 1)

        for _ in range(2):
            self.assertEqual(self.names(), kept)
            self.assertIn("no object has that name", self.ctl("get", min(lost), "-", code=NOT_FOUND))
            self.assertFalse(any(warning in each for each in self.daemon.status()["warnings"]))
            self.stop()
            self.start()
        self.ctl("put", "-", min(lost), "--no-replace", data="anew")
        self.assertEqual(self.ctl("get", min(lost), "-"), "anew")

        # It turns up again.
        self.stop()
        before = digest(self.image("away"))
        self.configure(self.fopd, "d0", "d1", "back", back={"path": str(self.image("away"))})
        self.start()
        self.assertEqual(self.states(), {"d0": "good", "d1": "good", "back": "given-up"})
        self.assertIn("was written off", self.devices()["back"]["reason"])
        self.assertTrue(any("was written off" in each for each in self.daemon.status()["warnings"]))
        self.assertIn("was written off", self.add("back", code=REFUSED))
        self.assertEqual(self.names(), kept | {min(lost)})
        self.assertEqual(self.ctl("get", min(lost), "-"), "anew")
        self.stop()
        self.assertEqual(digest(self.image("away")), before)

    def test_a_missing_disk_is_not_removed(self):
        self.start()
        _, name = self.put_until_on("d1")
        self.stop()
        self.image("d1").rename(self.image("away"))
        self.start()
        slot = self.devices()["d1"]["slot"]
        for _ in range(2):  # In the configuration, and not.
            words = self.remove("d1", code=REFUSED)
            self.assertIn(f"device d1 is not removed: its disk is missing (slot {slot} of pool fast)", words)
            self.assertIn("fopctl device add d1", words)
            self.assertIn(f"fopctl device forget --slot {slot}", words)
            self.assertIn(slot, [each["slot"] for each in self.devices().values()])
            self.assertIn("would be lost", self.ctl("device", "forget", "d1", code=REFUSED))
            self.stop()
            self.configure(self.fopd, "d0")
            self.start()
        self.stop()
        self.image("away").rename(self.image("d1"))
        self.configure(self.fopd, "d0", "d1")
        self.start()
        self.assertEqual(self.ctl("get", name, "-"), "x" * 5000)
        self.stop()

    def test_a_disk_that_was_written_off_makes_room_for_a_new_one(self):
        self.start()
        self.put_until_on("d1")
        self.stop()
        self.image("d1").unlink()
        self.start()
        self.assertIn("bring it back", self.devices()["d1"]["reason"])
        self.forget("d1", "--yes")
        reason = self.devices()["d1"]["reason"]
        self.assertEqual(reason, "its disk was written off; fopctl device add d1 takes a new one in its place")
        self.assertNotIn("bring it back", self.ctl("status"))
        self.add("d1")
        self.assertEqual(self.devices()["d1"]["state"], "good")
        self.stop()

    def test_killed_while_a_disk_is_written_off(self):
        self.start()
        for number in range(3):
            slot, lost, _ = self.lose("d1")
            forgetting = subprocess.Popen(self.command("device", "forget", "--slot", str(slot), "--yes"),
                                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            if number == 1:
                wait_until(lambda: self.daemon.events("fopd.daemon.device_forgotten"), "forgotten")
            self.daemon.kill()
            forgetting.communicate()
            self.start()
            self.forget("--slot", slot, "--yes")
            self.assertEqual(self.names() & lost, set())
            for name in self.names():
                self.ctl("rm", name)
            self.stop()
            self.image("away").unlink()
            self.start()
        self.stop()

    # -- by a reload --

    def test_a_reload_follows_the_list(self):
        self.start()
        self.configure(self.fopd, "d0", "d2", "d3")
        answer = self.ctl("reload")
        self.assertIn("changed: devices", answer)
        for line in ("device d1: removed", "device d2: added", "device d3: added"):
            self.assertIn(line, answer)
        self.assertEqual(self.states(), {"d0": "good", "d2": "good", "d3": "good"})
        self.put_until_on("d3")
        # What has something on it stays, and is asked again.
        self.configure(self.fopd, "d0", "d2")
        for _ in range(2):
            self.assertRegex(self.ctl("reload", code=REFUSED), "device d3: not removed, and goes on to serve: it has [0-9]+ object")
            self.assertEqual(self.states()["d3"], "good")
            self.assertIn("the last reload failed: device d3 is not removed: it has ",
                          " ".join(each["text"] for each in self.daemon.status()["problems"]))
        self.assertEqual(len(self.daemon.events("fopd.daemon.device_not_removed")), 2)
        self.empty("d3")
        self.daemon.signal(signal.SIGHUP)
        wait_until(lambda: "d3" not in self.states(), "d3 is gone")
        self.configure(self.fopd, "d0", "d1", "d2")
        self.daemon.signal(signal.SIGHUP)
        wait_until(lambda: self.states().get("d1") == "good", "d1 is back")
        self.assertEqual(self.devices()["d1"]["slot"], 2)
        self.stop()

    def test_what_changes_of_an_open_disk_is_refused(self):
        self.start()
        self.fopd.write_config(log={"level": "debug"})
        for changed in ({"path": str(self.fopd.path / "elsewhere.img")},):
            self.configure(self.fopd, "d0", "d1", "d2", d1=changed)
            words = self.ctl("reload", code=CONFIG)
            self.assertTrue(words.startswith("fopctl: reload: the configuration needs a restart; nothing was changed\n"), words)
            self.assertNotIn("not valid", words)
            self.assertIn("d1", words)
            self.assertEqual(self.states(), {"d0": "good", "d1": "good"})
            self.assertEqual(self.daemon.status()["log_level"], "info")
        # A restart would not change these either.
        self.configure(self.fopd, "d0", "d1", "d2", d1={"size": "128MiB", "thin": True})
        words = self.ctl("reload", code=CONFIG)
        self.assertIn("the size of d1, which is open, has changed; a disk that exists keeps its size, also after a restart: "
                      "set it back to 64MiB", words)
        self.assertIn("the thin of d1", words)
        self.assertNotIn("needs a restart", words)
        # Of one that is out everything may change.
        self.remove("d1")
        self.assertIn("device d1: added", self.ctl("reload"))
        self.stop()

    def test_a_new_pool_needs_a_restart(self):
        self.start()
        self.configure(self.fopd, "d0", "d1", "d2", d2={"pool": "slow"})
        self.fopd.settings["pools"].append({"name": "slow"})
        self.fopd.write_config()
        answer = self.ctl("reload", code=REFUSED)
        self.assertIn("needs a restart: pools", answer)
        self.assertIn("device d2: not added: its pool slow is new", answer)
        self.assertEqual(self.states(), {"d0": "good", "d1": "good"})
        self.stop()

    def test_a_node_without_disks(self):
        self.fopd.settings["devices"] = []
        self.fopd.write_config()
        self.start()
        self.configure(self.fopd, "d0")
        self.assertIn("the first disk needs a restart", self.add("d0", code=REFUSED))
        self.stop()

    def test_files_do_not_pile_up(self):
        self.start()
        self.remove("d1")
        before = self.daemon.files_count()
        for _ in range(5):
            self.add("d1")
            self.remove("d1")
        # The daemon closes an admin connection after it has answered: one more or less may be there.
        self.assertLessEqual(self.daemon.files_count(), before + 1)
        self.stop()


if __name__ == "__main__":
    import unittest
    unittest.main()

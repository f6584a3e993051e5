"""What a node keeps beside its disks: it is checked while the node works, saved, put back, and made anew where it is lost."""

import hashlib
import json
import os
import re
import shutil
import subprocess
import threading

from fopd_process import DATA_DIR, DONE, FOPCTL, IN_USE, PROGRAM_SECONDS, USAGE, ProcessTestCase, run_fopd, wait_until
from storage_process import NOT_FOUND, REFUSED

MIB = 1 << 20
LOG_BLOCK = 256  # Of a disk, where its first segment begins, which is the log's.


def flip(path, offset):
    with path.open("r+b") as file:
        file.seek(offset)
        byte = file.read(1)
        file.seek(offset)
        file.write(bytes([byte[0] ^ 1]))


class StoreTest(ProcessTestCase):
    def setUp(self):
        super().setUp()
        self.fopd = self.node()
        self.images = [self.fopd.path / f"d{number}.img" for number in range(2)]
        self.fopd.settings["pools"] = [{"name": "fast"}]
        self.fopd.settings["devices"] = [{"name": f"d{number}", "path": str(path), "pool": "fast", "size": "64MiB"}
                                         for number, path in enumerate(self.images)]
        self.fopd.settings["auth"] = {"mode": "none"}
        self.fopd.settings["localities"] = {"cores": 2, "buffers": "2MiB"}
        self.fopd.settings["store"] = {"checkpoint_interval": "100ms"}
        self.fopd.write_config()
        self.backup = self.fopd.path / "node.backup"
        self.daemon = None

    def start(self):
        self.daemon = self.fopd.start_ready()
        self.server = self.daemon.address
        return self.daemon

    def run_ctl(self, *arguments, text=None):
        return subprocess.run([FOPCTL, "--server", self.server, "--admin", self.daemon.socket_path,
                               *map(str, arguments)], input=text, capture_output=True, text=True,
                              timeout=PROGRAM_SECONDS)

    def ctl(self, *arguments, code=DONE, text=None):
        done = self.run_ctl(*arguments, text=text)
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stdout

    def put(self, *names):
        for name in names:
            self.ctl("put", "-", name, text=f"this is {name}")

    def put_on_both(self):
        """A client begins at any of the disks."""
        for count in range(1, 100):
            self.put(f"object-{count}")
            if all(each["objects"] for each in self.check().values()):
                return count
        self.fail("every object lies on the same disk")

    def assert_objects(self, *names):
        """These and no others, each as it was put."""
        self.assertEqual({each["name"] for each in json.loads(self.ctl("--json", "ls"))["objects"]}, set(names))
        for name in names:
            self.assertEqual(self.ctl("get", name, "-"), f"this is {name.removesuffix('-moved')}")

    def check(self, *arguments, code=DONE):
        return {each["device"]: each for each in json.loads(self.ctl("--json", "store", "check", *arguments, code=code))["checks"]}

    def assert_well(self, objects):
        checks = self.check()
        self.assertEqual({(each["state"], each["findings"]) for each in checks.values()}, {("done", 0)})
        self.assertEqual(sum(each["objects"] for each in checks.values()), objects)
        self.assertEqual(sum(each["names"] for each in checks.values()), objects)

    def states(self):
        return {each["name"]: each["state"] for each in json.loads(self.ctl("--json", "devices"))["devices"]}

    # -- store check --

    def test_a_check_of_what_is_well(self):
        self.start()
        self.put("a", "b", "c")
        self.assert_well(3)
        page = self.ctl("store", "check", "d0")
        self.assertRegex(page, r"DEVICE +CHECK +OBJECTS.*\nd0 +done +")
        self.assertNotIn("d1", page)
        self.assertEqual(len(self.daemon.events("fopd.store.checked")), 3)
        self.ctl("store", "check", "d 0", code=USAGE)
        self.assertIn("done", self.ctl("store", "check", "--show"))
        self.ctl("store", "check", "--end")
        self.fopd.stop(self.daemon)

    def refused(self, *arguments, code=REFUSED):
        """What it printed, and what it complained of."""
        done = self.run_ctl(*arguments)
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stdout, done.stderr

    def test_a_disk_that_nobody_knows(self):
        self.start()
        for verb in (["scrub"], ["store", "check"]):
            for option in ([], ["--show"], ["--end"]):
                with self.subTest([*verb, *option]):
                    self.assertEqual(self.refused(*verb, "d7", *option, code=NOT_FOUND),
                                     ("", f"fopctl: {' '.join(verb)}: there is no device d7\n"))
        self.fopd.stop(self.daemon)

    def test_a_disk_that_cannot_be_read(self):
        self.start()
        self.put_on_both()
        self.fopd.stop(self.daemon)
        os.truncate(self.images[1], MIB)
        self.fopd.settings["devices"][1].pop("size")
        self.fopd.write_config()
        self.start()
        devices = {each["name"]: each for each in json.loads(self.ctl("--json", "devices"))["devices"]}
        self.assertEqual([each["state"] for each in devices.values()], ["good", "given-up"])
        why = f"given-up: {devices['d1']['reason']}\n"
        for verb in (["scrub"], ["store", "check"]):
            self.assertEqual(self.refused(*verb, "d1"), ("", f"fopctl: {' '.join(verb)}: device d1 is {why}"))
        # The others are looked at all the same.
        page, words = self.refused("scrub")
        self.assertRegex(page, r"\nd0 +(running|done) ")
        self.assertEqual(words, f"fopctl: scrub: device d1 is {why}")
        self.assertIn("d1", self.ctl("scrub", "--show"))
        self.ctl("scrub", "--end")
        page, words = self.refused("store", "check")
        self.assertRegex(page, r"\nd0 +done ")
        self.assertTrue(page.endswith(f"\nd1: {why}"), page)
        checks = self.check(code=REFUSED)
        self.assertEqual({name: each["state"] for name, each in checks.items()}, {"d0": "done", "d1": "never"})
        self.assertEqual(checks["d1"]["problem"] + "\n", why)
        self.fopd.stop(self.daemon)

    def test_a_check_of_a_damaged_log(self):
        self.start()
        count = self.put_on_both()
        self.assert_well(count)
        flip(self.images[0], LOG_BLOCK * 4096 + 100)
        checks = self.check(code=REFUSED)
        self.assertEqual((checks["d0"]["findings"], checks["d1"]["findings"]), (1, 0))
        found = checks["d0"]["found"][0]
        self.assertEqual((found["block"], found["log_entry"]), (LOG_BLOCK, 1))
        self.assertIn("log", found["reason"])
        page = self.ctl("store", "check", "d0", code=REFUSED)
        self.assertIn(f"disk block {LOG_BLOCK}", page)
        self.assertEqual(len(self.daemon.events("fopd.store.check_found")), 2)
        self.fopd.stop(self.daemon)

    def test_a_check_while_clients_are_at_work(self):
        self.start()
        self.ctl("put", "-", "load", text="x" * (4 << 20))
        done = []

        def work():
            done.append(json.loads(self.ctl("bench", "--op", "write", "--size", "16k", "--depth", "16", "--seconds", "3",
                                            "--object", "load", "--json")))
        load = threading.Thread(target=work)
        load.start()
        while load.is_alive():
            self.assertEqual({each["findings"] for each in self.check().values()}, {0})
        load.join()
        self.assertEqual([each["errors"] for each in done], [0])
        self.assertGreater(done[0]["ops"], 0)
        self.fopd.stop(self.daemon)

    def check_offline(self, code=DONE):
        done = run_fopd("--config", self.fopd.config_path, "--check-store")
        self.assertEqual(done.returncode, code, done.stderr)
        return {each["device"]: each for each in json.loads(done.stdout)["checks"]} if code in (DONE, REFUSED) else done

    def test_a_check_without_a_daemon(self):
        self.start()
        count = self.put_on_both()
        self.assertEqual(self.check_offline(code=IN_USE).stdout, "")
        self.daemon.kill()
        before = self.digests()
        checks = self.check_offline()
        self.assertEqual({(each["state"], each["findings"]) for each in checks.values()}, {("done", 0)})
        self.assertEqual(sum(each["objects"] for each in checks.values()), count)
        self.lose("index")
        checks = self.check_offline()
        self.assertEqual(sum(each["objects"] for each in checks.values()), count)
        self.assertFalse((self.fopd.data_dir / "index").exists())
        self.assertEqual(self.digests(), before)
        flip(self.images[0], LOG_BLOCK * 4096 + 100)
        self.assertGreater(self.check_offline(code=REFUSED)["d0"]["findings"], 0)
        self.images[1].unlink()
        self.assertIn("No such file", self.check_offline(code=REFUSED)["d1"]["problem"])
        self.assertFalse(self.images[1].exists())

    def digests(self):
        return [hashlib.sha256(image.read_bytes()).hexdigest() for image in self.images]

    # -- store backup --

    def lose(self, *names):
        for name in names:
            path = self.fopd.data_dir / name
            shutil.rmtree(path) if path.is_dir() else path.unlink()

    def restore(self, code=DONE):
        done = run_fopd("--config", self.fopd.config_path, "--restore-store", self.backup)
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def test_a_backup_puts_back_everything(self):
        self.start()
        self.put("a", "b")
        # Of each its object, its extent, the reply to its commit and its name.
        wait_until(lambda: self.backed_up()["entries"] >= 8, "a checkpoint")
        self.backup.write_text("an older one")
        self.assertRegex(self.ctl("store", "backup", self.backup), r"B, 4 indexes, \d+ entries")
        self.assertEqual(self.backup.stat().st_mode & 0o777, 0o600)
        self.assertEqual([each.name for each in self.fopd.path.iterdir() if "tmp" in each.name], [])
        self.put("c")
        self.ctl("rm", "b")
        self.daemon.kill()
        node_id = (self.fopd.data_dir / "node.id").read_text()
        slots = (self.fopd.data_dir / "slots").read_text()
        self.lose("index", "names", "slots", "node.id")

        done = self.restore()
        self.assertEqual(done.stdout.count(": restored\n"), 6)
        self.assertEqual((self.fopd.data_dir / "node.id").read_text(), node_id)
        self.assertEqual((self.fopd.data_dir / "slots").read_text(), slots)
        self.start()
        self.assertEqual(self.states(), {"d0": "good", "d1": "good"})
        self.assertEqual(self.daemon.events("fopd.daemon.index_rebuilt"), [])
        self.assertEqual(self.daemon.events("fopd.daemon.names_rebuilt"), [])
        self.assert_objects("a", "c")
        self.assert_well(2)
        self.fopd.stop(self.daemon)

    def backed_up(self):
        return json.loads(self.ctl("--json", "store", "backup", self.backup))

    def test_what_is_there_stays(self):
        self.start()
        self.put("a")
        self.ctl("store", "backup", self.backup)
        self.put("b")
        self.fopd.stop(self.daemon)
        self.lose("names")
        done = self.restore()
        self.assertEqual((done.stdout.count(": restored\n"), done.stdout.count("stays\n")), (2, 4))
        self.start()
        self.assert_objects("a", "b")
        self.assert_well(2)
        self.fopd.stop(self.daemon)

    def test_a_backup_that_is_not_whole_or_anothers(self):
        self.start()
        self.put("a")
        self.ctl("store", "backup", self.backup)
        refused = run_fopd("--config", self.fopd.config_path, "--restore-store", self.backup)
        self.assertEqual(refused.returncode, IN_USE)
        self.fopd.stop(self.daemon)
        self.lose("index")
        whole = self.backup.read_bytes()
        for damaged in (b"", whole[:-1], whole[:len(whole) // 2], whole + b"\0", b"?" + whole[1:],
                        whole[:200] + bytes([whole[200] ^ 1]) + whole[201:]):
            self.backup.write_bytes(damaged)
            self.assertIn(str(self.backup), self.restore(code=DATA_DIR).stderr)
            self.assertFalse((self.fopd.data_dir / "index").exists())
        self.backup.write_bytes(whole)
        (self.fopd.data_dir / "node.id").write_text("0" * 32 + "\n")
        self.assertIn("another node", self.restore(code=DATA_DIR).stderr)
        self.backup.unlink()
        self.assertIn(str(self.backup), self.restore(code=DATA_DIR).stderr)
        self.backup.write_bytes(whole)
        self.lose("node.id")
        self.restore()
        self.start()
        self.assert_objects("a")
        self.fopd.stop(self.daemon)

    def test_a_file_that_cannot_be_written(self):
        self.start()
        self.ctl("store", "backup", self.fopd.path / "nowhere" / "file", code=REFUSED)
        self.ctl("store", "backup", self.fopd.path, code=REFUSED)
        self.assertEqual([each.name for each in self.fopd.path.iterdir() if "tmp" in each.name], [])
        self.assertEqual([each.name for each in self.fopd.data_dir.iterdir() if "backup" in each.name], [])
        # The one that was made and could not be renamed is not kept.
        self.assertEqual(self.daemon.ask("GET", "/v1/store/backup-part?backup=1&at=0")[0], 404)
        self.assertEqual(self.daemon.ask("GET", "/v1/store/backup-part?backup=1&at=x")[0], 400)
        self.fopd.stop(self.daemon)

    # -- what is lost is made anew from the disks --

    def test_rescue(self):
        names = []
        for number, lost in enumerate((("index",), ("names",), ("index", "names"), ("slots",),
                                       ("index", "names", "slots"))):
            with self.subTest(lost=lost):
                self.start()
                fresh = [f"object-{number}-{each}" for each in range(3)]
                self.put(*fresh)
                names += fresh
                self.ctl("mv", fresh[0], fresh[0] + "-moved")
                names[names.index(fresh[0])] += "-moved"
                self.ctl("rm", fresh[1])
                names.remove(fresh[1])
                self.daemon.kill()
                self.lose(*lost)
                self.start()
                self.assertEqual(self.states(), {"d0": "good", "d1": "good"})
                self.assert_objects(*names)
                self.assert_well(len(names))
                self.fopd.stop(self.daemon)

    def test_rescue_of_the_nodes_id(self):
        """The disks say to whom they belong; who knows that can write it down again."""
        self.start()
        self.put("a")
        self.daemon.kill()
        self.lose("node.id", "index", "names", "slots")
        daemon = self.fopd.start()
        self.assertNotEqual(daemon.wait_end(), DONE)
        owner = re.search("belongs to node ([0-9a-f]{32})", daemon.log())[1]
        (self.fopd.data_dir / "node.id").write_text(owner + "\n")
        self.start()
        self.assertEqual(self.states(), {"d0": "good", "d1": "good"})
        self.assert_objects("a")
        self.fopd.stop(self.daemon)


if __name__ == "__main__":
    import unittest
    unittest.main()

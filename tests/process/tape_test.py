"""Objects of a tape pool, as their users see them: put, sync, release, get, over kills and restarts of the daemon."""

import json
import re
import unittest

from fopd_process import DONE, NO_SERVER, USAGE, wait_until
from storage_process import MIB, NOT_FOUND, REFUSED, TRY_LATER, content
from tape_process import COLD, TapeTestCase


class TapeTest(TapeTestCase):
    def space(self):
        return next(each for each in self.answer("df")["pools"] if each["pool"] == "cold")

    def test_the_space_of_a_tape_pool(self):
        before = self.space()
        self.assertEqual((before["capacity"], before["used"], before["free"], before["objects"]), (0, 0, 0, 0))
        self.put("a", content(2 * MIB), *COLD)
        self.assertEqual(self.space()["used"], 2 * MIB)
        self.ctl("sync", *COLD)
        self.ctl("release", "a", *COLD)
        after = self.space()
        labelled = [each for each in self.media() if each["pool"] == "cold"]
        self.assertEqual(after["capacity"], sum(each["capacity"] for each in labelled))
        self.assertGreater(after["capacity"], after["free"])
        self.assertGreater(after["free"], 0)
        self.assertEqual((after["used"], after["objects"]), (2 * MIB, 1))

    def test_what_left_the_disks_comes_back(self):
        small, large = content(5000), content(20 * MIB + 17, 1)
        self.put_on_tape("small", small)
        self.put_on_tape("large", large)
        self.assertEqual(self.allocated("large"), 0)
        self.assertEqual(self.answer("stat", "large", *COLD)["size"], len(large))

        self.assertEqual(self.get_cold("large"), large)
        self.assertEqual(self.get_cold("small"), small)
        self.assertGreater(self.allocated("large"), 0)

    def test_bytes_on_tape_outlive_kills(self):
        first, second = content(3 * MIB, 2), content(3 * MIB, 3)
        self.put_on_tape("first", first)
        self.kill_and_start()
        self.assertEqual(self.allocated("first"), 0)
        self.put_on_tape("second", second)
        self.kill_and_start()
        self.assertEqual(self.get_cold("first"), first)
        self.assertEqual(self.get_cold("second"), second)
        self.stop()
        self.start()
        self.assertEqual(self.get_cold("first"), first)

    def test_changes_wait_for_the_bytes(self):
        data = content(MIB, 4)
        self.put_on_tape("a", data)
        self.ctl("append", "a", *COLD, data=b"more")
        self.assertEqual(self.get_cold("a"), data + b"more")
        # What changed is not on tape any more.
        self.refused(TRY_LATER, ["release: a: "], "release", "a", *COLD)
        self.ctl("sync", *COLD)
        self.ctl("release", "a", *COLD)
        self.ctl("write", "a", "--offset", "10", *COLD, data=b"xyz")
        self.assertEqual(self.get_cold("a"), data[:10] + b"xyz" + data[13:] + b"more")

    def test_objects_of_a_disk_pool_do_not_leave_the_disk(self):
        self.put("a", b"data")
        self.ctl("sync", "--pool", "fast")
        for options, where in (([], ""), (["--pool", "fast"], "pool fast: ")):
            self.refused(NOT_FOUND, [f"release: a: {where}the object's pool is not a tape pool of this node"], "release", "a", *options)
        done = self.ctl_bytes("--json", "release", "a")
        self.assertEqual(json.loads(done.stderr)["code"], "wrong_pool", done.stderr)
        # Its bytes are on a disk, as a stage asks for.
        self.assertEqual(self.answer("stage", "a")["staged"][0]["state"], "on_disk")
        self.assertEqual(self.get("a"), b"data")

    def test_where_the_copies_are(self):
        self.put("a", content(MIB, 6), *COLD)
        before = self.answer("stat", "a", *COLD)
        self.assertEqual((before["on_disk"], before["copies"]), (True, []))
        self.ctl("sync", *COLD)
        copy, = self.answer("stat", "a", *COLD)["copies"]
        used, = [each for each in self.media() if each["files"] > 0]
        self.assertEqual((copy["medium"], copy["state"], copy["file"]), (used["name"], "ok", 1))
        self.assertEqual((copy["offset"], copy["size"]), (0, MIB))
        page = self.ctl("stat", "a", *COLD).decode()
        self.assertIn(f"\ncopy       {used['name']} file 1\n", page)
        self.assertNotIn("on disk", page)
        self.ctl("release", "a", *COLD)
        self.assertFalse(self.answer("stat", "a", *COLD)["on_disk"])
        self.assertIn("\non disk    no\n", self.ctl("stat", "a", *COLD).decode())
        # What changes is not on tape any more.
        self.ctl("append", "a", *COLD, data=b"more")
        self.assertEqual(self.answer("stat", "a", *COLD)["copies"], [])

    def test_a_library_that_is_not_open(self):
        self.put_on_tape("a", content(MIB, 9))
        used = next(each["name"] for each in self.media() if each["files"] > 0)
        self.put("b", b"b", *COLD)
        self.stop()
        table = self.dir / "data" / "media"
        good = table.read_bytes()
        table.write_bytes(b"no table")
        self.start()
        wait_until(lambda: "fopd.library.not_open" in self.daemon.log(), "it is not open")
        words = ["the tape library is not open: "]
        for arguments in (["media"], ["drives"], ["sync", *COLD], ["get", "a", "-", *COLD], ["unload", "vtl0-drive0"],
                          ["load", used, "vtl0-drive0"], ["format", used, *COLD], ["repack", used], ["scrub", "--medium", used],
                          ["drive", "down", "vtl0-drive0"]):
            with self.subTest(arguments[0]):
                self.refused(TRY_LATER, words, "--timeout", 60, *arguments)
        self.assertEqual(self.ctl("get", "b", "-", *COLD), b"b")
        self.stop()
        table.write_bytes(good)
        self.start()
        self.assertEqual(self.get_cold("a"), content(MIB, 9))

    def test_staging_in_bulk(self):
        names = [f"run-{number}" for number in range(5)]
        for name in names:
            self.put(name, content(100_000, name), *COLD)
        self.ctl("sync", *COLD)
        self.ctl("release", *names, *COLD)
        staged = self.answer("stage", *names, "--pin", "1h", *COLD)["staged"]
        self.assertEqual([each["name"] for each in staged], names)
        wait_until(lambda: self.answer("queue")["total"] == 0, "all are back")
        for name in names:
            self.assertEqual(self.answer("stage", name, *COLD)["staged"][0]["state"], "on_disk")
            self.assertEqual(self.get_cold(name), content(100_000, name))
        self.refused(TRY_LATER, ["release: run-0: "], "release", "run-0", *COLD)
        until = self.answer("stat", "run-0", *COLD)["pinned_until"]
        self.assertIn("\npinned     until ", self.ctl("stat", "run-0", *COLD).decode())
        self.answer("stage", "run-0", "--pin", "10min", *COLD)
        self.assertLess(self.answer("stat", "run-0", *COLD)["pinned_until"], until)
        self.assertEqual(self.answer("stage", "run-0", "--pin", "0s", *COLD)["staged"][0]["state"], "unpinned")
        self.assertIsNone(self.answer("stat", "run-0", *COLD)["pinned_until"])
        self.ctl("release", "run-0", *COLD)
        self.refused(NOT_FOUND, ["stage: none: "], "stage", "none", *COLD)
        self.refused(NOT_FOUND, ["cancel: run-0: "], "cancel", "run-0", *COLD)

    def test_a_get_ends_when_the_daemon_is_gone(self):
        self.put_on_tape("a", content(20 * MIB, 1))
        for each in self.answer("drives")["drives"]:
            self.ctl("unload", each["name"])
        self.stop()
        real = ("name: vtl0,", "name: vtl0, timing: real,")
        self.start_with(timing=real)
        wait_until(lambda: "fopd.library.open" in self.daemon.log(), "the library is open")
        getting = self.start_ctl("--timeout", 10, "get", "a", self.directory / "copy", *COLD)
        wait_until(lambda: self.answer("queue")["total"] == 1, "it waits")
        self.daemon.kill()
        self.assertEqual(getting.wait(120), NO_SERVER)
        self.assertIn(b"Connection refused", getting.stderr.read())
        self.start_with(timing=real[::-1])
        self.assertEqual(self.get_cold("a"), content(20 * MIB, 1))

    def test_a_collection_stays_with_its_object(self):
        self.put("a", b"some", "--collection", "run-7", *COLD)
        self.put("b", b"other", *COLD)
        self.ctl("mv", "a", "c", *COLD)
        self.stop()
        self.start()
        self.assertEqual([self.answer("stat", name, *COLD)["collection"] for name in ("c", "b")], ["run-7", ""])
        self.assertIn(b"\ncollection run-7\n", self.ctl("stat", "c", *COLD))
        self.assertNotIn(b"\ncollection", self.ctl("stat", "b", *COLD))
        self.refused(USAGE, ["put: d: the collection "], "put", "-", "d", "--collection", "x" * 65, *COLD, data=b"d")

    def used(self):
        whole = [each for each in self.answer("quota")["quotas"] if each["pool"] == "cold" and each["owner"] is None]
        return whole[0]["used"]

    def test_quotas_count_what_is_on_tape_once(self):
        data = content(5 * MIB + 17, 6)
        self.put("a", data, *COLD)
        on_disk = self.used()
        self.assertGreaterEqual(on_disk, len(data))
        self.ctl("sync", *COLD)
        self.assertEqual(self.used(), on_disk)
        self.ctl("release", "a", *COLD)
        self.assertEqual(self.used(), on_disk)
        self.kill_and_start()
        self.assertEqual(self.used(), on_disk)
        self.assertEqual(self.get_cold("a"), data)
        self.assertEqual(self.used(), on_disk)
        self.kill_and_start()
        self.assertEqual(self.used(), on_disk)
        self.ctl("sync", *COLD)
        self.ctl("release", "a", *COLD)
        self.ctl("rm", "a", *COLD)
        self.assertEqual(self.used(), 0)

    def test_a_tree_that_cannot_fit_the_quota_is_not_begun(self):
        key = self.directory / "ada.key"
        self.ctl("key", "create", "ada", "--quota", "cold=1MiB", "--out", key)
        source = self.directory / "tree"
        source.mkdir()
        for number in range(150):  # 1200 KiB.
            (source / str(number)).write_bytes(content(8 << 10, number))
        done = self.ctl_bytes("put", "-r", source, "a/", *COLD, "--key", key)
        self.assertEqual(done.returncode, REFUSED, done.stderr)
        self.assertIn(b"quota of ada in pool cold: 0 of 1048576 bytes used, 1228800 more wanted; nothing is stored", done.stderr)
        self.assertEqual(self.names(*COLD), [])
        for number in range(100, 150):
            (source / str(number)).unlink()
        self.ctl("put", "-r", source, "a/", *COLD, "--key", key)
        self.assertEqual(len(self.names(*COLD)), 100)

    def test_what_cannot_fit_the_quota_of_an_administrator_is_not_sent(self):
        key = self.directory / "chief.key"
        self.ctl("key", "create", "chief", "--rights", "read,write,create,delete,admin", "--quota", "cold=1MiB", "--out", key)
        source = self.directory / "tree"
        source.mkdir()
        for number in range(150):  # 1200 KiB.
            (source / str(number)).write_bytes(content(8 << 10, number))
        words = b"quota of chief in pool cold: 0 of 1048576 bytes used, 1228800 more wanted; nothing "
        moved = "fopd_bulk_bytes_pulled_total", "fopd_message_bytes_received_total"
        before = [self.daemon.metrics()[each] for each in moved]
        for verb in (["put", "-r"], ["mirror", "put"], ["put", "-r", "--dry-run"], ["mirror", "put", "--dry-run"]):
            with self.subTest(verb):
                done = self.ctl_bytes(*verb, source, "a/", *COLD, "--key", key)
                self.assertEqual(done.returncode, REFUSED, done.stderr)
                self.assertIn(words, done.stderr)
        large = self.directory / "large"
        large.write_bytes(content(2 * MIB))
        self.refused(REFUSED, ["put: large: ", "quota of chief in pool cold: 0 of 1048576 bytes used, 2097152 more wanted"],
                     "put", large, "large", *COLD, "--key", key)
        pulled, received = (self.daemon.metrics()[each] - earlier for each, earlier in zip(moved, before))
        self.assertEqual(pulled, 0)
        self.assertLess(received, 256 << 10)
        self.assertEqual(self.names(*COLD), [])

    def test_uploads_wait_while_the_staging_is_full(self):
        self.start_anew("64MiB")
        objects = {f"o-{number}": content(12 * MIB, number) for number in range(16)}
        for name, data in objects.items():
            self.ctl("--timeout", 120, "put", "-", name, *COLD, data=data)
        # Of all disks together, they had space for few of them.
        self.assertGreater(sum(self.allocated(name) == 0 for name in objects), 4)
        for name, data in objects.items():
            self.assertEqual(self.ctl("--timeout", 120, "get", name, "-", *COLD), data)

    def test_uploads_at_once_do_not_wait_for_each_other(self):
        self.start_anew("64MiB")
        data = content(24 * MIB)
        file = self.directory / "file"
        file.write_bytes(data)
        # Together they are larger than the disks.
        putting = {f"o-{number}": self.start_ctl("--timeout", 120, "put", file, f"o-{number}", *COLD) for number in range(6)}
        for name, each in putting.items():
            self.assertEqual(each.wait(240), DONE, (name, each.stderr.read()))
        for name in putting:
            self.assertEqual(self.ctl("--timeout", 120, "get", name, "-", *COLD), data)

    def test_uploads_end_when_no_room_comes_free(self):
        self.start_anew("64MiB")
        others = []
        while self.ctl_bytes("put", "-", f"other-{len(others)}", data=content(4 * MIB)).returncode == DONE:
            others.append(f"other-{len(others)}")
        self.assertGreater(len(others), 4)
        data = content(24 * MIB)
        self.refused(TRY_LATER, ["put: a: the staging disks are full"], "--timeout", 2, "put", "-", "a", *COLD, data=data)
        # Of a size that is known.
        file = self.directory / "file"
        file.write_bytes(data)
        self.refused(TRY_LATER, ["the staging disks are full"], "--timeout", 2, "put", file, "a", *COLD)
        self.assertEqual(self.names(*COLD), [])
        self.refused(REFUSED, ["space"], "put", file, "a")
        self.ctl("rm", *others)
        self.ctl("put", file, "a", *COLD)
        self.assertEqual(self.get_cold("a"), data)

    def test_a_stop_does_not_wait_for_drives_for_long(self):
        data = content(MIB, 11)
        self.put_on_tape("a", data)
        medium, drive = next((each["name"], each["drive"]) for each in self.media() if each["drive"])
        self.ctl("unload", drive)
        self.stop()
        real = ("name: vtl0,", "name: vtl0, timing: real,")
        soon = ("name: dev,", "name: dev, drain_timeout: 2s,")
        # Without a verb that waits for the drive, and with one.
        for verb in (["get", "a", "-", *COLD], ["load", medium, drive]):
            with self.subTest(verb=verb[0]):
                self.start_with(timing=real, drain=soon)
                wait_until(lambda: "fopd.library.open" in self.daemon.log(), "the library is open")
                self.assertEqual(len(self.media()), 8)
                self.start_ctl(*verb)
                wait_until(lambda: "exchanging" in {each["state"] for each in self.daemon.ask("GET", "/v1/media")[1]["drives"]},
                           "a drive loads the cartridge")
                self.stop()
                log = self.daemon.log()
                self.assertRegex(log, r"fopd\.library\.left_running .*vtl0-drive\d is exchanging")
                self.assertEqual(log.count("fopd.daemon.device_closed"), len(list(self.dir.glob("*.img"))), log)
                self.start_with(timing=real[::-1], drain=soon[::-1])
                self.assertEqual(self.get_cold("a"), data)
                self.ctl("release", "a", *COLD)
                self.ctl("unload", next(each["drive"] for each in self.media() if each["drive"]))
                self.stop()
        self.start()

    def test_a_get_ends_when_its_recall_is_cancelled(self):
        self.put_on_tape("a", content(20 * MIB, 1))
        for each in self.answer("drives")["drives"]:
            self.ctl("unload", each["name"])
        self.stop()
        # To load a cartridge takes as long as in a real drive.
        config = self.dir / "fopd.yaml"
        text = config.read_text()
        self.assertRegex(text, r"(?m)^  - \{ name: vtl0, .*\}$")
        config.write_text(re.sub(r"(?m)^(  - \{ name: vtl0, .*) \}$", r"\1, timing: real }", text))
        self.start()
        wait_until(lambda: "fopd.library.open" in self.daemon.log(), "the library is open")
        getting = self.start_ctl("--timeout", 120, "get", "a", self.directory / "copy", *COLD)
        wait_until(lambda: self.answer("queue")["total"] == 1, "it waits")
        self.ctl("cancel", "a", *COLD)
        self.assertEqual(getting.wait(60), REFUSED)
        self.assertIn(b"get: a: its recall from tape was cancelled", getting.stderr.read())
        self.assertEqual(self.answer("queue")["total"], 0)
        self.assertFalse((self.directory / "copy").exists())
        self.daemon.kill()  # The drive is busy for long.


if __name__ == "__main__":
    unittest.main()

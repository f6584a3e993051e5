"""Cartridges, drives and the library, as administrators see them: what they do with them, and that no object is lost."""

import json
import re
import unittest

from fopd_process import CONFIG, DONE, USAGE, ProcessTestCase, run_fopd, wait_until
from storage_process import MIB, NOT_FOUND, REFUSED, TRY_LATER, content
from tape_process import COLD, TapeTestCase


class TapeMediaTest(TapeTestCase):
    def test_the_admin_socket_lists_the_same_media(self):
        self.put_on_tape("a", content(MIB, 7))
        self.ctl("rm", "a", *COLD)
        status, value = self.daemon.ask("GET", "/v1/media")
        self.assertEqual(status, 200)
        self.assertEqual(value["media"], self.media())
        self.assertEqual(sum(each["dead"] for each in value["media"]), MIB)
        self.assertEqual(sorted(each["name"] for each in value["drives"]), ["vtl0-drive0", "vtl0-drive1"])
        loaded = [each for each in value["drives"] if each["medium"]]
        self.assertEqual([each["drive"] for each in value["media"] if each["drive"]], [each["name"] for each in loaded])
        self.assertEqual({each["state"] for each in value["drives"]}, {"idle"})
        self.assertEqual(self.answer("drives")["drives"], value["drives"])
        self.assertEqual(sum(each["mounts"] for each in value["drives"]), sum(each["mounts"] for each in self.media()))
        page = self.ctl("drives").decode()
        for each in value["drives"]:
            self.assertRegex(page, rf"(?m)^{each['name']} +lto9 +idle +{each['medium'] or '-'} +{each['mounts']}$")

    def test_a_drive_and_a_cartridge_that_are_not_free(self):
        self.put_on_tape("a", content(MIB, 8))
        used, = [each for each in self.media() if each["drive"]]
        other, = {"vtl0-drive0", "vtl0-drive1"} - {used["drive"]}
        self.refused(REFUSED, [f"load: cartridge {used['name']} is in drive {used['drive']}"], "load", used["name"], other)
        self.ctl("unload", used["drive"])
        self.ctl("load", used["name"], other)
        self.assertEqual([each["drive"] for each in self.media() if each["drive"]], [other])

    def test_cartridges(self):
        # The library is opened while objects are served already.
        wait_until(lambda: len(self.media()) == 8, "the library is open")
        self.assertEqual({each["family"] for each in self.media()}, {"tape"})
        data = content(MIB, 5)
        self.put_on_tape("a", data)
        used = [each for each in self.media() if each["pool"] == "cold" and each["files"] > 0]
        self.assertGreaterEqual(len(used), 1)
        self.assertGreaterEqual(sum(each["used"] for each in used), len(data))
        full = used[0]["name"]
        self.refused(REFUSED, [f"format: cartridge {full} has "], "format", full, *COLD)
        self.refused(NOT_FOUND, ["format: there is no cartridge nothing"], "format", "nothing", *COLD)
        self.refused(NOT_FOUND, ["unload: there is no drive no-drive"], "unload", "no-drive")
        self.assertEqual(self.get_cold("a"), data)
        self.assertEqual(sum(each["dead"] for each in self.media()), 0)
        self.assertEqual(sum(each["live"] for each in self.media()), len(data))
        self.ctl("rm", "a", *COLD)
        self.assertEqual([each["dead"] for each in self.media() if each["name"] == full], [len(data)])

    def test_a_cartridge_that_is_brought_back_is_used(self):
        data = content(MIB, 9)
        self.put_on_tape("a", data)
        used, = [each for each in self.media() if each["files"] > 0]
        self.ctl("unload", used["drive"])
        library = next(self.directory.rglob(used["name"] + ".cartridge")).parent
        shelf = self.directory / "shelf"
        shelf.mkdir()
        for file in list(library.glob(used["name"] + ".*")):
            file.rename(shelf / file.name)
        refused = self.ctl_bytes("get", "a", "-", *COLD)
        self.assertNotEqual(refused.returncode, DONE)
        self.assertIn(used["name"].encode(), refused.stderr)
        state, = [each["state"] for each in self.media() if each["name"] == used["name"]]
        self.assertEqual(state, "missing")
        for file in list(shelf.iterdir()):
            file.rename(library / file.name)
        self.assertEqual(self.get_cold("a"), data)

    def test_a_cartridge_is_exported_and_imported(self):
        data = content(MIB, 33)
        self.put_on_tape("a", data)
        used, = [each["name"] for each in self.media() if each["files"] > 0]
        words = [f"export: 1 object has its only copy on cartridge {used}, ", "; --yes confirms that: a"]
        self.refused(REFUSED, words, "export", used)
        self.refused(NOT_FOUND, ["export: there is no cartridge nothing"], "export", "nothing")
        done = self.answer("export", used, "--yes")
        self.assertEqual(done, {"name": used, "mail_slot": True, "objects": 1, "only_here": 1})
        library = next(self.directory.rglob(used + ".cartridge")).parent
        self.assertRegex((library / "positions").read_text(), rf"(?m)^100\d {used}$")
        shelf = self.directory / "shelf"
        shelf.mkdir()
        for file in list(library.glob(used + ".*")):
            file.rename(shelf / file.name)
        self.kill_and_start()
        words = [f"get: a: its bytes cannot be read from tape: cartridge {used} is exported (fopctl import takes it into use again)"]
        self.refused(REFUSED, words, "get", "a", "-", *COLD)
        self.assertEqual([each["state"] for each in self.media() if each["name"] == used], ["exported"])
        self.assertEqual(len(self.answer("stat", "a", *COLD)["copies"]), 1)
        self.refused(REFUSED, [f"import: cartridge {used} is not in the library"], "import", used)
        self.assertEqual(self.ctl("import"), b"no cartridge to import\n")
        for file in list(shelf.iterdir()):
            file.rename(library / file.name)
        self.assertEqual([each["name"] for each in self.answer("import")["media"]], [used])
        self.assertEqual(self.get_cold("a"), data)
        page = self.ctl("export", used).decode()
        self.assertEqual(page, f"{used} is in an import/export element; 1 object on it\n")

    def test_a_drain_unloads_the_drives(self):
        data = content(MIB, 34)
        self.put_on_tape("a", data)
        used, = [each["name"] for each in self.media() if each["drive"]]
        self.assertEqual(self.answer("drain")["state"], "drained")
        self.assertEqual(self.answer("drain", "--unload")["state"], "drained")
        drives = self.answer("drives")["drives"]
        self.assertEqual([each["medium"] for each in drives], [None, None])
        library = next(self.directory.rglob(used + ".cartridge")).parent
        self.assertRegex((library / "positions").read_text(), rf"(?m)^20\d\d {used}$")
        self.stop()
        self.start()
        self.assertEqual(self.get_cold("a"), data)

    def test_a_cartridge_is_repacked_over_a_kill_and_then_formatted(self):
        data = {f"r{i}": content(MIB + i, 20 + i) for i in range(8)}
        for name, bytes_of_it in data.items():
            self.put(name, bytes_of_it, *COLD)
        self.ctl("sync", *COLD)
        for name in list(data)[::2]:
            self.ctl("release", name, *COLD)
        medium = self.answer("stat", "r0", *COLD)["copies"][0]["medium"]
        self.refused(REFUSED, [f"format: cartridge {medium} has "], "format", medium, *COLD)
        self.assertEqual(self.answer("repack", medium, "--show")["state"], "none")
        self.refused(REFUSED, [f"repack: cartridge {medium} has no repack to end"], "repack", medium, "--end")
        self.refused(NOT_FOUND, ["repack: there is no cartridge V99999L9"], "repack", "V99999L9")

        self.start_ctl("repack", medium)
        wait_until(lambda: self.answer("repack", medium, "--show")["state"] != "none", "a repack")
        self.kill_and_start()
        done = self.answer("repack", medium)
        self.assertEqual((done["state"], done["failed"], done["failures"]), ("done", [], 0))
        for name in data:
            copy, = self.answer("stat", name, *COLD)["copies"]
            self.assertNotEqual(copy["medium"], medium)
        page = self.ctl("media").decode()
        self.assertIn(f"{medium}: it was repacked: no object has copies on it", page)
        self.ctl("format", medium, *COLD)
        for name, bytes_of_it in data.items():
            self.assertEqual(self.get_cold(name), bytes_of_it)

    def test_a_lost_node_comes_back_from_its_cartridges(self):
        data = {f"run/{i}": content(MIB // 2 + i, 40 + i) for i in range(6)}
        for name, bytes_of_it in data.items():
            self.put(name, bytes_of_it, "--collection", "run-7", *COLD)
        self.ctl("chmod", "644", "run/1", *COLD)
        self.ctl("chown", "ann:staff", "run/1", *COLD)
        self.ctl("sync", *COLD)
        # It has another content on tape, too.
        data["run/2"] = content(MIB, 50)
        self.put("run/2", data["run/2"], "--collection", "run-7", *COLD)
        self.ctl("sync", *COLD)
        self.put("on-a-disk-only", b"lost", *COLD)
        known = ("name", "fid", "size", "owner", "group", "mode", "created")
        before = {name: self.answer("stat", name, *COLD) for name in data}
        medium, = {copy["medium"] for each in before.values() for copy in each["copies"]}

        self.daemon.kill()
        self.forget_disks()
        self.start()
        self.refused(NOT_FOUND, ["get: run/0: "], "get", "run/0", "-", *COLD)
        self.refused(USAGE, ["rescue: name a cartridge, or say --all"], "rescue")
        self.refused(NOT_FOUND, ["rescue: there is no cartridge V99999L9"], "rescue", "V99999L9")
        own = content(5000, 60)
        self.put("run/5", own, *COLD)
        data.pop("run/5")
        self.start_ctl("rescue", "--all")
        wait_until(lambda: self.answer("rescue", "--all", "--show")["rescues"], "a rescue")
        self.kill_and_start()
        work, = json.loads(self.ctl("rescue", medium, "--json", exit_code=REFUSED))["rescues"]
        self.assertEqual([each["name"] for each in work["failed"]], ["run/5"])
        self.assertIn("has its name here", work["failed"][0]["reason"])
        for work in self.answer("rescue", "--all")["rescues"]:
            self.assertEqual((work["state"], work["copies"]), ("done", 0))

        for name, bytes_of_it in data.items():
            found = self.answer("stat", name, *COLD)
            self.assertEqual({key: found[key] for key in known}, {key: before[name][key] for key in known})
            self.assertFalse(found["on_disk"])
            self.assertEqual(self.get_cold(name), bytes_of_it)
        self.assertEqual(self.get_cold("run/5"), own)
        self.assertEqual(set(self.names(*COLD)), {*data, "run/5"})
        self.refused(NOT_FOUND, ["get: on-a-disk-only: "], "get", "on-a-disk-only", "-", *COLD)
        used, = [each for each in self.media() if each["files"] > 0]
        self.assertEqual((used["state"], used["pool"]), ("ok", "cold"))
        # It is read and written like others.
        self.ctl("sync", *COLD)
        self.ctl("release", "run/5", *COLD)
        self.kill_and_start()
        self.assertEqual(self.get_cold("run/5"), own)
        self.assertEqual(self.get_cold("run/2"), data["run/2"])

    def test_a_drive_that_is_down_stays_down(self):
        self.put_on_tape("first", content(5000, 32))
        one = next(each["drive"] for each in self.media() if each["drive"])
        known = [one[:-1] + str(i) for i in range(2)]
        for each in known:
            self.answer("drive", "down", each)
        self.kill_and_start()
        self.put("d", content(5000, 31), *COLD)
        self.refused(REFUSED, ["sync: "], "sync", *COLD)
        self.assertEqual(self.answer("drive", "up", known[0]), {"drive": known[0], "state": "up"})
        self.ctl("sync", *COLD)
        self.refused(NOT_FOUND, ["drive down: there is no drive no"], "drive", "down", "no")

    def test_why_nothing_comes_from_tape(self):
        self.put_on_tape("a", content(5000, 33))
        for each in self.answer("drives")["drives"]:
            self.answer("drive", "down", each["name"])
        why = "all drives of library vtl0 are down; `fopctl drives` shows why, and `fopctl drive up` takes one into use again"
        self.refused(TRY_LATER, [f"get: a: its bytes are still on tape: {why}"], "--timeout", 5, "get", "a", "-", *COLD)
        queue = self.answer("queue")
        self.assertEqual((queue["total"], queue["reason"]), (1, why))
        self.assertTrue(self.ctl("queue").decode().startswith(f"nothing is brought back now: {why}\n"))
        done = self.ctl_bytes("stage", "a", *COLD)
        self.assertEqual((done.returncode, done.stderr.decode()), (DONE, f"fopctl: stage: nothing is brought back now: {why}\n"))
        staged, = self.answer("stage", "a", *COLD)["staged"]
        self.assertEqual((staged["state"], staged["reason"]), ("waiting", why))
        self.answer("drive", "up", "vtl0-drive0")
        self.assertEqual(self.get_cold("a"), content(5000, 33))
        self.assertNotIn("reason", self.answer("queue"))

    def test_a_queue_that_is_longer_than_a_list(self):
        names = [f"{number:02}" + "n" * 400 for number in range(80)]
        for name in names:
            self.put(name, b"x", *COLD)
        self.ctl("sync", *COLD)
        self.ctl("release", *names, *COLD)
        for each in self.answer("drives")["drives"]:
            self.answer("drive", "down", each["name"])
        self.answer("stage", *names, *COLD)
        queue = self.answer("queue")
        listed = len(queue["recalls"])
        self.assertEqual(queue["total"], 80)
        self.assertTrue(0 < listed < 80, listed)
        self.assertGreater(queue["oldest_s"], 0)
        self.assertIn(f"\nfirst {listed} of 80 recalls, ", self.ctl("queue").decode())

    def test_a_cartridge_is_scrubbed(self):
        self.put_on_tape("s", content(MIB, 30))
        medium, = [each["name"] for each in self.media() if each["files"] > 0]
        work, = self.answer("scrub", "--pool", "cold")["scrubs"]
        self.assertEqual((work["medium"], work["state"], work["copies_done"], work["failures"]), (medium, "done", 1, 0))
        row, = [each for each in self.media() if each["name"] == medium]
        self.assertGreater(row["scrubbed"], 1_700_000_000)
        self.assertEqual(row["damaged"], 0)
        self.refused(REFUSED, [f"scrub: cartridge {medium} has no scrub to end"], "scrub", "--medium", medium, "--end")
        self.refused(USAGE, ["scrub: name either"], "scrub", "d0", "--medium", medium)
        self.refused(NOT_FOUND, ["scrub: pool nowhere: there is no pool of that name"], "scrub", "--pool", "nowhere")
        nothing = self.ctl_bytes("scrub", "--pool", "fast", "--json")
        self.assertEqual((nothing.returncode, json.loads(nothing.stdout)), (DONE, {"scrubs": []}))
        self.assertEqual(json.loads(nothing.stderr)["error"], "scrub: pool fast has no cartridge to scrub")

    # -- what must not be lost --

    def test_a_refused_format_changes_nothing(self):
        data = content(MIB, 8)
        self.put_on_tape("a", data)
        medium, = [each["name"] for each in self.media() if each["files"] > 0]
        drive, = [each["drive"] for each in self.media() if each["drive"]]
        self.refused(REFUSED, [f"format: cartridge {medium} ", "1 object with no other copy would be lost"], "format", medium, "--force", *COLD)
        self.refused(USAGE, ["--force"], "format", medium, "--yes", *COLD)
        self.ctl("unload", drive)
        self.protect(medium, "yes")
        self.refused(REFUSED, [f"format: cartridge {medium} ", "write-protected"], "format", medium, "--force", "--yes", *COLD)
        self.assertEqual(self.get_cold("a"), data)
        read_only, = [each for each in self.media() if each["name"] == medium]
        self.assertEqual((read_only["state"], read_only["reason"]), ("read-only", "it is write-protected"))
        self.ctl("unload", read_only["drive"])
        self.protect(medium, "no")
        self.ctl("release", "a", *COLD)
        self.assertEqual(self.get_cold("a"), data)
        self.assertEqual([each["state"] for each in self.media() if each["name"] == medium], ["ok"])
        self.ctl("release", "a", *COLD)
        self.ctl("format", medium, "--force", "--yes", *COLD)
        self.assertEqual([each["files"] for each in self.media() if each["name"] == medium], [0])

    def test_a_format_waits_for_a_disk_that_is_away(self):
        data = {f"o{i}": content(MIB + i, i) for i in range(6)}
        for name, bytes_of_it in data.items():
            self.put(name, bytes_of_it, *COLD)
        self.ctl("sync", *COLD)
        self.ctl("release", *data, *COLD)
        medium, = [each["name"] for each in self.media() if each["files"] > 0]
        self.stop()
        disk = self.dir / "d1.img"
        away = disk.rename(self.directory / "away.img")
        self.start()
        wait_until(lambda: "fopd.library.open" in self.daemon.log(), "the library is open")
        for force in ([], ["--force"]):
            self.refused(REFUSED, [f"format: cartridge {medium} ", "disk that is missing"], "format", medium, *force, *COLD)
        self.stop()
        disk.unlink(missing_ok=True)
        away.rename(disk)
        self.start()
        for name, bytes_of_it in data.items():
            self.assertEqual(self.get_cold(name), bytes_of_it)

    def test_a_format_that_waits_is_listed_and_cancelled(self):
        self.stop()
        # To load a cartridge takes as long as in a real drive.
        self.start_with(timing=("name: vtl0,", "name: vtl0, timing: real,"))
        wait_until(lambda: "fopd.library.open" in self.daemon.log(), "the library is open")
        self.ctl("drive", "down", "vtl0-drive1")
        first, second = [each["name"] for each in self.media() if each["state"] == "blank"][:2]
        self.refused(NOT_FOUND, [f"cancel: format:{first}: no format of cartridge {first} waits"], "cancel", f"format:{first}")
        running = self.start_ctl("--timeout", 600, "format", first, *COLD)
        wait_until(lambda: [each["state"] for each in self.answer("queue")["formats"]] == ["running"], "it has the drive")
        waiting = self.start_ctl("--timeout", 600, "format", second, *COLD)
        wait_until(lambda: len(self.answer("queue")["formats"]) == 2, "it waits")
        found = [(each["ticket"], each["medium"], each["pool"], each["state"]) for each in self.answer("queue")["formats"]]
        self.assertEqual(found, [(f"format:{first}", first, "cold", "running"), (f"format:{second}", second, "cold", "waiting")])
        self.assertRegex(self.ctl("queue").decode(), rf"(?m)^{second} +cold +waiting .* format:{second}$")

        self.refused(REFUSED, [f"cancel: format:{first}: the format of cartridge {first} has begun"], "cancel", f"format:{first}")
        done = self.answer("cancel", f"format:{second}")
        self.assertEqual(done, {"cancelled": [{"name": f"format:{second}", "ticket": f"format:{second}"}]})
        self.assertNotEqual(waiting.wait(60), DONE)
        self.assertIn(b"it was cancelled while it waited for a drive", waiting.stderr.read())
        self.assertEqual(running.wait(300), DONE)
        self.assertEqual(self.answer("queue")["formats"], [])
        self.assertEqual({each["name"]: each["state"] for each in self.media() if each["name"] in (first, second)},
                         {first: "ok", second: "blank"})

    def test_a_repack_of_a_pool_that_is_gone_does_not_go_on(self):
        self.put_on_tape("a", content(MIB, 1))
        medium, = [each["name"] for each in self.media() if each["files"] > 0]
        for each in self.answer("drives")["drives"]:
            self.ctl("drive", "down", each["name"])
        self.start_ctl("repack", medium)
        wait_until(lambda: self.answer("repack", medium, "--show")["state"] == "running", "the repack")
        self.stop()
        config = self.dir / "fopd.yaml"
        config.write_text(config.read_text().replace("cold", "cold2"))
        self.start()
        wait_until(lambda: "fopd.library.repack_ended" in self.daemon.log(), "it has ended")
        self.assertRegex(self.daemon.log(), rf'fopd\.library\.repack_ended medium={medium} result=partly .*belongs to no tape pool of this node')
        self.stop()
        config.write_text(config.read_text().replace("cold2", "cold"))
        self.start()
        self.assertEqual(self.answer("repack", medium, "--show")["state"], "none")
        for each in self.answer("drives")["drives"]:
            self.ctl("drive", "up", each["name"])
        self.assertEqual(self.get_cold("a"), content(MIB, 1))

    def causes(self):
        return [each["cause"] for each in json.loads(self.ctl_bytes("--json", "health").stdout)["problems"]]

    def test_a_library_that_was_taken_out_of_the_configuration(self):
        self.put_on_tape("a", content(MIB, 11))
        self.stop()
        config = self.dir / "fopd.yaml"
        whole = config.read_text()
        rest = [line for line in whole.splitlines() if not re.search("family: tape|^libraries:|name: vtl0", line)]
        config.write_text("\n".join([*rest, ""]))
        self.start()
        wait_until(lambda: "library_missing" in self.causes(), "health misses the library")
        self.stop()
        config.write_text(whole)
        self.start()
        wait_until(lambda: "library_missing" not in self.causes(), "the library is back")
        self.assertEqual(self.get_cold("a"), content(MIB, 11))

    def test_a_reload_without_the_library_in_use(self):
        data = content(MIB, 12)
        self.put_on_tape("a", data)
        used, = [each for each in self.media() if each["files"] > 0]
        config = self.dir / "fopd.yaml"
        whole = config.read_text().splitlines()
        without = [line for line in whole if not re.search("^libraries:|name: vtl0", line)]
        config.write_text("\n".join([*without, ""]))
        number, line = next((i, line) for i, line in enumerate(without, 1) if "family: tape" in line)
        refused = self.ctl_bytes("reload")
        self.assertEqual(refused.returncode, CONFIG, refused.stdout)
        words = refused.stderr.decode()
        self.assertRegex(words, rf"fopd\.yaml:{number}:[0-9]+: pools\[[0-9]+\]: tape pool cold needs a library")

        # Without the pool it is valid. The library stays in use until a restart, of which health speaks.
        config.write_text("\n".join([*(each for each in without if each is not line), ""]))
        answer = self.answer("reload")
        self.assertEqual((answer["changed"], sorted(answer["needs_restart"])), ([], ["libraries", "pools"]))
        self.assertIn("restart_pending", self.causes())
        self.ctl("unload", used["drive"])
        self.assertEqual(self.get_cold("a"), data)
        self.put_on_tape("b", data)
        self.assertEqual(self.get_cold("b"), data)
        config.write_text("\n".join([*whole, ""]))
        self.assertEqual(self.answer("reload")["needs_restart"], [])
        self.assertNotIn("restart_pending", self.causes())

    def test_a_changer_that_does_not_answer(self):
        wait_until(lambda: len(self.media()) == 8, "the library is open")
        library = self.dir / "vtl0"
        away = library.rename(self.directory / "away")

        def shown():
            self.media()
            return self.causes()
        wait_until(lambda: "changer_failed" in shown(), "health names the changer")
        away.rename(library)
        wait_until(lambda: "changer_failed" not in shown(), "the changer works again")
        self.assertRegex(self.daemon.log(), "fopd.library.changer_works")

    def set_word(self, medium, key, value):
        text, = [each for each in self.dir.rglob("*.cartridge") if medium in each.read_text()]
        lines = [each for each in text.read_text().splitlines() if not each.startswith(f"{key}:")]
        text.write_text("\n".join([*lines, f"{key}: {value}", ""]))

    def protect(self, medium, answer):
        """As somebody who moves the tab of the cartridge."""
        self.set_word(medium, "write_protected", answer)

    def number(self, medium, serial):
        """As if a cartridge with this number in its memory had the place, the label and the data of another one."""
        self.set_word(medium, "serial", serial)

    def test_a_cartridge_with_another_serial_number(self):
        wait_until(lambda: len(self.media()) == 8, "the library is open")
        for each in self.media():
            self.number(each["name"], "FIRST")
        data = content(MIB, 41)
        self.put_on_tape("a", data)
        used, = [each for each in self.media() if each["files"] > 0]
        self.ctl("unload", used["drive"])
        self.number(used["name"], "OTHER")
        self.assertEqual(self.get_cold("a"), data)
        copy, = [each for each in self.media() if each["name"] == used["name"]]
        self.assertEqual(copy["state"], "suspect")
        self.assertIn("its serial number is OTHER instead of FIRST", copy["reason"])
        self.ctl("unload", copy["drive"])
        self.number(used["name"], "FIRST")
        self.ctl("load", used["name"], copy["drive"])
        self.assertEqual([each["state"] for each in self.media() if each["name"] == used["name"]], ["ok"])

    def test_a_lost_table_of_media(self):
        table = self.dir / "data/media"
        # A new table begins with the cartridges in drives, and numbers this one otherwise.
        wait_until(lambda: len(self.media()) == 8, "the library is open")
        self.ctl("format", self.media()[4]["name"], *COLD)
        first, second = content(MIB, 9), content(MIB, 10)
        self.put_on_tape("first", first)
        backup = self.directory / "backup"
        self.ctl("store", "backup", backup)
        self.daemon.kill()
        table.unlink()
        self.start()
        self.assertEqual(self.get_cold("first"), first)
        self.put_on_tape("second", second)
        self.assertEqual(self.get_cold("second"), second)
        self.ctl("release", "first", "second", *COLD)
        self.stop()
        table.unlink()
        done = run_fopd("--config", self.dir / "fopd.yaml", "--restore-store", backup)
        self.assertEqual(done.returncode, DONE, done.stderr)
        self.assertIn("media: restored\n", done.stdout)
        self.start()
        self.assertEqual(self.get_cold("first"), first)
        self.assertEqual(self.get_cold("second"), second)


class DevicesOfALibraryTest(ProcessTestCase):
    def setUp(self):
        super().setUp()
        self.fopd = self.node()

    def check(self, changer, drives, *arguments):
        fopd = self.fopd
        fopd.settings["pools"] = [{"name": "fast"}, {"name": "cold", "family": "tape", "staging": "fast"}]
        fopd.settings["libraries"] = [
            {"name": "tl0", "kind": "scsi", "path": changer, "drive_paths": drives, "pool": "cold"}]
        fopd.write_config()
        return run_fopd("--config", fopd.config_path, *arguments)

    def test_what_is_no_device_of_a_library_is_refused(self):
        for arguments in (["--check-config"], []):
            done = self.check("/dev/null", ["/dev/there-is-no-drive"], *arguments)
            self.assertEqual(done.returncode, CONFIG)
            self.assertIn("libraries[0].path: /dev/null is not a media changer", done.stderr)
            done = self.check("/dev/there-is-no-changer", ["/dev/there-is-no-drive", "/dev/zero"], *arguments)
            self.assertEqual(done.returncode, CONFIG)
            self.assertIn("libraries[0].drive_paths[1]: /dev/zero is not a tape drive", done.stderr)

    def test_what_is_not_there_is_no_mistake(self):
        done = self.check("/dev/there-is-no-changer", ["/dev/there-is-no-drive"], "--check-config")
        self.assertEqual((done.returncode, done.stderr), (DONE, ""))


if __name__ == "__main__":
    unittest.main()

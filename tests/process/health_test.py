"""fopctl health: one line and an exit code, as monitoring systems want them."""

import collections
import json
import os
import re
import time
import unittest
from pathlib import Path

from fopd_process import DONE, FOPCTL, run_program, wait_until
from storage_process import BAD_DATA, MIB, StorageTestCase, content

OK, WARNING, CRITICAL, UNKNOWN = 0, 1, 2, 3


class HealthTest(StorageTestCase):
    def health(self, exit_code):
        """The line for people, after both forms were compared; what they say may change between the two."""
        def asked():
            done = run_program(FOPCTL, "--json", "health", env=self.environment)
            self.assertEqual(done.returncode, exit_code, f"{done.stdout}{done.stderr}")
            return json.loads(done.stdout)

        def both():
            before = asked()
            page = run_program(FOPCTL, "health", env=self.environment)
            return (before, page) if asked()["text"] == before["text"] else None
        health, page = wait_until(both, "health says the same for a moment")
        self.assertEqual((page.returncode, page.stderr), (exit_code, ""))
        self.assertEqual(page.stdout, f"{health['state'].upper()}: {health['text']}\n")
        self.wait_metrics()
        if health["problems"]:
            self.assertEqual(health["text"], "; ".join(each["text"] for each in health["problems"]))
            self.assertEqual(health["problems"][0]["state"], health["state"])
        return page.stdout

    def wait_metrics(self):
        """The metric has the problems of now, if a daemon runs; it is a second old."""
        if self.daemon.process.poll() is not None:
            return

        def counted():
            problems = json.loads(run_program(FOPCTL, "--json", "health", env=self.environment).stdout)["problems"]
            wanted = collections.Counter(f'fopd_health_problems{{severity="{each["state"]}",cause="{each["cause"]}"}}'
                                         for each in problems)
            found = {name: count for name, count in self.daemon.metrics().items()
                     if name.startswith("fopd_health_problems{") and count}
            return found == wanted
        wait_until(counted, "the metric has the problems of health")

    def wait_health(self, exit_code):
        """Figures of disks are a second or two old."""
        wait_until(lambda: run_program(FOPCTL, "health", env=self.environment).returncode == exit_code,
                   f"health ends with {exit_code}")
        return self.health(exit_code)

    def status_lines(self):
        """What status says, with lines that were folded put together; it fits a terminal."""
        page = self.ctl("status").decode()
        self.assertLessEqual(max(map(len, page.splitlines())), 80, page)
        return page.replace("\n          ", " ")

    def devices(self):
        return json.loads(self.ctl("devices", "--json"))["devices"]

    def slot_of(self, name):
        return int(json.loads(self.ctl("--json", "stat", name))["fid"][:4], 16)

    def change_config(self, old, new):
        config = self.dir / "fopd.yaml"
        self.assertIn(old, config.read_text())
        config.write_text(config.read_text().replace(old, new))

    def test_a_node_that_is_well(self):
        self.put("a", b"x")
        self.assertEqual(self.health(OK), "OK: 2 disks, 1 object\n")
        done = run_program(FOPCTL, "--quiet", "health", env=self.environment)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (OK, "", ""))

    # -- tape --

    def put_on_tape(self, name):
        cold = ("--pool", "cold")
        self.put(name, content(MIB), *cold)
        self.ctl("sync", *cold)
        self.ctl("release", name, *cold)
        return next(each["name"] for each in json.loads(self.ctl("--json", "media"))["media"] if each["files"] > 0)

    def test_a_tape_library_that_is_not_open(self):
        self.stop()
        (self.dir / "data" / "media").write_bytes(b"no table")
        self.start()
        self.assertIn("CRITICAL: tape library vtl0 is not open: ", self.wait_health(CRITICAL))
        self.assertIn("tape library vtl0 is not open: ", self.status_lines())

    def test_a_cartridge_that_is_missing(self):
        barcode = self.put_on_tape("a")
        self.assertEqual(self.health(OK), "OK: 2 disks, 1 object\n")
        self.stop()
        image, = self.dir.glob(f"**/{barcode}.cartridge")
        image.rename(self.directory / "away")
        self.start()
        words = f"CRITICAL: cartridge {barcode} is missing, and objects have 1 copy there: it is not in the library\n"
        self.assertEqual(self.wait_health(CRITICAL), words)
        # Objects are not concerned any more.
        self.ctl("rm", "a", "--pool", "cold")
        self.wait_health(OK)

    def test_an_object_that_cannot_be_recalled(self):
        barcode = self.put_on_tape("a")
        self.stop()
        image, = self.dir.glob(f"**/{barcode}.cartridge")
        image.rename(self.directory / "away")
        self.start()
        self.assertNotEqual(self.ctl_bytes("get", "a", "-", "--pool", "cold").returncode, DONE)
        wait_until(lambda: "1 object could not be read from tape: the log names it" in self.wait_health(CRITICAL), "it says so")
        self.ctl("rm", "a", "--pool", "cold")
        self.wait_health(OK)

    def test_no_daemon(self):
        self.stop()
        line = self.health(CRITICAL)
        self.assertIn(str(self.dir / "admin.sock"), line)

    def test_a_wrong_option(self):
        done = run_program(FOPCTL, "health", "--warn", "5", env=self.environment)
        self.assertEqual(done.returncode, UNKNOWN)
        self.assertRegex(done.stdout, r"\AUNKNOWN: health: there is no option --warn[^\n]*\n\Z")
        self.assertIn("health: there is no option --warn", done.stderr)
        done = run_program(FOPCTL, "health", "--json", "--warn", "5", env=self.environment)
        health = json.loads(done.stdout)
        self.assertEqual((done.returncode, health["state"], health["problems"]), (UNKNOWN, "unknown", []))
        self.assertIn("there is no option --warn", health["text"])

    def test_a_missing_disk(self):
        slots = {}
        while len(set(slots.values())) < 2 or len(slots) < 4:
            name = f"o{len(slots)}"
            self.put(name, content(100))
            slots[name] = self.slot_of(name)
        lost = self.devices()[1]
        self.stop()
        Path(lost["path"]).rename(self.directory / "away")
        self.start()
        count = list(slots.values()).count(lost["slot"])
        expected = (f"CRITICAL: disk {lost['name']} is missing (slot {lost['slot']}): "
                    f"{count} of {len(slots)} objects cannot be read\n")
        wait_until(lambda: run_program(FOPCTL, "health", env=self.environment).stdout == expected, expected)
        self.assertEqual(self.health(CRITICAL), expected)
        self.assertIn(f"{count} objects with a name cannot be read; fopctl ls --missing lists them",
                      " ".join(self.ctl("status").decode().split()))
        self.ctl("device", "forget", lost["name"], "--yes")
        self.assertRegex(self.wait_health(WARNING), f"disk {lost['name']} was written off: add a new one")
        self.ctl("device", "add", lost["name"])
        self.wait_health(OK)

    def test_a_disk_that_is_given_up(self):
        self.stop()
        image = self.dir / "d1.img"
        self.change_config("d1.img", "other.img")
        (self.dir / "other.img").write_bytes(b"precious".ljust(64 * MIB, b"\0"))
        image.rename(self.directory / "away")
        self.start()
        line = self.health(CRITICAL)
        self.assertIn("disk d1 is given up: holds something else already", line)
        self.assertIn("disk d1 is missing (slot 2): its objects cannot be read", line)

    def damage(self, name, data):
        """Overwrites the beginning of an object, on its disk. Returns the name of the disk, after a restart."""
        device = f"d{self.slot_of(name) - 1}"
        image = self.dir / f"{device}.img"
        self.stop()
        with image.open("r+b") as file:
            # The image is thin and mostly holes, so the bytes are looked for where there are some.
            at = 0
            while True:
                at = os.lseek(file.fileno(), at, os.SEEK_DATA)
                end = os.lseek(file.fileno(), at, os.SEEK_HOLE)
                found = os.pread(file.fileno(), end - at, at).find(data[:4096])
                if found >= 0:
                    break
                at = end
            file.seek(at + found)
            file.write(b"damaged")
        self.start()
        return device

    def test_damage_that_a_scrub_found(self):
        data = content(MIB, 7)
        self.put("a", data)
        device = self.damage("a", data)
        self.health(OK)
        self.ctl("scrub")
        expected = f"CRITICAL: disk {device} has 1 damaged block: replace the objects that the log names, then scrub it\n"
        wait_until(lambda: "store.scrub_found_damage" in self.daemon.log(), "the scrub finds it")
        self.assertEqual(self.health(CRITICAL), expected)  # At once.
        wait_until(lambda: f"store.scrubbed device={device} " in self.daemon.log(), "the scrub has ended")
        shown = json.loads(self.ctl("scrub", device, "--show", "--json"))["devices"][0]
        self.assertEqual((shown["scrub"]["state"], shown["scrub"]["damaged_blocks"], shown["damaged_blocks"]), ("done", 1, 1))
        self.assertIn(expected.strip(), self.status_lines())
        damage = expected.strip().partition(" has ")[2]
        self.assertRegex(self.ctl("devices").decode(), rf"(?m)^{device} .* 1$(.|\n)*^{device}: {damage}$")
        # A read of the block that the scrub has found does not count it again.
        self.assertEqual(self.ctl_bytes("get", "a", "-").returncode, BAD_DATA)
        self.assertEqual(self.health(CRITICAL), expected)
        # A restart forgets nothing, and the next scrub finds that the damage is gone.
        self.wait_damage(device, 1)
        self.kill_and_start()
        self.assertEqual(self.health(CRITICAL), expected)
        self.ctl("rm", "a")
        self.ctl("scrub")
        self.wait_health(OK)
        self.wait_damage(device, 0)

    def test_the_steps_of_the_page_for_damaged_blocks(self):
        """docs/running.md, "Damaged blocks"."""
        data = content(MIB, 7)
        self.put("a", data)
        self.put("b", data[::-1])
        device = self.damage("a", data)
        self.ctl("scrub", device)
        wait_until(lambda: json.loads(self.ctl("scrub", device, "--show", "--json"))["devices"][0]["scrub"]["state"] == "done",
                   "the scrub")
        fids = set(re.findall(r"store\.scrub_found_damage .*\bobject=([0-9a-f]{32})\b", self.daemon.log()))
        self.assertEqual([self.ctl("ls", "--fid", fid) for fid in fids], [b"a\n"])
        self.assertRegex(self.daemon.log(), rf"store\.scrub_found_damage device={device} .*\bname=a\b")
        self.assertEqual(self.ctl_bytes("get", "a", "-").returncode, BAD_DATA)
        good = self.ctl("read", "a", "--offset", 4096, "--length", "4k")
        self.assertEqual(good, data[4096:8192])
        self.put("a", data)
        self.assertEqual(self.get("a"), data)
        self.ctl("scrub", device)
        self.wait_health(OK)

    def test_damage_that_a_read_found(self):
        data = content(MIB, 7)
        self.put("a", data)
        device = self.damage("a", data)
        for _ in range(3):  # A block counts once.
            self.assertNotEqual(self.ctl_bytes("read", "a", "--offset", 0, "--length", 1).returncode, DONE)
            self.assertIn(f"disk {device} has 1 damaged block: ", self.health(CRITICAL))  # At once.
        self.stop()
        self.start()
        self.assertIn(f"disk {device} has 1 damaged block: ", self.health(CRITICAL))

    def wait_damage(self, device, blocks):
        wait_until(lambda: self.daemon.metrics()[f'fopd_device_damaged_blocks{{device="{device}",pool="fast"}}'] == blocks,
                   f"{blocks} damaged blocks are recorded")

    def test_a_scrub_that_is_old(self):
        slots = self.dir / "data" / "slots"
        self.stop()
        day = 86400
        slots.write_text(re.sub("(device=d1 .*scrubbed=)[0-9]+", rf"\g<1>{int(time.time()) - 40 * day}", slots.read_text()))
        self.start()
        self.assertEqual(self.health(WARNING), "WARNING: disk d1 has had no complete scrub for 40 days\n")
        self.ctl("scrub", "d1")
        self.wait_health(OK)
        with (self.dir / "fopd.yaml").open("a") as config:
            config.write("store: { scrub_age_max: 0s }\n")
        self.stop()
        slots.write_text(re.sub("scrubbed=[0-9]+", "scrubbed=1", slots.read_text()))
        self.start()
        self.health(OK)

    def test_a_disk_that_is_nearly_full(self):
        self.start_anew()
        count = 0

        # In small steps at the end. What a disk has in use is not asked for: the figures are some seconds old.
        for size in (2 * MIB, MIB // 4):
            while True:
                done = self.ctl_bytes("put", "-", f"o{count}", data=content(size, count))
                if done.returncode != DONE:
                    break
                count += 1
            self.assertIn(b"space left", done.stderr)
        self.assertRegex(self.wait_health(WARNING), "disk d[01] is (9[5-9]|100) % full")
        wait_until(lambda: "fopd.daemon.device_nearly_full" in self.daemon.log(), "the event")
        self.assertTrue(any(each["nearly_full"] and each["used_percent"] >= 95 for each in self.devices()))
        self.assertRegex(self.ctl("devices").decode(), "(?m)^d[01]: it is nearly full: (9[5-9]|100)% are in use$")
        self.assertRegex(self.status_lines(), "WARNING: disk d[01] is (9[5-9]|100) % full")
        self.ctl("rm", *(f"o{each}" for each in range(count)))
        self.wait_health(OK)
        wait_until(lambda: "fopd.daemon.device_has_space" in self.daemon.log(), "the event")

    def test_the_space_of_what_was_removed_is_free_as_in_df(self):
        """Also before the index has the change."""
        with (self.dir / "fopd.yaml").open("a") as config:
            config.write("store: { checkpoint_interval: 1h }\n")
        self.stop()
        self.start()
        self.put("a", content(4 * MIB))
        self.ctl("rm", "a")

        def is_as_in_df():
            free = json.loads(self.ctl("df", "--json"))["pools"][0]["free"]
            return sum(each["free"] for each in self.devices()) == free
        wait_until(is_as_in_df, "devices and df have the same free space")

    def test_a_reload_that_failed(self):
        self.change_config("fast", "fats")
        self.change_config("pools:", "pools: [ wrong ]\nother:")
        self.assertNotEqual(self.ctl_bytes("reload").returncode, DONE)
        line = self.health(WARNING)
        self.assertTrue(line.startswith("WARNING: the last reload failed: "), line)
        self.assertEqual(line.count("the last reload failed"), 1, line)
        self.assertIn("; ", line)  # There are several mistakes.
        self.assertIn(line.strip(), self.status_lines())
        self.change_config("pools: [ wrong ]\nother:", "pools:")
        self.change_config("fats", "fast")
        self.ctl("reload")
        self.health(OK)

    def test_a_restart_that_is_pending(self):
        with (self.dir / "fopd.yaml").open("a") as config:
            config.write("localities: { receive_buffers: 2048 }\n")
        self.ctl("reload")
        self.assertEqual(self.health(WARNING), "WARNING: a restart is pending for localities.receive_buffers\n")

    def test_a_quota_that_is_nearly_used(self):
        key = self.directory / "ann.key"
        self.ctl("key", "create", "ann", "--quota", "fast=1MiB,1000", "--out", key)
        self.put("small", content(MIB // 2), "--key", key)
        self.health(OK)
        self.put("large", content(MIB // 2), "--key", key)
        self.assertEqual(self.health(WARNING), "WARNING: principal ann has used 100 % of its quota of bytes in pool fast\n")
        self.ctl("rm", "large", "--key", key)
        self.wait_health(OK)

    def test_a_pool_without_disks(self):
        for device in ("d0", "d1"):
            self.ctl("device", "remove", device)
        # The objects of the tape pool cold are staged on the disks of fast.
        words = "; ".join(f"pool {pool} has no open disk: no object in it can be stored or read" for pool in ("fast", "cold"))
        self.assertEqual(self.wait_health(WARNING), f"WARNING: {words}\n")
        self.ctl("device", "add", "d0")
        self.wait_health(OK)

    def test_a_node_for_which_no_disk_is_configured(self):
        config = self.dir / "fopd.yaml"
        config.write_text(re.sub(r"^(pools|libraries|devices):.*?(?=^\w|\Z)", "", config.read_text(), flags=re.MULTILINE | re.DOTALL))
        self.start_anew()
        self.assertEqual(self.health(OK), "OK: no disk is configured, and no object can be stored\n")


if __name__ == "__main__":
    unittest.main()

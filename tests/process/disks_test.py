"""Disks: which are taken, which are opened, which are given up and why; and nothing is written to what is not ours."""

import hashlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import unittest

from fopd_process import (CONFIG, DATA_DIR, FOPCTL, IN_USE, IS_ROOT, SCHEME, ProcessTestCase, run_fopd, run_program,
                          wait_until)

MIB = 1 << 20
SIZE = 64 * MIB


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def flip(path, offset):
    with path.open("r+b") as file:
        file.seek(offset)
        byte = file.read(1)
        file.seek(offset)
        file.write(bytes([byte[0] ^ 1]))


def loop_device(path):
    """A block device over a file, or None where that cannot be had."""
    if not IS_ROOT or not shutil.which("losetup"):
        return None
    done = subprocess.run(["losetup", "--find", "--show", path], capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else None


class DisksTest(ProcessTestCase):
    def setUp(self):
        super().setUp()
        self.fopd = self.node()
        self.images = [self.fopd.path / f"d{number}.img" for number in range(2)]
        self.use_disks(self.fopd, self.images)

    def use_disks(self, node, paths, pool="fast", size="64MiB"):
        node.settings["pools"] = [{"name": pool}]
        node.settings["devices"] = [{"name": f"d{number}", "path": str(path), "pool": pool}
                                    | ({"size": size} if size else {}) for number, path in enumerate(paths)]
        node.write_config()

    def devices(self, daemon):
        done = daemon.ctl("--json", "devices")
        self.assertEqual(done.returncode, 0, done.stderr)
        return {each["name"]: each for each in json.loads(done.stdout)["devices"]}

    def start_with(self, **states):
        """Starts it; the disks must be in these states."""
        daemon = self.fopd.start_ready()
        self.assertEqual({name: each["state"] for name, each in self.devices(daemon).items()}, states, daemon.log())
        return daemon

    def run_once(self, **states):
        daemon = self.start_with(**(states or {"d0": "good", "d1": "good"}))
        devices = self.devices(daemon)
        self.fopd.stop(daemon)
        return devices

    def assert_given_up(self, daemon, name, *words):
        """Status, list and log say it, each once."""
        device = self.devices(daemon)[name]
        for word in words:
            self.assertIn(word, device["reason"])
        events = [each for each in daemon.events("fopd.daemon.device_given_up") if each["device"] == name]
        self.assertEqual([(each["path"], each["reason"]) for each in events], [(device["path"], device["reason"])])
        status = daemon.status()
        self.assertEqual(status["state"], "ready")
        self.assertEqual([each for each in status["warnings"] if f"device {name} " in each],
                         [f"device {name} ({device['path']}) is given-up: {device['reason']}"])
        repeats = [device for warning, device in zip(status["warnings"], status["warning_devices"], strict=True)
                   if f"device {name} " in warning]
        self.assertEqual(repeats, [name])
        self.assertIsNone(device["capacity"])

    def test_a_first_start_takes_them(self):
        daemon = self.start_with(d0="good", d1="good")
        devices = self.devices(daemon)
        self.assertEqual([each["slot"] for each in devices.values()], [1, 2])
        for image, device in zip(self.images, devices.values()):
            self.assertEqual(image.stat().st_size, SIZE)
            is_thin = any(each["path"] == str(image) for each in daemon.events("fopd.devices.thin"))
            self.assertEqual(image.stat().st_blocks * 512 >= SIZE, not is_thin)
            self.assertEqual(image.stat().st_mode & 0o777, 0o600)
            self.assertEqual(device["path"], str(image))
            self.assertEqual((device["family"], device["pool"], device["reason"]), ("disk", "fast", ""))
            self.assertEqual(device["used"] + device["free"], device["capacity"])
            self.assertEqual(device["errors"], 0)
            self.assertRegex(device["disk"], "^[0-9a-f]{32}$")
            self.assertTrue((self.fopd.data_dir / "index" / device["disk"]).is_dir())
        self.assertEqual(len(daemon.events("fopd.daemon.device_formatted")), 2)
        self.assertRegex((self.fopd.data_dir / "node.id").read_text(), "^[0-9a-f]{32}\n$")
        self.assertEqual((self.fopd.data_dir / "node.id").stat().st_mode & 0o777, 0o644)
        self.assertEqual(daemon.status()["devices"], list(devices.values()))
        self.fopd.stop(daemon)
        self.assertEqual({each["device"] for each in daemon.events("fopd.daemon.device_closed")}, {"d0", "d1"})

    def test_a_restart_finds_them_again(self):
        before = self.run_once()
        daemon = self.start_with(d0="good", d1="good")
        self.assertEqual({name: (each["disk"], each["slot"]) for name, each in self.devices(daemon).items()},
                         {name: (each["disk"], each["slot"]) for name, each in before.items()})
        self.assertEqual(daemon.events("fopd.daemon.device_formatted"), [])
        self.assertTrue(all(each["clean"] for each in daemon.events("fopd.daemon.device_opened")))
        daemon.kill()
        daemon = self.start_with(d0="good", d1="good")
        self.assertFalse(any(each["clean"] for each in daemon.events("fopd.daemon.device_opened")))
        self.fopd.stop(daemon)

    def test_killed_at_any_moment_of_the_first_start(self):
        for count in range(1, 8):
            daemon = self.fopd.start()
            wait_until(lambda: len(daemon.events()) >= count or daemon.events("fopd.daemon.ready"), f"{count} events")
            daemon.kill()
            self.run_once()
            for image in self.images:
                image.unlink()
            (self.fopd.data_dir / "slots").unlink()

    def test_metrics(self):
        daemon = self.start_with(d0="good", d1="good")
        metrics = daemon.metrics()
        self.assertEqual(metrics['fopd_device_up{device="d0",pool="fast"}'], 1)
        self.assertGreater(metrics['fopd_io_seconds_count{device="d0",op="write"}'], 0)
        self.assertGreater(metrics['fopd_io_seconds_count{device="d1",op="flush"}'], 0)
        self.assertEqual(metrics['fopd_device_errors_total{device="d0",op="read"}'], 0)
        self.assertEqual(metrics['fopd_device_capacity_bytes{device="d0",pool="fast"}'], SIZE - MIB)
        self.assertIn('fopd_device_busy_ratio{device="d0",pool="fast"}', metrics)
        self.fopd.stop(daemon)

    def second_node(self):
        """One with an id of its own."""
        second = self.node("second")
        second.stop(second.start_ready())
        return second

    def test_a_disk_in_use_by_another_daemon(self):
        first = self.start_with(d0="good", d1="good")
        second = self.second_node()
        self.use_disks(second, [self.images[0], second.path / "own.img"])
        daemon = second.start_ready()
        self.assertEqual([each["state"] for each in self.devices(daemon).values()], ["given-up", "good"])
        self.assert_given_up(daemon, "d0", "in another daemon")
        second.stop(daemon)
        self.fopd.stop(first)
        self.run_once()

    def test_a_disk_of_another_node(self):
        self.run_once()
        node_id = (self.fopd.data_dir / "node.id").read_text().strip()
        before = digest(self.images[0])
        second = self.second_node()
        self.use_disks(second, [self.images[0]])
        daemon = second.start_ready()
        self.assert_given_up(daemon, "d0", f"belongs to node {node_id}")
        second.stop(daemon)
        self.assertEqual(digest(self.images[0]), before)
        self.run_once()

    def test_a_disk_of_another_pool(self):
        self.run_once()
        before = digest(self.images[0])
        self.use_disks(self.fopd, self.images, pool="other")
        daemon = self.start_with(d0="given-up", d1="given-up")
        self.assert_given_up(daemon, "d0", 'belongs to pool "fast"', '"other"')
        self.fopd.stop(daemon)
        self.assertEqual(digest(self.images[0]), before)

    def test_what_holds_something_else(self):
        contents = {"text": b"precious\n", "end": b"\0" * (SIZE - 9) + b"precious\n"}
        for name, content in contents.items():
            with self.subTest(name):
                self.images[0].write_bytes(content.ljust(SIZE, b"\0"))
                before = digest(self.images[0])
                daemon = self.start_with(d0="given-up", d1="good")
                self.assert_given_up(daemon, "d0", "holds something else already")
                self.fopd.stop(daemon)
                self.assertEqual(digest(self.images[0]), before)

    @unittest.skipUnless(shutil.which("mkfs.ext4"), "no mkfs.ext4")
    def test_a_file_system(self):
        with self.images[0].open("wb") as file:
            file.truncate(SIZE)
        self.assertEqual(run_program("mkfs.ext4", "-q", self.images[0]).returncode, 0)
        before = digest(self.images[0])
        daemon = self.start_with(d0="given-up", d1="good")
        self.assert_given_up(daemon, "d0", "holds an ext2, ext3 or ext4 file system")
        self.fopd.stop(daemon)
        self.assertEqual(digest(self.images[0]), before)

    def test_a_truncated_image(self):
        self.run_once()
        os.truncate(self.images[0], SIZE - 4096)
        before = digest(self.images[0])
        daemon = self.start_with(d0="given-up", d1="good")
        self.assert_given_up(daemon, "d0", f"has {SIZE - 4096} bytes", f"had {SIZE}")
        self.fopd.stop(daemon)
        self.assertEqual(digest(self.images[0]), before)
        os.truncate(self.images[0], SIZE)
        self.run_once()

    def test_an_image_that_grew(self):
        self.run_once()
        os.truncate(self.images[0], SIZE + 16 * MIB)
        self.run_once()

    def test_a_flipped_byte_of_one_copy_is_mended_and_of_both_is_not(self):
        self.run_once()
        flip(self.images[0], 20)
        flip(self.images[1], 100000)  # A superblock.
        self.run_once()
        flip(self.images[0], 20 + 4096)
        before = digest(self.images[0])
        daemon = self.start_with(d0="given-up", d1="good")
        self.assert_given_up(daemon, "d0", "has a label whose copies are both damaged")
        self.fopd.stop(daemon)
        self.assertEqual(digest(self.images[0]), before)

    def test_without_superblocks_nothing_is_formatted(self):
        self.run_once()
        with self.images[0].open("r+b") as file:
            file.seek(64 * 1024)
            file.write(b"\0" * 128 * 1024)
        before = digest(self.images[0])
        daemon = self.start_with(d0="given-up", d1="good")
        self.assert_given_up(daemon, "d0", "cannot be opened")
        self.fopd.stop(daemon)
        self.assertEqual(digest(self.images[0]), before)

    def test_a_lost_index_is_made_again(self):
        self.run_once()
        shutil.rmtree(self.fopd.data_dir / "index")
        daemon = self.start_with(d0="good", d1="good")
        self.assertEqual([each["reason"] for each in daemon.events("fopd.daemon.index_rebuilt")], ["it is missing"] * 2)
        self.assertEqual(daemon.events("fopd.daemon.names_rebuilt"), [])
        self.fopd.stop(daemon)
        self.run_once()

    def test_lost_names_are_made_again(self):
        daemon = self.start_with(d0="good", d1="good")
        self.assertEqual(daemon.events("fopd.daemon.names_rebuilt"), [])  # A new node had none.
        localities = len(daemon.status()["localities"])
        self.fopd.stop(daemon)
        shutil.rmtree(self.fopd.data_dir / "names")
        for reasons in (["it is missing"] * localities, []):
            daemon = self.start_with(d0="good", d1="good")
            self.assertEqual([each["reason"] for each in daemon.events("fopd.daemon.names_rebuilt")], reasons)
            self.assertEqual(daemon.events("fopd.daemon.index_rebuilt"), [])
            self.fopd.stop(daemon)

    def test_a_damaged_index_is_made_again(self):
        devices = self.run_once()
        index = self.fopd.data_dir / "index" / devices["d0"]["disk"] / "index.mdb"
        for damage in (lambda: index.write_bytes(b""), lambda: index.write_bytes(b"\xa5" * 32768),
                       lambda: os.truncate(index, 5000),
                       lambda: shutil.copy(self.index_of(devices["d1"]), index)):
            damage()
            daemon = self.start_with(d0="good", d1="good")
            self.assertEqual([each["device"] for each in daemon.events("fopd.daemon.index_rebuilt")], ["d0"])
            self.fopd.stop(daemon)

    def index_of(self, device):
        return self.fopd.data_dir / "index" / device["disk"] / "index.mdb"

    def test_the_index_cannot_be_written(self):
        (self.fopd.data_dir / "index").write_text("in the way")
        daemon = self.start_with(d0="given-up", d1="given-up")
        self.assert_given_up(daemon, "d0", "index", "Not a directory")
        self.fopd.stop(daemon)
        (self.fopd.data_dir / "index").unlink()
        self.run_once()

    def test_a_copy_beside_the_disk(self):
        self.run_once()
        shutil.copy(self.images[0], self.images[1])
        before = digest(self.images[1])
        daemon = self.start_with(d0="good", d1="given-up")
        self.assert_given_up(daemon, "d1", "same id as device d0")
        self.fopd.stop(daemon)
        self.assertEqual(digest(self.images[1]), before)

    def test_what_cannot_be_opened(self):
        directory = self.fopd.path / "directory"
        directory.mkdir()
        for path, word in ((directory, "neither a file nor a block device"),
                           (self.fopd.path / "nowhere" / "d.img", "No such file"),
                           (self.fopd.config_path / "d.img", "Not a directory")):
            with self.subTest(path.name):
                self.use_disks(self.fopd, [path])
                daemon = self.start_with(d0="given-up")
                self.assert_given_up(daemon, "d0", word)
                self.fopd.stop(daemon)

    def test_a_file_that_is_not_made(self):
        self.use_disks(self.fopd, self.images, size=None)
        daemon = self.start_with(d0="given-up", d1="given-up")
        self.assert_given_up(daemon, "d0", "No such file")
        self.assertFalse(self.images[0].exists())
        self.fopd.stop(daemon)

    def test_a_missing_disk_is_not_made_anew(self):
        before = self.run_once()
        away = self.directory / "away"
        self.images[1].rename(away)
        for _ in range(2):  # The first start leaves nothing that changes the second.
            daemon = self.start_with(d0="good", d1="given-up")
            self.assert_given_up(daemon, "d1", "No such file", "missing disk of slot 2")
            self.assertFalse(self.images[1].exists())
            self.assertEqual(self.devices(daemon)["d1"]["slot"], 2)
            for verb in ("status", "devices"):
                page = " ".join(daemon.ctl(verb).stdout.split())
                self.assertEqual(page.count(self.devices(daemon)["d1"]["reason"]), 1, page)
            events = daemon.events("fopd.daemon.slot_missing")
            self.assertEqual([(each["level"], each["slot"], each["pool"], each["device"], each["disk"])
                              for each in events], [("error", 2, "fast", "d1", before["d1"]["disk"])])
            status = daemon.status()
            self.assertEqual([(each["slot"], each["device"]) for each in status["missing_slots"]], [(2, "d1")])
            self.assertRegex(daemon.ctl("status").stdout, "(?m)^missing: slot 2 of pool fast, device d1, disk ")
            metrics = daemon.metrics()
            self.assertEqual(metrics['fopd_device_up{device="d1",pool="fast"}'], 0)
            self.assertEqual(metrics['fopd_slots_missing{pool="fast"}'], 1)
            self.fopd.stop(daemon)
        away.replace(self.images[1])
        daemon = self.start_with(d0="good", d1="good")
        self.assertEqual(self.devices(daemon)["d1"]["disk"], before["d1"]["disk"])
        self.assertEqual(daemon.status()["missing_slots"], [])
        self.assertEqual(daemon.metrics()['fopd_slots_missing{pool="fast"}'], 0)
        self.fopd.stop(daemon)

    def test_a_missing_disk_that_comes_back_under_another_name(self):
        self.run_once()
        away = self.directory / "away.img"
        self.images[1].rename(away)
        daemon = self.start_with(d0="good", d1="given-up")
        devices = self.fopd.settings["devices"]
        devices.append(devices[1] | {"name": "back", "path": str(away)})
        self.fopd.write_config()
        done = daemon.ctl("device", "add", "back")
        self.assertEqual(done.returncode, 0, done.stderr)
        back = self.devices(daemon)["back"]
        self.assertEqual((back["state"], back["slot"]), ("good", 2))
        self.assertEqual(daemon.status()["missing_slots"], [])
        self.assertEqual(daemon.metrics()['fopd_slots_missing{pool="fast"}'], 0)
        self.fopd.stop(daemon)

    def test_an_empty_file_in_place_of_a_disk_stays_empty(self):
        self.run_once()
        self.images[1].write_bytes(b"")
        daemon = self.start_with(d0="good", d1="given-up")
        self.assertEqual(self.images[1].stat().st_size, 0)
        self.fopd.stop(daemon)

    def test_a_missing_disk_that_nothing_names(self):
        # As an older version wrote the table.
        self.run_once()
        slots = self.fopd.data_dir / "slots"
        slots.write_text(re.sub(" device=[^ \n]+ path=[^ \n]+", "", slots.read_text()))
        self.images[1].unlink()
        daemon = self.start_with(**{"d0": "good", "d1": "given-up", "slot-2": "missing"})
        self.assertIn("may be the missing disk of slot 2", self.devices(daemon)["d1"]["reason"])
        self.assertFalse(self.images[1].exists())
        self.fopd.stop(daemon)

    def test_a_missing_disk_that_was_renamed(self):
        self.run_once()
        self.images[1].rename(self.directory / "away")
        self.fopd.settings["devices"][1]["name"] = "renamed"
        self.fopd.write_config()
        daemon = self.start_with(d0="good", renamed="given-up")
        self.assertIn("is the missing disk of slot 2", self.devices(daemon)["renamed"]["reason"])
        self.assertFalse(self.images[1].exists())
        self.fopd.stop(daemon)

    def test_a_missing_disk_whose_name_another_one_has(self):
        self.run_once()
        self.images[1].rename(self.directory / "away")
        devices = self.fopd.settings["devices"]
        devices.append(devices[1] | {"name": "d9"})
        devices[1]["path"] = str(self.fopd.path / "new.img")
        self.fopd.write_config()
        daemon = self.start_with(d0="good", d1="given-up", d9="given-up")
        self.assertIn("is the missing disk of slot 2", self.devices(daemon)["d9"]["reason"])
        self.assertFalse(self.images[1].exists())
        self.fopd.stop(daemon)

    def test_a_node_that_lost_its_section_devices(self):
        self.run_once()
        self.fopd.settings["devices"] = []
        self.fopd.settings["auth"] = {"mode": "none"}
        self.fopd.write_config()
        daemon = self.start_with(d0="missing", d1="missing")
        self.assertEqual([each["slot"] for each in daemon.events("fopd.daemon.slot_missing")], [1, 2])
        self.assertEqual(daemon.metrics()['fopd_slots_missing{pool="fast"}'], 2)
        health = daemon.ctl("health")
        self.assertEqual(health.returncode, 2, health.stdout)
        self.assertIn("disk d0 is missing (slot 1)", health.stdout)
        # A client is not told that its objects are gone.
        address = daemon.address
        done = run_program(FOPCTL, "--server", address, "--json", "stat", "a")
        self.assertEqual((done.returncode, json.loads(done.stderr)["code"]), (1, "medium_missing"), done.stderr)
        self.fopd.stop(daemon)

    def test_a_missing_disk_that_is_not_configured(self):
        self.run_once()
        self.use_disks(self.fopd, self.images[:1])
        daemon = self.start_with(d0="good", d1="missing")
        self.assertEqual([each["slot"] for each in daemon.events("fopd.daemon.slot_missing")], [2])
        self.fopd.stop(daemon)

    def test_a_disk_that_is_written_off_is_made_anew(self):
        self.run_once()
        self.images[1].unlink()
        daemon = self.start_with(d0="good", d1="given-up")
        done = daemon.ctl("device", "forget", "d1", "--yes")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(daemon.status()["missing_slots"], [])
        self.assertEqual(daemon.ctl("device", "add", "d1").returncode, 0)
        self.assertEqual(self.devices(daemon)["d1"]["slot"], 3)
        self.fopd.stop(daemon)
        self.run_once()

    def test_a_disk_under_another_name_is_not_missing(self):
        self.run_once()
        devices = self.fopd.settings["devices"]
        devices[1]["name"] = "other"
        devices.append(devices[0] | {"name": "d1", "path": str(self.fopd.path / "new.img")})
        self.fopd.write_config()
        self.assertEqual(self.run_once(d0="good", other="good", d1="good")["d1"]["slot"], 3)

    def test_a_damaged_table_of_slots(self):
        before = self.run_once()
        (self.fopd.data_dir / "slots").write_text("nonsense\n")
        daemon = self.start_with(d0="good", d1="good")
        self.assertEqual(len(daemon.events("fopd.daemon.slots_lost")), 1)
        self.assertEqual(self.devices(daemon)["d1"]["slot"], before["d1"]["slot"])
        self.fopd.stop(daemon)
        self.assertEqual(len((self.fopd.data_dir / "slots").read_text().splitlines()), 2)

    def test_a_damaged_node_id(self):
        self.run_once()
        node_id = self.fopd.data_dir / "node.id"
        good = node_id.read_text()
        for text, what in (("", "it is empty"), ("\n", "it is empty"),
                           ("nonsense\n", "it does not have 32 hexadecimal digits"),
                           (good[:16] + "\n", "it does not have 32 hexadecimal digits")):
            node_id.write_text(text)
            self.fopd.refused(DATA_DIR, node_id, what, f"disk {self.images[0]} belongs to node {good.strip()}",
                              "write these 32 digits into it")
            self.assertEqual(node_id.read_text(), text)
        for image in self.images:
            image.rename(self.directory / image.name)
        self.fopd.refused(DATA_DIR, node_id, what, "the file slots", "from a backup")
        for image in self.images:
            (self.directory / image.name).rename(image)
        node_id.write_text(good)
        self.run_once()

    def test_a_lost_node_id(self):
        self.run_once()
        node_id = self.fopd.data_dir / "node.id"
        good = node_id.read_text()
        node_id.unlink()
        self.fopd.refused(DATA_DIR, node_id, f"disk {self.images[0]} belongs to node {good.strip()}")
        for image in self.images:
            image.rename(self.directory / image.name)
        self.fopd.refused(DATA_DIR, node_id, "the file slots")
        self.assertFalse(node_id.exists())
        for image in self.images:
            (self.directory / image.name).rename(image)
        node_id.write_text(good)
        self.run_once()

    def test_bad_configurations(self):
        self.fopd.settings["devices"][1]["pool"] = "slow"
        self.fopd.write_config()
        done = run_fopd("--check-config", "--config", self.fopd.config_path)
        self.assertEqual(done.returncode, CONFIG)
        self.assertRegex(done.stderr, r"^[^\n]+fopd.yaml:\d+:\d+: devices: device d1 is of pool slow")

    def test_tape_pools_need_disks_and_a_library(self):
        pools = list(self.fopd.settings["pools"])
        for cold, reason in (
            ({"name": "cold", "family": "tape"}, r"pools\[1\].staging: a tape pool needs disks"),
            ({"name": "cold", "family": "tape", "staging": "none_such"}, r"pools\[1\].staging: the staging of pool cold, none_such, is not in pools"),
            ({"name": "cold", "family": "tape", "staging": "fast"}, r"pools\[1\]: tape pool cold needs a library"),
        ):
            with self.subTest(reason):
                self.fopd.settings["pools"] = pools + [cold]
                self.fopd.write_config()
                done = run_fopd("--check-config", "--config", self.fopd.config_path)
                self.assertEqual(done.returncode, CONFIG)
                self.assertRegex(done.stderr, rf"(?m)^[^\n]+fopd.yaml:\d+:\d+: {reason}")

    def test_a_reload_says_what_needs_a_restart(self):
        daemon = self.start_with(d0="good", d1="good")
        self.fopd.settings["devices"][1]["path"] += ".new"
        self.fopd.write_config()
        status, answer = daemon.ask("POST", "/v1/reload")
        self.assertEqual(status, 422)
        self.assertRegex(answer["problems"][0], "the path of d1, which is open, has changed; that needs a restart")
        self.assertEqual(len(self.devices(daemon)), 2)
        self.fopd.stop(daemon)

    def test_a_port_in_use_leaves_no_trace(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            address = f"{SCHEME}://127.0.0.1:{taken.getsockname()[1]}"
            self.fopd.write_config(fabric={"listen": [address]})
            before = sorted(self.fopd.path.rglob("*"))
            self.fopd.refused(IN_USE, "fabric.listen", address, "in use")
            self.assertEqual(sorted(self.fopd.path.rglob("*")), before)
            for image in self.images:
                with image.open("wb") as file:
                    file.truncate(SIZE)
            self.fopd.refused(IN_USE, address)
            self.assertEqual({image.read_bytes().strip(b"\0") for image in self.images}, {b""})
        self.run_once()

    def test_several_localities(self):
        images = [self.fopd.path / f"s{number}.img" for number in range(5)]
        self.use_disks(self.fopd, images)
        self.fopd.write_config(localities={"cores": 2})
        daemon = self.fopd.start_ready()
        devices = self.devices(daemon).values()
        self.assertEqual([each["state"] for each in devices], ["good"] * 5)
        self.assertEqual([each["locality"] for each in devices], [0, 1, 0, 1, 0])
        self.fopd.stop(daemon)

    def test_a_block_device(self):
        backing = self.fopd.path / "backing.img"
        with backing.open("wb") as file:
            file.truncate(SIZE)
        device = loop_device(backing)
        if device is None:
            self.skipTest("no loop device can be had")
        self.addCleanup(subprocess.run, ["losetup", "--detach", device])
        self.use_disks(self.fopd, [device], size=None)
        first = self.run_once(d0="good")
        self.assertEqual(self.run_once(d0="good")["d0"]["disk"], first["d0"]["disk"])

    def test_stopped_while_it_starts(self):
        for _ in range(5):
            daemon = self.fopd.start()
            daemon.wait_event("fopd.daemon.start")
            daemon.signal(signal.SIGTERM)
            self.fopd.expect_end(daemon)
        self.run_once()


if __name__ == "__main__":
    unittest.main()

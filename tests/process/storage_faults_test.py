"""Faults of storage, and input at its limits: each is said with the object and the reason, what was acknowledged is
there, and the others do not notice."""

import contextlib
import json
import os
import shutil
import subprocess
import unittest

from fopd_process import DEADLINE_SECONDS, DONE, FOPCTL, IS_ROOT, SLOWNESS, USAGE, wait_until
from storage_process import BAD_DATA, KIB, MIB, NOT_FOUND, REFUSED, StorageTestCase, content, digest

LIMIT = 1 << 60


class LimitsTest(StorageTestCase):
    def test_names(self):
        longest = "n" * 480
        self.put(longest, b"x")
        self.assertEqual(self.names(), [longest])
        too_long = b"the name is longer than 480 bytes"
        for name, why in ((b"n" * 481, too_long), (b"\xff\xfe", b"the name is not UTF-8"),
                          (b"a\nb", b"the name has a control character"), ("é".encode() * 241, too_long),
                          (b"", b"the name is empty")):
            with self.subTest(name):
                done = subprocess.run([os.fsencode(FOPCTL), b"put", b"-", name], input=b"", capture_output=True,
                                      env=self.environment)
                self.assertEqual(done.returncode, USAGE, done.stderr)
                self.assertRegex(done.stderr, rb"^fopctl: put: [^\n]*: " + why + rb"\n$")
                if name.isascii() and name.isalnum():
                    self.assertIn(b"put: " + name + b": ", done.stderr)
        self.assertEqual(self.names(), [longest])

    def test_offsets(self):
        self.put("a", b"beginning")
        self.ctl("write", "a", "--offset", LIMIT - 1, data=b"!")
        self.assertEqual(json.loads(self.ctl("--json", "stat", "a"))["size"], LIMIT)
        self.assertEqual(self.ctl("read", "a", "--offset", LIMIT - 5, "--length", 100), bytes(4) + b"!")
        self.assertEqual(self.ctl("read", "a", "--offset", LIMIT, "--length", 1), b"")
        too_far = "the range ends beyond 2^60\n"
        too_large = f'must be from 0 to 1024PiB, not "{LIMIT + 1}"'
        self.refused(USAGE, ["write: a: " + too_far], "write", "a", "--offset", LIMIT, data=b"x")
        self.refused(USAGE, ["--offset: " + too_large], "write", "a", "--offset", LIMIT + 1, data=b"x")
        self.refused(REFUSED, ["append: a: the object would be too long\n"], "append", "a", data=b"x")
        self.refused(USAGE, ["size: " + too_large], "truncate", "a", LIMIT + 1)
        self.refused(USAGE, ["--offset: " + too_large], "read", "a", "--offset", LIMIT + 1, "--length", 1)
        self.refused(REFUSED, ["punch: a: " + too_far], "punch", "a", "--offset", LIMIT - 1, "--length", 2)
        self.ctl("truncate", "a", LIMIT - 1)
        self.assertEqual(json.loads(self.ctl("--json", "stat", "a"))["size"], LIMIT - 1)
        self.ctl("append", "a", data=b"!")
        self.assertEqual(self.ctl("read", "a", "--offset", LIMIT - 1), b"!")
        self.ctl("truncate", "a", LIMIT)
        self.ctl("punch", "a", "--offset", 5, "--length", LIMIT - 5)
        self.assertEqual(self.ctl("read", "a", "--offset", 0, "--length", 9), b"begin" + bytes(4))
        self.ctl("truncate", "a", 0)
        self.assertEqual(self.get("a"), b"")

    def test_nothing_is_a_length(self):
        self.put("a", b"beginning")
        for offset in (0, 3, 100, LIMIT):
            with self.subTest(offset):
                self.ctl("write", "a", "--offset", offset, data=b"")
                self.ctl("punch", "a", "--offset", offset, "--length", 0)
                self.assertEqual(self.ctl("read", "a", "--offset", offset, "--length", 0), b"")
        self.assertEqual(json.loads(self.ctl("append", "a", "--json", data=b"")),
                         {"name": "a", "offset": None, "size": 0})
        self.assertEqual(self.get("a"), b"beginning")
        for arguments in (["write", "b", "--offset", 0], ["append", "b"], ["punch", "b", "--offset", 0, "--length", 0],
                          ["read", "b", "--length", 0]):
            with self.subTest(arguments):
                self.refused(NOT_FOUND, [f"{arguments[0]}: b: "], *arguments)


class FaultsTestCase(StorageTestCase):
    def devices(self):
        done = self.daemon.ctl("--json", "devices")
        self.assertEqual(done.returncode, DONE, done.stderr)
        return json.loads(done.stdout)["devices"]


class DamageTest(FaultsTestCase):
    def find_in_images(self, data):
        """Where these bytes lie on which disk."""
        for image in sorted(self.dir.glob("*.img")):
            with image.open("rb") as file:
                if (at := file.read().find(data)) >= 0:
                    return image, at
        self.fail("the object lies on no disk")

    def put_on_every_disk(self, prefix):
        """Each client begins with a disk of its own choice."""
        before = {each["name"]: each["used"] for each in self.devices()}
        for number in range(100):
            self.put(f"{prefix}-{number}", content(50_000, number))
            if all(each["used"] >= before[each["name"]] + 50_000 for each in self.devices()):
                return
        self.fail("a disk was never chosen")

    def test_a_flipped_bit_is_reported_and_never_returned(self):
        self.start_anew()
        data = content(64 * KIB)
        self.put("damaged", data)
        self.put("whole", data[::-1])
        self.stop()
        image, offset = self.find_in_images(data[8 * KIB:12 * KIB])
        with image.open("r+b") as file:
            file.seek(offset + 100)
            byte = file.read(1)
            file.seek(offset + 100)
            file.write(bytes([byte[0] ^ 0x10]))
        self.start()

        self.refused(BAD_DATA, ["get: damaged: ", "block 2 of object ", "is damaged"], "get", "damaged",
                     self.directory / "target")
        self.assertFalse((self.directory / "target").exists())
        self.refused(BAD_DATA, ["block 2 "], "read", "damaged", "--offset", 8 * KIB, "--length", 1)
        self.assertEqual(self.ctl("read", "damaged", "--offset", 0, "--length", 8 * KIB), data[:8 * KIB])
        self.assertEqual(self.get("whole"), data[::-1])
        self.assertIn("fopd.store.block_damaged", self.daemon.log())
        wait_until(lambda: self.daemon.metrics()["fopd_checksum_errors_total"] == 2, "both are counted")
        self.assertEqual(self.daemon.ctl("scrub").returncode, DONE)
        wait_until(lambda: sum(each["scrub"]["damaged_blocks"] for each in self.devices()) == 1, "the scrub finds it")
        # Written again it is whole.
        self.ctl("write", "damaged", "--offset", 8 * KIB, data=data[8 * KIB:12 * KIB])
        self.assertEqual(digest(self.get("damaged")), digest(data))

    def test_an_older_copy_of_a_disk_is_not_written(self):
        self.start_anew()
        for number in range(4):
            self.put(f"before-{number}", content(50_000, number))
        self.stop()
        images = sorted(self.dir.glob("*.img"))
        copies = [self.directory / image.name for image in images]
        for image, copy in zip(images, copies):
            shutil.copy(image, copy)
        self.start()
        self.put_on_every_disk("after")
        self.stop()
        for image, copy in zip(images, copies):
            shutil.copy(copy, image)
        self.start()

        devices = self.devices()
        self.assertEqual({each["state"] for each in devices}, {"read-only"}, devices)
        self.assertEqual(self.daemon.log().count("state=read-only"), len(devices))
        for each in devices:
            self.assertIn("older", each["reason"])
        done = self.ctl_bytes("--json", "health")
        problems = json.loads(done.stdout)["problems"]
        self.assertEqual(done.returncode, 2, problems)
        self.assertEqual([(each["state"], each["text"]) for each in problems if each["cause"] == "disk_read_only"],
                         [("critical", f"disk {each['name']} is read-only: {each['reason']}") for each in devices])
        listed = self.ctl_bytes("ls")
        self.assertEqual(listed.returncode, REFUSED, listed.stderr)
        self.assertEqual({f"before-{number}" for number in range(4)} - set(listed.stdout.decode().split()), set())
        self.assertIn(b"ls: there may be others, on a disk that is missing or incomplete: d0 (read-only: ", listed.stderr)
        self.refused(REFUSED, ["get: nothing: it may be on a disk that is missing or incomplete: d0 (read-only: "],
                     "get", "nothing", "-")
        done = self.ctl_bytes("put", "-", "new", data=b"x")
        self.assertNotEqual(done.returncode, DONE)
        self.stop()
        for image, copy in zip(images, copies):
            self.assertEqual(image.read_bytes(), copy.read_bytes())

    def test_a_full_disk(self):
        self.start_anew()
        kept = {}
        for number in range(20):
            name = f"object-{number}"
            done = self.ctl_bytes("put", "-", name, data=content(8 * MIB, number))
            if done.returncode != DONE:
                break
            kept[name] = digest(content(8 * MIB, number))
        self.assertEqual(done.returncode, REFUSED, done.stderr)
        self.assertIn(f"put: {name}: ".encode(), done.stderr)
        self.assertIn(b"space", done.stderr)
        self.assertGreater(len(kept), 5)
        self.assertEqual(self.names(), sorted(kept))
        self.kill_and_start()
        for each, expected in kept.items():
            self.assertEqual(digest(self.get(each)), expected)
        victim = next(iter(kept))
        self.ctl("rm", victim)
        wait_until(lambda: self.ctl_bytes("put", "-", "again", data=content(4 * MIB)).returncode == DONE,
                   "the space of what was removed")

    @unittest.skipUnless(IS_ROOT, "mounts a file system")
    def test_no_space_under_a_disk(self):
        """A file that has its space is not concerned; a thin one says why it takes no more, and goes on when there is room."""
        self.stop()
        small = self.directory / "small"
        small.mkdir()
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=96m,mode=0700", "none", small], capture_output=True)
        if done.returncode != 0:
            self.skipTest("no file system can be mounted")
        self.addCleanup(subprocess.run, ["umount", "--lazy", small])
        shutil.rmtree(self.dir / "data")  # A new node: nothing is made in the place of a disk that it had.
        config = self.dir / "fopd.yaml"
        lines = [line for line in config.read_text().splitlines() if "name: d1" not in line]
        config.write_text("\n".join(
            f"  - {{ name: d0, path: {small}/d0.img, size: 32MiB, pool: fast }}\n"
            f"  - {{ name: d1, path: {small}/d1.img, size: 64MiB, thin: true, pool: fast }}" if "name: d0" in line else line
            for line in lines) + "\n")
        self.start()
        with (small / "filler").open("wb", buffering=0) as filler, contextlib.suppress(OSError):
            while filler.write(bytes(64 * KIB)):
                pass
        kept = {}
        refused = []
        for number in range(16):
            name = f"object-{number}"
            done = self.ctl_bytes("put", "-", name, data=content(MIB, number))
            if done.returncode == DONE:
                kept[name] = content(MIB, number)
            else:
                refused.append(done.stderr)

        def states():
            return [each["state"] for each in self.devices()]
        # The states of disks are looked at once a second.
        wait_until(lambda: states() == ["good", "read-only"], "d1 is read-only")
        devices = {each["name"]: each for each in self.devices()}
        self.assertIn("no space in the file system that holds the disk image", devices["d1"]["reason"])
        self.assertTrue(all(b"no space in the file system that holds the disk image" in each for each in refused), refused)
        self.assertGreater(len(kept), 8)
        for name, expected in kept.items():
            self.assertEqual(self.get(name), expected)
        (small / "filler").unlink()
        self.kill_and_start()
        self.assertEqual([each["state"] for each in self.devices()], ["good", "good"])
        for name, expected in kept.items():
            self.assertEqual(self.get(name), expected)

    @unittest.skipUnless(IS_ROOT, "mounts a file system")
    def test_no_space_under_the_only_disk_of_a_pool(self):
        """The first put that is refused says why, though its disk is read-only only from then on."""
        self.stop()
        small = self.directory / "small"
        small.mkdir()
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=48m,mode=0700", "none", small], capture_output=True)
        if done.returncode != 0:
            self.skipTest("no file system can be mounted")
        self.addCleanup(subprocess.run, ["umount", "--lazy", small])
        shutil.rmtree(self.dir / "data")  # A new node: nothing is made in the place of a disk that it had.
        config = self.dir / "fopd.yaml"
        lines = [line for line in config.read_text().splitlines() if "name: d1" not in line]
        config.write_text("\n".join(
            f"  - {{ name: d0, path: {small}/d0.img, size: 256MiB, thin: true, pool: fast }}" if "name: d0" in line else line
            for line in lines) + "\n")
        self.start()
        for number in range(12):
            done = self.ctl_bytes("put", "-", f"object-{number}", data=content(8 * MIB, number))
            if done.returncode != DONE:
                break
        self.assertEqual(done.returncode, REFUSED)
        self.assertIn(b"no space in the file system that holds the disk image", done.stderr)

    @unittest.skipUnless(IS_ROOT and shutil.which("losetup"), "needs a loop device")
    def test_a_disk_that_fails(self):
        """Its backing file is cut off below it: reads fail, and nothing is acknowledged that is not there."""
        self.stop()
        backing = self.directory / "backing"
        with backing.open("wb") as file:
            file.truncate(128 * MIB)
        done = subprocess.run(["losetup", "--find", "--show", backing], capture_output=True, text=True)
        if done.returncode != 0:
            self.skipTest("no loop device can be had")
        loop = done.stdout.strip()
        self.addCleanup(subprocess.run, ["losetup", "--detach", loop])
        config = self.dir / "fopd.yaml"
        lines = config.read_text().splitlines()
        config.write_text("\n".join(f"  - {{ name: d1, path: {loop}, pool: fast }}" if "name: d1" in line else line
                                    for line in lines) + "\n")
        self.start()
        slots = {each["name"]: each["slot"] for each in self.devices()}
        expected = {}

        def on_disk(disk):
            def slot_of(name):
                return int(json.loads(self.ctl("--json", "stat", name))["fid"][:4], 16)
            return [name for name in expected if slot_of(name) == slots[disk]]
        # A client begins at any of the disks.
        while not (on_disk("d0") and on_disk("d1")):
            number = len(expected)
            self.assertLess(number, 100)
            self.put(f"object-{number}", content(20_000, number))
            expected[f"object-{number}"] = content(20_000, number)
        on_it = on_disk("d1")
        with backing.open("r+b") as file:
            file.truncate(64 * KIB)
        for name in on_it:
            done = self.ctl_bytes("get", name, "-")
            self.assertIn(done.returncode, (REFUSED, BAD_DATA), done.stderr)
            self.assertIn(f"get: {name}: ".encode(), done.stderr)
            self.assertNotEqual(done.stdout, expected[name])
        for name in set(expected) - set(on_it):
            self.assertEqual(self.get(name), expected[name])
        devices = {each["name"]: each for each in self.devices()}
        self.assertEqual(devices["d0"]["state"], "good")
        self.assertNotEqual(devices["d1"]["state"], "good")
        self.assertGreater(devices["d1"]["errors"], 0)
        self.daemon.kill()

    @unittest.skipUnless(IS_ROOT, "mounts a file system")
    def test_no_space_for_the_index(self):
        self.stop()
        data = self.dir / "data"
        config = self.dir / "fopd.yaml"
        config.write_text(config.read_text().replace("8GiB", "64MiB"))
        for image in self.dir.glob("*.img"):
            image.unlink()
        shutil.rmtree(data)
        data.mkdir(mode=0o700)
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=32m,mode=0700", "none", data], capture_output=True)
        if done.returncode != 0:
            self.skipTest("no file system can be mounted")
        self.addCleanup(subprocess.run, ["umount", "--lazy", data])
        self.start()
        self.put("before", b"x")
        with (data / "filler").open("wb", buffering=0) as filler:
            try:
                while filler.write(bytes(4 * KIB)):
                    pass
            except OSError:
                pass

        def create():
            return self.ctl_bytes("bench", "--op", "create", "--object", f"o{self.creates}", "--depth", "32", "--seconds", "1")

        def is_full():
            self.creates += 1
            return b"no space left for the index of its disk" in create().stderr
        self.creates = 0
        wait_until(is_full, "objects are refused", seconds=8 * DEADLINE_SECONDS)
        wait_until(lambda: any("no space left for its index" in each["reason"] for each in self.devices()),
                   "the list of devices says so, too")
        self.assertEqual(self.get("before"), b"x")
        # What is there can be removed, also after a restart.
        names = [each for each in self.names() if each != "before"]
        self.assertGreater(len(names), 1000)
        self.ctl("rm", *names[:500])
        self.kill_and_start()
        self.assertEqual([each["state"] for each in self.devices()], ["good", "good"])
        self.assertEqual(self.get("before"), b"x")
        self.ctl("rm", *names[500:3000])
        (data / "filler").unlink()
        wait_until(lambda: self.ctl_bytes("put", "-", "after", data=b"y").returncode == DONE, "objects are taken again")
        self.assertEqual(self.get("after"), b"y")

    def test_a_put_goes_to_a_disk_that_has_room_for_it(self):
        self.start_anew()
        file = self.directory / "file"
        file.write_bytes(content(10 * MIB))
        count = 0
        while self.ctl_bytes("put", file, f"o{count}").returncode == DONE:
            count += 1
            self.assertLess(count, 13)
        full = self.free_bytes()
        file.write_bytes(content(9 * MIB))
        self.ctl("rm", "o0")
        for _ in range(8):  # Whose turn it is, is chance.
            wait_until(lambda: self.free_bytes() > full + 9 * MIB, "the space of what was removed")
            self.ctl("put", file, "a")
            self.ctl("rm", "a")
        file.write_bytes(content(21 * MIB))
        self.refused(REFUSED, ["not enough space left on the disk of the object"], "put", file, "a")

    def free_bytes(self):
        return json.loads(self.ctl("df", "--json"))["pools"][0]["free"]


class UploadsTest(FaultsTestCase):
    def used(self):
        return sum(each["used"] for each in self.devices())

    def test_the_space_of_a_put_that_was_killed_comes_back(self):
        self.stop()
        config = self.dir / "fopd.yaml"
        # Longer than until the space that it takes is seen: the figures of disks are a second or two old.
        config.write_text(config.read_text() + f"store: {{ upload_timeout: {6 * SLOWNESS}s }}\n")
        self.start()
        self.put("whole", content(MIB))
        before = self.used()
        process = self.start_ctl("put", "-", "part")
        process.stdin.write(content(24 * MIB))
        process.stdin.flush()
        wait_until(lambda: self.used() > before + 8 * MIB, "the upload takes space")
        process.kill()
        process.wait()
        self.assertEqual(self.names(), ["whole"])
        wait_until(lambda: self.used() < before + 4 * MIB, "the space is back", seconds=2 * DEADLINE_SECONDS)
        self.assertEqual(self.names(), ["whole"])
        self.assertEqual(self.get("whole"), content(MIB))


if __name__ == "__main__":
    unittest.main()

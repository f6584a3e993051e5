"""Objects of a tape pool, as their users see them: put, sync, release, get, over kills and restarts of the daemon."""

import json
import unittest

from fopd_process import wait_until
from storage_process import DONE, MIB, NOT_FOUND, REFUSED, TRY_LATER, StorageTestCase, content

COLD = ("--pool", "cold")


class TapeTest(StorageTestCase):
    def answer(self, *arguments, **options):
        return json.loads(self.ctl(*arguments, "--json", **options))

    def put_on_tape(self, name, data):
        self.put(name, data, *COLD)
        self.ctl("sync", *COLD)
        self.ctl("release", name, *COLD)

    def get_cold(self, name):
        return self.ctl("get", name, "-", *COLD)

    def allocated(self, name):
        return self.answer("stat", name, *COLD)["allocated"]

    def media(self):
        return self.answer("media")["media"]

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
        self.refused(NOT_FOUND, ["stage: none: "], "stage", "none", *COLD)
        self.refused(NOT_FOUND, ["cancel: run-0: "], "cancel", "run-0", *COLD)

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
        self.refused(REFUSED, [f"format: {full}: "], "format", full, *COLD)
        self.refused(NOT_FOUND, ["format: nothing: "], "format", "nothing", *COLD)
        self.refused(NOT_FOUND, ["unload: no-drive: "], "unload", "no-drive")
        self.assertEqual(self.get_cold("a"), data)
        self.assertEqual(sum(each["dead"] for each in self.media()), 0)
        self.ctl("rm", "a", *COLD)
        self.assertEqual([each["dead"] for each in self.media() if each["name"] == full], [len(data)])

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

    def test_uploads_wait_while_the_staging_is_full(self):
        self.start_anew("64MiB")
        objects = {f"o-{number}": content(12 * MIB, number) for number in range(16)}
        for name, data in objects.items():
            self.ctl("--timeout", 120, "put", "-", name, *COLD, data=data)
        # Of all disks together, they had space for few of them.
        self.assertGreater(sum(self.allocated(name) == 0 for name in objects), 4)
        for name, data in objects.items():
            self.assertEqual(self.ctl("--timeout", 120, "get", name, "-", *COLD), data)

    def test_uploads_end_when_no_room_comes_free(self):
        self.start_anew("64MiB")
        others = []
        while self.ctl_bytes("put", "-", f"other-{len(others)}", data=content(4 * MIB)).returncode == DONE:
            others.append(f"other-{len(others)}")
        self.assertGreater(len(others), 4)
        data = content(24 * MIB)
        self.refused(TRY_LATER, ["put: a: the disks before the tapes are full"], "--timeout", 2, "put", "-", "a", *COLD, data=data)
        # Of a size that is known.
        file = self.directory / "file"
        file.write_bytes(data)
        self.refused(TRY_LATER, ["the disks before the tapes are full"], "--timeout", 2, "put", file, "a", *COLD)
        self.assertEqual(self.names(*COLD), [])
        self.refused(REFUSED, ["space"], "put", file, "a")
        self.ctl("rm", *others)
        self.ctl("put", file, "a", *COLD)
        self.assertEqual(self.get_cold("a"), data)

    def test_a_pool_of_disks_needs_no_tape(self):
        self.put("a", b"abc")
        self.ctl("sync", "--pool", "fast")
        self.refused(TRY_LATER, ["release: a: "], "release", "a")
        self.assertEqual(self.get("a"), b"abc")


if __name__ == "__main__":
    unittest.main()

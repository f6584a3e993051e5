"""What is promised of objects, whatever happens to fopd, with one locality and disk and with four of each."""

import json
import os
import random
import shutil
import subprocess
import unittest

from fopd_process import DONE, FOPCTL, wait_until
from storage_process import MIB, SECONDS, StorageTestCase, content, digest


class Kills:
    """The tests, for nodes of `count` localities and disks."""

    count = 0

    def setUp(self):
        super().setUp()
        self.daemon.kill()
        config = self.dir / "fopd.yaml"
        kept = config.read_text().partition("devices:")[0]
        disks = "".join(f"  - {{ name: d{i}, path: '{self.dir}/d{i}.img', size: 2GiB, thin: true, pool: fast }}\n"
                        for i in range(self.count))
        config.write_text(f"{kept}localities: {{ cores: {self.count} }}\ndevices:\n{disks}")
        for image in self.dir.glob("*.img"):
            image.unlink()
        shutil.rmtree(self.dir / "data")
        (self.dir / "data").mkdir(mode=0o700)
        self.start()
        self.assertIn(f"fopd.daemon.ready localities={self.count} ", self.daemon.log())

    def test_what_was_acknowledged_survives_kill_9(self):
        expected = {}
        for round_number in range(3):
            for number in range(5):
                name = f"object-{number if number < 3 else round_number * 10 + number}"
                data = content(random.Random(f"{round_number}-{number}").choice([1, 4096, 100_000, 3 * MIB]),
                               f"{round_number}-{number}")
                self.put(name, data)
                expected[name] = data
            self.ctl("write", "object-0", "--offset", 1000, data=b"overwritten")
            before = expected["object-0"].ljust(1000, b"\0")
            expected["object-0"] = before[:1000] + b"overwritten" + before[1011:]
            self.ctl("mv", "object-1", "object-2")
            expected["object-2"] = expected.pop("object-1")
            self.kill_and_start()
            self.assertEqual(self.names(), sorted(expected))
            for name, data in expected.items():
                self.assertEqual(digest(self.get(name)), digest(data), f"{name} after round {round_number}")

    def test_a_put_goes_on_over_kill_9(self):
        data = content(40 * MIB)
        source = self.directory / "source"
        os.mkfifo(source)
        process = self.start_ctl("put", source, "a")
        with source.open("wb", buffering=0) as pipe:
            pipe.write(data[:24 * MIB])
            self.kill_and_start()
            pipe.write(data[24 * MIB:])
        self.assertEqual(process.wait(SECONDS), DONE, process.stderr.read())
        self.assertEqual(digest(self.get("a")), digest(data))

    def test_an_append_is_done_once_over_kill_9(self):
        data = content(40 * MIB)
        source = self.directory / "source"
        os.mkfifo(source)
        self.put("a", b"before")
        script = f'exec "{FOPCTL}" append a < "{source}"'
        process = subprocess.Popen(["sh", "-c", script], env=self.environment, stderr=subprocess.PIPE)
        self.addCleanup(process.stderr.close)
        with source.open("wb", buffering=0) as pipe:
            for part in range(4):
                pipe.write(data[part * 10 * MIB:(part + 1) * 10 * MIB])
                if part < 3:
                    self.kill_and_start()
        self.assertEqual(process.wait(SECONDS), DONE, process.stderr.read())
        self.assertEqual(digest(self.get("a")), digest(b"before" + data))

    def test_buffered_writes_are_written_again_after_kill_9(self):
        """As long as their writer lives."""
        self.put("a", bytes(MIB))
        first, second = content(300_000, 1), content(100_000, 2)
        process = self.start_ctl("write", "a", "--offset", 1000, "--buffered")
        window = 8 * MIB
        data = (first * (window // len(first) + 1))[:window]
        process.stdin.write(data)
        process.stdin.flush()
        wait_until(lambda: self.ctl("read", "a", "--offset", 1000 + window - 10, "--length", 10) == data[-10:],
                   "the first window is visible")
        self.kill_and_start()
        process.stdin.write(second)
        process.stdin.close()
        self.assertEqual(process.wait(SECONDS), DONE, process.stderr.read())
        expected = bytes(1000) + data + second
        self.assertEqual(digest(self.get("a")), digest(expected))

    def test_sync(self):
        self.put("a", b"x")
        self.ctl("write", "a", "--offset", 0, "--buffered", data=b"buffered")
        self.ctl("sync")
        self.kill_and_start()
        self.assertEqual(self.get("a"), b"buffered")
        self.ctl("write", "a", "--offset", 0, "--buffered", data=b"BUFFERED")
        fid = json.loads(self.ctl("stat", "a", "--json"))["fid"]
        self.assertEqual(json.loads(self.ctl("sync", "a", "--json")), {"name": "a", "fid": fid})
        self.kill_and_start()
        self.assertEqual(self.get("a"), b"BUFFERED")
        self.assertEqual(json.loads(self.ctl("sync", "--pool", "fast", "--json")), {})


class OneLocalityTest(Kills, StorageTestCase):
    count = 1


class FourLocalitiesTest(Kills, StorageTestCase):
    count = 4


if __name__ == "__main__":
    unittest.main()

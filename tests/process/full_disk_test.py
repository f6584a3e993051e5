"""Disks that are full to the last byte are emptied again, by calls that all end soon, and are then as they were."""

import concurrent.futures
import contextlib
import itertools
import json
import os
import random
import time
import unittest
import zlib

from fopd_process import DEADLINE_SECONDS, FOPCTL, run_program, wait_until
from object_library import NO_SPACE, OK, Objects
from storage_process import StorageTestCase

IS_LONG = os.environ.get("FOPD_FULL_DISK_ROUNDS") is not None
ROUNDS = int(os.environ.get("FOPD_FULL_DISK_ROUNDS", "1"))
THREADS = 16
NAME_BYTES_MAX = 480
SMALLEST = "16MiB"
CALL_SECONDS = 30
CRITICAL = 2  # The exit code of fopctl health.
IDLE_SECONDS, IDLE_CPU_MAX = 2, 0.1


class FullDiskTestCase(StorageTestCase):
    def client(self):
        client = Objects(self.address, self.environment["FOPD_KEY"], CALL_SECONDS)
        self.addCleanup(client.close)
        return client

    def in_parallel(self, action, items):
        """The results, and how long the slowest of them took."""
        def timed(item):
            begun = time.monotonic()
            result = action(item)
            return result, time.monotonic() - begun
        with concurrent.futures.ThreadPoolExecutor(THREADS) as pool:
            done = list(pool.map(timed, items))
        return [each for each, _ in done], max((seconds for _, seconds in done), default=0)

    def fill(self, client, round_number, size_max, name_bytes=0):
        """Until nothing more is taken; the objects by name. Longer names are longer records of the log."""
        objects = {}

        def fill_one(thread):
            randomness = random.Random(f"{round_number}-{thread}")
            for number in range(1_000_000):
                name = f"o-{round_number}-{thread}-{number}".ljust(name_bytes, "-")
                status, words, fid = client.put(name, randomness.randbytes(randomness.randint(min(1, size_max), size_max)))
                if status == NO_SPACE:
                    return
                self.assertEqual(status, OK, words)
                objects[name] = fid
        self.in_parallel(fill_one, range(THREADS))
        return objects

    def change(self, client, objects, have_bytes):
        """What frees no more than it takes may be refused."""
        randomness = random.Random(len(objects))
        chosen = randomness.sample(sorted(objects), min(2000, len(objects)))

        def change_one(name):
            fid, size = objects[name], 1 + zlib.crc32(name.encode()) % 5000
            for status, words in (client.append(fid, bytes(size)), client.write(fid, size, bytes(size)),
                                  client.punch(fid, 1, size), client.truncate(fid, size // 2)):
                self.assertIn(status, (OK, NO_SPACE), words)
            status, words = client.truncate(fid, 0)
            self.assertIn(status, (OK,) if have_bytes else (OK, NO_SPACE), words)
        return self.in_parallel(change_one, chosen)[1]

    def remove(self, client, objects):
        def remove_one(name):
            status, words = client.remove(name)
            self.assertEqual(status, OK, f"{name}: {words}")
        return self.in_parallel(remove_one, objects)[1]

    def expect_idle(self):
        """A full disk is waited for, not turned around."""
        deadline, shares = time.monotonic() + DEADLINE_SECONDS, []
        # What it does in the background comes to its end.
        while not shares or shares[-1] >= IDLE_CPU_MAX and time.monotonic() < deadline:
            begun, used = time.monotonic(), self.daemon.cpu_seconds()
            wait_until(lambda begun=begun: time.monotonic() - begun > IDLE_SECONDS, "some seconds are over")
            shares.append((self.daemon.cpu_seconds() - used) / (time.monotonic() - begun))
        self.assertLess(shares[-1], IDLE_CPU_MAX, shares)
        return shares[-1]

    def check(self, size, size_max):
        self.start_anew(size)
        before = self.client().space()
        for round_number in range(ROUNDS):
            client = self.client()
            objects = self.fill(client, round_number, size_max)
            share = self.expect_idle()
            changes_seconds = self.change(client, objects, size_max > 0)
            if round_number % 2 == 0:
                self.kill_and_start()
                client = self.client()
            deletes_seconds = self.remove(client, objects)
            wait_until(lambda client=client: client.space() == before, "all the space is back", seconds=4 * DEADLINE_SECONDS)
            print(f"{len(objects)} objects of up to {size_max} bytes: idle {share:.1%}, slowest change "
                  f"{changes_seconds:.2f} s, slowest delete {deletes_seconds:.2f} s", end="; ", flush=True)


class FullDiskTest(FullDiskTestCase):
    def test_tiny_objects(self):
        self.check(SMALLEST, 600)

    def test_objects_of_some_blocks(self):
        self.check(SMALLEST, 30_000)

    def test_health_says_that_a_log_is_full(self):
        """Empty objects fill nothing but the log."""
        self.start_anew(SMALLEST)
        client = self.client()
        self.assertEqual(self.log_problems(), [])
        objects = {}
        rounds = itertools.count()

        def problems_of_full_log():
            # It is full when all of it has been cleaned, which may make room for some more.
            objects.update(self.fill(client, next(rounds), 0, name_bytes=NAME_BYTES_MAX))
            with contextlib.suppress(AssertionError):
                return wait_until(self.log_problems, "health names a full log", seconds=3 * DEADLINE_SECONDS)
        problems = wait_until(problems_of_full_log, "health names a full log", seconds=5 * DEADLINE_SECONDS)
        for state, text in problems:
            self.assertEqual(state, "critical")
            self.assertRegex(text, r"^disk \w+: its log is full: nothing can be added before something is removed$")
        self.assertEqual(run_program(FOPCTL, "health", env=self.environment).returncode, CRITICAL)
        self.remove(client, objects)
        wait_until(lambda: not self.log_problems(), "health names no full log", seconds=4 * DEADLINE_SECONDS)

    def log_problems(self):
        """State and words of what health says of logs."""
        health = json.loads(run_program(FOPCTL, "--json", "health", env=self.environment).stdout)
        return [(each["state"], each["text"]) for each in health["problems"] if "its log" in each["text"]]


@unittest.skipUnless(IS_LONG, "takes minutes")
class FullLargerDiskTest(FullDiskTestCase):
    def test_empty_objects(self):
        self.check(SMALLEST, 0)

    def test_tiny_objects(self):
        self.check("64MiB", 600)

    def test_large_objects(self):
        self.check("64MiB", 2 << 20)


if __name__ == "__main__":
    unittest.main()

"""Trees again: what is there and equal is not moved a second time."""

import json
import os
import signal
import subprocess
import unittest

from fopd_process import DONE, USAGE, wait_until
from storage_process import MIB, NOT_FOUND, REFUSED, SECONDS, StorageTestCase, content


class AgainTestCase(StorageTestCase):
    def setUp(self):
        super().setUp()
        self.source, self.target = self.directory / "source", self.directory / "target"

    def write(self, files, top=None):
        """{path: bytes}"""
        for path, data in files.items():
            file = (top or self.source) / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data)

    def summary(self, *arguments, exit_code=DONE, **options):
        done = self.ctl_bytes(*arguments, "--json", **options)
        self.assertEqual(done.returncode, exit_code, done.stderr)
        return json.loads(done.stdout)

    def moved(self, *arguments, **options):
        """How many were moved, and were unchanged."""
        done = self.summary(*arguments, **options)
        return done["objects"], done["unchanged"]

    def assert_equal_trees(self):
        """The objects below m/ are the files of the source, as another directory shows that has never been used."""
        fresh = self.directory / f"fresh{len(list(self.directory.iterdir()))}"
        self.ctl("get", "-r", "m/", fresh)
        done = subprocess.run(["diff", "--recursive", self.source, fresh], capture_output=True, text=True, timeout=SECONDS)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))

    def slow_down(self, rate=30):
        rules = self.directory / "rules"
        rules.write_text(f"slow job=tree rate={rate}/s burst=1 by=none\ndefault * rate=unlimited\n")
        done = self.daemon.ctl("lrs", "set", "tbf", "--rules", rules)
        self.assertEqual(done.returncode, DONE, done.stderr)

    def end_when(self, seen, number, *arguments):
        """Ends it by a signal as soon as seen() is true."""
        process = self.start_ctl(*arguments, "--job", "tree")
        wait_until(lambda: seen() or process.poll() is not None, "some of the objects")
        process.send_signal(number)
        _, complaints = process.communicate(timeout=SECONDS)
        self.assertEqual(process.returncode, -number, complaints)


class AgainTest(AgainTestCase):
    def test_what_is_there_and_equal_is_skipped(self):
        self.write({f"d{number % 3}/{number}": content(3000, number) for number in range(40)})
        self.assertEqual(self.moved("put", "-r", self.source, "m/"), (40, 0))
        self.assertEqual(self.moved("put", "-r", self.source, "m"), (0, 40))
        self.assertEqual(self.moved("put", "-r", self.source, "m/", "--no-skip"), (40, 0))
        self.assertEqual(self.ctl("put", "-r", self.source, "m/"), b"0 objects stored, 0 B; 40 unchanged\n")
        self.assertEqual(self.moved("get", "-r", "m/", self.target), (40, 0))
        self.assertEqual(self.moved("get", "-r", "m/", self.target), (0, 40))
        self.assertEqual(self.moved("get", "-r", "m/", self.target, "--no-skip"), (40, 0))
        self.assert_equal_trees()

    def test_the_same_size_is_not_enough(self):
        self.write({"a": b"one", "b": b"two", "c": b"six"})
        self.ctl("put", "-r", self.source, "m/")
        # The size and the time of the last change of the file are as before.
        before = (self.source / "a").stat()
        (self.source / "a").write_bytes(b"ONE")
        os.utime(self.source / "a", ns=(before.st_atime_ns, before.st_mtime_ns))
        self.put("m/b", b"TWO")
        self.ctl("write", "m/c", "--offset", 0, data=b"SIX")
        self.assertEqual(self.moved("put", "-r", self.source, "m/", "--size-only"), (0, 3))
        self.assertEqual([self.get(f"m/{name}") for name in "abc"], [b"one", b"TWO", b"SIX"])
        self.assertEqual(self.moved("put", "-r", self.source, "m/"), (3, 0))
        self.assertEqual([self.get(f"m/{name}") for name in "abc"], [b"ONE", b"two", b"six"])

        self.ctl("get", "-r", "m/", self.target)
        self.put("m/a", b"new")
        self.write({"b": b"NEW"}, self.target)
        self.assertEqual(self.moved("get", "-r", "m/", self.target, "--size-only"), (0, 3))
        self.assertEqual(self.moved("get", "-r", "m/", self.target), (2, 1))
        self.assertEqual([(self.target / name).read_bytes() for name in "abc"], [b"new", b"two", b"six"])

    def test_without_a_journal_everything_is_stored(self):
        self.write({"a": b"1"})
        for place in ({"XDG_STATE_HOME": "/proc/none"}, {"XDG_STATE_HOME": "", "HOME": ""}):
            environment = self.environment | place
            for _ in range(2):
                self.assertEqual(self.moved("put", "-r", self.source, "m/", env=environment), (1, 0))

    def test_another_place_has_another_journal(self):
        self.write({"a": b"1"})
        self.ctl("put", "-r", self.source, "m/")
        self.assertEqual(self.moved("put", "-r", self.source, "n/"), (1, 0))
        other = self.directory / "other"
        self.source.rename(other)
        self.assertEqual(self.moved("put", "-r", other, "m/"), (1, 0))
        link = self.directory / "link"
        link.symlink_to(other)
        self.assertEqual(self.moved("put", "-r", link, "m/"), (0, 1))

    def test_a_disk_that_has_lost_its_objects(self):
        self.write({"a": b"1"})
        self.ctl("put", "-r", self.source, "m/")
        self.start_anew()
        self.assertEqual(self.moved("put", "-r", self.source, "m/"), (1, 0))
        self.assert_equal_trees()

    # -- interrupted --

    def test_what_was_killed_goes_on(self):
        """With kill -9 and with Ctrl-C, until a run comes to its end; the server is killed, too."""
        self.write({f"d{number % 5}/{number}": content(5000, number) for number in range(300)})
        for turn, number in enumerate((signal.SIGKILL, signal.SIGINT, signal.SIGTERM)):
            self.slow_down()
            before = len(self.names())
            self.end_when(lambda before=before: len(self.names()) > before + 10, number, "put", "-r", self.source, "m/")
            if turn == 1:
                self.kill_and_start()
        there = len(self.names())
        self.assertLess(there, 300)
        stored, unchanged = self.moved("put", "-r", self.source, "m/")
        self.assertEqual(stored + unchanged, 300)
        # Each time, those in flight may have been stored although that was not known.
        self.assertGreaterEqual(unchanged, there - 3 * 16)
        self.assertGreater(unchanged, 0)
        self.assert_equal_trees()

        for number in (signal.SIGKILL, signal.SIGINT):
            self.slow_down()
            self.end_when(lambda: len(list(self.target.glob("*/*"))) > 10, number, "get", "-r", "m/", self.target)
        fetched, unchanged = self.moved("get", "-r", "m/", self.target)
        self.assertEqual(fetched + unchanged, 300)
        self.assertGreater(unchanged, 10)
        done = subprocess.run(["diff", "--recursive", self.source, self.target], capture_output=True, timeout=SECONDS)
        self.assertEqual((done.returncode, done.stdout), (0, b""))

    def test_a_large_file_goes_on_where_it_was_killed(self):
        unused = self.used()
        for number in (signal.SIGKILL, signal.SIGINT):
            with self.subTest(number):
                self.write({"large": content(64 * MIB, number)})
                journal_size = self.journal_size()
                self.slow_down(15)  # 15 MiB each second.
                self.end_when(lambda size=journal_size: self.journal_size() > size + 700, number,
                              "put", "-r", self.source, "m/")
                self.assertGreater(self.used(), unused + 8 * MIB)
                self.slow_down(1000)
                self.assertEqual(self.moved("put", "-r", self.source, "m/"), (1, 0))
                # It is the same upload: no other one takes space.
                self.assertEqual(self.get("m/large"), content(64 * MIB, number))
                self.ctl("rm", "m/large")
                wait_until(lambda: self.used() < unused + 2 * MIB, "nothing else was left")

    def journal_size(self):
        return sum(each.stat().st_size for each in self.state.glob("fopctl/*.journal"))

    def used(self):
        return sum(each["used"] for each in json.loads(self.ctl("df", "--json")))

    def test_a_large_file_that_changed_meanwhile_begins_anew(self):
        self.write({"large": content(64 * MIB)})
        self.slow_down(15)
        self.end_when(lambda: self.journal_size() > 700, signal.SIGKILL, "put", "-r", self.source, "m/")
        with (self.source / "large").open("r+b") as file:
            file.write(b"other")
        self.slow_down(1000)
        self.assertEqual(self.moved("put", "-r", self.source, "m/"), (1, 0))
        self.assert_equal_trees()

    def test_a_server_that_was_killed_has_lost_the_upload(self):
        self.write({"large": content(64 * MIB)})
        self.slow_down(15)
        self.end_when(lambda: self.journal_size() > 700, signal.SIGKILL, "put", "-r", self.source, "m/")
        self.kill_and_start()
        self.assertEqual(self.moved("put", "-r", self.source, "m/"), (1, 0))
        self.assert_equal_trees()

    def test_a_file_that_changes_while_it_is_stored_is_stored_again(self):
        self.write({"large": content(32 * MIB), "small": b"1"})
        self.slow_down(15)
        process = self.start_ctl("put", "-r", self.source, "m/", "--job", "tree")
        wait_until(lambda: self.journal_size() > 500 or process.poll() is not None, "the first windows")
        with (self.source / "large").open("r+b") as file:
            file.write(b"other")
        _, complaints = process.communicate(timeout=SECONDS)
        self.assertEqual(process.returncode, REFUSED)
        self.assertIn(b"it changed while it was read", complaints)
        self.slow_down(1000)
        self.assertEqual(self.moved("put", "-r", self.source, "m/"), (1, 1))
        self.assert_equal_trees()


if __name__ == "__main__":
    unittest.main()

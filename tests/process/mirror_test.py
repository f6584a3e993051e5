"""Trees again: what is there and equal is not moved a second time, and a mirror has nothing else in it."""

import json
import os
import signal
import subprocess
import time
import unittest

from fopd_process import DONE, USAGE, wait_until
from storage_process import MIB, NOT_FOUND, REFUSED, SECONDS, content
from tree_process import TreeTestCase

# Of Linux; the clock that file systems read.
CLOCK_REALTIME_COARSE = 5


class MirrorTestCase(TreeTestCase):
    def write(self, files, top=None):
        super().write(files, top)
        # A file that is stored within the tick of the file system's clock in which it was written is not recorded.
        last = (top or self.source) / list(files)[-1]
        while time.clock_gettime_ns(CLOCK_REALTIME_COARSE) <= last.stat().st_ctime_ns:
            pass

    def summary(self, *arguments, exit_code=DONE, **options):
        done = self.ctl_bytes(*arguments, "--json", **options)
        self.assertEqual(done.returncode, exit_code, done.stderr)
        return json.loads(done.stdout)

    def moved(self, *arguments, **options):
        """How many were moved, were unchanged, and were removed."""
        done = self.summary(*arguments, **options)
        return done["objects"], done["unchanged"], done["removed"]

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


class AgainTest(MirrorTestCase):
    def test_what_is_there_and_equal_is_skipped(self):
        self.write({f"d{number % 3}/{number}": content(3000, number) for number in range(40)})
        self.assertEqual(self.moved("put", "-r", self.source, "m/"), (40, 0, 0))
        self.assertEqual(self.moved("put", "-r", self.source, "m"), (0, 40, 0))
        self.assertEqual(self.moved("put", "-r", self.source, "m/", "--no-skip"), (40, 0, 0))
        self.assertEqual(self.ctl("put", "-r", self.source, "m/"), b"0 objects stored, 0 B; 40 unchanged\n")
        self.assertEqual(self.moved("get", "-r", "m/", self.target), (40, 0, 0))
        self.assertEqual(self.moved("get", "-r", "m/", self.target), (0, 40, 0))
        self.assertEqual(self.moved("get", "-r", "m/", self.target, "--no-skip"), (40, 0, 0))
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
        self.assertEqual(self.moved("put", "-r", self.source, "m/", "--size-only"), (0, 3, 0))
        self.assertEqual([self.get(f"m/{name}") for name in "abc"], [b"one", b"TWO", b"SIX"])
        self.write({"d": b"not changed"})
        self.assertEqual(self.moved("put", "-r", self.source, "m/", "--size-only"), (1, 3, 0))
        # Skipping by size forgets nothing that is known.
        self.assertEqual(self.moved("put", "-r", self.source, "m/", "--size-only"), (0, 4, 0))
        self.assertEqual(self.moved("put", "-r", self.source, "m/"), (3, 1, 0))
        self.assertEqual([self.get(f"m/{name}") for name in "abc"], [b"ONE", b"two", b"six"])
        (self.source / "d").unlink()
        self.ctl("rm", "m/d")

        self.ctl("get", "-r", "m/", self.target)
        self.put("m/a", b"new")
        self.write({"b": b"NEW"}, self.target)
        self.assertEqual(self.moved("get", "-r", "m/", self.target, "--size-only"), (0, 3, 0))
        self.assertEqual(self.moved("get", "-r", "m/", self.target), (2, 1, 0))
        self.assertEqual([(self.target / name).read_bytes() for name in "abc"], [b"new", b"two", b"six"])

    def test_without_a_journal_everything_is_stored(self):
        self.write({"a": b"1"})
        for variables in ({"XDG_STATE_HOME": "/proc/none"}, {"XDG_STATE_HOME": "", "HOME": ""}):
            environment = self.environment | variables
            for _ in range(2):
                self.assertEqual(self.moved("put", "-r", self.source, "m/", env=environment), (1, 0, 0))

    def test_another_place_has_another_journal(self):
        self.write({"a": b"1"})
        self.ctl("put", "-r", self.source, "m/")
        self.assertEqual(self.moved("put", "-r", self.source, "n/"), (1, 0, 0))
        other = self.directory / "other"
        self.source.rename(other)
        self.assertEqual(self.moved("put", "-r", other, "m/"), (1, 0, 0))
        link = self.directory / "link"
        link.symlink_to(other)
        self.assertEqual(self.moved("put", "-r", link, "m/"), (0, 1, 0))

    def test_a_disk_that_has_lost_its_objects(self):
        self.write({"a": b"1"})
        self.ctl("put", "-r", self.source, "m/")
        self.start_anew()
        self.assertEqual(self.moved("put", "-r", self.source, "m/"), (1, 0, 0))
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
        stored, unchanged, _ = self.moved("put", "-r", self.source, "m/")
        self.assertEqual(stored + unchanged, 300)
        # Each time, those in flight may have been stored although that was not known.
        self.assertGreaterEqual(unchanged, there - 3 * 16)
        self.assertGreater(unchanged, 0)
        self.assert_equal_trees()

        for number in (signal.SIGKILL, signal.SIGINT):
            self.slow_down()
            self.end_when(lambda: len(list(self.target.glob("*/*"))) > 10, number, "get", "-r", "m/", self.target)
        fetched, unchanged, _ = self.moved("get", "-r", "m/", self.target)
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
                self.assertEqual(self.moved("put", "-r", self.source, "m/"), (1, 0, 0))
                # It is the same upload: no other one takes space.
                self.assertEqual(self.get("m/large"), content(64 * MIB, number))
                self.ctl("rm", "m/large")
                wait_until(lambda: self.used() < unused + 2 * MIB, "nothing else was left")

    def journal_size(self):
        return sum(each.stat().st_size for each in self.state.glob("fopctl/*.journal"))

    def used(self):
        return sum(each["used"] for each in json.loads(self.ctl("df", "--json"))["pools"])

    def test_a_large_file_that_changed_meanwhile_begins_anew(self):
        self.write({"large": content(64 * MIB)})
        self.slow_down(15)
        self.end_when(lambda: self.journal_size() > 700, signal.SIGKILL, "put", "-r", self.source, "m/")
        with (self.source / "large").open("r+b") as file:
            file.write(b"other")
        self.slow_down(1000)
        self.assertEqual(self.moved("put", "-r", self.source, "m/"), (1, 0, 0))
        self.assert_equal_trees()

    def test_a_server_that_was_killed_has_lost_the_upload(self):
        self.write({"large": content(64 * MIB)})
        self.slow_down(15)
        self.end_when(lambda: self.journal_size() > 700, signal.SIGKILL, "put", "-r", self.source, "m/")
        self.kill_and_start()
        self.assertEqual(self.moved("put", "-r", self.source, "m/"), (1, 0, 0))
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
        self.assertEqual(self.moved("put", "-r", self.source, "m/"), (1, 1, 0))
        self.assert_equal_trees()


    def test_a_single_file_that_changes_while_it_is_stored_is_reported(self):
        self.write({"large": content(32 * MIB)})
        self.slow_down(15)
        unused = self.used()
        process = self.start_ctl("put", self.source / "large", "large", "--job", "tree", "--json")
        wait_until(lambda: self.used() > unused + 4 * MIB or process.poll() is not None, "the first windows")
        with (self.source / "large").open("r+b") as file:
            file.write(b"other")
        _, complaints = process.communicate(timeout=SECONDS)
        self.assertEqual(process.returncode, REFUSED)
        complaint = json.loads(complaints)
        self.assertIn("it changed while it was read", complaint["error"])
        self.assertEqual(complaint["code"], "file")
        self.slow_down(1000)
        # Files of the kernel have no size.
        self.ctl("put", "/proc/cpuinfo", "cpuinfo")


class MirrorTest(MirrorTestCase):
    def test_there_and_back(self):
        self.write({"a": b"1", "d/b": b"22", "d/e/c": b"333"})
        self.assertEqual(self.moved("mirror", "put", self.source, "m"), (3, 0, 0))
        self.write({"a": b"other"})
        (self.source / "d/b").unlink()
        self.assertEqual(self.moved("mirror", "put", self.source, "m"), (1, 1, 0))
        self.assertEqual(self.names(), ["m/a", "m/d/b", "m/d/e/c"])
        self.put("mine", b"not below it")
        self.put("m", b"nor this")
        planned = self.summary("mirror", "put", self.source, "m", "--delete", "--dry-run")
        self.assertEqual(planned["planned"], [{"do": "rm", "name": "m/d/b", "size": 2}])
        self.assertEqual(self.ctl("mirror", "put", "--delete", self.source, "m"),
                         b"0 objects stored, 0 B; 2 unchanged; 1 removed\n")
        self.assertEqual(self.names(), ["m", "m/a", "m/d/e/c", "mine"])
        self.assert_equal_trees()

        self.write({"a": b"old", "other/x": b"1", "other/y/z": b"2", "d/e/f": b"3", "m\nn": b"4"}, self.target)
        (self.target / "empty" / "deep").mkdir(parents=True)
        (self.target / "link").symlink_to(self.source)
        planned = self.summary("mirror", "get", "m", self.target, "--delete", "--dry-run")
        self.assertEqual({(each["do"], each["name"]) for each in planned["planned"]},
                         {("get", "m/a"), ("get", "m/d/e/c"),
                          *(("rm", f"{self.target}/{path}")
                            for path in ("other/x", "other/y/z", "d/e/f", "m\nn", "empty/deep", "link"))})
        self.assertEqual((self.target / "a").read_bytes(), b"old")
        self.assertEqual(self.moved("mirror", "get", "m", self.target), (2, 0, 0))
        self.assertEqual(self.moved("mirror", "get", "m", self.target, "--delete"), (0, 2, 6))
        done = subprocess.run(["diff", "--recursive", self.source, self.target], capture_output=True, text=True,
                              timeout=SECONDS)
        self.assertEqual(done.stdout, "")
        self.assertEqual(len(list(self.source.iterdir())), 2)

    def test_files_and_directories_change_places(self):
        self.write({"a": b"1", "b/c": b"2"})
        self.ctl("mirror", "put", self.source, "m")
        self.ctl("mirror", "get", "m", self.target)
        (self.source / "a").unlink()
        (self.source / "b/c").unlink()
        (self.source / "b").rmdir()
        self.write({"a/x": b"3", "b": b"4"})
        self.assertEqual(self.moved("mirror", "put", "--delete", self.source, "m"), (2, 0, 2))
        self.assertEqual(self.moved("mirror", "get", "--delete", "m", self.target), (2, 0, 2))
        done = subprocess.run(["diff", "--recursive", self.source, self.target], capture_output=True, timeout=SECONDS)
        self.assertEqual((done.returncode, done.stdout), (0, b""))

    def test_nothing_is_removed_before_all_is_fetched(self):
        """Until then, what would be removed may be the only copy."""
        self.write({"a": b"1", "d/b": b"2"})
        self.ctl("mirror", "put", self.source, "m")
        self.write({"renamed": b"3", "d/b": b"old"}, self.target)
        self.target.chmod(0o777)
        (self.target / "d").chmod(0o500)
        self.addCleanup((self.target / "d").chmod, 0o700)
        done = self.ctl_bytes("mirror", "get", "m", self.target, "--delete", **self.as_who_may_not_read_all())
        self.assertEqual(done.returncode, REFUSED)
        self.assertIn(b"nothing is removed, because not all objects could be fetched", done.stderr)
        self.assertEqual((self.target / "a").read_bytes(), b"1")
        self.assertEqual((self.target / "renamed").read_bytes(), b"3")
        (self.target / "d").chmod(0o700)
        self.assertEqual(self.moved("mirror", "get", "m", self.target, "--delete"), (1, 1, 1))
        self.assertFalse((self.target / "renamed").exists())

    def test_no_more_than_allowed_is_removed(self):
        self.write({str(number): b"1" for number in range(5)})
        self.ctl("mirror", "put", self.source, "m")
        self.ctl("mirror", "get", "m", self.target)
        for number in range(3):
            (self.source / str(number)).unlink()
        for more in ([], ["--dry-run"]):
            done = self.ctl_bytes("mirror", "put", self.source, "m", "--delete", "--max-delete", 2, *more)
            self.assertEqual(done.returncode, REFUSED)
            self.assertIn(b"nothing is removed: --delete would remove 3, and --max-delete allows 2", done.stderr)
        self.assertEqual(len(self.names()), 5)
        self.assertEqual(self.moved("mirror", "put", self.source, "m", "--delete", "--max-delete", 3), (0, 2, 3))

        done = self.summary("mirror", "get", "m", self.target, "--delete", "--max-delete", 2, exit_code=REFUSED)
        self.assertEqual([each["code"] for each in done["failed"]], ["too_many"])
        self.assertEqual(len(list(self.target.iterdir())), 5)
        self.assertEqual(self.moved("mirror", "get", "m", self.target, "--delete", "--max-delete", 3), (0, 2, 3))
        self.assertEqual(len(list(self.target.iterdir())), 2)
        self.refused(USAGE, ["--delete"], "mirror", "get", "m", self.target, "--max-delete", 3)

    def test_objects_below_a_symbolic_link_stay(self):
        """What is behind the link was not looked at."""
        self.write({"d/a": b"1", "d/e/b": b"2", "f": b"3"})
        self.ctl("mirror", "put", self.source, "m")
        (self.source / "d").rename(self.directory / "elsewhere")
        (self.source / "d").symlink_to(self.directory / "elsewhere")
        self.put("m/d2", b"4")
        self.assertEqual(self.moved("mirror", "put", self.source, "m", "--delete"), (0, 1, 1))
        self.assertEqual(self.names(), ["m/d/a", "m/d/e/b", "m/f"])

    def test_a_source_that_is_not_there_removes_nothing(self):
        self.write({"a": b"1"})
        self.ctl("mirror", "put", self.source, "m")
        self.ctl("mirror", "get", "m", self.target)
        (self.source / "a").unlink()
        done = self.ctl_bytes("mirror", "put", "--delete", self.source, "m")
        self.assertEqual(done.returncode, REFUSED)
        self.assertIn(f"{self.source}: no file is in it, so nothing is removed", done.stderr.decode())
        self.assertEqual(self.names(), ["m/a"])
        done = self.ctl_bytes("mirror", "get", "--delete", "n", self.target)
        self.assertEqual(done.returncode, NOT_FOUND)
        self.refused(USAGE, ["No such file"], "mirror", "put", "--delete", self.directory / "none", "m")
        self.refused(USAGE, ["--delete would remove"], "mirror", "put", "--delete", self.target, "")
        self.assertEqual((self.target / "a").read_bytes(), b"1")

    def test_a_directory_that_cannot_be_read_removes_nothing(self):
        self.write({"a": b"1", "d/b": b"2"})
        self.ctl("mirror", "put", self.source, "m")
        (self.source / "d").chmod(0)
        self.addCleanup((self.source / "d").chmod, 0o700)
        (self.source / "a").unlink()
        done = self.ctl_bytes("mirror", "put", "--delete", self.source, "m", **self.as_who_may_not_read_all())
        self.assertEqual(done.returncode, REFUSED)
        self.assertIn(b"nothing is removed, because not all files could be found", done.stderr)
        self.assertEqual(self.names(), ["m/a", "m/d/b"])

    def test_a_directory_in_which_no_object_has_a_name_removes_nothing(self):
        """Its files are not known, whatever they are."""
        deep = "/".join(["x" * 200] * 3)
        self.write({"a": b"1"})
        self.put("m/b", b"2")
        (self.source / deep).mkdir(parents=True)
        done = self.ctl_bytes("mirror", "put", "--delete", self.source, "m")
        self.assertEqual(done.returncode, REFUSED)
        self.assertIn(b"nothing is removed, because not all files could be found", done.stderr)
        self.assertEqual(self.names(), ["m/a", "m/b"])

    def test_files_that_fail_keep_their_objects(self):
        self.write({"a": b"1", "new\nline": b"2"})
        self.ctl_bytes("mirror", "put", self.source, "m")
        self.put("m/link", b"3")
        (self.source / "link").symlink_to("a")
        self.put("m/b", b"4")
        done = self.ctl_bytes("mirror", "put", "--delete", self.source, "m")
        self.assertEqual(done.returncode, REFUSED)
        self.assertIn(b"control character", done.stderr)
        # A file may have been renamed, and could not be stored under its new name.
        self.assertIn(b"nothing is removed, because not all files could be stored", done.stderr)
        self.assertEqual(self.names(), ["m/a", "m/b", "m/link"])
        (self.source / "new\nline").unlink()
        self.assertEqual(self.ctl_bytes("mirror", "put", "--delete", self.source, "m").returncode, DONE)
        self.assertEqual(self.names(), ["m/a", "m/link"])

    def test_a_full_disk(self):
        """What does not fit fails; with more space, another run makes the trees equal."""
        self.start_anew("64MiB")
        self.write({str(number): content(4 * MIB, number) for number in range(60)})
        self.put("m/other", b"x")
        done = self.ctl_bytes("mirror", "put", "--delete", self.source, "m/")
        self.assertEqual(done.returncode, REFUSED)
        self.assertIn(b"space", done.stderr)
        stored = set(self.names())
        self.assertNotIn("m/other", stored)
        self.assertLess(len(stored), 60)
        for number in range(45):
            (self.source / str(number)).unlink()
        # The objects of the files that are gone make room only in the end.
        self.ctl_bytes("mirror", "put", "--delete", self.source, "m/")
        wait_until(lambda: self.ctl_bytes("mirror", "put", "--delete", self.source, "m/").returncode == DONE, "space again")
        self.assertEqual(self.moved("mirror", "put", self.source, "m/"), (0, 15, 0))
        self.assert_equal_trees()


if __name__ == "__main__":
    unittest.main()

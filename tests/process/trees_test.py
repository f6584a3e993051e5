"""Trees: put, get and rm with -r move each file of a directory, whole, and write nothing outside of it."""

import json
import os
import pty
import random
import select
import shutil
import signal
import socket
import subprocess
import unittest
from pathlib import Path

from fopd_process import DONE, FOPCTL, USAGE, wait_until
from storage_process import MIB, NOT_FOUND, REFUSED, SECONDS, content
from tree_process import TreeTestCase


class TreesTest(TreeTestCase):
    # -- what is here and there --

    def written(self, top=None):
        top = top or self.target
        return {str(each.relative_to(top)): each.read_bytes() for each in top.rglob("*")
                if each.is_file() and not each.is_symlink()}

    def summary(self, *arguments, exit_code=DONE):
        """What it prints with --json, and what it says on standard error."""
        done = self.ctl_bytes(*arguments, "--json")
        self.assertEqual(done.returncode, exit_code, done.stderr)
        return json.loads(done.stdout), json.loads(done.stderr or "null")

    def files(self, count):
        chance = random.Random(count)
        directories = ["", "a/", "a/b/", "a/b/c/", "a b/", "ä/🐟/", "d" * 200 + "/"]
        sizes = [0, 1, 4095, 4096, 4097, 70_000]
        return {f"{chance.choice(directories)}{number}": content(chance.choice(sizes), number) for number in range(count)}

    # -- there and back --

    def test_three_hundred_files_come_back(self):
        files = self.files(300) | {"large": content(9 * MIB + 5), "x" * 255: b"long"}
        self.write(files)
        size = sum(map(len, files.values()))
        self.assertRegex(self.ctl("put", "-r", self.source, "2026/").decode(), r"^302 objects stored, [0-9.]+ MiB\n$")
        self.assertEqual(self.names(), sorted((f"2026/{path}" for path in files), key=str.encode))

        self.assertRegex(self.ctl("get", "-r", "2026/", self.target).decode(), r"^302 objects fetched, [0-9.]+ MiB\n$")
        self.assertEqual(self.written(), files)
        # A second time, over what is there.
        done, complaint = self.summary("get", "-r", "--no-skip", "2026/", self.target)
        self.assertEqual(done, {"objects": 302, "bytes": size, "unchanged": 0, "removed": 0, "skipped": 0, "empty_directories": 0,
                                "interrupted": False, "failed": [], "more_failed": 0})
        self.assertIsNone(complaint)
        self.assertEqual(self.written(), files)

        done, _ = self.summary("rm", "-r", "2026/", "--yes")
        self.assertEqual((done["objects"], done["bytes"]), (302, size))
        self.assertEqual(self.names(), [])

    def test_a_name_is_a_directory_of_names(self):
        """With a slash behind it or without, and everything for the empty one."""
        self.write({"x": b"1", "y/z": b"2"})
        self.ctl("put", "-r", self.source, "a")
        self.put("ab", b"3")
        self.ctl("put", "--recursive", self.source, "")
        self.assertEqual(self.names(), ["a/x", "a/y/z", "ab", "x", "y/z"])
        self.ctl("get", "-r", "a", self.target)
        self.assertEqual(self.written(), {"x": b"1", "y/z": b"2"})
        everything = self.directory / "everything"
        self.ctl("get", "-r", "", everything)
        self.assertEqual(self.written(everything), {"a/x": b"1", "a/y/z": b"2", "ab": b"3", "x": b"1", "y/z": b"2"})

    def test_each_object_has_the_group(self):
        self.write({"x": b"1", "y": b"2"})
        self.ctl("put", "-r", self.source, "a/", "--group", "staff")
        for name in ("a/x", "a/y"):
            self.assertEqual(json.loads(self.ctl("stat", name, "--json"))["group"], "staff")

    def test_quiet_prints_errors_only(self):
        self.write({"x": b"1"})
        (self.source / "link").symlink_to("x")
        done = self.ctl_bytes("put", "-r", self.source, "a/", "--quiet")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (DONE, b"", b""))

    # -- quotas --

    def owner(self, quota):
        key = self.directory / "ada.key"
        self.ctl("key", "create", "ada", "--quota", quota, "--out", key)
        return ["--key", key]

    def test_a_tree_that_cannot_fit_the_quota_is_not_begun(self):
        ada = self.owner("fast=1MiB")
        self.write({str(number): content(8 << 10, number) for number in range(100)})  # 800 KiB.
        done, _ = self.summary("put", "-r", self.source, "a/", *ada)
        self.assertEqual(done["objects"], 100)
        # What is there already counts as free.
        done, _ = self.summary("put", "-r", self.source, "a/", *ada, "--size-only")
        self.assertEqual(done["unchanged"], 100)
        done, complaint = self.summary("put", "-r", self.source, "b/", *ada, exit_code=REFUSED)
        self.assertEqual((done["objects"], [each["code"] for each in done["failed"]]), (0, ["quota"]))
        self.assertIn("819200 of 1048576 bytes used, 819200 more wanted; nothing is stored", complaint["error"])
        self.assertEqual([name for name in self.names() if not name.startswith("a/")], [])
        self.ctl("rm", "-r", "a/", "--yes", *ada)
        self.ctl("put", "-r", self.source, "b/", *ada)

    def test_a_dry_run_knows_the_quota_and_stores_nothing(self):
        ada = self.owner("fast=1MiB")
        self.write({str(number): content(8 << 10, number) for number in range(150)})  # 1200 KiB.
        done, complaint = self.summary("put", "-r", "--dry-run", self.source, "a/", *ada, exit_code=REFUSED)
        self.assertEqual((done["planned"], [each["code"] for each in done["failed"]]), ([], ["quota"]))
        self.assertIn("quota of ada in pool fast: 0 of 1048576 bytes used, 1228800 more wanted; nothing would be stored",
                      complaint["error"])
        for number in range(100, 150):
            (self.source / str(number)).unlink()
        done, _ = self.summary("put", "-r", "--dry-run", self.source, "a/", *ada)
        self.assertEqual(done["objects"], 100)
        self.assertEqual(self.names(), [])
        # The pool is asked for by its name, too, and what is there already counts as free.
        self.ctl("put", "-r", self.source, "a/", *ada)
        done, _ = self.summary("put", "-r", "--dry-run", "--no-skip", "--pool", "fast", self.source, "a/", *ada)
        self.assertEqual(done["objects"], 100)
        self.summary("put", "-r", "--dry-run", "--pool", "fast", self.source, "b/", *ada, exit_code=REFUSED)

    def test_a_dry_run_knows_the_quota_of_an_administrator_and_of_the_pool(self):
        ada, key = self.owner("fast=1MiB"), self.directory / "chief.key"
        self.ctl("key", "create", "chief", "--rights", "read,write,create,delete,admin", "--quota", "fast=1MiB", "--out", key)
        self.write({str(number): content(8 << 10, number) for number in range(150)})  # 1200 KiB.
        for verb in (["put", "-r"], ["mirror", "put", "--delete"]):
            done, complaint = self.summary(*verb, "--dry-run", self.source, "a/", "--key", key, exit_code=REFUSED)
            self.assertEqual((done["planned"], [each["code"] for each in done["failed"]]), ([], ["quota"]))
            self.assertIn("quota of chief in pool fast: 0 of 1048576 bytes used, 1228800 more wanted; nothing would be stored",
                          complaint["error"])
        # The pool, whose quota ada may not see.
        config = self.dir / "fopd.yaml"
        text = config.read_text()
        self.assertIn("{ name: fast }", text)
        config.write_text(text.replace("{ name: fast }", "{ name: fast, quota: 512KiB }"))
        self.ctl("reload")
        for number in range(100, 150):
            (self.source / str(number)).unlink()
        done, complaint = self.summary("put", "-r", "--dry-run", self.source, "a/", *ada, exit_code=REFUSED)
        self.assertEqual((done["planned"], [each["code"] for each in done["failed"]]), ([], ["quota"]))
        self.assertIn("quota of all in pool fast: 0 of 524288 bytes used, 819200 more wanted; nothing would be stored",
                      complaint["error"])
        self.assertEqual(self.names(), [])

    def test_a_tree_of_more_objects_than_the_quota_has_is_not_begun(self):
        ada = self.owner("fast=1MiB,50")
        self.write({str(number): b"" if number % 2 else b"few" for number in range(60)})
        for verb in (["put", "-r"], ["mirror", "put"], ["put", "-r", "--dry-run"], ["mirror", "put", "--dry-run"]):
            with self.subTest(verb):
                done, complaint = self.summary(*verb, self.source, "a/", *ada, exit_code=REFUSED)
                self.assertEqual([each["code"] for each in done["failed"]], ["quota"])
                self.assertIn("quota of ada in pool fast: 0 of 50 objects used, 60 more wanted; nothing ", complaint["error"])
                self.assertEqual(self.names(), [])
        for number in range(20):
            (self.source / str(number)).unlink()
        done, _ = self.summary("put", "-r", self.source, "a/", *ada)
        self.assertEqual((done["objects"], done["failed"]), (40, []))
        # What is there already counts as free; the rest does not fit.
        done, _ = self.summary("put", "-r", "--dry-run", "--no-skip", self.source, "a/", *ada)
        self.assertEqual((done["objects"], done["failed"]), (40, []))
        for number in range(100, 111):
            (self.source / str(number)).write_bytes(b"few")
        done, complaint = self.summary("put", "-r", self.source, "a/", *ada, exit_code=REFUSED)
        self.assertEqual((done["objects"], [each["code"] for each in done["failed"]]), (0, ["quota"]))
        self.assertIn("40 of 50 objects used, 11 more wanted; nothing is stored", complaint["error"])

    def test_a_mirror_that_cannot_fit_the_quota_is_not_begun(self):
        ada = self.owner("fast=1MiB")
        self.write({str(number): content(8 << 10, number) for number in range(100)})  # 800 KiB.
        self.ctl("mirror", "put", "--delete", self.source, "a/", *ada)
        self.write({f"more{number}": content(8 << 10, number) for number in range(60)})
        (self.source / "0").unlink()
        done, complaint = self.summary("mirror", "put", "--delete", self.source, "a/", *ada, exit_code=REFUSED)
        self.assertEqual((done["objects"], done["removed"], [each["code"] for each in done["failed"]]), (0, 0, ["quota"]))
        self.assertIn("nothing is stored or removed", complaint["error"])
        self.assertEqual(len(self.names()), 100)
        # What the mirror removes counts as free.
        for number in range(1, 61):
            (self.source / str(number)).unlink()
        done, _ = self.summary("mirror", "put", "--delete", "--dry-run", self.source, "a/", *ada)
        self.assertEqual(done["failed"], [])

    def test_a_tree_is_stored_again_under_a_tight_quota(self):
        """The space of a replaced object is free a moment after the put that has replaced it."""
        ada = self.owner("fast=1MiB")
        self.write({str(number): content(8 << 10, number) for number in range(120)})  # 960 of 1024 KiB.
        self.ctl("put", "-r", self.source, "a/", *ada)
        for _ in range(3):
            done, _ = self.summary("put", "-r", "--no-skip", self.source, "a/", *ada)
            self.assertEqual((done["objects"], done["failed"]), (120, []))
        self.assertEqual(len(self.names()), 120)

    def test_a_tree_stops_where_the_quota_ends(self):
        """Objects that are there count as free before the tree is sent, but this tree replaces none of them."""
        ada = self.owner("fast=,160")
        self.write({f"old{number}": b"x" for number in range(80)})
        self.ctl("put", "-r", self.source, "a/", *ada)
        shutil.rmtree(self.source)
        self.write({str(number): b"x" for number in range(150)})
        done = self.ctl_bytes("put", "-r", self.source, "a/", *ada)
        self.assertEqual(done.returncode, REFUSED)
        self.assertEqual(len(self.names()), 160)
        complaints = done.stderr.decode().splitlines()
        self.assertIn("the quota has no room for more; the rest was not tried", complaints[-1])
        self.assertLessEqual(len(complaints), 17)  # As many as are in flight, and the last line.

    # -- only said --

    def test_a_dry_run_says_what_would_be_done_and_does_nothing(self):
        self.write({"a": b"1", "d/b": b"22", "bad\nname": b"3"})
        (self.source / "link").symlink_to("a")
        done = self.ctl_bytes("put", "-r", "--dry-run", self.source, "p/")
        self.assertEqual(done.returncode, REFUSED)
        self.assertEqual(done.stdout.decode().splitlines(),
                         ["would store p/a, 1 B", "would store p/d/b, 2 B",
                          "2 objects would be stored, 3 B; skipped 1 file; 1 failed"])
        self.assertIn(b"control character", done.stderr)
        self.assertEqual(self.names(), [])

        (self.source / "bad\nname").unlink()
        self.ctl("put", "-r", self.source, "p/")
        done, _ = self.summary("get", "-r", "--dry-run", "p/", self.target)
        self.assertEqual(done["planned"], [{"do": "get", "name": "p/a", "size": 1}, {"do": "get", "name": "p/d/b", "size": 2}])
        self.assertEqual((done["objects"], done["bytes"]), (2, 3))
        self.assertFalse(self.target.exists())
        self.refused(USAGE, ["Not a directory"], "get", "-r", "--dry-run", "p/", self.source / "a")

        done, _ = self.summary("rm", "-r", "p/", "--dry-run")
        self.assertEqual(done["planned"], [{"do": "rm", "name": "p/a", "size": 1}, {"do": "rm", "name": "p/d/b", "size": 2}])
        self.assertEqual(self.ctl("rm", "-r", "p/", "--dry-run").decode().splitlines()[-1], "2 objects would be removed, 3 B")
        self.assertEqual(self.ctl("rm", "-r", "p/", "--dry-run", "--quiet"), b"")
        self.assertEqual(self.names(), ["p/a", "p/d/b"])

    def test_a_dry_run_of_nothing(self):
        self.source.mkdir()
        done, _ = self.summary("put", "-r", "--dry-run", self.source, "p/")
        self.assertEqual((done["planned"], done["objects"]), ([], 0))
        self.refused_with_summary(NOT_FOUND, "rm: a/: no object name begins with this prefix", "rm", "-r", "a/", "--dry-run")
        self.refused(USAGE, ["--recursive"], "put", "--dry-run", self.source, "p")

    def test_a_dry_run_with_no_replace_finds_what_is_there(self):
        self.write({"a": b"1", "b": b"2"})
        self.put("p/a", b"old")
        done, _ = self.summary("put", "-r", "--dry-run", "--no-replace", self.source, "p/", exit_code=REFUSED)
        self.assertEqual(([each["name"] for each in done["planned"]], [each["code"] for each in done["failed"]]),
                         (["p/b"], ["exists"]))

    # -- what is left out --

    def test_what_is_no_file_is_skipped(self):
        self.write({"x": b"1", "d/y": b"2"})
        (self.source / "link").symlink_to("x")
        (self.source / "d" / "up").symlink_to("..")
        (self.source / "empty").mkdir()
        os.mkfifo(self.source / "pipe")
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(str(self.source / "socket"))
            done = self.ctl_bytes("put", "-r", self.source, "a/")
            summary, complaint = self.summary("put", "-r", self.source, "b/")
        self.assertEqual(done.returncode, DONE)
        self.assertEqual(sorted(done.stderr.decode().splitlines()), [
            f"fopctl: put: {self.source}/d/up: skipped, as it is a symbolic link",
            f"fopctl: put: {self.source}/empty: the directory is empty, and no object stands for it",
            f"fopctl: put: {self.source}/link: skipped, as it is a symbolic link",
            f"fopctl: put: {self.source}/pipe: skipped, as it is a named pipe",
            f"fopctl: put: {self.source}/socket: skipped, as it is a socket"])
        self.assertEqual(done.stdout, b"2 objects stored, 2 B; skipped 4 files; 1 empty directory\n")
        self.assertEqual(self.names(), ["a/d/y", "a/x", "b/d/y", "b/x"])
        self.assertEqual((summary["skipped"], summary["empty_directories"], summary["failed"]), (4, 1, []))
        self.assertEqual((complaint["code"], complaint["exit_code"]), ("warning", DONE))

    def test_a_file_that_cannot_be_read_does_not_stop_the_others(self):
        self.write({"a": b"1", "b": b"2", "c/d": b"3", "e/f": b"4"})
        (self.source / "b").chmod(0)
        (self.source / "e").chmod(0)
        self.addCleanup((self.source / "e").chmod, 0o700)
        options = self.as_who_may_not_read_all()
        done = self.ctl_bytes("put", "-r", self.source, "p/", **options)
        self.assertEqual(done.returncode, REFUSED)
        self.assertEqual(sorted(done.stderr.decode().splitlines()),
                         [f"fopctl: put: {self.source}/b: Permission denied",
                          f"fopctl: put: {self.source}/e: Permission denied"])
        self.assertEqual(done.stdout, b"2 objects stored, 2 B; 2 failed\n")
        self.assertEqual(self.names(), ["p/a", "p/c/d"])
        done = json.loads(self.ctl_bytes("put", "-r", self.source, "p/", "--json", **options).stdout)
        self.assertEqual(sorted(done["failed"], key=lambda each: each["name"]),
                         [{"name": f"p/{name}", "error": f"{self.source}/{name}: Permission denied", "code": "file",
                           "exit_code": REFUSED} for name in ("b", "e")])

    def test_names_that_no_object_can_have(self):
        self.write({"good": b"1", "a\nb": b"2"})
        (self.source / os.fsdecode(b"\xff")).write_bytes(b"3")
        done, complaint = self.summary("put", "-r", self.source, "p/", exit_code=REFUSED)
        self.assertEqual(done["objects"], 1)
        self.assertEqual({(each["code"], each["error"]) for each in done["failed"]},
                         {("bad_name", "the name has a control character"), ("bad_name", "the name is not UTF-8")})
        self.assertEqual(complaint["code"], "bad_name")
        self.assertEqual(self.names(), ["p/good"])

    def test_more_failures_and_skipped_files_than_are_listed(self):
        self.source.mkdir()
        for number in range(1100):
            (self.source / f"bad\n{number}").touch()
            (self.source / f"link{number}").symlink_to("x")
        self.write({"good": b"1"})
        done = self.ctl_bytes("put", "-r", self.source, "p/")
        self.assertEqual((done.returncode, done.stdout),
                         (REFUSED, b"1 object stored, 1 B; skipped 1100 files; 1100 failed\n"))
        lines = done.stderr.decode().splitlines()
        self.assertEqual(lines[-2:], ["fopctl: put: 100 more failures",
                                      "fopctl: put: 100 more files and empty directories left out"])
        self.assertEqual(sum("control character" in line for line in lines), 1000)
        self.assertEqual(sum("skipped, as it is" in line for line in lines), 1000)
        self.assertEqual(len(lines), 2002)
        summary, complaint = self.summary("put", "-r", self.source, "p/", exit_code=REFUSED)
        self.assertEqual((len(summary["failed"]), summary["more_failed"]), (1000, 100))
        self.assertEqual(complaint["code"], "bad_name")

    def test_no_replace_is_for_each_object(self):
        self.write({"a": b"1", "b": b"2"})
        self.put("p/a", b"old")
        (self.source / "0").mkdir()
        done, complaint = self.summary("put", "-r", self.source, "p/", "--no-replace", exit_code=REFUSED)
        self.assertEqual(done["objects"], 1)
        self.assertEqual([(each["name"], each["code"], each["exit_code"]) for each in done["failed"]],
                         [("p/a", "exists", REFUSED)])
        # What is no failure comes behind it, although it came first.
        self.assertEqual(complaint["code"], "exists")
        self.assertIn("p/a", complaint["error"])
        self.assertEqual(len(complaint["details"]), 1)
        self.assertIn("the directory is empty", complaint["details"][0])
        self.assertEqual((self.get("p/a"), self.get("p/b")), (b"old", b"2"))

    def test_an_object_in_the_place_of_a_directory(self):
        for name in ("p/a", "p/a/b", "p/a-b", "p/c/d"):
            self.put(name, name.encode())
        done, complaint = self.summary("get", "-r", "p/", self.target, exit_code=REFUSED)
        self.assertEqual(self.written(), {"a": b"p/a", "a-b": b"p/a-b", "c/d": b"p/c/d"})
        self.assertEqual([(each["name"], each["code"]) for each in done["failed"]], [("p/a/b", "bad_name")])
        self.assertEqual(complaint["error"], "get: p/a/b: the object p/a is a file there, not a directory")

    # -- nothing outside --

    def files_around(self):
        """In the directory of the test, without the daemon's."""
        return {str(each.relative_to(self.directory)) for each in self.directory.rglob("*")
                if each.is_file() and self.dir not in each.parents}

    def test_names_and_links_that_lead_outside(self):
        outside = self.directory / "outside"
        self.write({"mine": b"mine"}, outside)
        self.target.mkdir()
        (self.target / "links").symlink_to(outside)
        (self.target / "link").symlink_to(outside / "mine")
        bad = ["p/../outside/mine", "p/../../x", "p//tmp/x", f"p/{outside}/mine", "p/links/mine", "p/links/new",
               "p/links/new/new", "p/link", "p/x/../../outside/mine", "p/.", "p/d/"]
        for name in [*bad, "p/good"]:
            self.put(name, b"theirs")
        before = self.files_around()
        done = self.ctl_bytes("get", "-r", "p/", self.target)
        self.assertEqual(done.returncode, REFUSED)
        self.assertEqual(done.stdout, f"1 object fetched, 6 B; {len(bad)} failed\n".encode())
        self.assertEqual(len(done.stderr.decode().splitlines()), len(bad), done.stderr)
        self.assertIn("get: p/../outside/mine: it cannot be the name of a file: a part of it is . or ..",
                      done.stderr.decode())
        self.assertIn(f"get: {self.target}/links/mine: a symbolic link is in the way", done.stderr.decode())
        self.assertEqual(self.written(outside), {"mine": b"mine"})
        self.assertEqual(self.files_around() - before, {"target/good"})
        self.assertTrue((self.target / "link").is_symlink())

    # -- interrupted --

    def slow_down(self):
        """What is of the job `tree` gets so few turns that it is still at work when it is interrupted."""
        rules = self.directory / "rules"
        rules.write_text("slow job=tree rate=30/s burst=1 by=none\ndefault * rate=unlimited\n")
        done = self.daemon.ctl("lrs", "set", "tbf", "--rules", rules)
        self.assertEqual(done.returncode, DONE, done.stderr)

    def interrupt(self, number, seen, *arguments):
        """Interrupts it when seen() is true. Returns what it printed."""
        process = self.start_ctl(*arguments, "--job", "tree")
        wait_until(lambda: seen() or process.poll() is not None, "some of the objects")
        process.send_signal(number)
        output, complaints = process.communicate(timeout=SECONDS)
        self.assertEqual(process.returncode, -number, complaints)
        self.assertEqual(complaints, b"")
        return output.decode()

    def test_an_interrupted_put_leaves_whole_objects(self):
        files = {f"d{number % 5}/{number}": content(5000, number) for number in range(900)}
        self.write(files)
        self.slow_down()
        output = self.interrupt(signal.SIGINT, lambda: len(self.names()) > 5, "put", "-r", self.source, "p/")
        self.assertRegex(output, "^interrupted: [0-9]+ objects stored, ")
        names = self.names()
        self.assertLess(len(names), len(files))
        self.assertGreaterEqual(len(names), int(output.split()[1]))
        for name in names:
            self.assertEqual(self.get(name), files[name.removeprefix("p/")])
        self.assertEqual(sum(each["objects"] for each in json.loads(self.ctl("df", "--json"))["pools"]), len(names))

    def test_an_interrupted_get_leaves_whole_files(self):
        files = {f"d{number % 5}/{number}": content(5000, number) for number in range(900)}
        self.write(files)
        self.ctl("put", "-r", self.source, "p/")
        self.slow_down()
        output = self.interrupt(signal.SIGTERM, lambda: self.target.exists() and len(self.written()) > 5,
                                "get", "-r", "p/", self.target, "--json")
        done = json.loads(output)
        self.assertEqual((done["interrupted"], done["failed"]), (True, []))
        written = self.written()
        self.assertEqual(len(written), done["objects"])
        self.assertLess(len(written), len(files))
        self.assertEqual(written, {path: files[path] for path in written})

    def test_an_interrupted_rm_tells_how_far_it_came(self):
        self.write({str(number): b"" for number in range(900)})
        self.ctl("put", "-r", self.source, "p/")
        self.slow_down()
        output = self.interrupt(signal.SIGINT, lambda: len(self.names()) < 890, "rm", "-r", "p/", "--yes")
        self.assertRegex(output, "^interrupted: [0-9]+ objects removed, ")
        self.assertGreaterEqual(900 - len(self.names()), int(output.split()[1]))
        self.assertNotEqual(self.names(), [])

    def test_a_terminal_shows_how_far_it_is(self):
        self.write({"a/b": b"1"} | {str(number): b"1" for number in range(900)})
        (self.source / "x-link").symlink_to("a")
        self.slow_down()
        code, shown, _ = self.with_terminal(b" B/s", signal.SIGINT, "put", "-r", self.source, "p/", "--job", "tree")
        self.assertEqual(code, -signal.SIGINT)
        self.assertRegex(shown, r"put /[^ ]+  [0-9]+ objects  [0-9]+ B  [0-9]+ B/s")

    # -- removing --

    def test_rm_wants_to_be_sure(self):
        for name in ("a", "a/b", "a/c", "ab", "d/e"):
            self.put(name, b"12")
        self.refused(REFUSED, ["rm: nothing is removed: confirm with --yes: 2 objects, 4 B, below a/"],
                     "rm", "-r", "a/")
        self.refused(REFUSED, ["5 objects, 10 B, all of the default pool"], "rm", "-r", "--all")
        self.refused(USAGE, ["use --all for that"], "rm", "-r", "", "--yes")
        self.refused(USAGE, ["rm: name is required"], "rm", "-r", "--yes")
        self.refused(USAGE, ["rm: name is required"], "rm")
        self.refused(USAGE, ["--all"], "rm", "-r", "a", "--all", "--yes")
        self.refused(USAGE, ["--recursive"], "rm", "a", "--yes")
        self.assertEqual(len(self.names()), 5)
        self.assertEqual(self.ctl("rm", "-r", "a", "--yes"), b"2 objects removed, 4 B\n")
        self.assertEqual(self.names(), ["a", "ab", "d/e"])
        self.ctl("rm", "-r", "--all", "--yes")
        self.assertEqual(self.names(), [])

    def test_rm_of_names_below_each_other(self):
        for arguments in (["a", "a/b"], ["a/b", "a"], ["a/", "a", "a/b/c"]):
            with self.subTest(arguments):
                for name in ("a/b/c", "a/d", "ab"):
                    self.put(name, b"12")
                self.refused(REFUSED, ["confirm with --yes: 2 objects, 4 B, below a/\n"], "rm", "-r", *arguments)
                done, complaint = self.summary("rm", "-r", *arguments, "--yes")
                self.assertEqual((done["objects"], done["failed"], complaint), (2, [], None))
                self.assertEqual(self.names(), ["ab"])

    def on_terminal(self, answer, *arguments):
        """Types the answer to a question, or sends a signal. Returns the exit code, the question and standard output."""
        return self.with_terminal(b"[y/N] ", answer, *arguments)

    def with_terminal(self, expected, answer, *arguments, typed_before=b""):
        """The same, when the terminal shows what is expected."""
        terminal, end = pty.openpty()
        self.addCleanup(os.close, terminal)
        self.addCleanup(os.close, end)
        os.write(terminal, typed_before)
        process = subprocess.Popen([FOPCTL, *map(str, arguments)], env=self.environment, stdin=end,
                                   stdout=subprocess.PIPE, stderr=end)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        shown = bytearray()

        def is_there():
            if select.select([terminal], [], [], 0)[0]:
                shown.extend(os.read(terminal, 4096))
            return expected in shown
        wait_until(is_there, expected)
        if isinstance(answer, bytes):
            os.write(terminal, answer)
        else:
            process.send_signal(answer)
        output, _ = process.communicate(timeout=SECONDS)
        return process.returncode, shown.decode(), output

    def test_rm_asks_on_a_terminal(self):
        self.put("a/b", b"12")
        for answer in (b"n\n", b"\n", b"\x04", b"yesterday\n"):
            with self.subTest(answer):
                code, question, output = self.on_terminal(answer, "rm", "-r", "a/")
                self.assertEqual((code, output), (REFUSED, b""))
                self.assertIn("remove 1 object, 2 B, below a/? [y/N] ", question)
                self.assertEqual(self.names(), ["a/b"])
        code, _, output = self.on_terminal(signal.SIGINT, "rm", "-r", "a/")
        self.assertEqual((code, output), (-signal.SIGINT, b""))
        self.assertEqual(self.on_terminal(b"y\n", "rm", "-r", "a/")[::2], (DONE, b"1 object removed, 2 B\n"))
        self.assertEqual(self.names(), [])

    def test_what_is_typed_before_the_question_is_no_answer(self):
        self.put("a/b", b"12")
        code, _, output = self.with_terminal(b"[y/N] ", b"n\n", "rm", "-r", "a/", typed_before=b"y\n")
        self.assertEqual((code, output), (REFUSED, b""))
        self.assertEqual(self.names(), ["a/b"])

    # -- what is not there --

    def test_nothing_of_that_name(self):
        self.refused_with_summary(NOT_FOUND, "get: a/: no object name begins with this prefix", "get", "-r", "a/",
                                  self.target)
        self.assertFalse(self.target.exists())
        self.refused_with_summary(NOT_FOUND, "rm: a/: no object name begins with this prefix", "rm", "-r", "a/", "--yes")
        self.refused(NOT_FOUND, ["rm: a/: no object name begins with this prefix"], "rm", "-r", "a/")
        done, complaint = self.summary("rm", "-r", "a/", "--yes", exit_code=NOT_FOUND)
        self.assertEqual((done["objects"], done["failed"][0]["code"], complaint["code"]),
                         (0, "not_found", "not_found"))

    def refused_with_summary(self, exit_code, words, *arguments):
        done = self.ctl_bytes(*arguments)
        self.assertEqual((done.returncode, done.stderr.decode()), (exit_code, f"fopctl: {words}\n"))

    def test_directories_that_are_no_good(self):
        self.put("a/b", b"x")
        self.write({"file": b"x"})
        self.refused(USAGE, ["missing: No such file"], "put", "-r", self.directory / "missing", "b/")
        self.refused(USAGE, ["Not a directory"], "put", "-r", self.source / "file", "b/")
        self.refused(USAGE, ["- is not a directory"], "put", "-r", "-", "b/")
        self.refused(USAGE, ["No such file"], "get", "-r", "a/", self.directory / "missing" / "below")
        self.refused(USAGE, ["Not a directory"], "get", "-r", "a/", self.source / "file")
        self.refused(USAGE, ["- is not a directory"], "get", "-r", "a/", "-")
        self.refused(USAGE, ["control character"], "get", "-r", "a\nb", self.target)
        self.refused(USAGE, ["the group"], "put", "-r", self.source, "b/", "--group", "g" * 100)
        self.assertEqual(self.names(), ["a/b"])

    def test_what_is_refused_as_a_whole_prints_no_summary(self):
        self.put("a/b", b"x")
        self.write({"file": b"x"})
        for code, exit_code, arguments in [("usage", USAGE, ["put", "-r", self.directory / "missing", "b/"]),
                                           ("usage", USAGE, ["get", "-r", "a/", self.source / "file"]),
                                           ("refused", REFUSED, ["rm", "-r", "a/"])]:
            with self.subTest(arguments):
                done = self.ctl_bytes(*arguments, "--json")
                self.assertEqual((done.returncode, done.stdout), (exit_code, b""))
                complaint = json.loads(done.stderr)
                self.assertEqual((complaint["code"], complaint["exit_code"]), (code, exit_code))

    def test_a_server_that_is_gone(self):
        self.write({str(number): b"1" for number in range(100)})
        self.slow_down()
        process = self.start_ctl("put", "-r", self.source, "p/", "--job", "tree", "--timeout", "5")
        wait_until(lambda: len(self.names()) > 2, "some objects")
        self.daemon.kill()
        output, complaints = process.communicate(timeout=SECONDS)
        self.assertIn(b"the rest was not tried", complaints)
        self.assertNotIn(process.returncode, (DONE, REFUSED, USAGE))
        self.assertLess(len(complaints.splitlines()), 50)
        self.assertIn(b"objects stored, ", output)


if __name__ == "__main__":
    unittest.main()

"""Objects: what users store with fopctl is there, whole, and only for those who may see it.

The file is long because it has the tests of all verbs about single objects, which share a node and its files."""

import json
import os
import random
import shutil
import signal
import subprocess
import unittest
from multiprocessing.pool import ThreadPool
from pathlib import Path

from fopd_process import CONFIG, DONE, FOPCTL, IS_SANITIZED, NO_SERVER, USAGE, bench, run_program, wait_until
from storage_process import (MIB, NOT_ALLOWED, NOT_FOUND, REFUSED, SECONDS, content, digest, StorageTestCase)


class ObjectsTest(StorageTestCase):
    # -- whole objects --

    def test_put_and_get_of_every_size(self):
        source, target = self.directory / "source", self.directory / "target"
        for size in (0, 1, 4095, 4096, 4097, MIB + 3, 64 * MIB):
            with self.subTest(size):
                data = content(size)
                source.write_bytes(data)
                self.ctl("put", source, "file")
                self.ctl("put", "-", "stream", data=data)
                self.ctl("get", "file", target)
                self.assertEqual(digest(target.read_bytes()), digest(data))
                for name in ("file", "stream"):
                    self.assertEqual(digest(self.get(name)), digest(data))
                self.assertEqual(json.loads(self.ctl("stat", "file", "--json"))["size"], size)

    def test_a_put_tells_what_it_did(self):
        done = json.loads(self.ctl("put", "-", "a", "--json", data=b"hello"))
        self.assertEqual((done["name"], done["size"]), ("a", 5))
        self.assertRegex(done["fid"], "^[0-9a-f]{32}$")
        self.assertEqual(self.ctl("put", "-", "b", data=b"hello"), b"")

    def test_names_are_any_text(self):
        for name in ("../../etc/passwd", "a/b", " ", "ä", "🐟", "-", "x" * 480, "status", "\u202e"):
            with self.subTest(name):
                self.put(name, name.encode())
                self.assertEqual(self.get(name), name.encode())
        for name in ("", "x" * 481, "a\nb", b"\xff"):
            with self.subTest(name):
                done = subprocess.run([FOPCTL, "put", "/dev/null", name], env=self.environment, capture_output=True,
                                      timeout=SECONDS)
                self.assertEqual(done.returncode, USAGE, done.stderr)

    def test_texts_that_no_server_takes(self):
        name = ["is not a valid name: at most 64 bytes of UTF-8 without control characters"]
        for text in ("p" * 65, "p" * 256, "a\nb", b"\xff", "p" * 100_000):
            shown = text[:24] if len(text) > 24 else {"a\nb": "a\\nb", b"\xff": "\\xff"}[text]
            for arguments in (["ls"], ["stat", "a"], ["quota"], ["put", "-", "a"], ["bench", "--op", "read"]):
                with self.subTest(arguments, text=text[:80]):
                    self.refused_text([f"fopctl: {arguments[0]}: ", f'the pool "{shown}', *name], *arguments, "--pool",
                                      text)
            for arguments in (["ls"], ["put", "-", "a"], ["ping", "--count", "1"], ["bench", "--op", "create"]):
                with self.subTest(arguments, text=text[:80]):
                    self.refused_text([f'the job "{shown}', *name], *arguments, "--job", text)
        self.refused_text(['put: a: the group "ggg', *name], "put", "-", "a", "--group", "g" * 100_000)
        self.refused_text(['ls: the prefix "ppp', "480 bytes"], "ls", "p" * 20_000)
        self.assertEqual(self.names(), [])

    def refused_text(self, words, *arguments):
        arguments = [each if isinstance(each, bytes) else str(each) for each in arguments]
        done = subprocess.run([FOPCTL, *arguments], env=self.environment, input=b"", capture_output=True,
                              timeout=SECONDS)
        self.assertEqual((done.returncode, done.stdout), (USAGE, b""), done.stderr)
        for word in words:
            self.assertIn(word, done.stderr.decode())
        self.assertRegex(done.stderr.decode(), r"^fopctl: [^\n]{1,250}\n$")

    def test_put_replaces_unless_told_not_to(self):
        self.put("a", b"one")
        self.put("a", b"two")
        self.refused(REFUSED, ["put: a: "], "put", "-", "a", "--no-replace", data=b"three")
        self.refused(REFUSED, ["put: a: "], "put", "-", "a", "--no-replace", data=content(20 * MIB))
        self.assertEqual(self.get("a"), b"two")
        self.put("b", b"three", "--no-replace")
        self.assertEqual(self.names(), ["a", "b"])

    def test_a_file_that_is_fetched_is_there_as_a_whole_or_not_at_all(self):
        self.put("a", content(1000))
        target = self.directory / "target"
        target.write_bytes(b"mine")
        target.chmod(0o751)
        before = set(self.directory.iterdir())
        self.refused(NOT_FOUND, ["get: b: "], "get", "b", target)
        self.assertEqual(target.read_bytes(), b"mine")
        self.ctl("get", "a", target)
        self.assertEqual(target.read_bytes(), content(1000))
        self.assertEqual(target.stat().st_mode & 0o777, 0o751)
        self.assertEqual(set(self.directory.iterdir()), before)
        link = self.directory / "link"
        link.symlink_to(target)
        target.write_bytes(b"")
        self.ctl("get", "a", link)
        self.assertTrue(link.is_symlink())
        self.assertEqual(target.read_bytes(), content(1000))
        link.unlink()
        link.symlink_to(self.directory / "nothing")
        self.ctl("get", "a", link)
        self.assertEqual(link.read_bytes(), content(1000))

    def test_a_file_is_fetched_into_the_directory_one_is_in(self):
        self.put("a", b"x")
        for name in ("new", "./other", "new", "x" * 255):
            self.ctl("get", "a", name, cwd=self.directory)
            self.assertEqual((self.directory / name).read_bytes(), b"x")

    def test_local_files_that_are_no_good(self):
        self.put("a", b"x")
        self.refused(USAGE, ["missing: No such file"], "put", self.directory / "missing", "b")
        self.refused(USAGE, ["Is a directory; use put -r"], "put", self.directory, "b")
        self.refused(USAGE, ["No such file"], "get", "a", self.directory / "missing" / "file")
        self.refused(USAGE, ["Is a directory"], "get", "a", self.directory)
        self.refused(REFUSED, ["/dev/full: No space left"], "get", "a", "/dev/full")

    def test_an_interrupted_put_is_seen_by_nobody(self):
        before = self.used()
        process = self.start_ctl("put", "-", "a")
        process.stdin.write(content(20 * MIB))
        process.stdin.flush()
        wait_until(lambda: self.used() > before + 8 * MIB, "bytes of the upload on a disk")
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(SECONDS), -signal.SIGINT)
        self.refused(NOT_FOUND, ["stat: a: "], "stat", "a")
        self.assertEqual(self.names(), [])

    def used(self):
        return sum(each["used"] for each in json.loads(self.ctl("df", "--json"))["pools"])

    # -- parts of objects --

    def test_ranges_against_a_file(self):
        path = self.directory / "model"
        path.write_bytes(b"")
        self.put("a", b"")
        chance = random.Random(7)
        for step in range(10):
            size = path.stat().st_size
            offset = chance.choice([0, 1, 4095, 4096, size, size + 10_000, chance.randrange(300_000)])
            length = chance.choice([1, 100, 4096, 5000, 70_000])
            data = content(length, step)
            with path.open("r+b") as file:
                kind = chance.choice(["write", "write", "buffered", "append", "truncate", "punch"])
                if kind in ("write", "buffered"):
                    flags = ["--buffered"] if kind == "buffered" else []
                    self.ctl("write", "a", "--offset", offset, *flags, data=data)
                    file.seek(offset)
                    file.write(data)
                elif kind == "append":
                    done = json.loads(self.ctl("append", "a", "--json", data=data))
                    self.assertEqual((done["offset"], done["size"]), (size, length))
                    file.seek(0, os.SEEK_END)
                    file.write(data)
                elif kind == "truncate":
                    self.ctl("truncate", "a", offset)
                    file.truncate(offset)
                else:
                    self.ctl("punch", "a", "--offset", offset, "--length", length)
                    end = min(offset + length, size)
                    if end > offset:
                        file.seek(offset)
                        file.write(bytes(end - offset))
            expected = path.read_bytes()
            with self.subTest(step=step, kind=kind, offset=offset, length=length):
                self.assertEqual(json.loads(self.ctl("stat", "a", "--json"))["size"], len(expected))
                self.assertEqual(digest(self.get("a")), digest(expected))
                self.assertEqual(self.ctl("read", "a", "--offset", offset, "--length", length),
                                 expected[offset:offset + length])

    def test_sizes_with_units_and_the_end(self):
        data = content(10_000)
        self.put("a", data)
        self.assertEqual(self.ctl("read", "a", "--offset", "4k", "--length", "4KiB"), data[4096:8192])
        self.assertEqual(self.ctl("read", "a", "--offset", "9000"), data[9000:])
        self.assertEqual(self.ctl("read", "a", "--offset", "1G", "--length", "1G"), b"")
        self.ctl("truncate", "a", "2GiB")
        self.assertEqual(json.loads(self.ctl("stat", "a", "--json"))["size"], 2 << 30)
        self.assertEqual(self.ctl("read", "a", "--offset", "1G", "--length", "1M"), bytes(MIB))
        self.refused(USAGE, ["write: a: "], "write", "a", "--offset", (1 << 60) - 1, data=b"xy")
        for size in ("-1", "1x", "2000000000000000000", ""):
            with self.subTest(size):
                self.refused(USAGE, [], "truncate", "a", "--", size)

    def test_long_appends_and_writes_are_cut_and_none_is_lost(self):
        data = content(9 * MIB + 5)
        self.put("a", b"begin")
        self.ctl("append", "a", data=data)
        self.assertEqual(digest(self.get("a")), digest(b"begin" + data))
        self.ctl("write", "a", "--offset", 5, data=data[::-1])
        self.assertEqual(digest(self.get("a")), digest(b"begin" + data[::-1]))

    def test_what_is_not_there(self):
        for arguments in (["get", "a", "-"], ["read", "a"], ["write", "a", "--offset", "0"], ["append", "a"],
                          ["stat", "a"], ["mv", "a", "b"], ["rm", "a"], ["truncate", "a", "1"],
                          ["punch", "a", "--offset", "0", "--length", "1"], ["sync", "a"]):
            with self.subTest(arguments):
                self.refused(NOT_FOUND, [f"{arguments[0]}: a: "], *arguments)

    def slot_of(self, name):
        return int(json.loads(self.ctl("stat", name, "--json"))["fid"][:4], 16)

    def stop(self):
        self.daemon.signal(signal.SIGTERM)
        self.assertEqual(self.daemon.wait_end(), DONE, self.daemon.log())

    def test_what_may_be_on_a_missing_disk_is_not_said_to_be_gone(self):
        self.refused(NOT_FOUND, ["stat: nothing: no object has that name in pool fast"], "stat", "nothing")
        disk = json.loads(self.daemon.ctl("--json", "devices").stdout)["devices"][0]
        contents, lost = {}, set()
        while not 2 <= len(lost) < len(contents):
            name = f"o{len(contents):03}"
            contents[name] = content(10_000, len(contents))
            self.put(name, contents[name])
            if self.slot_of(name) == disk["slot"]:
                lost.add(name)
        self.stop()
        image = Path(disk["path"])
        image.rename(self.directory / "away")
        image.write_bytes(b"precious".ljust(64 * MIB, b"\0"))
        shutil.rmtree(self.dir / "data" / "names")
        self.start()

        why = ["missing or incomplete: ", f"{disk['name']} (given-up: holds something else already)"]
        for name in ("nothing", *lost):
            for arguments in (["get", name, "-"], ["read", name], ["write", name, "--offset", "0"], ["append", name],
                              ["stat", name], ["mv", name, "b"], ["rm", name], ["truncate", name, "1"],
                              ["sync", name], ["put", "-", name, "--no-replace"]):
                with self.subTest(arguments):
                    self.refused(REFUSED, [f"{arguments[0]}: ", *why], *arguments)
        self.assertIn("\nfast: 1 disk is missing; it is not in these figures\n", self.ctl("df").decode())
        self.assertEqual(json.loads(self.ctl("df", "--json"))["pools"][0]["missing_disks"], 1)
        done = self.ctl_bytes("ls")
        self.assertEqual(done.returncode, REFUSED)
        self.assertEqual(done.stdout.decode().split(), sorted(contents.keys() - lost))
        self.assertRegex(done.stderr.decode(), rf"^fopctl: ls: [^\n]*{disk['name']} \([^\n]*\n$")
        done = self.ctl_bytes("ls", "--json")
        self.assertEqual(done.returncode, REFUSED)
        self.assertEqual([each["name"] for each in json.loads(done.stdout)["objects"]], sorted(contents.keys() - lost))
        self.assertEqual(json.loads(self.ctl_bytes("ls", "none", "--json").stdout), {"objects": []})
        replaced = min(lost)
        for name in (replaced, "new"):
            contents[name] = b"new"
            self.put(name, b"new")

        self.stop()
        (self.directory / "away").replace(image)
        self.start()
        self.assertEqual(self.names(), sorted(contents))
        for name, data in contents.items():
            self.assertEqual(self.get(name), data)
        self.refused(NOT_FOUND, ["stat: nothing: no object has that name in pool fast"], "stat", "nothing")
        wait_until(lambda: "fopd.store.replaced_late" in self.daemon.log(), "the event")

    # -- names --

    def test_an_object_is_found_by_its_fid(self):
        self.put("a", b"bytes")
        self.put("other", b"x")
        by_name = self.ctl("stat", "a", "--json")
        fid = json.loads(by_name)["fid"]
        self.assertEqual(self.ctl("stat", "--fid", fid, "--json"), by_name)
        self.assertEqual(self.ctl("stat", "--fid", fid), self.ctl("stat", "a"))
        self.assertEqual(self.ctl("ls", "--fid", fid), b"a\n")
        self.assertEqual(json.loads(self.ctl("ls", "--fid", fid, "--json"))["objects"],
                         [each for each in json.loads(self.ctl("ls", "--json"))["objects"] if each["fid"] == fid])
        self.ctl("mv", "a", "b")
        self.assertEqual(self.ctl("ls", "--fid", fid), b"b\n")
        self.ctl("rm", "b")
        for verb in ("stat", "ls"):
            self.refused(NOT_FOUND, [f"{verb}: {fid}: "], verb, "--fid", fid)
            self.refused(NOT_FOUND, [], verb, "--fid", "ffff" + fid[4:])
            self.refused(USAGE, ["--fid: must be the 32 hexadecimal digits of a fid"], verb, "--fid", "42")
            self.refused(USAGE, ["--fid"], verb, "--fid", fid, "a")
            self.refused(USAGE, ["--fid"], verb, "--fid", fid, "--pool", "fast")
        self.refused(USAGE, ["stat: name is required"], "stat")

    def test_ls_of_many_pages(self):
        """Names so long that few of them fit into a reply."""
        expected = sorted(f"{number:03}" + chr(ord("a") + number % 26) * 477 for number in range(80))
        with ThreadPool(4) as several:
            several.map(lambda name: self.ctl("put", "/dev/null", name), expected)
        self.assertEqual(self.names(), expected)
        self.assertEqual(self.names("01"), expected[10:20])
        self.assertEqual(self.names(expected[-1]), expected[-1:])
        self.assertEqual(self.names("nothing"), [])
        self.assertEqual(json.loads(self.ctl("ls", "nothing", "--json")), {"objects": []})
        listed = json.loads(self.ctl("ls", "--json"))["objects"]
        self.assertEqual([each["name"] for each in listed], expected)
        self.assertEqual({each["size"] for each in listed}, {0})

    def test_ls_long(self):
        self.put("big", content(5000))
        line, = self.names("--long")
        self.assertRegex(line, r"^ +4\.9 KiB  20\d\d-\d\d-\d\d \d\d:\d\d:\d\d  big$")

    def test_mv(self):
        self.put("a", b"of a")
        self.put("b", b"of b")
        fid = json.loads(self.ctl("stat", "a", "--json"))["fid"]
        self.refused(REFUSED, ["mv: b: the name is taken"], "mv", "a", "b", "--no-replace")
        self.refused(NOT_FOUND, ["mv: nothing: "], "mv", "nothing", "b")
        self.assertEqual(json.loads(self.ctl("mv", "a", "b", "--json")), {"name": "b", "fid": fid})
        self.assertEqual(self.names(), ["b"])
        self.assertEqual(self.get("b"), b"of a")
        self.assertEqual(json.loads(self.ctl("stat", "b", "--json"))["fid"], fid)
        self.ctl("mv", "b", "b")
        self.assertEqual(self.names(), ["b"])

    def test_errors_in_json(self):
        self.put("a", b"x")
        for arguments, code, exit_code in ((["stat", "b"], "not_found", NOT_FOUND),
                                           (["put", "-", "a", "--no-replace"], "exists", REFUSED),
                                           (["ls", "--pool", "nowhere"], "wrong_pool", NOT_FOUND),
                                           (["write", "a"], "usage", USAGE)):
            done = self.ctl_bytes("--json", *arguments)
            self.assertEqual((done.returncode, done.stdout), (exit_code, b""))
            self.assertEqual(done.stderr.count(b"\n"), 1)
            error = json.loads(done.stderr)
            self.assertEqual(list(error), ["error", "code", "exit_code", "details"])
            self.assertEqual((error["code"], error["exit_code"], error["details"]), (code, exit_code, []))
            self.assertTrue(error["error"].startswith(arguments[0] + ": "))
        error = json.loads(self.ctl_bytes("--json", "rm", "b", "a", "c").stderr)
        self.assertEqual((error["code"], len(error["details"])), ("not_found", 1))

    def test_rm_of_several_goes_on(self):
        for name in "abc":
            self.put(name, b"x")
        done = self.ctl_bytes("rm", "a", "nothing", "c")
        self.assertEqual(done.returncode, NOT_FOUND)
        self.assertRegex(done.stderr, rb"^fopctl: rm: nothing: [^\n]+\n$")
        self.assertEqual(self.names(), ["b"])
        fid = json.loads(self.ctl("stat", "b", "--json"))["fid"]
        done = self.ctl_bytes("rm", "nothing", "b", "--json")
        self.assertEqual((done.returncode, json.loads(done.stdout)), (NOT_FOUND, {"removed": [{"name": "b", "fid": fid}]}))

    def test_df_and_pools(self):
        pool, cold = json.loads(self.ctl("df", "--json"))["pools"]
        self.assertEqual(cold["pool"], "cold")
        self.assertEqual(pool["pool"], "fast")
        self.assertEqual(pool["used"] + pool["free"], pool["capacity"])
        self.put("a", content(MIB), "--pool", "fast")
        pool, = json.loads(self.ctl("df", "--pool", "fast", "--json"))["pools"]
        self.assertEqual(pool["objects"], 1)
        self.assertEqual(pool["missing_disks"], 0)
        self.assertIn("fast", self.ctl("df").decode())
        self.assertNotIn("missing", self.ctl("df").decode())
        for arguments in (["put", "-", "b"], ["get", "a", "-"], ["stat", "a"], ["ls"], ["rm", "a"], ["df"], ["quota"],
                          ["sync"], ["sync", "a"], ["mv", "a", "b"], ["truncate", "a", "1"]):
            with self.subTest(arguments):
                self.refused(NOT_FOUND, [f"{arguments[0]}: ", "pool nowhere: there is no "], *arguments, "--pool",
                             "nowhere")
        self.assertEqual(self.names(), ["a"])

    # -- who may --

    def key_for(self, name, rights):
        path = self.directory / f"{name}.key"
        done = run_program(FOPCTL, "key", "create", name, "--rights", rights, "--out", path, env=self.environment)
        self.assertEqual(done.returncode, DONE, done.stderr)
        return ["--key", path]

    def test_a_quota(self):
        file = self.dir / "fopd.yaml"
        text = file.read_text()
        file.write_text(text.replace("{ name: fast }", "{ name: fast, quota: 1MiB }"))
        self.ctl("reload")
        self.put("a", content(MIB))
        self.refused(REFUSED, ["b", "quota"], "put", "-", "b", data=content(4096))
        file.write_text(text)
        self.ctl("reload")
        self.put("b", content(4096))

    def test_a_put_that_cannot_fit_a_quota_sends_nothing(self):
        key = self.directory / "ada.key"
        self.ctl("key", "create", "ada", "--quota", "fast=1MiB", "--out", key)
        self.put("small", content(4096), "--key", key)
        large = self.directory / "large"
        with large.open("wb") as file:
            file.truncate(2 << 30)
        moved = "fopd_bulk_bytes_pulled_total", "fopd_message_bytes_received_total"
        before = [self.daemon.metrics()[each] for each in moved]
        self.refused(REFUSED, ["put: large: ", "quota of ada in pool fast: 4096 of 1048576 bytes used, 2147483648 more wanted"],
                     "put", large, "large", "--key", key)
        pulled, received = (self.daemon.metrics()[each] - earlier for each, earlier in zip(moved, before))
        self.assertEqual(pulled, 0)
        self.assertLess(received, 64 << 10)
        self.assertEqual(json.loads(self.ctl("quota", "--pool", "fast", "--json", "--key", key))["quotas"][0]["objects"], 1)

    def test_quotas_that_the_daemon_would_refuse(self):
        principals = (self.dir / "principals.yaml").read_text()
        for quota, why in (("fast=10TX", 'the quota of bytes in pool fast: "10TX" has the unknown unit "TX"; units are '),
                           ("fast=10tib", 'did you mean "TiB"?'), ("fast=1.5GiB", '"1.5GiB" '), ("fast=010", '"010" '),
                           ("fast=none", '"none" '), ("fast=1GiB,", 'the quota of objects in pool fast: "" is not a whole number'),
                           ("fast=1GiB,1k", '"1k" is not a whole number'), ("fast=,99999999999999999999", "99999999999999999999"),
                           ("fast", "a quota is POOL=BYTES, "), ("=1GiB", "a quota is POOL=BYTES, "),
                           ("fast=", "a quota is POOL=BYTES, ")):
            with self.subTest(quota):
                self.refused(USAGE, ["key create", why], "key", "create", "ada", "--quota", quota)
        self.refused(USAGE, ["more than one quota for pool fast"], "key", "create", "ada", "--quota", "fast=1k", "--quota", "fast=,1")
        self.assertEqual((self.dir / "principals.yaml").read_text(), principals)
        # A number alone is bytes.
        self.ctl("key", "create", "ada", "--quota", "fast=8192", "--out", self.directory / "ada.key")
        self.assertEqual(self.daemon.metrics()['fopd_principal_quota_bytes{pool="fast",principal="ada"}'], 8192)

    def test_names_that_no_principal_may_have(self):
        principals = (self.dir / "principals.yaml").read_text()
        for name in ("other", "peers", "unauthenticated"):
            self.refused(USAGE, [f"key create: no principal may be called {name}: reports use this name for other clients"], "key", "create", name)
        self.assertEqual((self.dir / "principals.yaml").read_text(), principals)

    def test_rights_that_do_not_exist_are_shown(self):
        self.refused(USAGE, ['key create: --rights: "read,wirte": the rights are read, '], "key", "create", "ada", "--rights", "read,wirte")

    def test_a_quota_of_a_principal(self):
        path = self.directory / "ada.key"
        done = run_program(FOPCTL, "key", "create", "ada", "--rights", "read,write,create,delete", "--quota",
                           "fast=1MiB,3", "--out", path, env=self.environment)
        self.assertEqual(done.returncode, DONE, done.stderr)
        ada = ["--key", path]
        self.ctl("put", "-", "a", *ada, data=content(MIB))
        self.refused(REFUSED, ["put: b: ", "quota", "ada in pool fast", "1048576 of 1048576 bytes"], "put", "-", "b",
                     *ada, data=content(4096))
        self.ctl("write", "a", "--offset", "0", *ada, data=content(MIB, 1))
        self.put("theirs", content(2 * MIB))
        own, = json.loads(self.ctl("quota", "--pool", "fast", "--json", *ada))["quotas"]
        self.assertEqual(own, {"pool": "fast", "owner": "ada", "used": MIB, "quota": MIB, "objects": 1,
                               "objects_quota": 3})
        self.kill_and_start()
        everybody = json.loads(self.ctl("quota", "--pool", "fast", "--json"))["quotas"]
        self.assertEqual({each["owner"]: each["used"] for each in everybody},
                         {None: 3 * MIB, "ada": MIB, "dev": 2 * MIB})
        self.refused(NOT_FOUND, ["no pool"], "quota", "--pool", "nowhere")
        self.assertIn("(all)", self.ctl("quota").decode())

        principals = self.dir / "principals.yaml"
        text = principals.read_text()
        principals.write_text(text.replace("pool: fast", "pool: fsat"))
        done = self.daemon.ctl("reload")
        self.assertEqual(done.returncode, CONFIG, done.stderr)
        self.assertIn("fsat", done.stderr)
        principals.write_text(text.replace("bytes: 1MiB", "bytes: 2MiB"))
        self.ctl("reload")
        self.ctl("put", "-", "b", *ada, data=content(4096))
        self.ctl("rm", "a", *ada)
        own, = json.loads(self.ctl("quota", "--pool", "fast", "--json", *ada))["quotas"]
        self.assertEqual((own["used"], own["quota"], own["objects"]), (4096, 2 * MIB, 1))

    def test_chmod_and_chown(self):
        self.put("a", b"x")

        def attributes():
            return [json.loads(self.ctl("stat", "a", "--json"))[each] for each in ("owner", "group", "mode")]

        owner, group, _ = attributes()
        self.assertEqual(list(json.loads(self.ctl("chmod", "604", "a", "--json"))), ["name", "fid"])
        self.assertEqual(attributes(), [owner, group, "0604"])
        for wanted, expected in (("ada", ["ada", group]), ("eve:staff", ["eve", "staff"]), (":crew", ["eve", "crew"]),
                                 (":", ["eve", ""])):
            self.ctl("chown", wanted, "a")
            self.assertEqual(attributes(), [*expected, "0604"])
        for mode in ("8", "1000", "", "-1", "0x1", "u+r", "777777777777"):
            with self.subTest(mode):
                self.refused(USAGE, ["mode"], "chmod", "--", mode, "a")
        self.refused(USAGE, ["must name an owner or a group"], "chown", "", "a")
        self.refused(USAGE, ['the owner "ooo'], "chown", "o" * 65, "a")
        bob = self.key_for("bob", "read,write")
        self.refused(NOT_ALLOWED, ["chmod: a: "], "chmod", "666", "a", *bob)
        self.refused(NOT_ALLOWED, ["chown: a: "], "chown", "bob", "a", *bob)
        self.refused(NOT_FOUND, ["chmod: b: "], "chmod", "666", "b")
        self.assertEqual(attributes(), ["eve", "", "0604"])

    def test_others_may_not(self):
        self.put("mine", b"secret")
        stranger = self.key_for("stranger", "read,write,create,delete")
        for arguments in (["get", "mine", "-"], ["read", "mine"], ["write", "mine", "--offset", "0"],
                          ["append", "mine"], ["truncate", "mine", "0"], ["mv", "mine", "taken"], ["rm", "mine"],
                          ["punch", "mine", "--offset", "0", "--length", "1"]):
            with self.subTest(arguments):
                self.refused(NOT_ALLOWED, [f"{arguments[0]}: mine: "], *arguments, *stranger, data=b"x")
        reader = self.key_for("reader", "read")
        self.refused(NOT_ALLOWED, ["put: theirs: "], "put", "-", "theirs", *reader, data=b"x")
        self.refused(NOT_ALLOWED, ["put: theirs: "], "put", "-", "theirs", *reader, data=content(20 * MIB))
        self.refused(NOT_ALLOWED, [], "ls", "--key", "")
        self.assertEqual(self.get("mine"), b"secret")
        self.assertEqual(self.names(), ["mine"])

    # -- what is lent --

    def token(self, name, *arguments):
        """The file of one that is good for a day, if nothing else is said."""
        path = self.directory / name
        self.assertEqual(self.ctl("token", "create", "--issuer", self.dir / "issuer.key", "--out", path, *arguments), b"")
        self.assertEqual(path.stat().st_mode & 0o777, 0o600)
        return path

    def test_rm_names_the_right_that_is_missing(self):
        alice, bob = self.key_for("alice", "read,write,create,delete"), self.key_for("bob", "read,delete")
        carol, dave = self.key_for("carol", "read"), self.key_for("dave", "delete")
        self.put("hers", b"secret", *alice)
        self.put("hers too", b"secret", *alice)
        self.refused(NOT_ALLOWED, ["rm: hers: may not delete: the object's mode does not let you\n"], "rm", "hers", *bob)
        self.refused(NOT_ALLOWED, ["rm: hers: may not delete: your rights are read\n"], "rm", "hers", *carol)
        self.refused(NOT_ALLOWED, ["rm: hers: may not read: your rights are delete\n"], "rm", "hers", *dave)
        self.refused(NOT_FOUND, ["rm: her: "], "rm", "her", *bob)
        self.ctl("chmod", "644", "hers", *alice)
        self.refused(NOT_ALLOWED, ["rm: hers: may not delete: mode 0644, owner alice\n"], "rm", "hers", *bob)
        # Whoever may write to it may remove it, also without reading it.
        self.ctl("chmod", "602", "hers", *alice)
        self.ctl("rm", "hers", *bob)
        self.assertEqual(self.names(), ["hers too"])

    def test_a_token_lends_what_is_anothers(self):
        alice, bob = self.key_for("alice", "read,write,create,delete"), self.key_for("bob", "read,write")
        self.put("hers", b"secret", *alice)
        self.put("private", b"secret", *alice)
        self.refused(NOT_ALLOWED, ["get: hers: may not read: the object's mode does not let you\n"], "get", "hers", "-",
                     *bob)
        token = self.token("hers.token", "--rights", "read", "--object", "hers", *alice)
        lent = [*bob, "--token", token]
        self.assertEqual(self.ctl("get", "hers", "-", *lent), b"secret")
        self.assertEqual(self.ctl("read", "hers", *bob, env=self.environment | {"FOPD_TOKEN": str(token)}), b"secret")
        self.assertEqual(self.ctl("read", "hers", *bob, "--token", token.read_text()), b"secret")
        self.ctl("bench", "--op", "read", "--object", "hers", "--size", "6", "--object-size", "6", "--seconds", "0.1",
                 *lent)
        self.refused(NOT_ALLOWED, ["may not write: mode 0640, owner alice; the token does not grant this right\n"],
                     "write", "hers", "--offset", "0", *lent, data=b"x")
        self.refused(NOT_ALLOWED, ["get: private: may not read: ", "; the token is for another object\n"],
                     "get", "private", "-", *lent)
        self.ctl("mv", "hers", "still-hers", *alice)
        self.assertEqual(self.ctl("get", "still-hers", "-", *lent), b"secret")
        self.put("still-hers", b"another", *alice)
        self.refused(NOT_ALLOWED, ["the token is for another object"], "get", "still-hers", "-", *lent)
        self.assertNotIn(token.read_text().strip(), self.daemon.log())

    def test_a_token_is_all_that_a_principal_without_rights_has(self):
        nobody = self.key_for("nobody", "none")
        self.put("a", b"first")
        read = [*nobody, "--token", self.token("read", "--rights", "read", "--object", "a")]
        self.assertEqual(self.ctl("get", "a", "-", *read), b"first")
        self.refused(NOT_ALLOWED, ["may not read: your rights are none; the token is for one object\n"], "ls", *read)
        self.refused(NOT_ALLOWED, ["the token is for another object\n"], "stat", "no-such-name", *read)
        fid = json.loads(self.ctl("stat", "a", "--json"))["fid"]
        write = [*nobody, "--token", self.token("write", "--rights", "read,write", "--fid", fid)]
        self.ctl("append", "a", *write, data=b" and more")
        self.refused(NOT_ALLOWED, ["may not delete: "], "rm", "a", *write)
        pool = [*nobody, "--token", self.token("pool", "--rights", "read,create,delete", "--pool", "fast")]
        self.ctl("put", "-", "b", *pool, data=content(3 * MIB))
        self.assertEqual(self.names(*pool), ["a", "b"])
        self.assertEqual(json.loads(self.ctl("stat", "b", "--json"))["owner"], "nobody")
        self.ctl("rm", "a", *pool)
        self.assertEqual(self.names(), ["b"])

    def test_a_token_that_is_void_says_why_and_takes_nothing_away(self):
        alice, bob = self.key_for("alice", "read,write,create,delete"), self.key_for("bob", "read,write")
        self.put("hers", b"secret", *alice)
        good = self.token("good", "--rights", "read", "--object", "hers", *alice)
        text = good.read_text()
        forged = self.directory / "forged"
        forged.write_text(text[:40] + ("A" if text[40] != "A" else "B") + text[41:])
        foreign = self.directory / "foreign"
        self.ctl("keygen", self.directory / "other.key")
        self.ctl("token", "create", "--issuer", self.directory / "other.key", "--rights", "read", "--out", foreign)
        void = {forged: "the token is not signed by the issuer", foreign: "the token is not signed by the issuer",
                self.token("elsewhere", "--rights", "read", "--pool", "slow"): "the token is for another pool",
                self.token("alice's", "--rights", "read", "--principal", "alice"):
                    "the token is bound to another principal",
                self.token("old", "--rights", "read", "--expires", "1s"): "the token has expired"}
        wait_until(lambda: b"expired" in self.ctl_bytes("get", "hers", "-", *bob, "--token", "old",
                                                        cwd=self.directory).stderr, "the end of a second")
        self.assertEqual(self.ctl("get", "hers", "-", *bob, "--token", good), b"secret")
        self.ctl("token", "revoke", good)
        void[good] = "the token is revoked"
        for token, why in void.items():
            with self.subTest(why):
                self.refused(NOT_ALLOWED, [f"; {why}\n"], "get", "hers", "-", *bob, "--token", token)
                self.assertEqual(self.ctl("get", "hers", "-", *alice, "--token", token), b"secret")
        self.refused(USAGE, ["no-such-file: "], "get", "hers", "-", *bob, "--token", "no-such-file")

    def test_no_server(self):
        self.refused(NO_SERVER, ["ls: tcp://127.0.0.1:1: connect: Connection refused; ", "FOPD_SERVER"],
                     "ls", "--server", "tcp://127.0.0.1:1")
        self.refused(USAGE, ["tcp://HOST:PORT"], "ls", "--server", "nonsense")

    @unittest.skipUnless("LIBFOPD_PROGRAMS" in os.environ, "not started by CTest")
    def test_libfopd(self):
        """Foreign programs, in C and C++, with the shared library as it is installed."""
        for program in os.environ["LIBFOPD_PROGRAMS"].split(":"):
            with self.subTest(program):
                done = run_program(program, self.address, self.environment["FOPD_KEY"], "objects", seconds=SECONDS)
                self.assertEqual(done.returncode, DONE, done.stderr)
                self.assert_no_report(done.stderr)
        self.assertEqual(self.names(), [])

    def test_bench(self):
        for op in ("read", "write", "mixed"):
            done = bench(self.ctl, "--op", op, "--depth", "4", "--jobs", "2", "--object-size", "1M", "--durable")
            self.assertEqual(list(done), ["op", "size", "depth", "jobs", "seconds", "ops", "ops_per_s", "bytes_per_s",
                                          "p50_us", "p99_us", "p999_us", "errors", "interrupted"])
            self.assertEqual((done["op"], done["size"], done["errors"]), (op, 4096, 0))
            self.assertGreater(done["ops"], 0)
        self.assertEqual(self.names(), [])
        self.ctl("bench", "--op", "write", "--object", "mine", "--object-size", "64k", "--seconds", "0.1")
        self.assertEqual(self.names(), ["mine"])
        self.refused(REFUSED, ["mine: "], "bench", "--op", "read", "--object", "mine", "--size", "1M")
        self.refused(USAGE, ["--object-size"], "bench", "--op", "read", "--size", "1M", "--object-size", "4k")
        self.refused(NOT_FOUND, ["bench: pool nowhere: "], "bench", "--op", "read", "--pool", "nowhere")

    def test_bench_that_creates(self):
        options = ("--op", "create", "--depth", "4", "--jobs", "2")
        done = bench(self.ctl, *options)
        self.assertEqual((done["op"], done["size"], done["bytes_per_s"], done["errors"]), ("create", 0, 0, 0))
        self.assertGreater(done["ops"], 0)
        self.assertEqual(self.names(), [])
        done = bench(self.ctl, *options, "--object", "kept")
        names = self.names()
        self.assertGreaterEqual(len(names), done["ops"])
        self.assertTrue(all(name.startswith("kept-") for name in names), names[:3])
        self.refused(NOT_FOUND, ["bench: pool nowhere: "], "bench", "--op", "create", "--pool", "nowhere")

    def test_memory_is_bounded(self):
        """Of a client that moves far more than it may hold."""
        if IS_SANITIZED:
            self.skipTest("a sanitizer needs memory of its own")
        size = 256 * MIB
        process = self.start_ctl("put", "-", "a")
        part = content(MIB)
        peak = 0
        for _ in range(size // MIB):
            process.stdin.write(part)
            peak = max(peak, self.resident(process.pid))
        process.stdin.close()
        self.assertEqual(process.wait(SECONDS), DONE)
        self.assertLess(peak, 100 * MIB)
        self.assertEqual(json.loads(self.ctl("stat", "a", "--json"))["size"], size)

    @staticmethod
    def resident(pid):
        with open(f"/proc/{pid}/statm") as file:
            return int(file.read().split()[1]) * 4096


if __name__ == "__main__":
    unittest.main()

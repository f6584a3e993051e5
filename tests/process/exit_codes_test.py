"""Each exit code that EXIT STATUS of fopctl(1) and fopd(8) describes is provoked with the real programs, and no other one."""

import os
import re
import resource
import signal
import unittest
from pathlib import Path

from fopd_process import (ALL_CHILDREN, CONFIG, DATA_DIR, DONE, IN_USE, INTERNAL, IS_SANITIZED, KEY_FILE, NO_SERVER, SYSTEM, USAGE,
                          ProcessTestCase, limit, run_fopd, stop_thread, wait_until)
from storage_process import BAD_DATA, KIB, MIB, NOT_ALLOWED, NOT_FOUND, REFUSED, TRY_LATER, StorageTestCase, content

PAGES = Path(__file__).resolve().parent.parent.parent / "docs" / "man"


def codes_of_page(name):
    section = re.search(r"^\.Sh EXIT STATUS$(.*?)^\.Sh ", (PAGES / name).read_text(), re.MULTILINE | re.DOTALL)[1]
    return {int(code) for code in re.findall(r"^\.It (\d+)$", section, re.MULTILINE)}


def provocations(test):
    """code -> the method of the test that provokes it."""
    found = {}
    for name in dir(test):
        if name.startswith("code_"):
            found[int(name.split("_")[1])] = getattr(test, name)
    return found


class FopctlCodesTest(StorageTestCase):
    def test_all(self):
        found = provocations(self)
        self.assertEqual(set(found), codes_of_page("fopctl.1"))
        for code, provoke in found.items():
            with self.subTest(code):
                provoke(code)

    def code_0_done(self, code):
        self.ctl("put", "-", "done", exit_code=code)
        self.assertEqual(code, DONE)

    def code_1_the_server_said_no(self, code):
        self.put("a", b"1")
        self.put("b", b"2")
        self.ctl("mv", "a", "b", "--no-replace", exit_code=code)
        for words in (["lrs", "rule", "load", "/none/such"], ["keygen", "/none/such"], ["store", "backup", "/none/such"],
                      ["get", "a", "/dev/full"]):
            self.ctl(*words, exit_code=code)
        self.assertEqual(code, REFUSED)

    def code_2_usage(self, code):
        for words in (["putt"], ["put", "/none/such", "name"], ["get", "a", "/none/such"], ["--key", "/none/such", "ls"],
                      ["--token", "/none/such", "ls"], ["lrs", "which", "colour=red"],
                      ["lrs", "which", "op=stat size=4k"]):
            self.ctl(*words, exit_code=code)
        self.assertEqual(code, USAGE)

    def code_66_not_found(self, code):
        for words in (["get", "none", "-"], ["trace", "5f3a-17"], ["device", "remove", "none"], ["device", "forget", "--slot", "99"],
                      ["lrs", "rule", "del", "none"], ["lrs", "which", "pool=none"], ["key", "revoke", "none"],
                      ["ls", "--pool", "none"], ["df", "--pool", "none"], ["put", "/dev/null", "a", "--pool", "none"], ["--server", self.address + "/99", "ls"]):
            self.ctl(*words, exit_code=code)
        self.assertEqual(code, NOT_FOUND)

    def code_69_no_server(self, code):
        self.ctl("--server", "tcp://127.0.0.1:1", "ls", exit_code=code)
        self.ctl("--admin", self.directory / "none", "status", exit_code=code)
        self.assertEqual(code, NO_SERVER)

    def code_70_no_memory(self, code):
        self.assertEqual(code, INTERNAL)
        if IS_SANITIZED:
            return  # A sanitizer needs more addresses than there is memory.
        self.ctl("bench", "--size", "1M", "--depth", "10000", "--seconds", "1", exit_code=code,
                 preexec_fn=limit(resource.RLIMIT_AS, 300 * MIB))

    def code_74_data_changed(self, code):
        self.start_anew()
        data = content(64 * KIB)
        self.put("damaged", data)
        self.stop()
        for image in self.dir.glob("*.img"):
            at = image.read_bytes().find(data[:4 * KIB])
            if at >= 0:
                with image.open("r+b") as file:
                    file.seek(at)
                    file.write(bytes([data[0] ^ 1]))
        self.start()
        self.ctl("get", "damaged", "-", exit_code=code)
        self.assertEqual(code, BAD_DATA)

    def code_75_try_later(self, code):
        self.daemon.signal(signal.SIGSTOP)
        wait_until(self.daemon.is_stopped, "the daemon is stopped")
        self.ctl("--timeout", "0.2", "status", exit_code=code)
        self.daemon.signal(signal.SIGCONT)
        self.assertEqual(code, TRY_LATER)

    def code_77_not_allowed(self, code):
        key = self.directory / "wrong.key"
        key.touch(0o600)
        key.write_text("0123456789abcdef" * 4)
        self.ctl("--key", key, "ls", exit_code=code)
        self.assertEqual(code, NOT_ALLOWED)

    def code_78_bad_configuration(self, code):
        config = self.dir / "fopd.yaml"
        good = config.read_text()
        config.write_text(good + "nonsense: 1\n")
        self.ctl("reload", exit_code=code)
        config.write_text(good)
        for words in (["set", "crr", "quantum=0"], ["set", "none"], ["rule", "add", "x nonsense"]):
            self.ctl("lrs", *words, exit_code=code)
        self.assertEqual(code, CONFIG)


class FopdCodesTest(ProcessTestCase):
    def setUp(self):
        super().setUp()
        self.fopd = self.node()

    def test_all(self):
        found = provocations(self)
        self.assertEqual(set(found), codes_of_page("fopd.8"))
        for code, provoke in found.items():
            with self.subTest(code):
                self.fopd = self.node(f"node-{code}")
                provoke(code)

    def code_0_stopped_cleanly(self, code):
        daemon = self.fopd.start_ready()
        daemon.signal(signal.SIGTERM)
        self.fopd.expect_end(daemon, code)
        self.assertEqual(code, DONE)

    def code_1_check_store_found_something(self, code):
        image = self.fopd.path / "d0.img"
        self.fopd.settings |= {"pools": [{"name": "fast"}],
                               "devices": [{"name": "d0", "path": str(image), "size": "64MiB", "pool": "fast"}]}
        self.fopd.write_config()
        self.fopd.stop(self.fopd.start_ready())
        image.unlink()
        done = run_fopd("--config", self.fopd.config_path, "--check-store")
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertIn("No such file", done.stdout)

    def code_2_usage(self, code):
        self.assertEqual(run_fopd("--nonsense").returncode, code)
        self.assertEqual(code, USAGE)

    def code_70_a_thread_does_not_end(self, code):
        self.fopd.write_config(node={"drain_timeout": "1s"})
        daemon = self.fopd.start_ready()
        thread = stop_thread(daemon, "fopd-loc-0")
        daemon.signal(signal.SIGTERM)
        # A thread that is traced is gone when its tracer has seen its end.
        wait_until(lambda: os.waitpid(thread, ALL_CHILDREN | os.WNOHANG)[0] == thread, "the process ends by itself")
        self.assertEqual(daemon.wait_end(), code, daemon.log())
        self.assertEqual(len(daemon.events("fopd.daemon.not_stopped")), 1, daemon.log())
        self.assertEqual(code, INTERNAL)

    def code_71_the_system_refuses(self, code):
        with open("/dev/full", "w") as full:
            self.assertEqual(run_fopd("--sample-config", stdout=full).returncode, code)
        self.assertEqual(code, SYSTEM)

    def code_73_no_data_directory(self, code):
        self.fopd.write_config(node={"data_dir": str(self.fopd.path / "missing")})
        self.fopd.refused(code)
        self.assertEqual(code, DATA_DIR)

    def code_75_in_use(self, code):
        daemon = self.fopd.start_ready()
        second = self.fopd.start()
        self.assertEqual(second.wait_end(), code, second.log())
        self.fopd.stop(daemon)
        self.assertEqual(code, IN_USE)

    def code_77_no_key_file(self, code):
        key = self.fopd.path / "peer.key"
        key.write_text("0123456789abcdef" * 4)
        key.chmod(0o644)
        self.fopd.write_config(auth={"peer_key": str(key)})
        self.fopd.refused(code, "chmod")
        self.assertEqual(code, KEY_FILE)

    def code_78_bad_configuration(self, code):
        self.fopd.write_config(nonsense={"a": 1})
        self.assertEqual(run_fopd("--config", self.fopd.config_path).returncode, code)
        self.assertEqual(code, CONFIG)


if __name__ == "__main__":
    unittest.main()

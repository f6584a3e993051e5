"""A new configuration while the daemon runs: what changes, what waits for a restart, and files that are not taken."""

import json
import os
import signal
import unittest

from fopd_process import CONFIG, DONE, USAGE, ProcessTestCase


class ReloadTest(ProcessTestCase):
    def setUp(self):
        super().setUp()
        self.fopd = self.node()
        self.daemon = self.fopd.start_ready()

    def reload(self, code=DONE):
        done = self.daemon.ctl("reload")
        self.assertEqual(done.returncode, code, f"{done.stdout}{done.stderr}")
        return done

    def reload_json(self):
        done = self.daemon.ctl("--json", "reload")
        self.assertEqual(done.returncode, DONE, done.stderr)
        return json.loads(done.stdout)

    def assert_unchanged(self, before):
        after = self.daemon.status()
        for key in ("state", "config", "log_level", "name"):
            self.assertEqual(after[key], before[key])

    def assert_refused(self, *words):
        before = self.daemon.status()
        done = self.reload(code=CONFIG)
        for word in words:
            self.assertIn(word, done.stderr)
        self.assert_unchanged(before)
        self.daemon.signal(signal.SIGHUP)
        self.daemon.wait_event("fopd.daemon.config_refused", count=2 * len(words))
        self.assert_unchanged(before)

    def test_nothing_changed(self):
        hash_before = self.daemon.status()["config"]["hash"]
        self.assertEqual(self.reload_json(), {"changed": [], "needs_restart": [], "hash": hash_before, "devices": []})
        self.fopd.stop(self.daemon)

    def test_log_level_is_live(self):
        self.fopd.write_config(log={"level": "debug"})
        answer = self.reload_json()
        self.assertEqual((answer["changed"], answer["needs_restart"]), (["log.level"], []))
        self.assertEqual(self.daemon.status()["log_level"], "debug")
        self.assertEqual(self.daemon.wait_event("fopd.daemon.config_changed")[0]["key"], "log.level")

        self.fopd.write_config(log={"level": "error"})
        self.daemon.signal(signal.SIGHUP)
        self.daemon.wait_event("fopd.daemon.signal")
        self.assertEqual(self.daemon.status()["log_level"], "error")
        self.fopd.stop(self.daemon)

    def test_a_key_that_needs_a_restart_is_named_everywhere(self):
        hash_before = self.daemon.status()["config"]["hash"]
        self.fopd.write_config(localities={"buffers": "512KiB"}, admin={"socket": str(self.fopd.path / "other.sock")})

        answer = self.reload_json()

        waiting = ["admin.socket", "localities.buffers"]
        self.assertEqual((answer["changed"], sorted(answer["needs_restart"])), ([], waiting))
        self.assertEqual(sorted(self.daemon.status()["config"]["needs_restart"]), waiting)
        logged = self.daemon.wait_event("fopd.daemon.config_needs_restart", count=2)
        self.assertEqual(sorted(each["key"] for each in logged), waiting)
        for key in waiting:
            self.assertIn(key, self.reload().stdout)
            self.assertIn(key, self.daemon.ctl("status").stdout)

        self.fopd.write_config(localities={"buffers": "256KiB"}, admin={"socket": str(self.fopd.socket_path)})
        self.assertEqual(self.reload_json()["needs_restart"], [])
        self.assertEqual(self.daemon.status()["config"]["hash"], hash_before)
        self.fopd.stop(self.daemon)

    def test_every_problem_of_a_bad_file_is_said(self):
        self.fopd.config_path.write_text("node: { nme: a }\nlog: { level: loud }\n")
        path = self.fopd.config_path
        self.assert_refused(f"{path}:1:9: node.nme", f"{path}:2:15: log.level")
        self.fopd.write_config()
        self.reload()
        self.fopd.stop(self.daemon)

    def test_a_file_that_cannot_be_read(self):
        path = self.fopd.config_path
        makers = {"deleted": lambda: None, "directory": path.mkdir, "fifo": lambda: os.mkfifo(path),
                  "dangling": lambda: path.symlink_to("nowhere"), "binary": lambda: path.write_bytes(os.urandom(4096)),
                  "device": lambda: path.symlink_to("/dev/zero"), "huge": lambda: self.make_huge(path),
                  "endless aliases": lambda: path.write_text(ALIASES)}
        path.unlink()
        for name, make in makers.items():
            with self.subTest(name):
                make()
                before = self.daemon.status()
                self.assertIn(str(path), self.reload(code=CONFIG).stderr)
                self.assert_unchanged(before)
                path.rmdir() if name == "directory" else path.unlink(missing_ok=True)
        self.fopd.write_config()
        self.reload()
        self.fopd.stop(self.daemon)

    def make_huge(self, path):
        with path.open("wb") as file:
            file.truncate(1 << 40)

    def test_relative_path_of_the_file(self):
        self.fopd.stop(self.daemon)
        self.daemon = self.fopd.start_ready("--config", "fopd.yaml", cwd=self.fopd.path)
        self.reload()
        self.fopd.stop(self.daemon)

    def test_log_level_by_hand_differs_until_a_reload(self):
        done = self.daemon.ctl("log-level", "trace")
        self.assertEqual(done.returncode, DONE, done.stderr)
        status = self.daemon.status()
        self.assertEqual((status["log_level"], status["config"]["differs"]), ("trace", ["log.level"]))
        self.assertIn("log.level", self.daemon.ctl("status").stdout)

        self.assertEqual(self.reload_json()["changed"], ["log.level"])

        status = self.daemon.status()
        self.assertEqual((status["log_level"], status["config"]["differs"]), ("info", []))
        self.fopd.stop(self.daemon)

    def test_log_level_by_hand_outlives_a_refused_reload(self):
        self.daemon.ctl("log-level", "trace")
        self.fopd.config_path.write_text("nonsense: 1\n")
        self.reload(code=CONFIG)
        self.assertEqual(self.daemon.status()["log_level"], "trace")
        self.fopd.stop(self.daemon)

    def test_a_bad_level(self):
        done = self.daemon.ctl("log-level", "loud")
        self.assertEqual(done.returncode, USAGE)
        self.assertIn("trace", done.stderr)
        status, answer = self.daemon.ask("POST", "/v1/log-level?level=loud")
        self.assertEqual((status, answer["error"]), (400, "the parameter level must be one of trace, debug, info, warn, error"))
        self.assertEqual(self.daemon.status()["log_level"], "info")
        self.fopd.stop(self.daemon)

    def test_changed_while_it_is_read(self):
        """Each reload takes one whole file or another, never a mixture, while an editor replaces it all the time."""
        for step in range(30):
            self.fopd.write_config(log={"level": ("debug", "info")[step % 2]})
            self.assertEqual(self.daemon.ask("POST", "/v1/reload")[0], 200)
            self.assertEqual(self.daemon.ask("GET", "/v1/status")[1]["log_level"], ("debug", "info")[step % 2])
        self.fopd.stop(self.daemon)


ALIASES = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join(['*' + before] * 9)}]\n" for before, name in zip("abcdefgh", "bcdefghi"))


if __name__ == "__main__":
    unittest.main()

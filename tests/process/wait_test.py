"""fopctl status --wait ready: scripts go on when the node can be used, and not before."""

import fcntl
import json
import os
import signal
import subprocess
import unittest

from fopd_process import DONE, FOPCTL, NO_SERVER, PROGRAM_SECONDS, ProcessTestCase, run_program, wait_until
from storage_process import TRY_LATER


class WaitTest(ProcessTestCase):
    def setUp(self):
        super().setUp()
        self.fopd = self.node()
        self.image = self.fopd.path / "d0.img"
        self.fopd.settings["pools"] = [{"name": "fast"}]
        self.fopd.settings["devices"] = [{"name": "d0", "path": str(self.image), "pool": "fast", "size": "64MiB"}]
        self.fopd.write_config()

    def command(self, *arguments):
        return [FOPCTL, "--admin", str(self.fopd.socket_path), *map(str, arguments), "status", "--wait", "ready"]

    def waiting(self, *arguments):
        process = subprocess.Popen(self.command(*arguments), text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    def hold_disk(self):
        """Makes whoever opens the disk wait, for as long as the lease is held."""
        before = signal.signal(signal.SIGIO, signal.SIG_IGN)  # It tells that somebody waits.
        self.addCleanup(signal.signal, signal.SIGIO, before)
        held = os.open(self.image, os.O_RDWR | os.O_CLOEXEC)
        try:
            fcntl.fcntl(held, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        except OSError as problem:
            os.close(held)
            self.skipTest(f"no lease can be had of a file here: {problem}")
        return held

    def is_starting(self):
        done = run_program(FOPCTL, "--admin", self.fopd.socket_path, "--json", "status")
        return done.returncode == DONE and json.loads(done.stdout)["state"] == "starting"

    def expect_ready(self, process):
        output, complaints = process.communicate(timeout=PROGRAM_SECONDS)
        self.assertEqual((process.returncode, complaints), (DONE, ""))
        return output

    def test_a_daemon_that_starts_slowly(self):
        self.fopd.stop(self.fopd.start_ready())
        held = self.hold_disk()
        daemon = self.fopd.start()
        wait_until(self.is_starting, "the start")
        # Long enough for one answer, however busy the machine is; the last question may get none.
        done = run_program(*self.command("--timeout", 2))
        self.assertEqual((done.returncode, done.stderr), (TRY_LATER, "fopctl: status: the node is starting, not ready\n"))
        self.assertIn("node-a  starting  ", done.stdout)
        done = run_program(*self.command("--timeout", 2, "--json"))
        self.assertEqual(json.loads(done.stdout)["state"], "starting")
        self.assertEqual(json.loads(done.stderr)["code"], "try_later")
        with_page, with_json = self.waiting("--timeout", 600), self.waiting("--timeout", 600, "--json")
        status = daemon.status()
        self.assertEqual(status["state"], "starting")
        self.assertEqual(status["warnings"], [], "a disk that is not identified yet is not missing")
        self.assertEqual((with_page.poll(), with_json.poll()), (None, None))
        os.close(held)
        self.assertIn("node-a  ready  ", self.expect_ready(with_page))
        self.assertEqual(json.loads(self.expect_ready(with_json))["state"], "ready")
        self.fopd.stop(daemon)

    def test_no_daemon(self):
        done = run_program(*self.command("--timeout", 0.1))
        self.assertEqual((done.returncode, done.stdout), (NO_SERVER, ""))
        self.assertRegex(done.stderr, "^fopctl: .*admin.sock: .*\n$")

    def test_a_daemon_that_comes_later(self):
        process = self.waiting("--timeout", 600)
        daemon = self.fopd.start_ready()
        self.assertIn("node-a  ready  ", self.expect_ready(process))
        self.fopd.stop(daemon)


if __name__ == "__main__":
    unittest.main()

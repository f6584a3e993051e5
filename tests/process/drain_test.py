"""Drain and then everything else; kill at any moment and start again at once."""

import json
import signal
import threading
import time
import unittest

from fopd_process import DONE, FOPCTL, NO_SERVER, ProcessTestCase, run_program
from object_library import OK, TRY_AGAIN, Objects
from storage_process import TRY_LATER, StorageTestCase


class DrainTest(ProcessTestCase):
    def setUp(self):
        super().setUp()
        self.fopd = self.node()
        self.daemon = self.fopd.start_ready()

    def test_then_status_reload_and_stop(self):
        done = self.daemon.ctl("--json", "drain")
        self.assertEqual(done.returncode, DONE, done.stderr)
        self.assertEqual(json.loads(done.stdout)["state"], "drained")
        self.assertEqual(self.daemon.status()["state"], "drained")

        refused = self.daemon.ctl("reload")
        self.assertEqual(refused.returncode, TRY_LATER, refused.stderr)
        self.assertIn("drained", refused.stderr)
        self.assertEqual(self.daemon.ctl("drain").returncode, DONE)
        self.assertEqual(self.daemon.ctl("log-level", "debug").returncode, DONE)
        self.assertEqual(self.daemon.status()["log_level"], "debug")
        self.fopd.stop(self.daemon)
        self.assertEqual(len(self.daemon.events("fopd.daemon.draining")), 1)

    def test_many_at_once(self):
        answers = []
        threads = [threading.Thread(target=lambda: answers.append(self.daemon.ask("POST", "/v1/drain")))
                   for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual([(status, body["state"]) for status, body in answers], [(200, "drained")] * 8)
        self.fopd.stop(self.daemon)

    def test_while_it_stops(self):
        """Whoever asks while the daemon ends gets an answer, a "later", or finds nobody; never a wait without end."""
        for _ in range(10):
            results = []
            asking = threading.Thread(target=lambda: results.append(self.daemon.ctl("drain").returncode))
            asking.start()
            self.daemon.signal(signal.SIGTERM)
            self.fopd.expect_end(self.daemon)
            asking.join()
            self.assertIn(results[0], (DONE, TRY_LATER, NO_SERVER))
            self.daemon = self.fopd.start_ready()
        self.fopd.stop(self.daemon)

    def test_nobody_answers_when_it_has_stopped(self):
        self.fopd.stop(self.daemon)
        done = run_program(FOPCTL, "--admin", self.fopd.socket_path, "status")
        self.assertEqual(done.returncode, NO_SERVER)
        self.assertIn(str(self.fopd.socket_path), done.stderr)


class LibraryTest(StorageTestCase):
    CALL_SECONDS = 120
    # The library asks a server again for 10 seconds.
    ANSWER_SECONDS = 40

    def test_calls_end_while_it_drains_and_go_on_after_a_restart(self):
        client = Objects(self.address, self.environment["FOPD_KEY"], self.CALL_SECONDS)
        self.addCleanup(client.close)
        status, words, fid = client.put("a", b"before")
        self.assertEqual(status, OK, words)
        done = self.daemon.ctl("drain")
        self.assertEqual(done.returncode, DONE, done.stderr)

        begun = time.monotonic()
        status, words = client.append(fid, b"meanwhile")
        self.assertEqual(status, TRY_AGAIN, words)
        self.assertIn("is draining", words)
        self.assertLess(time.monotonic() - begun, self.ANSWER_SECONDS)
        waiting = threading.Thread(target=lambda: appended.append(client.append(fid, b"after")))
        appended = []
        waiting.start()
        self.daemon.signal(signal.SIGTERM)
        self.assertEqual(self.daemon.wait_end(), DONE)
        self.start()
        waiting.join()
        self.assertEqual(appended[0][0], OK, appended)


class KillTest(ProcessTestCase):
    def test_killed_in_any_state_it_starts_again_at_once(self):
        fopd = self.node()
        fopd.write_config(admin={"metrics": "127.0.0.1:0"})
        for step in range(30):
            with self.subTest(step):
                daemon = fopd.start()
                if step % 3 == 0:  # During the start: the pause only spreads the moments.
                    time.sleep(step / 300)
                elif step % 3 == 1:
                    daemon.wait_ready()
                else:
                    daemon.wait_ready()
                    daemon.signal(signal.SIGTERM)
                daemon.kill()
        fopd.stop(fopd.start_ready())

    def test_ready_each_time(self):
        fopd = self.node()
        for _ in range(30):
            fopd.start_ready().kill()
        fopd.stop(fopd.start_ready())


if __name__ == "__main__":
    unittest.main()

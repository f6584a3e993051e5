"""Signals at every moment of a daemon's life."""

import datetime
import fcntl
import os
import signal
import time
import unittest

from fopd_process import DONE, ProcessTestCase, wait_until

# How long after a signal to stop another one is the same request.
SAME_REQUEST_SECONDS = 0.5
START_SECONDS = 0.15
STEPS_COUNT = 15
# Until fopd holds them back, its first few milliseconds, these end it as they end any process.
ENDED_BY = {number: -number for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)}


class SignalsDuringStartTest(ProcessTestCase):
    def setUp(self):
        super().setUp()
        self.fopd = self.node()

    def starts_with_pauses(self):
        """Starts it again and again, and gives it a little longer each time. What is tested holds whatever the length;
        the lengths only spread the signals over the start."""
        for step in range(STEPS_COUNT):
            daemon = self.fopd.start()
            moment = daemon.started_at + START_SECONDS * step / STEPS_COUNT
            time.sleep(max(0.0, moment - time.monotonic()))
            yield daemon

    def assert_ended_well(self, daemon, number):
        code = daemon.wait_end()
        if code == ENDED_BY[number]:
            self.assertEqual(daemon.log(), "", "it held no signals when it had begun to log")
        else:
            self.assertEqual(code, DONE, daemon.log())
        self.assertEqual(self.fopd.left_behind(), [])

    def test_terminate(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            with self.subTest(number.name):
                for daemon in self.starts_with_pauses():
                    daemon.signal(number)
                    self.assert_ended_well(daemon, number)

    def test_terminate_twice(self):
        for daemon in self.starts_with_pauses():
            daemon.signal(signal.SIGTERM)
            daemon.signal(signal.SIGTERM)
            self.assert_ended_well(daemon, signal.SIGTERM)

    def test_hang_up_then_terminate(self):
        for daemon in self.starts_with_pauses():
            daemon.signal(signal.SIGHUP)
            daemon.signal(signal.SIGTERM)
            code = daemon.wait_end()
            self.assertIn(code, (DONE, -signal.SIGHUP, -signal.SIGTERM), daemon.log())
            self.assertTrue(code == DONE or daemon.log() == "", daemon.log())
            self.assertEqual(self.fopd.left_behind(), [])

    def test_while_it_waits_for_the_place_of_its_socket(self):
        """The signal is read at once, and the start that then fails is of no interest."""
        directory = os.open(self.fopd.path, os.O_RDONLY)
        self.addCleanup(os.close, directory)
        fcntl.flock(directory, fcntl.LOCK_EX)
        daemon = self.fopd.start()
        daemon.wait_event("fopd.daemon.start")
        daemon.signal(signal.SIGTERM)
        daemon.wait_event("fopd.daemon.signal")
        self.assertEqual(daemon.events("fopd.daemon.end"), [])
        self.fopd.expect_end(daemon)
        self.assertEqual(daemon.events("fopd.daemon.cannot_start"), [])

    def test_as_soon_as_it_logs(self):
        """From the first line on it is held."""
        for event in ("fopd.daemon.start", "fopd.admin.listening", "fopd.daemon.ready"):
            with self.subTest(event):
                daemon = self.fopd.start()
                daemon.wait_event(event)
                self.fopd.stop(daemon)

    def test_hang_up_during_start_is_no_harm(self):
        daemon = self.fopd.start()
        daemon.wait_event("fopd.daemon.start")
        daemon.signal(signal.SIGHUP)
        daemon.wait_ready()
        daemon.wait_event("fopd.daemon.signal")
        self.assertEqual(daemon.status()["state"], "ready")
        self.fopd.stop(daemon)


class SignalsTest(ProcessTestCase):
    def setUp(self):
        super().setUp()
        self.fopd = self.node()
        self.daemon = self.fopd.start_ready()

    def test_each_stops(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            with self.subTest(number.name):
                self.fopd.stop(self.daemon, number)
                self.assertEqual(self.daemon.events("fopd.daemon.signal")[0]["signal"], number.name)
                self.assertEqual(self.daemon.events("fopd.daemon.end")[0]["exit_code"], DONE)
                self.daemon = self.fopd.start_ready()

    def test_the_second_ends_at_once(self):
        for _ in range(10):
            self.daemon.signal_at_once(signal.SIGTERM, signal.SIGINT)
            self.fopd.expect_end(self.daemon)
            self.assertEqual(len(self.daemon.events("fopd.daemon.stopped_at_once")), 1, self.daemon.log())
            self.daemon = self.fopd.start_ready()
        self.fopd.stop(self.daemon)

    def test_the_same_twice_is_one(self):
        """As timeout(1) sends it: to the process, and at once to its group."""
        for _ in range(20):
            self.daemon.signal(signal.SIGTERM)
            self.daemon.wait_event("fopd.daemon.signal")
            self.daemon.signal(signal.SIGTERM)
            self.fopd.expect_end(self.daemon)
            # A busy machine may show the daemon the second one too late.
            if self.seconds_between_signals() < SAME_REQUEST_SECONDS / 2:
                self.assertEqual(self.daemon.events("fopd.daemon.stopped_at_once"), [])
            self.daemon = self.fopd.start_ready()
        self.fopd.stop(self.daemon)

    def seconds_between_signals(self):
        """As the daemon read them; 0 if it has read only one."""
        times = [datetime.datetime.fromisoformat(each["time"]) for each in self.daemon.events("fopd.daemon.signal")]
        return (times[-1] - times[0]).total_seconds()

    def test_terminate_again_and_again(self):
        for _ in range(5):
            while self.daemon.process.poll() is None:
                self.daemon.signal(signal.SIGTERM)
            self.fopd.expect_end(self.daemon)
            self.daemon = self.fopd.start_ready()
        self.fopd.stop(self.daemon)

    def test_storm_of_hang_ups(self):
        for _ in range(1000):
            self.daemon.signal(signal.SIGHUP)
        self.assertEqual(self.daemon.status()["state"], "ready")
        self.fopd.stop(self.daemon)

    def test_hang_ups_and_terminate(self):
        for _ in range(50):
            self.daemon.signal(signal.SIGHUP)
        self.daemon.signal(signal.SIGTERM)
        for _ in range(50):
            if self.daemon.process.poll() is None:
                self.daemon.signal(signal.SIGHUP)
        self.fopd.expect_end(self.daemon)

    def test_hang_up_when_drained(self):
        self.assertEqual(self.daemon.ctl("drain").returncode, DONE)
        self.daemon.signal(signal.SIGHUP)
        refused = self.daemon.wait_event("fopd.daemon.reload_refused")
        self.assertIn("drained", refused[0]["reason"])
        self.fopd.stop(self.daemon)

    def test_stopped_and_continued(self):
        """A debugger, a snapshot of the machine: it goes on as if nothing had been."""
        turns = self.daemon.status()["localities"][0]["turns"]
        self.daemon.signal(signal.SIGSTOP)
        wait_until(self.daemon.is_stopped, "the process is stopped")
        stopped_at = time.monotonic()
        wait_until(lambda: time.monotonic() > stopped_at + 3, "three seconds")
        self.daemon.signal(signal.SIGCONT)

        wait_until(lambda: self.daemon.status()["localities"][0]["turns"] > turns, "the locality turns")
        self.assertEqual(self.daemon.events("fopd.daemon.locality_stuck"), [])
        self.fopd.stop(self.daemon)

    def test_others_are_not_for_it(self):
        """What comes from terminals, timers and broken pipes does not end it."""
        for number in (signal.SIGPIPE, signal.SIGCHLD, signal.SIGWINCH, signal.SIGURG, signal.SIGCONT):
            self.daemon.signal(number)
        self.assertEqual(self.daemon.status()["state"], "ready")
        self.fopd.stop(self.daemon)


if __name__ == "__main__":
    unittest.main()

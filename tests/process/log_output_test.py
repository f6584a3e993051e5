"""Where the log goes may break: readers that end, readers that stop, nothing at all. The daemon goes on."""

import fcntl
import os
import signal
import socket
import unittest

from fopd_process import CONFIG, DATA_DIR, DONE, LOCK_NAME, ProcessTestCase, fill_pipe, wait_until

F_SETPIPE_SZ = 1031


class LogOutputTest(ProcessTestCase):
    def setUp(self):
        super().setUp()
        self.fopd = self.node()

    def start_on(self, stderr, **options):
        """Started with this standard error; nothing of the log can be waited for."""
        daemon = self.fopd.start(stderr=stderr, **options)
        wait_until(lambda: daemon.ctl("status").returncode == DONE, "fopctl status answers")
        wait_until(lambda: daemon.status()["state"] == "ready", "ready")
        return daemon

    def make_it_talk(self, daemon):
        for level in ("debug", "info") * 20:
            self.assertEqual(daemon.ask("POST", f"/v1/log-level?level={level}")[0], 200)

    def assert_works(self, daemon):
        self.make_it_talk(daemon)
        self.assertEqual(daemon.status()["state"], "ready")
        self.fopd.stop(daemon)

    def test_reader_gone(self):
        reader, writer = os.pipe()
        daemon = self.start_on(writer)
        os.close(writer)
        os.close(reader)
        self.assert_works(daemon)

    def test_reader_gone_from_the_start(self):
        reader, writer = os.pipe()
        os.close(reader)
        daemon = self.start_on(writer)
        os.close(writer)
        self.assert_works(daemon)

    def test_reader_that_stopped(self):
        reader, writer = os.pipe()
        fcntl.fcntl(writer, F_SETPIPE_SZ, 4096)
        daemon = self.start_on(writer)
        os.close(writer)
        self.assert_works(daemon)
        os.close(reader)

    def test_reader_that_stopped_and_a_stop_at_once(self):
        reader, writer = os.pipe()
        fcntl.fcntl(writer, F_SETPIPE_SZ, 4096)
        daemon = self.start_on(writer)
        os.close(writer)
        self.make_it_talk(daemon)
        daemon.signal_at_once(signal.SIGTERM, signal.SIGINT)
        self.fopd.expect_end(daemon)
        os.close(reader)

    def test_refused_start_with_a_reader_that_stopped(self):
        reader, writer = os.pipe()
        fill_pipe(writer)
        self.fopd.data_dir.rmdir()
        self.fopd.expect_end(self.fopd.start(stderr=writer), DATA_DIR)
        os.close(writer)
        os.close(reader)

    def test_socket_as_of_the_journal(self):
        reader, writer = socket.socketpair()
        daemon = self.start_on(writer)
        writer.close()
        self.make_it_talk(daemon)
        self.fopd.stop(daemon)
        reader.settimeout(10)
        text = b""
        while more := reader.recv(65536):
            text += more
        reader.close()
        self.assertIn(b"fopd.daemon.end", text)

    def test_full_device(self):
        with open("/dev/full", "wb") as full:
            self.assert_works(self.start_on(full))

    def test_closed(self):
        """Nothing that is opened later takes the place of standard error, where the log would go into it."""
        daemon = self.start_on(None, preexec_fn=lambda: os.closerange(0, 3))
        self.assertEqual([daemon.file_target(fd) for fd in range(3)], ["/dev/null"] * 3)
        self.make_it_talk(daemon)
        self.assertEqual((self.fopd.data_dir / LOCK_NAME).read_text(), f"{daemon.pid}\n")
        self.fopd.stop(daemon)

    def test_every_format(self):
        for log_format, start in (("text", "2"), ("json", "{"), ("journald", "<6>")):
            with self.subTest(log_format):
                self.fopd.write_config(log={"format": log_format})
                daemon = self.fopd.start()
                wait_until(lambda: "daemon.ready" in daemon.log(), "ready")
                self.fopd.stop(daemon)
                self.assertTrue(daemon.log().startswith(start), daemon.log())

    def test_hostile_names_stay_in_their_line(self):
        """Nothing in a path can pretend to be a line of the log."""
        for name in ("a\nfopd.daemon.ready", "\x1b[2Jgone", "\"quoted\" key=value", "\u202edesrever"):
            for log_format in ("text", "json"):
                with self.subTest(name=name, format=log_format):
                    path = self.directory / name
                    self.fopd.write_config(node={"data_dir": str(path)}, log={"format": log_format})
                    daemon = self.fopd.start()
                    code = daemon.wait_end()
                    self.assertIn(code, (DATA_DIR, CONFIG))
                    self.assertNotIn("\x1b", daemon.log())
                    self.assertEqual([line for line in daemon.log().splitlines() if line.startswith("fopd.")], [])


if __name__ == "__main__":
    unittest.main()

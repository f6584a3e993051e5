"""The admin socket and the metrics port: whom they belong to, what else has their paths, and clients who misbehave."""

import contextlib
import fcntl
import http.client
import os
import signal
import socket
import stat
import subprocess
import threading
import unittest
import urllib.request
from pathlib import Path

from fopd_process import (CONFIG, DATA_DIR, DEADLINE_SECONDS, FOPCTL, IN_USE, SLOWNESS, SYSTEM, ProcessTestCase, as_other_user,
                          connect_unix, needs_root, run_fopd, wait_until)

PATH_BYTES_MAX = 107
# Less than what silent clients have until they are cut off.
STOP_SECONDS = 9 * SLOWNESS


@contextlib.contextmanager
def open_directory(path):
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield fd
    finally:
        os.close(fd)


class AdminSocketPlaceTest(ProcessTestCase):
    def setUp(self):
        super().setUp()
        self.fopd = self.node()

    def second_node(self):
        """Another node with the same admin socket."""
        second = self.node("second").write_config(admin={"socket": str(self.fopd.socket_path)})
        second.socket_path = self.fopd.socket_path
        return second

    def test_mode(self):
        daemon = self.fopd.start_ready()
        status = self.fopd.socket_path.stat()
        self.assertTrue(stat.S_ISSOCK(status.st_mode))
        self.assertEqual(stat.S_IMODE(status.st_mode), 0o660)
        self.fopd.stop(daemon)

    def test_in_use_names_the_holder(self):
        first = self.fopd.start_ready()

        self.second_node().refused(IN_USE, self.fopd.socket_path, str(first.pid), left=[self.fopd.socket_path])

        self.assertEqual(first.status()["pid"], first.pid)
        self.fopd.stop(first)

    def test_that_of_a_killed_process_is_replaced(self):
        self.fopd.start_ready().kill()
        self.assertTrue(self.fopd.socket_path.is_socket())
        daemon = self.fopd.start_ready()
        self.assertEqual(daemon.status()["pid"], daemon.pid)
        self.fopd.stop(daemon)

    def test_something_else_in_its_place_is_kept(self):
        path = self.fopd.socket_path
        makers = {"file": lambda: path.write_text("mine"), "directory": path.mkdir, "fifo": lambda: os.mkfifo(path),
                  "symlink": lambda: path.symlink_to("nowhere")}
        for name, make in makers.items():
            with self.subTest(name):
                make()
                before = path.lstat()
                self.fopd.refused(DATA_DIR, path, "not a socket", "remove it", left=[path])
                self.assertEqual((path.lstat().st_ino, path.lstat().st_mode), (before.st_ino, before.st_mode))
                path.rmdir() if name == "directory" else path.unlink()

    def test_somebody_elses_socket_is_in_use(self):
        with socket.socket(socket.AF_UNIX) as stranger:
            stranger.bind(str(self.fopd.socket_path))
            stranger.listen()
            self.fopd.refused(IN_USE, self.fopd.socket_path, str(os.getpid()), left=[self.fopd.socket_path])

    def test_directory_missing(self):
        path = self.fopd.path / "missing" / "admin.sock"
        self.fopd.write_config(admin={"socket": str(path)})
        self.fopd.refused(DATA_DIR, path.parent, "No such file")

    def test_longest_path(self):
        for length, is_good in ((PATH_BYTES_MAX, True), (PATH_BYTES_MAX + 1, False), (400, False)):
            with self.subTest(length):
                path = self.fopd.path / ("s" * (length - len(str(self.fopd.path)) - 1))
                self.fopd.write_config(admin={"socket": str(path)})
                if is_good:
                    self.fopd.stop(self.fopd.start_ready())
                    self.assertFalse(path.exists())
                else:
                    problem = rf"admin.socket: it has {length} bytes, the path of a socket has at most {PATH_BYTES_MAX}\n"
                    done = run_fopd("--check-config", "--config", self.fopd.config_path)
                    self.assertEqual(done.returncode, CONFIG)
                    self.assertRegex(done.stderr, problem)
                    daemon = self.fopd.start()
                    self.assertEqual(daemon.wait_end(), CONFIG, daemon.log())
                    self.assertRegex(daemon.log(), problem)

    @needs_root
    def test_directory_not_writable(self):
        self.fopd.give_to_other_user()
        directory = self.fopd.path / "run"
        directory.mkdir()
        self.fopd.write_config(admin={"socket": str(directory / "admin.sock")})
        self.fopd.refused(DATA_DIR, directory, "Permission denied", **as_other_user())

    @needs_root
    def test_stale_socket_of_another_user(self):
        """In a directory such as /tmp another user's socket can be neither asked nor removed."""
        directory = self.fopd.path / "run"
        directory.mkdir()
        path = directory / "admin.sock"
        with socket.socket(socket.AF_UNIX) as stranger:
            stranger.bind(str(path))
        path.chmod(0o600)
        self.fopd.write_config(admin={"socket": str(path)})
        self.fopd.give_to_other_user()
        os.chown(path, 0, 0)
        os.chown(directory, 0, 0)
        directory.chmod(0o1777)
        self.fopd.refused(DATA_DIR, path, "Permission denied", **as_other_user())
        self.assertTrue(path.is_socket())

    def test_many_at_once_in_one_directory(self):
        """Nodes that have nothing in common but the directory of their sockets do not hinder each other."""
        nodes = [self.node(f"n{index}") for index in range(8)]
        for index, node in enumerate(nodes):
            node.socket_path = self.directory / f"{index}.sock"
            node.write_config(admin={"socket": str(node.socket_path)})
        daemons = [each.start() for each in nodes]
        for node, daemon in zip(nodes, daemons):
            daemon.wait_ready()
            node.stop(daemon)

    def test_waits_for_another_that_is_just_starting(self):
        with open_directory(self.fopd.path) as directory:
            fcntl.flock(directory, fcntl.LOCK_EX)
            daemon = self.fopd.start()
            daemon.wait_event("fopd.daemon.start")
            self.assertEqual(daemon.events("fopd.daemon.cannot_start"), [])
        self.fopd.stop(daemon.wait_ready())

    def test_does_not_wait_for_ever_for_another(self):
        with open_directory(self.fopd.path) as directory:
            fcntl.flock(directory, fcntl.LOCK_EX)
            self.fopd.refused(IN_USE, self.fopd.path, "just starting")

    def test_replaced_while_running_is_not_removed(self):
        daemon = self.fopd.start_ready()
        self.fopd.socket_path.unlink()
        self.fopd.socket_path.write_text("mine")
        daemon.signal(signal.SIGTERM)
        self.assertEqual(daemon.wait_end(), 0)
        self.assertEqual(self.fopd.socket_path.read_text(), "mine")

    def test_replaced_while_running_is_not_removed_by_a_stop_at_once(self):
        daemon = self.fopd.start_ready()
        self.fopd.socket_path.unlink()
        self.fopd.socket_path.write_text("mine")
        daemon.signal_at_once(signal.SIGTERM, signal.SIGINT)
        self.assertEqual(daemon.wait_end(), 0)
        self.assertEqual(self.fopd.socket_path.read_text(), "mine")


class MetricsPortTest(ProcessTestCase):
    def setUp(self):
        super().setUp()
        self.fopd = self.node()

    def test_in_use(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            address = f"127.0.0.1:{taken.getsockname()[1]}"
            self.fopd.write_config(admin={"metrics": address})
            self.fopd.refused(IN_USE, address, "in use")

    def test_option_in_place_of_the_key(self):
        self.fopd.write_config(admin={"metrics": "127.0.0.1:1"})
        daemon = self.fopd.start_ready("--config", self.fopd.config_path, "--metrics", "127.0.0.1:0")
        address = daemon.events("fopd.admin.listening")[0]["metrics"]
        self.assertRegex(address, r"^127\.0\.0\.1:\d+$")
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        for accept, kind in ((None, "text/plain; version=0.0.4; charset=utf-8"),
                             ("application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
                              "application/openmetrics-text; version=1.0.0; charset=utf-8"),
                             ("application/openmetrics-text;q=0.4, text/plain;q=0.5",
                              "text/plain; version=0.0.4; charset=utf-8")):
            headers = {} if accept is None else {"Accept": accept}
            request = urllib.request.Request(f"http://{address}/metrics", headers=headers)
            with opener.open(request, timeout=DEADLINE_SECONDS) as reply:
                text = reply.read().decode()
                self.assertEqual(reply.headers["Content-Type"], kind)
            self.assertEqual(text.endswith("# EOF\n"), "openmetrics" in kind)
            self.assertEqual("# TYPE fopd_uptime_seconds gauge\n# UNIT" in text, "openmetrics" in kind)
            self.assertIn("fopd_build_info", text)
        self.fopd.stop(daemon)

    def test_the_option_may_say_none(self):
        """As the key may."""
        self.fopd.write_config(admin={"metrics": "127.0.0.1:0"})
        daemon = self.fopd.start_ready("--config", self.fopd.config_path, "--metrics", "none")
        self.assertNotIn(":", daemon.events("fopd.admin.listening")[0]["metrics"])
        self.fopd.stop(daemon)

    def test_no_address_of_this_machine(self):
        self.fopd.write_config(admin={"metrics": "192.0.2.1:0"})
        self.fopd.refused(CONFIG, "192.0.2.1", "Cannot assign")

    @needs_root
    def test_not_allowed(self):
        first_free = Path("/proc/sys/net/ipv4/ip_unprivileged_port_start").read_text(encoding="ascii")
        if int(first_free) < 2:
            self.skipTest("every port is allowed here")
        self.fopd.write_config(admin={"metrics": "127.0.0.1:1"})
        self.fopd.give_to_other_user()
        self.fopd.refused(SYSTEM, "127.0.0.1:1", "Permission denied", **as_other_user())


class AdminClientsTest(ProcessTestCase):
    def setUp(self):
        super().setUp()
        self.fopd = self.node()
        self.daemon = self.fopd.start_ready()

    def test_many_at_once_while_reloads_run(self):
        """Each is answered, told to come later, or, beyond the connections there are, cut off; nobody waits."""
        answers = []

        def ask(method, target):
            try:
                answers.append(self.daemon.ask(method, target))
            except (ConnectionError, http.client.BadStatusLine):
                answers.append((None, {}))

        asking = [threading.Thread(target=ask, args=("GET", "/v1/status")) for _ in range(200)]
        asking += [threading.Thread(target=ask, args=("POST", "/v1/reload")) for _ in range(20)]
        for thread in asking:
            thread.start()
        for thread in asking:
            thread.join()

        self.assertEqual(len(answers), len(asking))
        self.assertLessEqual({status for status, _ in answers}, {200, 503, None})
        for status, body in answers:
            self.assertEqual("error" in body, status == 503, body)
        self.assertIn(200, [status for status, _ in answers])
        self.assertEqual(self.daemon.status()["state"], "ready")
        self.fopd.stop(self.daemon)

    def test_garbage(self):
        garbage = [b"", b"\0", b"\n" * 1000, os.urandom(100000), b"GET\r\n\r\n", b"GET /v1/status HTTP/9.9\r\n\r\n",
                   b"GET /" + b"a" * 100000 + b" HTTP/1.1\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
                   b"POST /v1/reload HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n",
                   b"POST /v1/drain HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999\r\n\r\n",
                   b"POST /v1/drain HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"]
        for each in garbage:
            with self.subTest(each[:40]), connect_unix(self.fopd.socket_path) as client:
                try:
                    client.sendall(each)
                    client.shutdown(socket.SHUT_WR)
                    while client.recv(65536):
                        pass
                except (BrokenPipeError, ConnectionResetError):
                    pass  # Refused before it was read to its end.
        self.assertEqual(self.daemon.status()["state"], "ready")
        self.fopd.stop(self.daemon)

    def test_silent_clients_hold_up_nobody(self):
        clients = [connect_unix(self.fopd.socket_path) for _ in range(50)]
        clients[0].sendall(b"GET /v1/status HTTP/1.1\r\nHo")
        clients[1].sendall(b"POST /v1/reload HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n12345")

        self.assertEqual(self.daemon.status()["state"], "ready")
        self.daemon.signal(signal.SIGTERM)

        self.assertEqual(self.daemon.wait_end(STOP_SECONDS), 0)
        self.assertEqual(self.fopd.left_behind(), [])
        for each in clients:
            each.close()

    def test_a_client_that_reads_nothing(self):
        with connect_unix(self.fopd.socket_path) as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
            client.sendall(b"GET /v1/status HTTP/1.1\r\nHost: a\r\n\r\n" * 100)
            self.assertEqual(self.daemon.status()["state"], "ready")
            self.daemon.signal(signal.SIGTERM)
            self.assertEqual(self.daemon.wait_end(STOP_SECONDS), 0)

    def test_fopctl_killed_while_it_asks(self):
        """Its daemon does not die of the broken pipe."""
        for _ in range(20):
            asking = subprocess.Popen([FOPCTL, "--admin", self.fopd.socket_path, "status"],
                                      stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            asking.kill()
            asking.wait()
        for _ in range(50):
            with connect_unix(self.fopd.socket_path) as client:
                client.sendall(b"GET /v1/status HTTP/1.1\r\nHost: a\r\n\r\n")
        self.assertEqual(self.daemon.status()["state"], "ready")
        self.fopd.stop(self.daemon)

    def test_every_connection_taken_is_answered_later(self):
        """More clients than connections: who comes later waits or is cut off, and all is well when they have gone."""
        clients = [connect_unix(self.fopd.socket_path) for _ in range(128)]
        for each in clients:
            each.close()
        wait_until(lambda: self.daemon.ctl("status").returncode == 0, "an answer after the crowd has gone")
        self.fopd.stop(self.daemon)


if __name__ == "__main__":
    unittest.main()

"""Faults and bad input on the network: peers that are killed, stopped, silent, without the right key, or talk nonsense.

Each costs its own session, is counted and logged; what others get stays as good as it was.
"""

import os
import resource
import select
import signal
import socket
import time
import unittest

from fopd_process import DEADLINE_SECONDS, DONE, SCHEME, SLOWNESS, wait_until
from network_peers import MAGIC, host_and_port
from network_process import KillsTestCase, NetworkTestCase
from storage_process import NOT_ALLOWED

OLD_KEY, NEW_KEY = "0a" * 32, "0b" * 32


class KillsTest(KillsTestCase):
    def test_clients_that_are_killed_leave_nothing(self):
        self.check_killed_clients(3, warm_up=1)


class StopsTest(NetworkTestCase):
    """SIGSTOP for longer than the lease."""

    def test_a_stopped_client_loses_its_session_and_gets_another(self):
        self.start()
        witness = self.witness()
        load = self.fopctl("bench", "--op", "bulk_echo", "--size", "1M", "--depth", "4", "--seconds", "600")
        done = 'fopd_fops_total{op="bulk_echo",result="done"}'
        self.wait_figure(done, 1)
        load.signal(signal.SIGSTOP)
        self.wait_figure("fopd_sessions_expired_total", 1)
        self.wait_at_rest(sessions=1)
        before = self.daemon.metrics()[done]
        load.signal(signal.SIGCONT)
        self.wait_figure(done, before + 10)
        self.assertIsNone(load.process.poll(), load.err())
        load.kill()
        self.wait_at_rest(sessions=1)
        self.assertEqual(self.daemon.metrics()["fopd_sessions_expired_total"], 1)
        # That of its first session, and that of the second.
        self.assertEqual(len(self.daemon.events("fopd.fabric.session_ended")), 2)
        self.expect_content(witness)
        self.n.stop(self.daemon)

    def test_a_stopped_server_ends_its_sessions_and_gets_others(self):
        self.start()
        pings = self.start_pings(3)
        files = self.daemon.files_count()
        self.daemon.signal(signal.SIGSTOP)
        self.wait_elapsed(1.2 * self.LEASE_SECONDS)
        self.daemon.signal(signal.SIGCONT)
        self.wait_figure("fopd_sessions_opened_total", 6)
        self.wait_at_rest(sessions=3)
        self.wait_files(files)
        figures = self.daemon.metrics()
        self.assertEqual(figures["fopd_sessions_expired_total"] + figures["fopd_sessions_lost_total"],
                         figures["fopd_sessions_opened_total"] - 3)
        for each in pings:
            self.expect_content(each)
        self.n.stop(self.daemon)


class RestartTest(NetworkTestCase):
    def test_clients_that_retry_find_the_server_that_came_back(self):
        self.start()
        pings = self.start_pings(6)
        load = self.fopctl("bench", "--op", "bulk_echo", "--size", "8M", "--depth", "4", "--seconds", "600")
        for stop in (signal.SIGKILL, signal.SIGTERM):
            if stop == signal.SIGKILL:
                self.wait_figure("fopd_bulk_bytes_pushed_total", 1)
            self.daemon.signal(stop)
            self.assertEqual(self.daemon.wait_end(), -stop if stop == signal.SIGKILL else DONE)
            # Connections to the port are refused until then.
            self.start_again()
            self.wait_figure("fopd_sessions", len(pings))
            self.wait_figure('fopd_fops_total{op="ping",result="done"}', 10 * len(pings))
        # What must not run twice ends instead.
        self.assertEqual(load.wait_end(), 1, load.err())
        self.assertIn("the server no longer has a record of the request", load.err())
        self.wait_at_rest(sessions=len(pings))
        for each in pings:
            self.expect_content(each, stops_count=1)
        self.wait_at_rest()
        self.n.stop(self.daemon)


class SilenceTest(NetworkTestCase):
    CONNECTIONS_COUNT = 5000
    # Both sides' descriptors, and some for everything else.
    FILES_COUNT = CONNECTIONS_COUNT + 1000
    # Over libfabric the daemon takes 1 024 connections at once and 3 200 a second after that; then all are open together.
    HANDSHAKE_SECONDS = (4 if SCHEME == "tcp" else 10) * SLOWNESS
    # Over tcp:// all of them have 1 024 places.
    SILENT_MAX = 1024

    def setUp(self):
        super().setUp()
        limits = resource.getrlimit(resource.RLIMIT_NOFILE)
        if limits[1] != resource.RLIM_INFINITY and limits[1] < self.FILES_COUNT:
            self.skipTest(f"may not have {self.FILES_COUNT} descriptors")
        # The daemon's, too.
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(limits[0], self.FILES_COUNT), limits[1]))
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, limits)
        self.shorten_handshakes()

    def connect_silently(self):
        """From several hosts, as one has not ports enough for runs that follow each other."""
        connections = []
        for number in range(self.CONNECTIONS_COUNT):
            connection = socket.socket()
            self.addCleanup(connection.close)
            connection.settimeout(DEADLINE_SECONDS)
            connection.setsockopt(socket.IPPROTO_IP, socket.IP_BIND_ADDRESS_NO_PORT, 1)
            connection.bind((f"127.0.0.{2 + number % 8}", 0))
            connection.connect(host_and_port(self.address))
            connections.append(connection)
        return connections

    def test_thousands_of_silent_connections(self):
        self.start()
        witness = self.witness()
        quiet = witness.p99_us()
        files = self.daemon.files_count()
        begun = time.monotonic()
        connections = self.connect_silently()
        watched = select.epoll()
        self.addCleanup(watched.close)
        for each in connections:
            watched.register(each, select.EPOLLIN | select.EPOLLONESHOT)
        if SCHEME == "tcp":
            self.assertLess(self.daemon.files_count(), files + self.SILENT_MAX + 100)
        else:
            wait_until(lambda: self.daemon.files_count() > self.CONNECTIONS_COUNT, "the daemon has taken them in")
        since = len(witness.times_us())
        ended = 0
        while ended < self.CONNECTIONS_COUNT:
            heard = watched.poll(2 * self.HANDSHAKE_SECONDS + DEADLINE_SECONDS, self.CONNECTIONS_COUNT)
            self.assertTrue(heard, f"only {ended} of the connections have been ended")
            ended += len(heard)
        meanwhile = witness.p99_us(since)
        slowest = max(witness.times_us()[since:])
        print(f"slowest {slowest:.0f} us", end="; ")
        self.wait_files(files)
        self.expect_p99_kept(max(quiet, witness.p99_us()), meanwhile, f"{self.CONNECTIONS_COUNT} silent connections")
        def ended_lines():
            return self.daemon.events("fopd.fabric.silent_connections")
        wait_until(lambda: sum(each["ended"] for each in ended_lines()) >= self.CONNECTIONS_COUNT, "all are reported")
        lines = ended_lines()
        self.assertEqual(sum(each["ended"] for each in lines), self.CONNECTIONS_COUNT)
        # They are reported once a second, over libfabric once a sweep.
        self.assertLessEqual(len(lines), 2 + (time.monotonic() - begun) if SCHEME == "tcp" else 3)
        self.assertEqual(self.daemon.metrics()["fopd_connections_silent_total"], self.CONNECTIONS_COUNT)
        self.expect_content(witness)
        self.n.stop(self.daemon)


class GreetingsTest(NetworkTestCase):
    # Over tcp:// no stranger may send more messages.
    GARBAGE_STRANGERS, GARBAGE_OF_EACH = (13, 8) if SCHEME == "tcp" else (1, 100)

    def setUp(self):
        super().setUp()
        self.shorten_handshakes()
        self.start()
        self.recorded = self.record_handshake()
        self.files = self.daemon.files_count()
        self.witness_of_all = self.witness()

    def expect_nothing_left(self):
        self.wait_at_rest(sessions=1)
        self.wait_files(self.files + 1)
        self.expect_content(self.witness_of_all)
        self.n.stop(self.daemon)

    def expect_ended(self, counter, event, reason, peers):
        """Each of them ended, was counted once and logged once, for this reason."""
        for each in peers:
            each.wait_closed()
        self.wait_figure(counter, len(peers))
        for each in peers:
            lines = wait_until(lambda each=each: self.lines_of(event, each.name), f"{event} of {each.name}")
            self.assertEqual(len(lines), 1)
            self.assertRegex(lines[0]["reason"], reason)
            each.close()
        self.assertEqual(self.daemon.metrics()[counter], len(peers))

    def test_half_done_ones_end_with_their_time(self):
        nothing, request, hello, half_a_hello = (self.stranger(self.recorded) for _ in range(4))
        request.connect()
        hello.connect()
        hello.send(hello.greeting(0))
        half_a_hello.connect()
        half_a_hello.send(half_a_hello.greeting(0)[:50])
        self.expect_ended("fopd_sessions_expired_total", "fopd.fabric.handshake_ended", "in time",
                          [request, hello, half_a_hello])
        nothing.wait_closed()
        self.wait_figure("fopd_connections_silent_total", 1)
        lines = self.daemon.wait_event("fopd.fabric.silent_connections")
        self.assertEqual([each["ended"] for each in lines], [1])
        self.expect_nothing_left()

    def test_parts_of_requests_hold_nobody_up(self):
        request = self.recorded[0]
        # libfabric reads what it is announced, all at once: 32 bytes and then the rest.
        for size in (1, 10, request.index(MAGIC), len(request) - 1):
            with self.subTest(size=size):
                stranger = self.stranger(self.recorded)
                stranger.send(request[:size])
                stranger.wait_closed()
                self.ping()
        self.expect_nothing_left()

    def test_false_ones_are_refused(self):
        replayed, nonsense = (self.stranger(self.recorded) for _ in range(2))
        # What was said in another handshake proves nothing in this one.
        replayed.connect()
        replayed.send(replayed.greeting(0))
        replayed.socket.recv(65536)
        replayed.send(replayed.greeting(1))
        # A request without what we want to know first.
        nonsense.send(nonsense.connect_request().replace(MAGIC, MAGIC[::-1]))
        self.expect_ended("fopd_sessions_refused_total", "fopd.fabric.session_refused", ".", [replayed, nonsense])
        left = self.stranger(self.recorded)
        left.connect()
        left.send(left.greeting(0))
        left.socket.close()
        self.wait_figure("fopd_sessions_lost_total", 1)
        wait_until(lambda: self.lines_of("fopd.fabric.handshake_ended", left.name), "the line of who left")
        self.expect_nothing_left()

    @unittest.skipUnless(SCHEME == "tcp", "libfabric does not tell of them")
    def test_who_speaks_something_else_is_named(self):
        def counted(kind):
            return self.daemon.metrics()[f'fopd_connections_without_request_total{{locality="0",kind="{kind}"}}']
        request = self.recorded[0]
        sent = {"http": b"GET /metrics HTTP/1.0\r\n\r\n", "tls": bytes.fromhex("160301"), "other_bytes": b"SSH-2.0-OpenSSH_9.2\r\n",
                "wrong_frame": request[:2] + b"\x04" + request[3:]}
        for kind, data in sent.items():
            with self.subTest(kind):
                # The first one has a line of its own at once, the others wait for the end of a minute.
                strangers = [self.stranger(self.recorded) for _ in range(3)]
                for stranger in strangers:
                    stranger.send(data)
                    stranger.wait_closed()
                wait_until(lambda kind=kind: counted(kind) == 3, f"three are {kind}")
                lines = wait_until(lambda stranger=strangers[0]: self.lines_of("fopd.fabric.no_request", stranger.name), "its line")
                self.assertEqual([(each["kind"], each["ended"]) for each in lines], [(kind, 1)])
        before = counted("left")
        self.stranger(self.recorded).close()
        wait_until(lambda: counted("left") == before + 1, "who only connects is counted")
        self.expect_nothing_left()
        # What was only counted is reported at the stop.
        ended = [each for each in self.daemon.events("fopd.fabric.no_request") if each["kind"] != "left"]
        self.assertEqual(sorted((each["kind"], each["ended"]) for each in ended),
                         sorted((kind, count) for kind in sent for count in (1, 2)))

    def test_garbage_goes_nowhere(self):
        # Instead of a request: the connection ends.
        for size in (32, 100, 4096, 65536):
            stranger = self.stranger(self.recorded)
            stranger.send(os.urandom(size))
            stranger.wait_closed()
        # Instead of messages.
        lost = self.daemon.metrics()["fopd_sessions_lost_total"]
        stranger = self.stranger(self.recorded)
        stranger.connect()
        stranger.send(b"\xff" * 1000)
        stranger.wait_closed()
        self.wait_figure("fopd_sessions_lost_total", lost + 1)
        wait_until(lambda: self.lines_of("fopd.fabric.handshake_ended", stranger.name), "a line of who it was")
        # As messages: what they are framed in is right, the rest is not.
        strangers = [self.stranger(self.recorded) for _ in range(self.GARBAGE_STRANGERS)]
        for stranger in strangers:
            stranger.connect()
            message = stranger.greeting(0)
            at = message.index(MAGIC)
            for _ in range(self.GARBAGE_OF_EACH):
                stranger.send(message[:at] + os.urandom(len(message) - at))
        count = self.GARBAGE_STRANGERS * self.GARBAGE_OF_EACH
        self.wait_figure("fopd_messages_garbage_total", count)
        self.expect_ended("fopd_sessions_expired_total", "fopd.fabric.handshake_ended", "in time", strangers)
        self.expect_logged_within_limits("fopd.fabric.garbage", count)
        self.expect_nothing_left()


class KeysTest(NetworkTestCase):
    def expect_refused(self, *who):
        """Each of these tries is counted and logged once."""
        refused = self.daemon.metrics()["fopd_sessions_refused_total"]
        lines = len(self.daemon.events("fopd.fabric.session_refused"))
        programs = [self.fopctl("ping", "--count", "1", **options) for options in who]
        for each in programs:
            self.assertEqual(each.wait_end(), NOT_ALLOWED, each.err())
        # Counted when the connection has ended, after the client was told.
        self.wait_figure("fopd_sessions_refused_total", refused + len(who))
        self.assertEqual(self.daemon.metrics()["fopd_sessions_refused_total"], refused + len(who))
        self.assertEqual(len(self.daemon.wait_event("fopd.fabric.session_refused", lines + len(who))),
                         lines + len(who))

    def reload(self, **keys):
        self.n.write_principals({"name": "tester", "rights": ["read", "write", "admin"]} | keys)
        self.ctl("reload")

    def test_of_keys_only_those_listed_are_accepted(self):
        old, new = self.write_key("old.key", OLD_KEY), self.write_key("new.key", NEW_KEY)
        wrong = self.write_key("wrong.key", "ab" * 32)
        self.n.write_principals({"name": "tester", "key": OLD_KEY, "rights": ["read", "write", "admin"]})
        self.start()
        self.key_path = old
        in_use = self.witness()
        files = self.daemon.files_count()
        self.expect_refused({"key": new}, {"key": wrong}, {"key": wrong}, {"keyless": True})
        # Sessions that stand are not cut off by the change, nor are others with the old key refused.
        self.reload(key=NEW_KEY, previous_keys=[OLD_KEY])
        self.ping(key=old)
        self.ping(key=new)
        self.wait_at_rest(sessions=1)
        self.wait_files(files)
        self.assertIsNone(in_use.process.poll(), in_use.err())
        refused = self.daemon.metrics()["fopd_sessions_refused_total"]
        lines = len(self.daemon.events("fopd.fabric.session_refused"))
        self.reload(key=NEW_KEY)
        self.assertEqual(in_use.wait_end(), NOT_ALLOWED, in_use.err())
        # It came back with the old key, and its refusal is counted after it was told.
        self.wait_figure("fopd_sessions_refused_total", refused + 1)
        self.daemon.wait_event("fopd.fabric.session_refused", lines + 1)
        self.expect_refused({"key": old}, {"key": old})
        self.ping(key=new)
        self.wait_at_rest()
        self.n.stop(self.daemon)


if __name__ == "__main__":
    unittest.main()

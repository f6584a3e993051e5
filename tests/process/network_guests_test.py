"""Who comes again and again, says much or takes nothing costs little, and others do not notice."""

import collections
import json
import os
import subprocess
import sys
import time
import unittest

from fopd_process import NO_SERVER, wait_until
from network_process import NetworkTestCase, Repeating, host_and_port


class BadGuestsTest(NetworkTestCase):
    # Far more than there are in honest use, and far less than a flood, which would take the processor from all.
    GUESTS_PER_SECOND = 200
    WAITING_MAX = 100

    def setUp(self):
        super().setUp()
        self.waiting = collections.deque()
        self.n.write_config(fabric={"handshake_timeout": "500ms"})
        self.start()
        self.recorded = self.record_handshake()

    def false_proof(self):
        stranger = self.stranger(self.recorded)
        stranger.connect()
        stranger.send(stranger.greeting(0))
        stranger.socket.recv(65536)
        stranger.send(stranger.greeting(1))
        self.leave_waiting(stranger)

    def half_a_handshake(self):
        stranger = self.stranger(self.recorded)
        stranger.connect()
        stranger.send(stranger.greeting(0))
        self.leave_waiting(stranger)

    def leave_waiting(self, stranger):
        self.waiting.append(stranger)
        if len(self.waiting) > self.WAITING_MAX:
            self.waiting.popleft().close()

    def garbage(self):
        stranger = self.stranger(self.recorded)
        stranger.send(os.urandom(4096))
        stranger.close()

    def test_others_do_not_notice(self):
        files = self.daemon.files_count()
        witness = self.witness()
        quiet = witness.p99_us()
        measured = {}
        for guest in (self.false_proof, self.half_a_handshake, self.garbage):
            with Repeating(guest, self.GUESTS_PER_SECOND) as visits:
                p99 = witness.p99_us(pings=2000)
            self.assertGreater(visits.count, 50)
            measured[f"{visits.count} times {guest.__name__}"] = p99
        for each in self.waiting:
            each.close()
        quiet = max(quiet, witness.p99_us())
        for what, p99 in measured.items():
            self.expect_p99_kept(quiet, p99, what)
        self.expect_content(witness)
        self.wait_at_rest()
        self.wait_files(files)
        self.n.stop(self.daemon)


# Connects as fast as it can, says what is in the file of its third argument, and never goes on. What it did is counted
# in its output.
FLOOD = """
import collections, pathlib, socket, sys
address, hello = (sys.argv[1], int(sys.argv[2])), pathlib.Path(sys.argv[3]).read_bytes()
begun, said = collections.deque(), 0
while True:
    one = socket.socket()
    one.setblocking(False)
    one.connect_ex(address)
    begun.append(one)
    if len(begun) > 64:
        try:
            begun[-64].send(hello)
            said += 1
        except OSError:
            pass
        if said % 1000 == 0:
            print(said, flush=True)
    if len(begun) > 400:
        begun.popleft().close()
"""


class HelloFloodTest(NetworkTestCase):
    # What must be left on a machine that the flood itself keeps busy.
    RATE_MIN = 0.5

    def pings_per_second(self, witness):
        before, begun = len(witness.times_us()), time.monotonic()
        wait_until(lambda: time.monotonic() - begun > 2, "two seconds")
        return (len(witness.times_us()) - before) / (time.monotonic() - begun)

    def flood_with(self, hello):
        path = self.n.path / "hello"
        path.write_bytes(hello)
        arguments = [str(each) for each in (*host_and_port(self.address), path)]
        return subprocess.Popen([sys.executable, "-c", FLOOD, *arguments], stdout=subprocess.PIPE, text=True)

    def test_others_keep_their_rate(self):
        self.start()
        recorded = self.record_handshake()
        witness = self.witness()
        quiet = self.pings_per_second(witness)
        for what, hello in {"hellos": recorded[0], "silent connections": b""}.items():
            flood = self.flood_with(hello)
            meanwhile = self.pings_per_second(witness)
            flood.kill()
            said = [int(each) for each in flood.communicate()[0].split()] or [0]
            print(f"{said[-1] / 2:.0f}/s {what}: {quiet:.0f} pings/s, meanwhile {meanwhile:.0f}", end="; ")
            self.assertGreater(meanwhile, self.RATE_MIN * quiet, what)
        # Who has a key comes in when the flood is over.
        wait_until(lambda: self.fopctl("ping", "--count", "1").wait_end() == 0, "a ping of somebody new")
        self.expect_content(witness)
        self.wait_at_rest()
        self.n.stop(self.daemon)


class FloodTest(NetworkTestCase):
    MESSAGES_COUNT = 50_000

    def test_messages_that_are_repeated_go_nowhere(self):
        self.start()
        witness = self.witness()
        quiet = witness.p99_us()
        relay = self.relay()
        victim = self.start_pings(1, server=relay.address)[0]
        wait_until(lambda: len(relay.client_turns()) > 4, "somebody to listen to")
        message = relay.client_turns()[3]
        with Repeating(lambda: relay.say(100 * message), per_second=1000) as flood:
            meanwhile = witness.p99_us()
            wait_until(lambda: 100 * flood.count >= self.MESSAGES_COUNT, "the flood")
        count = 100 * flood.count
        self.wait_figure("fopd_messages_unsealed_total", count)
        self.assertEqual(self.daemon.metrics()["fopd_messages_unsealed_total"], count)
        self.expect_p99_kept(max(quiet, witness.p99_us()), meanwhile, f"{count} repeated messages")
        self.expect_logged_within_limits("fopd.fabric.unsealed_message", count)
        # Nor do they harm the session they name.
        self.expect_content(victim)
        self.expect_content(witness)
        self.wait_at_rest()
        self.n.stop(self.daemon)


class DeafTest(NetworkTestCase):
    def test_a_client_that_takes_nothing_loses_its_session(self):
        self.start()
        witness = self.witness()
        relay = self.relay()
        load = self.fopctl("bench", "--op", "bulk_echo", "--size", "8M", "--depth", "8", "--seconds", "600",
                           server=relay.address)
        self.wait_figure("fopd_bulk_bytes_pushed_total", 1 << 20)
        relay.hear_nothing()
        self.wait_figure("fopd_sessions_expired_total", 1)
        self.wait_at_rest(sessions=1)
        ended = self.daemon.wait_event("fopd.fabric.session_ended")
        self.assertEqual(len(ended), 1, ended)
        load.kill()
        self.expect_content(witness)
        self.n.stop(self.daemon)

    def test_calls_to_a_server_that_stays_away_end_in_time(self):
        self.start()
        load = self.fopctl("--timeout", "1", "bench", "--op", "bulk_echo", "--size", "8M", "--seconds", "1", "--json")
        self.wait_figure("fopd_bulk_bytes_pushed_total", 1)
        self.daemon.kill()
        self.assertEqual(load.wait_end(), 1, load.err())
        self.assertGreater(json.loads(load.out())["errors"], 0)
        self.ctl("ping", "--count", "1", code=NO_SERVER)


if __name__ == "__main__":
    unittest.main()

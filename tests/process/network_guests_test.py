"""Who comes again and again, says much or takes nothing costs little, and others do not notice."""

import collections
import json
import os
import statistics
import subprocess
import sys
import time
import unittest

from fopd_process import IS_SANITIZED, NO_SERVER, SLOWNESS, wait_until
from network_peers import Ended, Repeating, host_and_port
from network_process import NetworkTestCase


class BadGuestsTest(NetworkTestCase):
    # Far more than there are in honest use, and far less than a flood, which would take the processor from all.
    GUESTS_PER_SECOND = 200
    WAITING_MAX = 100

    def setUp(self):
        super().setUp()
        self.waiting = collections.deque()
        self.ended_count = 0
        self.shorten_handshakes()
        self.start()
        self.recorded = self.record_handshake()

    def connected(self):
        """A stranger that has connected. On a busy machine the places of its host are in use by those before it, and
        one of them, or it, is ended."""
        while True:
            stranger = self.stranger(self.recorded)
            try:
                stranger.connect()
                return stranger
            except Ended:
                stranger.close()
                self.ended_count += 1

    def false_proof(self):
        stranger = self.connected()
        stranger.send(stranger.greeting(0))
        stranger.socket.recv(65536)
        stranger.send(stranger.greeting(1))
        self.leave_waiting(stranger)

    def half_a_handshake(self):
        stranger = self.connected()
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
            self.assertLess(self.ended_count, visits.count)
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


# Connects so often in a second, says what is in the file of its third argument, and never goes on. Its last words are how
# often it has connected, how often that was taken so that it could speak, and in how many seconds.
FLOOD = """
import collections, pathlib, socket, struct, sys, time
address, hello, per_second = (sys.argv[1], int(sys.argv[2])), pathlib.Path(sys.argv[3]).read_bytes(), int(sys.argv[4])
begun, connects, said, start = collections.deque(), 0, 0, time.monotonic()
while True:
    if connects >= (time.monotonic() - start) * per_second:
        time.sleep(0.005)
        continue
    one = socket.socket()
    one.setblocking(False)
    # Without this the ports are used up in seconds.
    one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    one.connect_ex(address)
    begun.append(one)
    connects += 1
    if len(begun) > 64:
        try:
            begun[-64].send(hello)
            said += 1
        except OSError:
            pass
    if len(begun) > 400:
        begun.popleft().close()
    if connects % 100 == 0:
        print(connects, said, time.monotonic() - start, flush=True)
"""


class HelloFloodTest(NetworkTestCase):
    CONNECTS_PER_SECOND = 10_000
    SENDERS = 2
    ROUNDS = 5
    SECONDS = 2
    RATE_KEPT = 0.9

    def setUp(self):
        super().setUp()
        other = self.node("other").start_ready()
        self.other_address = other.address

    def pings_meanwhile(self, witness, address, hello):
        """The pings, connections and hellos in a second while strangers flood this address, from the flood's start on."""
        path = self.n.path / "hello"
        path.write_bytes(hello)
        arguments = [str(each) for each in (*host_and_port(address), path, self.CONNECTS_PER_SECOND // self.SENDERS)]
        senders = [subprocess.Popen([sys.executable, "-c", FLOOD, *arguments], stdout=subprocess.PIPE, text=True)
                   for _ in range(self.SENDERS)]
        heard = [each.stdout.readline() for each in senders]
        before, begun = len(witness.times_us()), time.monotonic()
        self.wait_elapsed(self.SECONDS)
        pings = (len(witness.times_us()) - before) / (time.monotonic() - begun)
        connects, said = 0, 0
        for index, each in enumerate(senders):
            each.kill()
            connected, spoken, seconds = (heard[index] + each.communicate()[0]).splitlines()[-1].split()
            connects += int(connected) / float(seconds)
            said += int(spoken) / float(seconds)
        return pings, connects, said

    def test_others_keep_their_rate(self):
        """Beside the same flood to another daemon, which takes as much of this machine."""
        self.start()
        recorded = self.record_handshake()
        witness = self.witness()
        for what, hello in {"hellos": recorded[0], "silent connections": b""}.items():
            rounds = [(self.pings_meanwhile(witness, self.other_address, hello),
                       self.pings_meanwhile(witness, self.address, hello)) for _ in range(self.ROUNDS)]
            kept = [here[0] / elsewhere[0] for elsewhere, here in rounds]
            reached = statistics.median(here[1] for _, here in rounds)
            said = statistics.median(here[2] for _, here in rounds)
            print(f"{reached:.0f}/s {what}{f', {said:.0f}/s said' if hello else ''}: "
                  f"{statistics.median(here[0] for _, here in rounds):.0f} pings/s, of those beside a flood of another "
                  f"daemon {statistics.median(kept):.2f} ({min(kept):.2f} to {max(kept):.2f})", end="; ")
            if not IS_SANITIZED:
                self.assertGreater(reached, self.CONNECTS_PER_SECOND / 2, "the flood is too weak to show anything")
                if hello:
                    self.assertGreater(said, self.CONNECTS_PER_SECOND / 2, "too few hellos were taken by the kernel")
                self.assertGreater(statistics.median(kept), self.RATE_KEPT, what)
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
        # It is at work when the server is killed, and goes on until its time is over.
        load = self.fopctl("--timeout", SLOWNESS, "bench", "--op", "bulk_echo", "--size", "8M", "--seconds", 5 * SLOWNESS,
                           "--json")
        self.wait_figure("fopd_bulk_bytes_pushed_total", 1)
        self.daemon.kill()
        self.assertEqual(load.wait_end(), 1, load.err())
        self.assertGreater(json.loads(load.out())["errors"], 0)
        self.ctl("ping", "--count", "1", code=NO_SERVER)


if __name__ == "__main__":
    unittest.main()

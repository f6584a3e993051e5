"""A network that damages one connection at a chosen byte: every call ends with the right bytes or a clean error."""

import os
import random
import socket
import subprocess
import time
import unittest

from fopd_process import DONE, FOPCTL, IS_SANITIZED, PROGRAM_SECONDS, SLOWNESS
from network_peers import Passage
from network_process import NetworkTestCase

# Bytes at which each kind of damage begins, in each direction and for each call.
OFFSETS = int(os.environ.get("FOPD_DAMAGED_PLACES", "3" if IS_SANITIZED else "4"))
SEED = int(os.environ.get("FOPD_SEED", "1"))


def flip(before, rest, chance):
    return before + bytes([rest[0] ^ 1 << chance.randrange(8)]) + rest[1:]


def repeat(before, rest, chance):
    return before + (before or rest)[-chance.choice((1, 32, 200)):] + rest


def drop(before, rest, chance):
    return before + rest[chance.choice((1, 32, 200)):]


def insert(before, rest, chance):
    return before + chance.randbytes(chance.choice((1, 32, 200))) + rest


def exchange(before, rest, chance):
    size = max(1, min(chance.choice((1, 32, 200)), len(rest) // 2))
    return before + rest[size:2 * size] + rest[:size] + rest[2 * size:]


def cut(before, _rest, _chance):
    return before


def delay(before, rest, _chance):
    return before + rest


DAMAGES = (flip, repeat, drop, insert, exchange, cut, delay)


class DamagingRelay(Passage):
    """The first connection of the client is damaged, those that follow are not."""

    DELAY_SECONDS = 0.2

    def __init__(self, server, damage=None, from_client=True, at=0, seed=0):
        self.has_damaged = False
        self.sizes = {True: 0, False: 0}  # Of the first connection: is it what the client said?
        self._damage, self._from_client, self._at = damage, from_client, at
        self._random = random.Random(seed)
        self._is_first = True
        super().__init__(server)

    def _next_pass_on(self):
        is_first, self._is_first = self._is_first, False
        return self._pass_on_first if is_first else self._pass_on_all

    def _pass_on_first(self, source, target, from_client):
        damaged = self._damage is not None and from_client == self._from_client
        before = b""
        try:
            while data := source.recv(65536):
                self.sizes[from_client] += len(data)
                if damaged and len(before) + len(data) > self._at:
                    data = self._damage_rest(before, data, target)
                    damaged = False
                    if self._damage is cut:
                        self._shut(source, socket.SHUT_RDWR)
                        break
                before += data if damaged else b""
                target.sendall(data)
        except OSError:
            pass  # One of the two has ended.
        self._shut(target, socket.SHUT_WR)

    def _damage_rest(self, before, data, target):
        """Of the bytes that have come together with the first damaged one: others may wait for an answer to these."""
        kept = self._at - len(before)
        target.sendall(data[:kept])
        before += data[:kept]
        changed = self._damage(before, data[kept:], self._random)[self._at:]
        self.has_damaged = changed != data[kept:]
        if self._damage is delay:
            time.sleep(self.DELAY_SECONDS)
        return changed


class DamageTest(NetworkTestCase):
    LEASE_SECONDS = SLOWNESS
    SIZE_BYTES = 40_000  # Much of it travels outside of messages.
    TIMEOUT_SECONDS = 5 * SLOWNESS
    # What a call may end with when it does not succeed.
    ERRORS = (1, 69, 74, 75, 76, 77)

    def setUp(self):
        super().setUp()
        self.use_disk("64MiB")
        self.shorten_handshakes()
        self.start()
        self.random = random.Random(SEED)
        self.content = self.random.randbytes(self.SIZE_BYTES)
        self.path = self.directory / "content"
        self.path.write_bytes(self.content)
        self.ctl("put", self.path, "kept")

    def call(self, verb, *arguments, server):
        environment = self.environment() | {"FOPD_SERVER": server}
        return subprocess.run([FOPCTL, "--timeout", str(self.TIMEOUT_SECONDS), verb, *map(str, arguments)],
                              env=environment, capture_output=True, timeout=PROGRAM_SECONDS)

    def sizes_of(self, *arguments):
        """How much each side says when nothing is damaged."""
        relay = DamagingRelay(self.address)
        done = self.call(*arguments, server=relay.address)
        self.assertEqual(done.returncode, DONE, done.stderr)
        relay.close()
        return relay.sizes

    def damaged_call(self, damage, from_client, at, *arguments):
        relay = DamagingRelay(self.address, damage, from_client, at, seed=at)
        try:
            done = self.call(*arguments, server=relay.address)
        finally:
            relay.close()
        self.damaged_count += relay.has_damaged
        return done

    def offsets(self, size):
        """Some of the handshake and the first calls, some of all."""
        return sorted({self.random.randrange(min(size, 1500)) for _ in range(OFFSETS)}
                      | {self.random.randrange(size) for _ in range(OFFSETS)})

    def check_each_damage(self, check, *arguments):
        sizes = self.sizes_of(*arguments)
        outcomes, self.damaged_count, changing_count = {}, 0, 0
        for damage in DAMAGES:
            for from_client in (True, False):
                for at in self.offsets(sizes[from_client]):
                    with self.subTest(damage=damage.__name__, from_client=from_client, at=at, seed=SEED):
                        done = self.damaged_call(damage, from_client, at, *arguments)
                        check(done)
                        changing_count += damage is not delay
                        outcomes[done.returncode] = outcomes.get(done.returncode, 0) + 1
        print(f"{arguments[0]}: exit codes {outcomes}, {self.damaged_count} damaged", end="; ")
        # Others end before the damage: the sizes vary a little, and bytes that are the same may be exchanged.
        self.assertGreater(self.damaged_count, changing_count * 3 / 4)
        # Most calls are made again over the next connection.
        self.assertGreater(outcomes.get(DONE, 0), sum(outcomes.values()) / 2)
        self.wait_at_rest()
        self.assertEqual(self.ctl("get", "kept", self.directory / "whole").returncode, DONE)
        self.assertEqual((self.directory / "whole").read_bytes(), self.content)
        self.n.stop(self.daemon)

    def expect_error(self, done):
        self.assertIn(done.returncode, self.ERRORS, done.stderr)
        self.assertTrue(done.stderr)

    def test_what_is_read_is_right_or_an_error(self):
        def check(done):
            if done.returncode != DONE:
                return self.expect_error(done)
            self.assertTrue(done.stdout == self.content, "other bytes")
        self.check_each_damage(check, "get", "kept", "-")

    def test_what_is_written_is_right_or_an_error(self):
        def check(done):
            if done.returncode != DONE:
                return self.expect_error(done)
            there = self.call("get", "copy", "-", server=self.address)
            self.assertEqual(there.returncode, DONE, there.stderr)
            self.assertTrue(there.stdout == self.content, "other bytes")
        self.check_each_damage(check, "put", self.path, "copy")


if __name__ == "__main__":
    unittest.main()

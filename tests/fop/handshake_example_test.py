"""Works out the example in docs/formats/handshake.md again, from what the page says alone.

Nothing of the program is used: X25519 is written down from RFC 7748, BLAKE2b is Python's.
"""

import hashlib
import re
import struct
import unittest
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs/formats/handshake.md"

PRIME = 2**255 - 19


def x25519(scalar, point):
    """RFC 7748, section 5."""
    k = int.from_bytes(scalar, "little") & ~7 & ~(128 << 248) | 64 << 248
    u = int.from_bytes(point, "little") & (1 << 255) - 1
    x2, z2, x3, z3 = 1, 0, u, 1
    for bit in reversed(range(255)):
        swap = k >> bit & 1
        if swap:
            x2, x3, z2, z3 = x3, x2, z3, z2
        a, b, c, d = x2 + z2, x2 - z2, x3 + z3, x3 - z3
        da, cb = d * a, c * b
        e = a * a - b * b
        x3, z3 = (da + cb) ** 2 % PRIME, u * (da - cb) ** 2 % PRIME
        x2, z2 = a * a * b * b % PRIME, e * (a * a + 121665 * e) % PRIME
        if swap:
            x2, x3, z2, z3 = x3, x2, z3, z2
    return (x2 * pow(z2, PRIME - 2, PRIME) % PRIME).to_bytes(32, "little")


BASE = (9).to_bytes(32, "little")


def blake2b(*parts, key=b""):
    return hashlib.blake2b(b"".join(parts), key=key, digest_size=32).digest()


def shown(page):
    """The named blocks of the page's worked example."""
    blocks = {}
    for name, size, lines in re.findall(r"^    ([\w' ]+), (\d+) bytes\n((?:     *\d+  [0-9a-f ]+\n)+)", page, re.MULTILINE):
        data = bytes.fromhex("".join(line.strip().split("  ", 1)[1] for line in lines.splitlines()))
        assert len(data) == int(size), name
        blocks[name] = data
    return blocks


def short(text):
    return bytes([len(text)]) + text


class HandshakeExample(unittest.TestCase):
    def setUp(self):
        self.shown = shown(PAGE.read_text(encoding="utf-8"))
        self.key = self.shown["key"]
        self.client_secret, self.client_nonce = self.halves("client's random bytes")
        self.server_secret, self.server_nonce = self.halves("server's random bytes")

    def halves(self, name):
        data = self.shown[name]
        return data[:32], data[32:64]

    def test_every_byte_follows_from_the_page(self):
        hello = (bytes([1, 1, 2, 0]) + blake2b(b"fopd key id", key=self.key)[:8] + x25519(self.client_secret, BASE) +
                 self.client_nonce + struct.pack("<IH", 36 * 1024, 8) + short(b"fopctl") + short(b""))
        self.assertEqual(hello, self.shown["ClientHello"])

        self.assertEqual(blake2b(hello)[:16], self.shown["ConnectHello"][32:])

        answer = (bytes([2]) + x25519(self.server_secret, BASE) + self.server_nonce +
                  struct.pack("<IIQI", 16 * 1024, 12 * 1024, 99, 30000))
        transcript = blake2b(b"fopd handshake", self.shown["ConnectHello"], self.shown["AcceptHello"])
        transcript = blake2b(transcript, hello)
        transcript = blake2b(transcript, answer)
        shared = x25519(self.client_secret, x25519(self.server_secret, BASE))
        self.assertEqual(shared, x25519(self.server_secret, x25519(self.client_secret, BASE)))
        root = blake2b(shared, transcript, key=self.key)

        def derived(label):
            return blake2b(label, key=root)

        mac = blake2b(transcript, key=derived(b"fopd server finish"))
        transcript = blake2b(transcript, mac)
        self.assertEqual(answer + mac, self.shown["ServerHello"])

        transcript = blake2b(transcript, bytes([3]))
        mac = blake2b(transcript, key=derived(b"fopd client finish"))
        transcript = blake2b(transcript, mac)
        self.assertEqual(bytes([3]) + mac, self.shown["ClientFinish"])

        welcome = bytes([4]) + struct.pack("<H", 3) + short(b"ann") + struct.pack("<HHHB", 4, 64, 16, 0)
        transcript = blake2b(transcript, welcome)
        mac = blake2b(transcript, key=derived(b"fopd welcome"))
        self.assertEqual(welcome + mac, self.shown["Welcome"])

        self.assertEqual(derived(b"fopd client mac")[:16], self.shown["client MAC key"])
        self.assertEqual(derived(b"fopd server mac")[:16], self.shown["server MAC key"])
        self.assertEqual(derived(b"fopd descriptor")[:16], self.shown["descriptor key"])

    # RFC 7748, section 5.2: after one and after a thousand rounds.
    def test_x25519_is_the_published_one(self):
        scalar = point = BASE
        for done in range(1, 1001):
            scalar, point = x25519(scalar, point), scalar
            if done == 1:
                self.assertEqual(scalar.hex(), "422c8e7a6227d7bca1350b3e2bb7279f7897b87bb6854b783c60e80311ae3079")
        self.assertEqual(scalar.hex(), "684cf59ba83309552800ef566f2f4d3c1c3887c49360e3875f2eb94d99532c51")


if __name__ == "__main__":
    unittest.main()

"""Works out the encrypted records in docs/formats/tcp.md again, from what the page says alone.

Nothing of the program is used: AES is written down from FIPS 197, GCM from NIST SP 800-38D, BLAKE2b is Python's.
"""

import hashlib
import re
import unittest
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs/formats/tcp.md"


def times_x(byte):
    return (byte << 1 ^ (0x11B if byte & 0x80 else 0)) & 0xFF


def times(one, other):
    product = 0
    while other:
        product ^= one if other & 1 else 0
        one, other = times_x(one), other >> 1
    return product


def substitution():
    """The S-box: inverses in the field, and an affine map."""
    inverse = [0] * 256
    for one in range(1, 256):
        inverse[one] = next(other for other in range(1, 256) if times(one, other) == 1)
    box = []
    for byte in inverse:
        rotated = [byte << count | byte >> 8 - count for count in range(5)]
        box.append((rotated[0] ^ rotated[1] ^ rotated[2] ^ rotated[3] ^ rotated[4]) & 0xFF ^ 0x63)
    return box


BOX = substitution()
ROUNDS = 14


def round_keys(key):
    words = [key[at:at + 4] for at in range(0, 32, 4)]
    constant = 1
    while len(words) < 4 * (ROUNDS + 1):
        word = words[-1]
        if len(words) % 8 == 0:
            word = bytes(BOX[byte] for byte in word[1:] + word[:1])
            word = bytes([word[0] ^ constant]) + word[1:]
            constant = times_x(constant)
        elif len(words) % 8 == 4:
            word = bytes(BOX[byte] for byte in word)
        words.append(bytes(a ^ b for a, b in zip(words[-8], word)))
    return [b"".join(words[at:at + 4]) for at in range(0, len(words), 4)]


def aes(key, block):
    keys = round_keys(key)
    state = bytes(a ^ b for a, b in zip(block, keys[0]))
    for number in range(1, ROUNDS + 1):
        state = [BOX[byte] for byte in state]
        state = [state[(at + 4 * (at % 4)) % 16] for at in range(16)]
        if number < ROUNDS:
            mixed = []
            for at in range(0, 16, 4):
                a, b, c, d = state[at:at + 4]
                mixed += [times(2, a) ^ times(3, b) ^ c ^ d, a ^ times(2, b) ^ times(3, c) ^ d,
                          a ^ b ^ times(2, c) ^ times(3, d), times(3, a) ^ b ^ c ^ times(2, d)]
            state = mixed
        state = bytes(a ^ b for a, b in zip(state, keys[number]))
    return state


def gcm_times(one, other):
    product = 0
    for bit in range(127, -1, -1):
        if other >> bit & 1:
            product ^= one
        one = one >> 1 ^ (0xE1 << 120 if one & 1 else 0)
    return product


def padded(data):
    return data + bytes(-len(data) % 16)


def gcm_encrypt(key, nonce, plain, label):
    """The encrypted bytes and the tag."""
    first = nonce + (1).to_bytes(4, "big")
    encrypted = b""
    for at in range(0, len(plain), 16):
        stream = aes(key, nonce + (at // 16 + 2).to_bytes(4, "big"))
        encrypted += bytes(a ^ b for a, b in zip(plain[at:at + 16], stream))
    hashed = padded(label) + padded(encrypted) + (8 * len(label)).to_bytes(8, "big") + (8 * len(encrypted)).to_bytes(8, "big")
    secret, value = int.from_bytes(aes(key, bytes(16)), "big"), 0
    for at in range(0, len(hashed), 16):
        value = gcm_times(value ^ int.from_bytes(hashed[at:at + 16], "big"), secret)
    return encrypted + bytes(a ^ b for a, b in zip(value.to_bytes(16, "big"), aes(key, first)))


class RecordExample(unittest.TestCase):
    def test_the_cipher_is_the_one_of_the_standard(self):
        """FIPS 197, C.3, and test case 13 of the proposal of GCM."""
        self.assertEqual(aes(bytes(range(32)), bytes.fromhex("00112233445566778899aabbccddeeff")).hex(),
                         "8ea2b7ca516745bfeafc49904b496089")
        self.assertEqual(gcm_encrypt(bytes(32), bytes(12), b"", b"").hex(), "530f8afbc74536b9a963b4f1c4cb738b")

    def test_the_records_of_the_page(self):
        shown = {}
        for name, lines in re.findall(r"^    (\w+) record, 25 bytes\n((?:     *\d+  [0-9a-f ]+\n)+)",
                                      PAGE.read_text(encoding="utf-8"), re.MULTILINE):
            shown[name] = bytes.fromhex("".join(line.strip().split("  ", 1)[1] for line in lines.splitlines()))
        key, label, plain = bytes(range(32)), (5).to_bytes(4, "little"), b"hello"
        self.assertEqual(shown["first"], label + gcm_encrypt(key, bytes(12), plain, label))
        key = hashlib.blake2b(b"fopd next record key", key=key, digest_size=32).digest()
        nonce = (1).to_bytes(8, "little") + bytes(4)
        self.assertEqual(shown["second"], label + gcm_encrypt(key, nonce, plain, label))


if __name__ == "__main__":
    unittest.main()

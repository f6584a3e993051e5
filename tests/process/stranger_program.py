"""Hosts without a key that attack a daemon at tcp://, until they are killed:

    stranger_program.py ATTACK HOST PORT HELLO_FILE FIRST_HOST

The file has the first frame that a client sends. The attackers have ten addresses, 127.0.0.FIRST_HOST and the following.
Each line of the output is the number of connections so far that got as far as the attack needs.
"""

import collections
import errno
import os
import pathlib
import resource
import socket
import struct
import sys
import time

# Kinds of frames in docs/formats/tcp.md.
ACCEPT, MESSAGE, READ, READ_DATA, WRITE = 2, 4, 5, 6, 7
HOSTS = 10
HEADER_BYTES = 32


def frame(kind, length, tag=0, key=0, offset=0):
    return struct.pack("<HBBIIIQQ", 0x7066, kind, 0, length, tag, 0, key, offset)


class Attackers:
    def __init__(self, address, hello, first_host):
        self._address, self._hello, self._first_host = address, hello, first_host
        self._tried = 0
        self._reached = 0
        limits = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (limits[1], limits[1]))
        self._kept = collections.deque()

    def connection(self):
        """From the next host. None if it was not accepted in time."""
        made = socket.socket()
        made.setsockopt(socket.IPPROTO_IP, socket.IP_BIND_ADDRESS_NO_PORT, 1)
        # Without this the ports are used up in seconds.
        made.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        made.bind((f"127.0.0.{self._first_host + self._tried % HOSTS}", 0))
        # The first one may take its time, so that the attack begins.
        made.settimeout(0.2 if self._reached else 30)
        self._tried += 1
        try:
            made.connect(self._address)
        except OSError:
            made.close()
            return None
        return made

    def reached(self):
        self._reached += 1
        print(self._reached, flush=True)

    def accepted(self):
        """A connection whose hello was answered, by acceptance or refusal."""
        made = self.connection()
        if made is None or not say(made, self._hello):
            return None
        try:
            answer = made.recv(4096)
        except OSError:
            answer = b""
        if len(answer) > 2 and answer[2] == ACCEPT:
            self.reached()
            return made
        made.close()
        return None

    def connected(self):
        made = self.connection()
        if made is not None:
            self.reached()
        return made

    def keep(self, made, at_most):
        if made is None:
            return
        self._kept.append(made)
        if len(self._kept) > at_most:
            self._kept.popleft().close()

    # -- attacks --

    def unasked_data(self):
        """An answer to a read that nobody has made."""
        made = self.accepted()
        if made is not None:
            say(made, frame(READ_DATA, 1000) + bytes(1000))
            made.close()

    def reads_of_nothing(self):
        """As many reads of memory that does not exist as the daemon takes."""
        made = self.accepted()
        if made is not None:
            reads = frame(READ, 0, key=1) * 10_000
            while say(made, reads):
                pass
            made.close()

    def long_reads(self):
        made = self.accepted()
        if made is not None:
            reads = frame(READ, 64 << 20, key=1) * 1000
            while say(made, reads):
                pass
            made.close()

    def parts_of_messages(self):
        """A thousand connections, each with nearly all of the longest message that a stranger may send."""
        made = self.accepted()
        if made is not None:
            say(made, frame(MESSAGE, 1024) + bytes(1023))
        self.keep(made, 1000)

    def long_messages(self):
        """The first bytes of a message that is too long for a stranger."""
        made = self.accepted()
        if made is not None:
            say(made, frame(MESSAGE, 16_000) + bytes(16))
        self.keep(made, 1000)

    def many_messages(self):
        """As many messages of nothing as the daemon takes."""
        made = self.accepted()
        if made is not None:
            messages = frame(MESSAGE, 0) * 10_000
            while say(made, messages):
                pass
            made.close()

    def silence(self):
        """Connections without a hello."""
        self.keep(self.connected(), 5000)

    def trickle(self):
        """Hellos that never become complete."""
        made = self.connected()
        if made is not None:
            say(made, self._hello[:1 + self._tried % (len(self._hello) - 1)])
        self.keep(made, 1000)

    def half_handshakes(self):
        self.keep(self.accepted(), 1000)

    def garbage(self):
        made = self.connected()
        if made is not None:
            while say(made, os.urandom(65536)):
                pass
            made.close()


def say(made, data):
    """False when the other side has ended the connection, or takes nothing."""
    try:
        made.sendall(data)
        return True
    except OSError as problem:
        assert problem.errno in (errno.EPIPE, errno.ECONNRESET, None), problem
        return False


ATTACKS = ("unasked_data", "reads_of_nothing", "long_reads", "parts_of_messages", "long_messages",
           "many_messages", "silence", "trickle", "half_handshakes", "garbage")
# More would measure how the processor is shared, not what the daemon does.
PER_SECOND = 500


def main():
    attack, host, port, hello_file, first_host = sys.argv[1:]
    attackers = Attackers((host, int(port)), pathlib.Path(hello_file).read_bytes(), int(first_host))
    once = getattr(attackers, attack)
    begun, count = time.monotonic(), 0
    while True:
        once()
        count += 1
        ahead = count / PER_SECOND - (time.monotonic() - begun)
        if ahead > 0.005:
            time.sleep(ahead)


if __name__ == "__main__":
    main()

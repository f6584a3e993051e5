"""Peers on the network: programs beside a test, and relays, strangers and others of our own between and beside them."""

import re
import socket
import statistics
import subprocess
import threading

from fopd_process import DEADLINE_SECONDS, FOPCTL, SCHEME, files_count, resident_bytes, wait_until

# What docs/formats/ says of the bytes.
MAGIC = b"fopd"
SESSION_AT = 8


def host_and_port(address):
    host, port = address.removeprefix(f"{SCHEME}://").rsplit(":", 1)
    return host, int(port)


class Program:
    """A fopctl that runs beside the test, its output in files."""

    def __init__(self, arguments, path, environment):
        self.arguments = arguments
        self._out, self._err = path.with_suffix(".out"), path.with_suffix(".err")
        with open(self._out, "wb") as out, open(self._err, "wb") as err:
            self.process = subprocess.Popen([FOPCTL, *arguments], env=environment, stdin=subprocess.DEVNULL,
                                            stdout=out, stderr=err)

    @property
    def pid(self):
        return self.process.pid

    def out(self):
        return self._out.read_text()

    def err(self):
        return self._err.read_text()

    def signal(self, number):
        self.process.send_signal(number)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def wait_end(self, seconds=DEADLINE_SECONDS):
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"fopctl {self.arguments} did not end within {seconds} s: {self.err()}") from None

    def files_count(self):
        return files_count(self.pid)

    def anonymous_bytes(self):
        return resident_bytes(self.pid, "RssAnon")


class Witness(Program):
    """fopctl ping, one after the other."""

    PINGS_IN_A_SLICE = 200

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self._times_us = []
        self._read_bytes = 0

    def times_us(self):
        """Of all pings so far."""
        with open(self._out, "rb") as out:
            out.seek(self._read_bytes)
            lines = out.read()
        lines = lines[:lines.rfind(b"\n") + 1]
        self._read_bytes += len(lines)
        self._times_us += [float(each) for each in re.findall(rb"time=([0-9.]+) us\n", lines)]
        return self._times_us

    def summary(self):
        found = re.search(r"^(\d+) sent, (\d+) answered", self.out(), re.MULTILINE)
        return int(found[1]), int(found[2])

    def p99_us(self, since=None, pings=1000):
        """Of so many pings from now on, or of those since the one with that number. The median of several stretches,
        so that the machine may be busy with something else for a moment."""
        if since is None:
            since = len(self.times_us())
            wait_until(lambda: len(self.times_us()) >= since + pings, f"{pings} pings")
        times = self.times_us()[since:]
        size = self.PINGS_IN_A_SLICE
        slices = [sorted(times[at:at + size]) for at in range(0, len(times) - size + 1, size)]
        return statistics.median(each[len(each) * 99 // 100] for each in slices)


class Relay:
    """Between one client and the server; both see a peer. It keeps who said what, in turns, passes on what it may, and
    says for the client what it is told to."""

    def __init__(self, server):
        self.turns = []  # [is it the client?, bytes]
        self.server = None
        self._deaf = threading.Event()
        self._saying = threading.Lock()  # What is said to the server is said as a whole.
        self._to = host_and_port(server)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = "{}://{}:{}".format(SCHEME, *self._listener.getsockname())
        self._connections = []
        self._threads = [threading.Thread(target=self._meet, daemon=True)]
        self._threads[0].start()

    def close(self):
        for each in (self._listener, *self._connections):
            self._shut(each, socket.SHUT_RDWR)
        for each in self._threads:
            each.join(DEADLINE_SECONDS)
        for each in (self._listener, *self._connections):
            each.close()

    @staticmethod
    def _shut(one, how):
        try:
            one.shutdown(how)
        except OSError:
            pass  # It has ended by itself.

    def hear_nothing(self):
        """From now on nothing is taken from the server, nor are its bytes."""
        self._deaf.set()

    def say(self, data):
        with self._saying:
            self.server.sendall(data)

    def client_turns(self):
        return [bytes(data) for is_client, data in self.turns if is_client]

    def _meet(self):
        try:
            client, _ = self._listener.accept()
        except OSError:
            return
        self.server = socket.create_connection(self._to)
        self._join(client, self.server, self._pass_on)

    def _join(self, client, server, pass_on):
        """Each direction has a thread that passes it on."""
        self._connections += [client, server]
        for source, target, is_client in ((client, server, True), (server, client, False)):
            thread = threading.Thread(target=pass_on, args=(source, target, is_client), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _pass_on(self, source, target, is_client):
        try:
            while is_client or not self._deaf.is_set():
                data = source.recv(65536)
                if not data:
                    # A server that is not heard does not hear how that ends.
                    if not self._deaf.is_set():
                        target.shutdown(socket.SHUT_WR)
                    return
                if not self.turns or self.turns[-1][0] != is_client:
                    self.turns.append([is_client, bytearray()])
                self.turns[-1][1].extend(data)
                if is_client:
                    self.say(data)
                else:
                    target.sendall(data)
        except OSError:
            pass  # One of the two has ended.


class Passage(Relay):
    """A relay for any number of connections, which keeps nothing."""

    def _meet(self):
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            self._join(client, socket.create_connection(self._to), self._next_pass_on())

    def _next_pass_on(self):
        """How the next connection is passed on."""
        return self._pass_on_all

    def _see(self, data):
        """What is about to be passed on."""

    def _pass_on_all(self, source, target, _from_client):
        try:
            while data := source.recv(65536):
                self._see(data)
                target.sendall(data)
        except OSError:
            pass  # One of the two has ended.
        self._shut(target, socket.SHUT_WR)


class Repeating:
    """Does something again and again, at most so often, on a thread of its own, while the context lasts."""

    def __init__(self, action, per_second):
        self.count = 0
        self._pause_seconds = 1 / per_second
        self._action = action
        self._stop = threading.Event()
        self._problem = None
        self._thread = threading.Thread(target=self._run)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        self._thread.join()
        if self._problem:
            raise self._problem

    def _run(self):
        try:
            while not self._stop.wait(self._pause_seconds):
                self._action()
                self.count += 1
        except Exception as problem:  # For whoever waits.
            self._problem = problem


class Ended(Exception):
    """The server ended the connection of a stranger, as one that gives way to others of its host."""


class Stranger:
    """A peer without a key. It knows what a client said in a handshake that somebody listened to."""

    def __init__(self, server, recorded):
        self._recorded = recorded
        self._session_id = None
        self.socket = socket.create_connection(host_and_port(server), timeout=DEADLINE_SECONDS)
        # As the daemon's log has it.
        self.name = "{}://{}:{}".format(SCHEME, *self.socket.getsockname())

    def close(self):
        self.socket.close()

    def send(self, data):
        self.socket.sendall(data)

    def connect_request(self):
        return self._recorded[0]

    def connect(self):
        """Up to the server's acceptance, which says what the session is called."""
        self.send(self.connect_request())
        answer = b""
        while MAGIC not in answer or len(answer) < answer.index(MAGIC) + SESSION_AT + 8:
            try:
                data = self.socket.recv(65536)
            except ConnectionResetError:
                data = b""
            if not data:
                raise Ended(f"the server ended {self.name} after {len(answer)} bytes")
            answer += data
        self._session_id = answer[answer.index(MAGIC) + SESSION_AT:][:8]

    def greeting(self, step):
        """The client's first or second message, for this session."""
        message = bytearray(self._recorded[1 + step])
        at = message.index(MAGIC) + SESSION_AT
        message[at:at + 8] = self._session_id
        return bytes(message)

    def wait_closed(self):
        """Until the server has ended the connection; what it still says is thrown away."""
        try:
            while self.socket.recv(65536):
                pass
        except ConnectionResetError:
            pass

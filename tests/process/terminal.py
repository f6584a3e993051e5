"""A program on a terminal of its own, as somebody who sits in front of it has it."""

import fcntl
import os
import pty
import select
import signal
import struct
import termios

from fopd_process import wait_until

TIOCGPTN = 0x80045430  # The number of a terminal; the module termios does not have it.


def size_of(columns, rows):
    return struct.pack("HHHH", rows, columns, 0, 0)


class Terminal:
    def __init__(self, test, command, environment, columns=80, rows=24):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            try:
                # The size is there before the program looks at it.
                fcntl.ioctl(1, termios.TIOCSWINSZ, size_of(columns, rows))
                os.execve(command[0], [*map(str, command)], environment)
            finally:
                os._exit(126)
        self.output = ""
        self.exit_code = None  # Negative: the signal that ended it.
        # Of the program's end: its modes can be looked at when the program has ended.
        number, = struct.unpack("I", fcntl.ioctl(self.fd, TIOCGPTN, bytes(4)))
        self.end = os.open(f"/dev/pts/{number}", os.O_RDWR | os.O_NOCTTY)
        test.addCleanup(self.close)

    def close(self):
        if self.exit_code is None:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self.end)
        os.close(self.fd)

    def modes(self):
        return termios.tcgetattr(self.end)[3]

    def read(self):
        while select.select([self.fd], [], [], 0)[0]:
            self.output += os.read(self.fd, 65536).decode(errors="replace")

    def resize(self, columns, rows):
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, size_of(columns, rows))

    def press(self, keys):
        os.write(self.fd, keys.encode())

    def wait_end(self):
        def ended():
            self.read()
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid == self.pid:
                self.exit_code = os.waitstatus_to_exitcode(status)
            return pid == self.pid
        wait_until(ended, "the end of the program")
        self.read()
        return self.exit_code

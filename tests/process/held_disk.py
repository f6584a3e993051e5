"""A block device whose operations are late or held: a loop device over a file of a file system that this process serves, by the
kernel's FUSE protocol. io_uring would wait for such a file itself while it is given an operation; it does not wait for devices.

The file system is mounted for this process and its children only. When the process ends, its operations fail.
"""

import ctypes
import os
import select
import stat
import struct
import subprocess
import threading
import time
import unittest
from pathlib import Path

LOOKUP, GETATTR, SETATTR, OPEN, READ, WRITE, STATFS, FSYNC, INIT = 1, 3, 4, 14, 15, 16, 17, 20, 26
RELEASE, FLUSH, OPENDIR, RELEASEDIR, FORGET, INTERRUPT, BATCH_FORGET = 18, 25, 27, 29, 2, 36, 42
UNANSWERED = {FORGET, INTERRUPT, BATCH_FORGET}
# What has nothing to do.
EMPTY = {RELEASE, FLUSH, RELEASEDIR}
ENOENT, ENOSYS = 2, 38
DISK = 2  # Its node; 1 is the root.
DIRECT_IO = 1  # The kernel keeps no data of the file.
NAME = "disk.img"
REQUEST_MAX = 1 << 20
CLONE_NEWNS, MS_NOSUID, MS_NODEV, MS_REC, MS_PRIVATE, MNT_DETACH = 0x20000, 2, 4, 0x4000, 0x40000, 2

needs_held_disk = unittest.skipUnless(os.geteuid() == 0 and Path("/dev/fuse").exists() and Path("/dev/loop-control").exists(),
                                      "needs root, /dev/fuse and loop devices")


class HeldDisk:
    def __init__(self, mount_point, backing, size):
        self._file = os.open(backing, os.O_RDWR | os.O_CREAT, 0o600)
        os.ftruncate(self._file, size)
        self._lock = threading.Lock()
        self._delays = {}  # Of operations, in seconds.
        self._held = set()  # Operations that are not answered.
        self._waiting = []  # (when, the request); never, if held.
        self._wake_read, self._wake_write = os.pipe()
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._mount_point = str(mount_point)
        self._fuse = os.open("/dev/fuse", os.O_RDWR)
        self._call("unshare", CLONE_NEWNS)
        self._call("mount", b"none", b"/", None, MS_REC | MS_PRIVATE, None)
        options = f"fd={self._fuse},rootmode=40000,user_id=0,group_id=0,allow_other".encode()
        self._call("mount", b"held_disk", self._mount_point.encode(), b"fuse", MS_NOSUID | MS_NODEV, options)
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()
        done = subprocess.run(["losetup", "--find", "--show", Path(mount_point) / NAME], capture_output=True, text=True, check=True,
                              timeout=60)
        self.path = Path(done.stdout.strip())

    def delay(self, seconds, *operations):
        """From now on these operations take so long."""
        with self._lock:
            self._delays = dict.fromkeys(operations, seconds)

    def hold(self, *operations):
        """From now on these operations have no end, until release()."""
        with self._lock:
            self._held = set(operations)

    def release(self):
        with self._lock:
            self._held, self._delays = set(), {}
            self._waiting = [(0, request) for _, request in self._waiting]
        os.write(self._wake_write, b"x")

    def close(self):
        self.release()
        subprocess.run(["losetup", "--detach", self.path], check=True, timeout=60)
        self._call("umount2", self._mount_point.encode(), MNT_DETACH)
        self._thread.join(60)
        for fd in (self._fuse, self._file, self._wake_read, self._wake_write):
            os.close(fd)

    def _call(self, name, *arguments):
        if getattr(self._libc, name)(*arguments) != 0:
            raise OSError(ctypes.get_errno(), f"{name}: {os.strerror(ctypes.get_errno())}")

    def _serve(self):
        while True:
            with self._lock:
                now = time.monotonic()
                due = [request for when, request in self._waiting if when <= now]
                self._waiting = [(when, request) for when, request in self._waiting if when > now]
                next_due = min((when for when, _ in self._waiting), default=float("inf"))
            for request in due:
                self._answer(request)
            timeout = None if next_due == float("inf") else max(0, next_due - time.monotonic())
            ready, _, _ = select.select([self._fuse, self._wake_read], [], [], timeout)
            if self._wake_read in ready:
                os.read(self._wake_read, 100)
            if self._fuse not in ready:
                continue
            try:
                request = os.read(self._fuse, REQUEST_MAX + 4096)
            except OSError:  # It was unmounted.
                return
            operation, = struct.unpack_from("<I", request, 4)
            with self._lock:
                when = float("inf") if operation in self._held else time.monotonic() + self._delays.get(operation, 0)
                is_late = operation in self._held or operation in self._delays
                if is_late:
                    self._waiting.append((when, request))
            if not is_late:
                self._answer(request)

    def _attributes(self, node):
        size = os.fstat(self._file).st_size if node == DISK else 0
        mode = stat.S_IFREG | 0o600 if node == DISK else stat.S_IFDIR | 0o755
        return struct.pack("<QQQQQQIIIIIIIIII", node, size, size // 512, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0)

    def _answer(self, request):
        operation, unique, node = struct.unpack_from("<IQQ", request, 4)
        if operation in UNANSWERED:
            return
        error, body = self._reply(operation, node, request[40:])
        try:
            os.write(self._fuse, struct.pack("<IiQ", 16 + len(body), -error, unique) + body)
        except OSError:
            pass  # Who asked is gone.

    def _reply(self, operation, node, body):
        if operation == INIT:
            major, minor, ahead, _ = struct.unpack_from("<IIII", body)
            return 0, struct.pack("<IIIIHHII", major, min(minor, 31), ahead, 0, 64, 48, 256 << 10, 1) + bytes(36)
        if operation == LOOKUP and body.rstrip(b"\0").decode() == NAME:
            return 0, struct.pack("<QQQQII", DISK, 0, 3600, 0, 0, 0) + self._attributes(DISK)
        if operation == LOOKUP:
            return ENOENT, b""
        if operation == SETATTR:
            valid, _, _, size = struct.unpack_from("<IIQQ", body)
            if valid & 8:
                os.ftruncate(self._file, size)
        if operation in (GETATTR, SETATTR):
            return 0, struct.pack("<QII", 0, 0, 0) + self._attributes(node)
        if operation in (OPEN, OPENDIR):
            return 0, struct.pack("<QII", 1, DIRECT_IO if operation == OPEN else 0, 0)
        if operation == READ:
            _, offset, size = struct.unpack_from("<QQI", body)
            return 0, os.pread(self._file, size, offset)
        if operation == WRITE:
            _, offset, size = struct.unpack_from("<QQI", body)
            return 0, struct.pack("<II", os.pwrite(self._file, body[40:40 + size], offset), 0)
        if operation == STATFS:
            return 0, struct.pack("<QQQQQIIII", 1 << 20, 1 << 20, 1 << 20, 100, 100, 4096, 255, 4096, 0) + bytes(24)
        if operation == FSYNC:
            os.fdatasync(self._file)
            return 0, b""
        return (0, b"") if operation in EMPTY else (ENOSYS, b"")

"""Settings whose effect no other test looks at: two values of a key, and a figure or an order of requests that differs."""

import contextlib
import struct
import subprocess
import time
import unittest

from fopd_process import DONE, FOPCTL, PROGRAM_SECONDS, ProcessTestCase, run_program, wait_until
from held_disk import READ, HeldDisk, needs_held_disk

BLOCK = 4096
OBJECT_BYTES = 64 * BLOCK
FOMS_ALLOWED = 4 * 128


class RecordingDisk(HeldDisk):
    """Remembers the places of reads, in the order in which they are answered."""

    def __init__(self, *arguments):
        self.reads = []
        super().__init__(*arguments)

    def is_waiting(self):
        with self._lock:
            return bool(self._waiting)

    def _reply(self, operation, node, body):
        if operation == READ:
            self.reads.append(struct.unpack_from("<Q", body, 8)[0])
        return super()._reply(operation, node, body)


class SettingsTestCase(ProcessTestCase):
    def start(self, name, disk=None, **sections):
        """A daemon with one locality and one disk, a file unless it is given, and with these sections."""
        node = self.node(name)
        node.settings["pools"] = [{"name": "default"}]
        node.settings["devices"] = [{"name": "d0", "pool": "default"} | (
            {"path": str(disk)} if disk else {"path": str(node.path / "d0.img"), "size": "64MiB"})]
        node.write_config(localities={"cores": 1, "buffers": "4MiB"}, auth={"mode": "none"},
                          admin={"metrics": "127.0.0.1:0"})
        node.write_config(**sections)
        return node.start_ready()

    def ctl(self, daemon, *arguments, **options):
        done = run_program(FOPCTL, *arguments, "--server", daemon.address, **options)
        self.assertEqual(done.returncode, DONE, done.stderr)
        return done.stdout

    def put(self, daemon, name, size):
        file = self.directory / "data"
        file.write_bytes(b"x" * size)
        self.ctl(daemon, "put", file, name)

    def begin(self, daemon, *arguments):
        """Starts a fopctl whose end the test waits for, or kills."""
        program = subprocess.Popen([FOPCTL, *map(str, arguments), "--server", daemon.address], stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(program.wait)
        self.addCleanup(program.kill)
        return program

    def a_block(self):
        file = self.directory / "block"
        file.write_bytes(b"y" * BLOCK)
        stream = file.open("rb")
        self.addCleanup(stream.close)
        return stream


class SettingsTest(SettingsTestCase):
    def test_inline_max(self):
        """A request with more bytes leaves them in the client's memory, from which they are pulled."""
        for inline_max, pulled in (("12KiB", 0), ("0", BLOCK)):
            with self.subTest(inline_max):
                daemon = self.start(f"inline-{inline_max}", fabric={"inline_max": inline_max})
                self.put(daemon, "o", OBJECT_BYTES)
                before = daemon.metrics()["fopd_bulk_bytes_pulled_total"]
                self.ctl(daemon, "write", "o", "--offset", 0, "--buffered", stdin=self.a_block())
                self.assertEqual(daemon.metrics()["fopd_bulk_bytes_pulled_total"] - before, pulled)

    def test_flush_interval(self):
        """A buffered write waits so long for a flush. The patient daemon gets its write first, so it had time to flush, too."""
        patience_seconds = 60
        daemons, before = {}, {}
        for interval in (f"{patience_seconds}s", "10ms"):
            daemon = self.start(f"flush-{interval}", store={"flush_interval": interval, "checkpoint_interval": "1h"})
            self.put(daemon, "o", OBJECT_BYTES)
            daemons[interval] = daemon
        begun = time.monotonic()
        for interval, daemon in daemons.items():
            before[interval] = self.flushes(daemon)
            self.ctl(daemon, "write", "o", "--offset", 0, "--buffered", stdin=self.a_block())
        patient, hasty = daemons
        wait_until(lambda: self.flushes(daemons[hasty]) > before[hasty], "the write is flushed")
        patient_now = self.flushes(daemons[patient])
        if time.monotonic() - begun >= patience_seconds:
            self.skipTest("the machine is so slow that both have flushed")
        self.assertEqual(patient_now, before[patient])

    def flushes(self, daemon):
        metrics, name = daemon.metrics(), 'fopd_io_seconds_count{device="d0",op="flush"}'
        self.assertIn(name, metrics)
        return metrics[name]

    def test_io_wait_goal(self):
        """Fewer fops may run while they wait for longer. Without a goal there are as many, after more of the same load."""
        daemons = {goal: self.start(f"goal-{goal}", lrs={"io_wait_goal": goal}) for goal in ("none", "10us")}
        for daemon in daemons.values():
            self.assertEqual(self.allowed(daemon), FOMS_ALLOWED)
            self.begin(daemon, "bench", "--op", "read", "--object-size", "4M", "--size", "1M", "--depth", 32, "--seconds", 600)
        wait_until(lambda: self.allowed(daemons["10us"]) < FOMS_ALLOWED, "fewer may run")
        wait_until(lambda: daemons["none"].metrics()["fopd_bulk_bytes_pushed_total"] > 0, "the other daemon reads, too")
        self.assertEqual(self.allowed(daemons["none"]), FOMS_ALLOWED)

    def allowed(self, daemon):
        return daemon.metrics()["fopd_foms_allowed"]


@needs_held_disk
class HeldDiskSettingsTest(SettingsTestCase):
    """With a disk that answers reads when the test wants it to."""

    @contextlib.contextmanager
    def held(self, **io_sched):
        """A disk that answers no reads, and its daemon, with an object."""
        name = f"held-{len(self.daemons)}"
        place = self.directory / name
        place.mkdir()
        disk = RecordingDisk(place, self.directory / f"{name}.img", 64 << 20)
        daemon = None
        try:
            daemon = self.start(f"{name}-node", disk.path, io_sched=io_sched)
            self.put(daemon, "o", OBJECT_BYTES)
            disk.hold(READ)
            yield disk, daemon
        finally:
            disk.release()
            if daemon:
                daemon.kill()
            disk.close()

    def wait_waiting(self, daemon, count):
        wait_until(lambda: daemon.metrics()['fopd_io_sched_waiting{locality="0",type="read"}'] == count,
                   f"{count} reads wait for the disk")

    def test_depth_max(self):
        """The disk gets so many reads of a block, and the others wait."""
        for depth_max in (1, 4):
            with self.subTest(depth_max), self.held(depth_max=depth_max) as (_, daemon):
                for block in range(6):
                    self.begin(daemon, "read", "o", "--offset", block * BLOCK, "--length", BLOCK)
                self.wait_waiting(daemon, 6 - depth_max)

    def test_read_algo(self):
        """The order of reads that have waited for the disk: as they came, or by their places on it."""
        for algorithm, order in (("fifo", (0, 48, 16, 32)), ("elevator", (0, 16, 32, 48))):
            with self.subTest(algorithm), self.held(read_algo=algorithm, depth_max=1, elevator_max_wait="1h") as (disk, daemon):
                disk.reads.clear()
                reads = []
                for waiting, block in enumerate((0, 48, 16, 32)):
                    reads.append(self.begin(daemon, "read", "o", "--offset", block * BLOCK, "--length", BLOCK))
                    if waiting:
                        self.wait_waiting(daemon, waiting)
                    else:
                        wait_until(disk.is_waiting, "the disk has the first read")
                disk.release()
                self.assertEqual([each.wait(PROGRAM_SECONDS) for each in reads], [DONE] * len(reads))
                self.assertEqual([place - disk.reads[0] for place in disk.reads], [block * BLOCK for block in order])


if __name__ == "__main__":
    unittest.main()

"""What the operating system refuses: locked memory, io_uring."""

import errno
import os
import resource
import socket
import subprocess
import unittest
from pathlib import Path

from fopd_process import (CXX_FLAGS, DEADLINE_SECONDS, FOPCTL, IS_SANITIZED, OTHER_USER, SYSTEM, ProcessTestCase,
                          as_other_user, limit, limit_locked_memory, needs_root, refuse_system_call, wait_until)

# They are the same on every architecture.
IO_URING_SETUP = 425
IO_URING_REGISTER = 427
# Threads are counted by user, and tests run side by side.
THREADS_USER = OTHER_USER + 1


class CoreDumpTest(ProcessTestCase):
    """A core dump would have keys in it."""

    def core_limits(self, pid):
        limits = next(line for line in Path(f"/proc/{pid}/limits").read_text().splitlines() if "core file" in line)
        return limits.split()[4:6]

    def waiting_fopctl(self, **options):
        """One that waits for an answer of a daemon."""
        path = self.directory / "silent.sock"
        with socket.socket(socket.AF_UNIX) as silent:
            silent.bind(str(path))
            path.chmod(0o666)
            silent.listen()
            silent.settimeout(DEADLINE_SECONDS)
            process = subprocess.Popen([FOPCTL, "--admin", path, "status"], stderr=subprocess.DEVNULL, **options)
            self.addCleanup(process.wait)
            self.addCleanup(process.kill)
            self.connection, _ = silent.accept()
        self.addCleanup(self.connection.close)
        return process

    def test_of_fopd(self):
        soft, hard = resource.getrlimit(resource.RLIMIT_CORE)
        node = self.node()
        daemon = node.start_ready(preexec_fn=limit(resource.RLIMIT_CORE, hard))
        self.assertEqual(self.core_limits(daemon.pid), ["1", "1"])
        node.stop(daemon)

    def test_of_fopctl(self):
        soft, hard = resource.getrlimit(resource.RLIMIT_CORE)
        process = self.waiting_fopctl(preexec_fn=limit(resource.RLIMIT_CORE, hard))
        self.assertEqual(self.core_limits(process.pid), ["1", "1"])

    @needs_root
    def test_of_fopctl_that_may_not_change_its_limit(self):
        """Then it is not dumpable: to the kernel, what it shows of such a process is root's."""
        process = self.waiting_fopctl(**as_other_user(preexec_fn=limit(resource.RLIMIT_CORE, 0)))
        self.assertEqual(self.core_limits(process.pid), ["0", "0"])
        # The directory is the user's in any case.
        self.assertEqual(Path(f"/proc/{process.pid}").stat().st_uid, OTHER_USER)
        self.assertEqual(Path(f"/proc/{process.pid}/limits").stat().st_uid, 0)


class LockedMemoryTest(ProcessTestCase):
    def setUp(self):
        super().setUp()
        self.fopd = self.node()

    def limited(self, size_bytes):
        return as_other_user(preexec_fn=limit_locked_memory(size_bytes))

    @needs_root
    def test_too_little(self):
        self.fopd.write_config(localities={"buffers": "8MiB"}).give_to_other_user()
        self.fopd.refused(SYSTEM, "localities.buffers", "LimitMEMLOCK=", **self.limited(1 << 20))

    @needs_root
    def test_none_at_all(self):
        self.fopd.give_to_other_user()
        self.fopd.refused(SYSTEM, "LimitMEMLOCK=", **self.limited(0))

    @needs_root
    def test_too_little_for_the_second_locality(self):
        """Those that were opened already are closed again."""
        self.fopd.write_config(localities={"cores": 2, "buffers": "3MiB"}).give_to_other_user()
        self.fopd.refused(SYSTEM, "LimitMEMLOCK=", **self.limited(5 << 20))

    @needs_root
    def test_enough(self):
        self.fopd.give_to_other_user()
        daemon = self.fopd.start_ready(**self.limited(8 << 20))
        self.assertTrue(daemon.status()["localities"][0]["buffers_registered"])
        self.assertEqual(daemon.status()["warnings"], [])
        self.fopd.stop(daemon)

    @needs_root
    def test_dev_runs_all_the_same_and_says_so_once(self):
        self.fopd.write_config(localities={"cores": 2, "buffers": "8MiB"}, node={"name": "dev"})
        self.fopd.give_to_other_user()

        daemon = self.fopd.start_ready("--dev", self.fopd.path, "--listen", "tcp://127.0.0.1:0", **self.limited(1 << 20))

        self.assertEqual(len(daemon.events("fopd.daemon.unregistered_buffers")), 1)
        status = daemon.status()
        self.assertEqual([each["buffers_registered"] for each in status["localities"]], [False, False])
        self.assertEqual(len(status["warnings"]), 1, status["warnings"])
        self.assertIn("not registered", status["warnings"][0])
        self.fopd.stop(daemon)


class ShortageTest(ProcessTestCase):
    """Of files and of threads, whichever is the one too many: 71, as it is no fault of what was to be opened."""

    def setUp(self):
        super().setUp()
        self.fopd = self.node()
        self.fopd.write_config(localities={"cores": 2}, admin={"metrics": "127.0.0.1:0"})

    def refused_or_ready(self, **options):
        """True when it was ready."""
        daemon = self.fopd.start(**options)
        wait_until(lambda: "daemon.ready" in daemon.log() or daemon.process.poll() is not None, "its end or ready")
        if daemon.process.poll() is None:
            self.fopd.stop(daemon)
            return True
        self.fopd.expect_end(daemon, SYSTEM)
        lines = [each for each in daemon.log().splitlines() if "cannot" in each]
        self.assertEqual(len(lines), 1, daemon.log())
        return False

    @unittest.skipIf(IS_SANITIZED, "the sanitizers open files of their own")
    def test_open_files(self):
        # Fewer, and the program itself cannot be loaded.
        results = [self.refused_or_ready(preexec_fn=limit(resource.RLIMIT_NOFILE, count)) for count in (*range(4, 20), *range(20, 80, 10))]
        self.assertEqual(results, sorted(results))
        self.assertEqual({*results}, {False, True})

    @unittest.skipIf("-fsanitize=thread" in CXX_FLAGS, "ThreadSanitizer needs a thread of its own")
    @needs_root
    def test_threads(self):
        self.fopd.give_to_other_user(THREADS_USER)
        environment = os.environ | {"ASAN_OPTIONS": "detect_leaks=0"}  # It would need one more at the end.
        results = [self.refused_or_ready(**as_other_user(THREADS_USER, env=environment,
                                                         preexec_fn=limit(resource.RLIMIT_NPROC, count)))
                   for count in range(1, 12)]
        self.assertEqual(results, sorted(results))
        self.assertEqual({*results}, {False, True})


class MemoryTest(ProcessTestCase):
    @unittest.skipIf(IS_SANITIZED, "the sanitizers' allocators end the process when there is no memory")
    def test_buffers_larger_than_any_memory(self):
        fopd = self.node().write_config(localities={"buffers": "64GiB", "cores": 1024})
        fopd.refused(SYSTEM, "localities.buffers")


class IoUringTest(ProcessTestCase):
    def test_refused(self):
        words = {errno.EPERM: "seccomp", errno.EACCES: "seccomp", errno.ENOSYS: "Linux", errno.ENOMEM: "LimitMEMLOCK=",
                 errno.EMFILE: "Too many open files"}
        fopd = self.node()
        for number, word in words.items():
            with self.subTest(errno.errorcode[number]):
                fopd.refused(SYSTEM, "io_uring", word, preexec_fn=refuse_system_call(IO_URING_SETUP, number))

    def test_its_sysctl_is_named(self):
        problem = self.node().refused(SYSTEM, preexec_fn=refuse_system_call(IO_URING_SETUP, errno.EPERM))
        self.assertIn("kernel.io_uring_disabled", problem)

    def test_registering_refused(self):
        self.node().refused(SYSTEM, preexec_fn=refuse_system_call(IO_URING_REGISTER, errno.EPERM))

    def test_dev_needs_it_too(self):
        node = self.node()
        node.write_config(node={"name": "dev"})
        daemon = node.start("--dev", node.path, "--listen", "tcp://127.0.0.1:0", preexec_fn=refuse_system_call(IO_URING_SETUP, errno.EPERM))
        node.expect_end(daemon, SYSTEM)
        self.assertEqual(len(daemon.events("fopd.daemon.cannot_start")), 1)


if __name__ == "__main__":
    unittest.main()

"""What the operating system refuses: locked memory, io_uring."""

import errno
import unittest

from fopd_process import (IS_SANITIZED, SYSTEM, ProcessTestCase, as_other_user, limit_locked_memory, needs_root,
                          refuse_system_call)

# The same on every architecture.
IO_URING_SETUP = 425
IO_URING_REGISTER = 427


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

        daemon = self.fopd.start_ready("--dev", self.fopd.path, **self.limited(1 << 20))

        self.assertEqual(len(daemon.events("fopd.daemon.unregistered_buffers")), 1)
        status = daemon.status()
        self.assertEqual([each["buffers_registered"] for each in status["localities"]], [False, False])
        self.assertEqual(len(status["warnings"]), 1, status["warnings"])
        self.assertIn("not registered", status["warnings"][0])
        self.fopd.stop(daemon)


class MemoryTest(ProcessTestCase):
    @unittest.skipIf(IS_SANITIZED, "the sanitizers' allocators end the process when there is no memory")
    def test_buffers_larger_than_any_memory(self):
        fopd = self.node().write_config(localities={"buffers": "1TiB"})
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
        daemon = node.start("--dev", node.path, preexec_fn=refuse_system_call(IO_URING_SETUP, errno.EPERM))
        node.expect_end(daemon, SYSTEM)
        self.assertEqual(len(daemon.events("fopd.daemon.cannot_start")), 1)


if __name__ == "__main__":
    unittest.main()

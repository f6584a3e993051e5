"""What a daemon takes does not grow with what it is asked, and is little when it is asked nothing."""

import unittest

from fopd_process import IS_SANITIZED, ProcessTestCase, connect_unix, wait_until

MIB = 1 << 20
IDLE_RESIDENT_BYTES_MAX = 60 * MIB


class ResourcesTest(ProcessTestCase):
    def setUp(self):
        super().setUp()
        self.fopd = self.node()

    def start_ready(self):
        """The number of the first epoch is written then: a file and its directory are open meanwhile."""
        daemon = self.fopd.start_ready()
        written = self.fopd.data_dir / "epochs.numbers"
        wait_until(lambda: written.exists() and str(self.fopd.data_dir) not in daemon.file_targets(), "the number is written")
        return daemon

    def taken(self, daemon):
        return daemon.files_count(), len(daemon.threads())

    def wait_taken(self, daemon, before):
        """Threads of connections end a moment after their replies."""
        wait_until(lambda: self.taken(daemon) == before, f"descriptors and threads are {before} as before")

    def test_requests_leave_nothing(self):
        daemon = self.start_ready()
        before = self.taken(daemon)
        for _ in range(100):
            self.assertEqual(daemon.ask("GET", "/v1/status")[0], 200)
        for _ in range(50):
            self.assertEqual(daemon.ask("POST", "/v1/reload")[0], 200)
        for level in ("debug", "info") * 10:
            self.assertEqual(daemon.ask("POST", f"/v1/log-level?level={level}")[0], 200)
        for target in ("/nowhere", "/v1/log-level?level=loud"):
            self.assertGreaterEqual(daemon.ask("POST", target)[0], 400)
        for _ in range(20):
            connect_unix(self.fopd.socket_path).close()
        self.wait_taken(daemon, before)
        self.fopd.stop(daemon)

    def test_refused_reloads_leave_nothing(self):
        daemon = self.start_ready()
        before = self.taken(daemon)
        self.fopd.config_path.write_text("nonsense: 1\n")
        for _ in range(50):
            self.assertEqual(daemon.ask("POST", "/v1/reload")[0], 422)
        self.wait_taken(daemon, before)
        self.fopd.stop(daemon)

    def test_threads_have_names(self):
        self.fopd.write_config(localities={"cores": 2})
        daemon = self.fopd.start_ready()
        for name in ("fopd", "fopd-loc-0", "fopd-loc-1", "fopd-log", "fopd-offload"):
            wait_until(lambda name=name: name in daemon.threads(), f"a thread {name}")  # Some name themselves.
        print(", ".join(daemon.threads()), end=" ")
        self.fopd.stop(daemon)

    @unittest.skipIf(IS_SANITIZED, "the sanitizers' own memory would be counted")
    def test_resident_memory_when_idle(self):
        daemon = self.fopd.start_ready()
        resident = daemon.resident_bytes()
        print(f"{resident / MIB:.1f} MiB ", end="")
        self.assertLess(resident, IDLE_RESIDENT_BYTES_MAX)
        for _ in range(300):
            daemon.ask("POST", "/v1/reload")
        grown = daemon.resident_bytes() - resident
        print(f"and {grown / MIB:.1f} MiB more after 300 reloads ", end="")
        self.assertLess(grown, 16 * MIB)
        self.fopd.stop(daemon)


if __name__ == "__main__":
    unittest.main()

"""fabric.protect: encrypted sessions show nothing on the way, and nobody gets one that is protected less than wanted."""

import subprocess
import threading
import unittest

from fopd_process import CONFIG, DEADLINE_SECONDS, DONE, FOPCTL, PROGRAM_SECONDS, USAGE
from network_peers import Passage
from network_process import NetworkTestCase
from storage_process import NOT_ALLOWED


class Listener(Passage):
    """Keeps all that passes, of all connections."""

    def __init__(self, server):
        self._keeping = threading.Lock()
        self.heard = bytearray()
        super().__init__(server)

    def _see(self, data):
        with self._keeping:
            self.heard += data


class ProtectTest(NetworkTestCase):
    CONTENT = b"nobody on the way may read this line\n" * 5000
    NAME = "a-name-that-nobody-may-read"

    def setUp(self):
        super().setUp()
        self.use_disk("64MiB")
        self.path = self.directory / "content"
        self.path.write_bytes(self.CONTENT)

    def serve(self, protect):
        self.n.write_config(fabric={"protect": protect})
        self.start()

    def call(self, protect, *arguments, server=None):
        environment = self.environment() | {"FOPD_PROTECT": protect}
        if server:
            environment["FOPD_SERVER"] = server
        return subprocess.run([FOPCTL, "--timeout", str(DEADLINE_SECONDS), *map(str, arguments)], env=environment,
                              capture_output=True, timeout=PROGRAM_SECONDS)

    def heard_of(self, protect):
        """What passes while an object is put and read."""
        listener = Listener(self.address)
        self.addCleanup(listener.close)
        put = self.call(protect, "put", self.path, self.NAME, server=listener.address)
        self.assertEqual(put.returncode, DONE, put.stderr)
        got = self.call(protect, "get", self.NAME, "-", server=listener.address)
        self.assertEqual(got.returncode, DONE, got.stderr)
        self.assertEqual(got.stdout, self.CONTENT)
        self.assertGreater(len(listener.heard), 2 * len(self.CONTENT))
        return bytes(listener.heard)

    def test_encrypted_sessions_show_nothing(self):
        self.serve("encrypt")
        heard = self.heard_of("encrypt")
        self.assertNotIn(self.CONTENT[:20], heard)
        self.assertNotIn(self.NAME.encode(), heard)
        self.n.stop(self.daemon)

    def test_sealed_sessions_show_all(self):
        self.serve("seal")
        heard = self.heard_of("seal")
        self.assertIn(self.CONTENT[:20], heard)
        self.assertIn(self.NAME.encode(), heard)
        self.n.stop(self.daemon)

    def test_who_wants_the_other_protection_is_refused(self):
        for served, wanted, words in (("encrypt", "seal", "ask for it with --protect encrypt"),
                                      ("seal", "encrypt", "this server does not encrypt")):
            with self.subTest(served=served):
                self.serve(served)
                refused = self.call(wanted, "ping", "--count", "1")
                self.assertEqual(refused.returncode, NOT_ALLOWED, refused.stderr)
                self.assertIn(words.encode(), refused.stderr)
                self.assertIn(words,
                              self.daemon.wait_event("fopd.fabric.session_refused")[0]["reason"])
                self.assertEqual(self.call(served, "ping", "--count", "1").returncode, DONE)
                self.n.stop(self.daemon)

    def test_only_tcp_is_encrypted(self):
        self.n.write_config(fabric={"listen": ["ofi+tcp://127.0.0.1:0"], "protect": "encrypt"})
        daemon = self.n.start()
        self.n.expect_end(daemon, CONFIG)
        self.assertRegex(daemon.log(), "encrypt with ofi\\+tcp://.*listen at tcp://, which alone can be encrypted")
        self.address = ""
        refused = self.call("encrypt", "ping", "--count", "1", server="ofi+tcp://127.0.0.1:1")
        self.assertEqual(refused.returncode, USAGE)
        self.assertIn(b"only tcp:// can be encrypted", refused.stderr)

    def test_encryption_can_be_chosen_by_nothing_but_its_name(self):
        self.serve("seal")
        self.assertEqual(self.call("secret", "ping").returncode, USAGE)
        self.n.stop(self.daemon)


if __name__ == "__main__":
    unittest.main()

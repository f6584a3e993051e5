"""The key of the cluster: a file that is missing, malformed or open to others stops the start, and is never logged."""

import os
import unittest

from fopd_process import GOOD_KEY, KEY_FILE, ProcessTestCase, as_other_user, needs_root


class KeyFileTest(ProcessTestCase):
    def setUp(self):
        super().setUp()
        self.fopd = self.node()
        self.key = self.fopd.path / "peer.key"
        self.fopd.write_config(auth={"peer_key": str(self.key)})

    def write_key(self, text, mode=0o600):
        self.key.write_text(text)
        self.key.chmod(mode)

    def assert_refused(self, *words, **options):
        self.fopd.refused(KEY_FILE, self.key, *words, **options)

    def assert_taken(self):
        daemon = self.fopd.start_ready()
        self.fopd.stop(daemon)
        self.assertNotIn(GOOD_KEY[:16], daemon.log())

    def test_missing(self):
        self.assert_refused("No such file")

    def test_missing_principals(self):
        """The message says how the file is made."""
        self.key = self.fopd.path / "missing.yaml"
        self.fopd.write_config(auth={"principals": str(self.key), "peer_key": "none"})
        self.assert_refused("No such file or directory; fopctl key create NAME makes it")

    def test_directory(self):
        self.key.mkdir()
        self.assert_refused("not a regular file")

    def test_fifo_does_not_hang(self):
        os.mkfifo(self.key, 0o600)
        self.assert_refused("not a regular file")

    def test_malformed(self):
        bad_keys = {"empty": "", "short": GOOD_KEY[:-1], "long": GOOD_KEY + "0", "two lines": GOOD_KEY + "\n\n",
                    "no digits": GOOD_KEY[:-1] + "g", "words": "correct horse battery staple\n",
                    "NUL": GOOD_KEY[:-1] + "\0", "endless": GOOD_KEY * 1000}
        for name, text in bad_keys.items():
            with self.subTest(name):
                self.write_key(text)
                self.assert_refused("64 hexadecimal digits")
                for daemon in self.daemons:
                    self.assertNotIn(GOOD_KEY[:16], daemon.log())
                    self.assertNotIn("battery", daemon.log())

    def test_open_to_others(self):
        for mode in (0o644, 0o604, 0o660, 0o602, 0o666):
            with self.subTest(oct(mode)):
                self.write_key(GOOD_KEY, mode)
                self.assert_refused(f"{mode:04o}", "chmod 0600")

    def test_a_list_changes_while_it_runs(self):
        self.write_key(GOOD_KEY + "\n")
        daemon = self.fopd.start_ready()
        following = self.fopd.path / "next.key"
        following.write_text("ab" * 32 + "\n")
        following.chmod(0o600)
        for keys in ([following, self.key], [following]):
            self.fopd.write_config(auth={"peer_key": [str(each) for each in keys]})
            done = daemon.ctl("reload")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(done.stdout.count("auth.peer_key"), 1, done.stdout)
        following.chmod(0o644)
        self.assertIn("next.key", daemon.ctl("reload").stderr)
        self.fopd.stop(daemon)

    def test_good(self):
        self.write_key(GOOD_KEY + "\n")
        self.assert_taken()

    def test_good_in_capitals_without_a_newline(self):
        self.write_key(GOOD_KEY.upper())
        self.assert_taken()

    def test_symlink_to_a_good_one(self):
        elsewhere = self.directory / "elsewhere.key"
        self.write_key(GOOD_KEY)
        self.key.rename(elsewhere)
        self.key.symlink_to(elsewhere)
        self.assert_taken()

    @needs_root
    def test_unreadable(self):
        self.fopd.give_to_other_user()
        self.write_key(GOOD_KEY)
        self.assert_refused("Permission denied", **as_other_user())


if __name__ == "__main__":
    unittest.main()

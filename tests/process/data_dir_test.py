"""The data directory: what cannot be used is refused, and one fopd at a time has it."""

import os
import unittest

from fopd_process import DATA_DIR, IN_USE, LOCK_NAME, ProcessTestCase, as_other_user, can_mount, needs_root, wait_until


class DataDirTest(ProcessTestCase):
    def setUp(self):
        super().setUp()
        self.fopd = self.node()
        self.data_dir = self.fopd.data_dir
        self.lock = self.data_dir / LOCK_NAME

    def second_node(self):
        """Another node on the same data directory."""
        return self.node("second").write_config(node={"data_dir": str(self.data_dir)})

    def test_missing(self):
        self.data_dir.rmdir()
        self.fopd.refused(DATA_DIR, self.data_dir, "No such file", "create it")

    def test_a_file(self):
        self.data_dir.rmdir()
        self.data_dir.write_text("mine")
        self.fopd.refused(DATA_DIR, self.data_dir, "ot a directory")
        self.assertEqual(self.data_dir.read_text(), "mine")

    def test_below_a_file(self):
        self.fopd.write_config(node={"data_dir": f"{self.fopd.config_path}/data"})
        self.fopd.refused(DATA_DIR, "Not a directory")

    @needs_root
    def test_not_writable(self):
        self.fopd.give_to_other_user()
        self.data_dir.chmod(0o555)
        self.fopd.refused(DATA_DIR, self.data_dir, "Permission denied", **as_other_user())

    @needs_root
    def test_not_searchable(self):
        self.fopd.give_to_other_user()
        self.data_dir.chmod(0o000)
        self.fopd.refused(DATA_DIR, self.data_dir, "Permission denied", **as_other_user())

    @unittest.skipUnless(can_mount(), "mounts are not allowed here")
    def test_read_only_file_system(self):
        self.fopd.refused(DATA_DIR, self.data_dir, "Read-only file system", program=(
            "unshare", "--mount", "sh", "-c", 'mount -t tmpfs -o ro none "$0" && exec "$@"', self.data_dir))

    @unittest.skipUnless(can_mount(), "mounts are not allowed here")
    def test_full_file_system(self):
        script = 'mount -t tmpfs -o size=64k none "$0" && { head -c 1M /dev/zero > "$0/ballast" 2>&-; "$@"; code=$?; ' \
                 'ls "$0"; exit $code; }'
        listing = self.directory / "listing"
        with listing.open("w") as output:
            self.fopd.refused(DATA_DIR, self.data_dir, "No space left", stdout=output,
                              program=("unshare", "--mount", "sh", "-c", script, self.data_dir))
        self.assertEqual(listing.read_text(), "ballast\n")

    def test_in_use_names_the_holder(self):
        first = self.fopd.start_ready()
        self.assertEqual(self.lock.read_text(), f"{first.pid}\n")

        self.second_node().refused(IN_USE, self.data_dir, f"pid {first.pid}", left=[])

        self.assertEqual(self.lock.read_text(), f"{first.pid}\n")
        self.assertEqual(first.status()["state"], "ready")
        self.fopd.stop(first)

    def test_of_two_started_at_once_one_wins(self):
        nodes = [self.fopd, self.second_node()]
        for _ in range(10):
            daemons = [each.start() for each in nodes]
            loser = self.first_to_end(daemons)
            winner = daemons[1 - daemons.index(loser)]
            self.assertEqual(loser.wait_end(), IN_USE, loser.log())
            winner.wait_ready()
            self.assertEqual(self.lock.read_text(), f"{winner.pid}\n")
            nodes[daemons.index(winner)].stop(winner)

    def first_to_end(self, daemons):
        return wait_until(lambda: next((each for each in daemons if each.process.poll() is not None), None),
                          "one of two ends")

    def test_the_lock_of_a_killed_process_is_taken_over(self):
        killed = self.fopd.start_ready()
        killed.kill()
        self.assertEqual(self.lock.read_text(), f"{killed.pid}\n")

        daemon = self.fopd.start_ready()

        self.assertEqual(self.lock.read_text(), f"{daemon.pid}\n")
        self.fopd.stop(daemon)

    def test_a_lock_file_of_anything(self):
        for text in ("", "no pid", "9" * 1000, "\0" * 10):
            with self.subTest(text[:10]):
                self.lock.write_text(text)
                self.fopd.stop(self.fopd.start_ready())

    def test_a_symlink_as_lock_file_is_not_followed(self):
        target = self.directory / "precious"
        target.write_text("precious\n")
        self.lock.symlink_to(target)

        self.fopd.refused(DATA_DIR, self.lock, "not a regular file", left=[self.lock])

        self.assertEqual(target.read_text(), "precious\n")
        self.assertTrue(self.lock.is_symlink())

    def test_a_fifo_as_lock_file_is_kept(self):
        os.mkfifo(self.lock)
        self.fopd.refused(DATA_DIR, self.lock, "not a regular file", left=[self.lock])
        self.assertTrue(self.lock.is_fifo())

    def test_a_directory_as_lock_file_is_kept(self):
        self.lock.mkdir()
        self.fopd.refused(DATA_DIR, self.lock, "not a regular file", left=[self.lock])
        self.assertTrue(self.lock.is_dir())

    def test_a_symlink_as_data_directory(self):
        link = self.directory / "link"
        link.symlink_to(self.data_dir)
        self.fopd.write_config(node={"data_dir": str(link)})
        self.fopd.stop(self.fopd.start_ready())


if __name__ == "__main__":
    unittest.main()

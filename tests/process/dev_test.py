"""fopd --dev: runs without a configuration, on what it makes itself, and keeps what was edited."""

import os
import re
import signal
import socket
import stat
import unittest

from fopd_process import (CONFIG, DATA_DIR, DONE, FOPCTL, FOPD, IN_USE, OTHER_USER, ProcessTestCase, as_other_user,
                          limit_file_size, limit_locked_memory, needs_root, run_fopd, run_program, wait_until)


class DevTest(ProcessTestCase):
    def setUp(self):
        super().setUp()
        self.dir = self.directory / "dev"

    def start(self, directory=None, *, ready=True, **options):
        """With a metrics port of its own, as 9420 may be taken."""
        directory = directory or self.dir
        node = self.node(f"log{len(self.daemons)}")  # For the log alone.
        daemon = node.start("--dev", directory, "--metrics", "127.0.0.1:0", "--listen", "tcp://127.0.0.1:0", **options)
        daemon.socket_path = self.dir / "admin.sock"
        if ready:
            wait_until(lambda: "fopd.daemon.ready" in daemon.log() or daemon.process.poll() is not None, "ready")
            self.assertIn("fopd.daemon.ready", daemon.log())
        return daemon

    def stop(self, daemon):
        daemon.signal(signal.SIGTERM)
        self.assertEqual(daemon.wait_end(), DONE, daemon.log())

    def run_once(self, directory=None, **options):
        daemon = self.start(directory, **options)
        self.stop(daemon)
        return daemon

    def assert_refused(self, directory, *words, **options):
        daemon = self.start(directory, ready=False, **options)
        self.assertEqual(daemon.wait_end(), DATA_DIR, daemon.log())
        self.assertRegex(daemon.log(), r"^fopd: --dev: [^\n]+\n$")
        for word in words:
            self.assertIn(word, daemon.log())

    def ctl_by_env_file(self, directory, *arguments, **options):
        """As a person does: read env.sh with a plain sh, then fopctl without an option."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith("FOPD_")}
        return run_program("sh", "-euc", '. "$1"; shift; exec "$@"', "sh", directory / "env.sh", FOPCTL, *arguments,
                           env=environment, **options)

    def test_what_the_first_run_makes(self):
        daemon = self.start()
        made = {str(each.relative_to(self.dir)) for each in self.dir.rglob("*")}
        made = {re.sub("[0-9a-f]{32}", "ID", each) for each in made}
        # The library is opened, and the first epoch begins, after the node is ready.
        made = {each for each in made if not each.startswith(("vtl0", "data/media", "data/epochs.numbers"))}
        self.assertEqual(made, {"fopd.yaml", "peer.key", "client.key", "issuer.key", "issuer.pub",
                                "principals.yaml", "env.sh", "data",
                                "data/fopd.lock", "data/node.id", "data/slots", "data/index", "data/index/ID",
                                "data/index/ID/index.mdb", "data/index/ID/index.mdb-lock", "data/names",
                                "data/names/0", "data/names/0/index.mdb", "data/names/0/index.mdb-lock",
                                "admin.sock", "d0.img", "d1.img"})
        self.assertEqual([(each["name"], each["pool"], each["state"]) for each in daemon.status()["devices"]],
                         [("d0", "fast", "good"), ("d1", "fast", "good")])
        self.assertEqual(stat.S_IMODE(self.dir.stat().st_mode), 0o700)
        self.assertEqual(stat.S_IMODE((self.dir / "peer.key").stat().st_mode), 0o600)
        key = (self.dir / "peer.key").read_text()
        self.assertRegex(key, r"^[0-9a-f]{64}\n$")
        self.assertNotIn(key[:16], daemon.log())
        self.stop(daemon)

    def test_the_file_names_a_command_that_shows_all_keys(self):
        directory = self.directory / "it's a dir"
        self.run_once(directory)
        text = (directory / "fopd.yaml").read_text()
        command = re.search("^#     fopd (.*)$", text, re.M)[1]
        done = run_program("sh", "-euc", f'exec "$1" {command}', "sh", FOPD)
        self.assertEqual((done.returncode, done.stderr), (DONE, ""))
        self.assertIn("\nlrs:", done.stdout)

    def test_two_keys_differ(self):
        self.run_once()
        self.run_once(self.directory / "other")
        self.assertNotEqual((self.dir / "peer.key").read_text(), (self.directory / "other" / "peer.key").read_text())

    def test_the_second_run_keeps_edits(self):
        self.run_once()
        config = self.dir / "fopd.yaml"
        config.write_text(config.read_text() + "log: { level: debug }\n")
        before = {each: (self.dir / each).read_text() for each in ("fopd.yaml", "peer.key", "env.sh")}

        daemon = self.start()

        self.assertEqual(daemon.status()["log_level"], "debug")
        self.assertEqual({each: (self.dir / each).read_text() for each in before}, before)
        self.stop(daemon)

    def test_a_bad_edit_is_refused_with_its_place(self):
        self.run_once()
        (self.dir / "fopd.yaml").write_text("nonsense: 1\n")
        daemon = self.start(ready=False)
        self.assertEqual(daemon.wait_end(), CONFIG)
        self.assertIn(f"{self.dir}/fopd.yaml:1:1: nonsense", daemon.log())

    def test_env_file(self):
        for name in ("plain", "with spaces", "it's", '"quoted"', "$HOME", "a;b", "back\\slash", "`id`", "ümläut", "#hash",
                     "%d", "*", "- dash", "{ a: b }", "'"):
            with self.subTest(name):
                self.dir = self.directory / name
                daemon = self.start()
                done = self.ctl_by_env_file(self.dir, "--json", "status")
                self.assertEqual(done.returncode, DONE, done.stderr)
                self.assertIn(f'"pid":{daemon.pid}', done.stdout.replace(" ", ""))
                self.stop(daemon)

    def test_what_no_configuration_can_name_is_refused(self):
        for name in (b"new\nline", b"tab\there", b"\x7f", b"\x1b[31m", b"\xff", "\u202e".encode(), "\u0085".encode()):
            with self.subTest(name):
                directory = os.fsencode(self.directory) + b"/" + name
                self.assert_refused(directory, "no configuration file can name it")
                self.assertRegex(self.daemons[-1].log(), r"^[ -~]+\n$")
                self.assertFalse(os.path.exists(directory))

    def test_relative_directory(self):
        daemon = self.start("dev", cwd=self.directory)
        self.assertEqual(self.ctl_by_env_file(self.dir, "status", cwd="/").returncode, DONE)
        self.stop(daemon)

    def test_trailing_slash_and_dots(self):
        for name in ("dev/", "./dev", "x/../dev", "dev/."):
            with self.subTest(name):
                self.start_in_and_stop(name)

    def start_in_and_stop(self, name):
        daemon = self.start(name, cwd=self.directory)
        self.assertEqual(daemon.status()["state"], "ready")
        self.stop(daemon)

    def test_default_directory(self):
        environment = {"XDG_STATE_HOME": str(self.directory)}
        node = self.node("log")
        daemon = node.start("--metrics", "127.0.0.1:0", "--listen", "tcp://127.0.0.1:0", "--dev", env=environment)
        wait_until(lambda: "fopd.daemon.ready" in daemon.log(), "ready")
        self.assertTrue((self.directory / "fopd-dev" / "env.sh").is_file())
        self.stop(daemon)

    def test_no_environment_at_all(self):
        self.run_once(env={})

    def test_a_file(self):
        self.dir.write_text("mine")
        self.assert_refused(self.dir, str(self.dir), "ot a directory")
        self.assertEqual(self.dir.read_text(), "mine")

    def test_below_a_file(self):
        self.dir.write_text("mine")
        self.assert_refused(self.dir / "dev", "Not a directory")

    def test_path_too_long_for_a_socket(self):
        self.dir = self.directory / ("d" * 120)
        daemon = self.start(ready=False)
        self.assertEqual(daemon.wait_end(), CONFIG, daemon.log())
        self.assertIn("admin.socket: it has ", daemon.log())
        self.assertIn("at most 107", daemon.log())

    def test_twice_at_once(self):
        first = self.start()
        (self.dir / "env.sh").write_text("# of the first\n")
        second = self.start(ready=False)
        self.assertEqual(second.wait_end(), IN_USE, second.log())
        self.assertIn(f"pid {first.pid}", second.log())
        self.assertEqual((self.dir / "env.sh").read_text(), "# of the first\n")
        self.assertEqual(first.status()["state"], "ready")
        self.stop(first)

    @needs_root
    def test_as_an_ordinary_user(self):
        home = self.directory / "home"
        home.mkdir()
        os.chown(home, OTHER_USER, OTHER_USER)
        self.dir = home / "dev"
        daemon = self.start(**as_other_user(preexec_fn=limit_locked_memory(1 << 20)))
        status = daemon.status()
        self.assertEqual(status["state"], "ready")
        self.assertEqual(len(status["warnings"]), 1)
        self.assertEqual(daemon.log().count("fopd.daemon.unregistered_buffers"), 1)
        self.stop(daemon)

    @needs_root
    def test_not_writable(self):
        self.assert_refused(self.dir, str(self.dir), "Permission denied", **as_other_user())

    @needs_root
    def test_a_named_directory_of_another_user_is_not_used(self):
        self.dir.mkdir()
        self.assert_refused(self.dir, str(self.dir), "belongs to another user", **as_other_user())
        self.assertEqual(list(self.dir.iterdir()), [])

    def test_a_directory_others_can_write_into_is_not_used(self):
        self.dir.mkdir()
        for mode in (0o775, 0o757, 0o1777):
            with self.subTest(oct(mode)):
                self.dir.chmod(mode)
                self.assert_refused(self.dir, str(self.dir), "others can write into it")
                self.assertEqual(list(self.dir.iterdir()), [])

    def test_a_link_to_a_directory_of_ours(self):
        target = self.directory / "target"
        target.mkdir(mode=0o700)
        self.dir.symlink_to(target)
        self.run_once()
        self.assertTrue((target / "env.sh").is_file())

    def test_a_short_write_is_said_with_its_reason(self):
        done = run_fopd("--dev", self.dir, preexec_fn=limit_file_size(100))
        self.assertEqual(done.returncode, DATA_DIR)
        self.assertEqual(done.stderr, f"fopd: --dev: {self.dir}/principals.yaml.new: File too large\n")
        self.assertEqual(sorted(each.name for each in self.dir.iterdir()), ["client.key", "data", "issuer.key", "issuer.pub", "peer.key"])

    @needs_root
    def test_a_default_directory_of_another_user_is_not_used(self):
        """/var/tmp is everybody's: who was there first must not choose the configuration and the key of the next."""
        planted = self.directory / "fopd-dev"
        planted.mkdir(mode=0o777)
        planted.chmod(0o777)
        os.chown(planted, OTHER_USER, OTHER_USER)
        node = self.node("log")
        daemon = node.start("--metrics", "127.0.0.1:0", "--listen", "tcp://127.0.0.1:0", "--dev", env={"XDG_STATE_HOME": str(self.directory)})
        self.assertEqual(daemon.wait_end(), DATA_DIR, daemon.log())
        self.assertIn("belongs to another user", daemon.log())
        self.assertEqual(list(planted.iterdir()), [])


if __name__ == "__main__":
    unittest.main()

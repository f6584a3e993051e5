"""A node with disks, and fopctl as its users have it."""

import hashlib
import os
import random
import re
import shutil
import signal
import subprocess

from fopd_process import DONE, FOPCTL, IS_ROOT, OTHER_USER, PROGRAM_SECONDS, USAGE, ProcessTestCase, as_other_user, wait_until

REFUSED, NOT_FOUND, BAD_DATA, TRY_LATER, NOT_ALLOWED = 1, 66, 74, 75, 77
KIB, MIB = 1 << 10, 1 << 20
SECONDS = PROGRAM_SECONDS


def content(size, seed=0):
    return random.Random(f"{size}-{seed}").randbytes(size)


def digest(data):
    return hashlib.sha256(data).hexdigest()


class StorageTestCase(ProcessTestCase):
    """One daemon, as `fopd --dev` makes it."""

    def setUp(self):
        super().setUp()
        self.dir = self.directory / "dev"
        self.state = self.directory / "state"
        self.starts_count = 0
        self.address = "tcp://127.0.0.1:0"
        self.start()

    def start(self):
        """As `fopd --dev` does, at the same address each time."""
        self.starts_count += 1
        node = self.node(f"log{self.starts_count}")
        self.daemon = node.start("--dev", self.dir, "--metrics", "127.0.0.1:0", "--listen", self.address)
        self.daemon.socket_path = self.dir / "admin.sock"
        wait_until(lambda: "fopd.daemon.ready" in self.daemon.log() or self.daemon.process.poll() is not None, "ready")
        self.assertIn("fopd.daemon.ready", self.daemon.log())
        variables = (line.removeprefix("export ").split("=", 1) for line in
                     (self.dir / "env.sh").read_text().splitlines() if line.startswith("export "))
        self.environment = os.environ | {name: value.strip("'") for name, value in variables}
        self.address = re.search("fopd.fabric.listening address=(tcp://[0-9.]+:[0-9]+)", self.daemon.log())[1]
        self.environment["FOPD_SERVER"] = self.address
        self.environment["XDG_STATE_HOME"] = str(self.state)

    def kill_and_start(self):
        self.daemon.kill()
        self.start()

    def stop(self):
        self.daemon.signal(signal.SIGTERM)
        self.assertEqual(self.daemon.wait_end(), DONE, self.daemon.log())

    def start_anew(self, size="64MiB"):
        """With disks of this size, and nothing on them."""
        self.stop()
        config = self.dir / "fopd.yaml"
        config.write_text(config.read_text().replace("8GiB", size))
        self.forget_disks()
        self.start()

    def forget_disks(self):
        for image in self.dir.glob("*.img"):
            image.unlink()
        shutil.rmtree(self.dir / "data")
        (self.dir / "data").mkdir(mode=0o700)

    def tearDown(self):
        if self.daemon.process.poll() is None:
            self.stop()

    def ctl_bytes(self, *arguments, data=b"", **options):
        """With bytes in and out."""
        options = {"env": self.environment, "timeout": SECONDS} | options
        return subprocess.run([FOPCTL, *map(str, arguments)], input=data, capture_output=True, **options)

    def ctl(self, *arguments, data=b"", exit_code=DONE, **options):
        """Runs it, and returns what it printed; it must end so."""
        done = self.ctl_bytes(*arguments, data=data, **options)
        self.assertEqual(done.returncode, exit_code, done.stderr.decode(errors="replace"))
        self.assert_no_report(done.stderr.decode(errors="replace"))
        return done.stdout

    def refused(self, exit_code, words, *arguments, **options):
        """It must end so, print nothing, and say these words."""
        done = self.ctl_bytes(*arguments, **options)
        text = done.stderr.decode(errors="replace")
        self.assertEqual(done.returncode, exit_code, text)
        self.assertEqual(done.stdout, b"")
        for word in words:
            self.assertIn(word, text)
        if exit_code != USAGE:
            self.assertRegex(text, r"^fopctl: [^\n]+\n$")

    def as_who_may_not_read_all(self):
        """Root may read everything, so it becomes somebody else, with a key of their own."""
        if not IS_ROOT:
            return {}
        key = self.directory / "key"
        shutil.copy(self.environment["FOPD_KEY"], key)
        os.chown(key, OTHER_USER, OTHER_USER)
        key.chmod(0o600)
        # Nor may they write where root keeps its journals.
        return as_other_user(env=self.environment | {"FOPD_KEY": str(key), "XDG_STATE_HOME": "", "HOME": ""})

    def put(self, name, data, *options, **others):
        self.ctl("put", "-", name, *options, data=data, **others)

    def get(self, name):
        return self.ctl("get", name, "-")

    def start_ctl(self, *arguments):
        """One that goes on; it is killed with the test."""
        process = subprocess.Popen([FOPCTL, *map(str, arguments)], env=self.environment, stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)

        def end():
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout, process.stderr):
                pipe.close()
        self.addCleanup(end)
        return process

    def names(self, *arguments):
        return self.ctl("ls", *arguments).decode().splitlines()

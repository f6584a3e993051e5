"""The plug-in for libfabric, and with it libfabric, is loaded by a process that is given an address for it, and by no
other: its start takes 0.3 s of each process. A process that cannot use the plug-in says why."""

import os
import shutil
import subprocess
import sys
import unittest
from pathlib import Path

from fabric_test import FabricTestCase
from fopd_process import (DEADLINE_SECONDS, FOPCTL, FOPD, IS_ROOT, IS_SANITIZED, OTHER_USER, SCHEME, SYSTEM, copied, plug_in_of,
                          run_program, wait_until)
from storage_process import REFUSED

LIBRARIES = ("libfabric", "fopd-ofi")
# Where a program without a plug-in of its own finds one, if the package is installed.
IS_INSTALLED = any(Path("/usr/lib").glob("*/fopd/fopd-ofi.so"))
# A program that has made calls with libfopd, until its input ends.
LIBFOPD_PROGRAM = """
import sys
from object_library import Objects
objects = Objects(sys.argv[1], sys.argv[2], float(sys.argv[3]))
objects.put("a", b"some bytes")
print("called", flush=True)
sys.stdin.read()
objects.close()
"""


def mapped_files(pid):
    lines = Path(f"/proc/{pid}/maps").read_text().splitlines()
    return {Path(fields[5]).name for fields in (line.split(maxsplit=5) for line in lines) if len(fields) > 5}


def has_library(pid, name):
    return any(each.startswith(name) for each in mapped_files(pid))


def loaded(pid):
    return [each for each in LIBRARIES if has_library(pid, each)]


@unittest.skipUnless(SCHEME == "tcp", "for addresses tcp:// only")
class LibfabricTest(FabricTestCase):
    def listen_at(self, *schemes):
        self.n.write_config(fabric={"listen": [f"{scheme}://127.0.0.1:0" for scheme in schemes]})
        self.start()

    def run_beside(self, *arguments):
        program = subprocess.Popen(arguments, env=self.environment(), text=True, stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE)
        self.addCleanup(program.communicate)
        self.addCleanup(program.kill)
        return program

    def test_nobody_loads_it_for_tcp(self):
        self.listen_at("tcp")
        pings = self.run_beside(FOPCTL, "ping", "--interval", "0.05")
        wait_until(lambda: "seq=1 " in pings.stdout.readline(), "an answer")
        self.assertEqual(loaded(pings.pid), [])
        self.assertEqual(loaded(self.daemon.pid), [])
        self.n.stop(self.daemon)

    @unittest.skipIf(IS_SANITIZED, "Python cannot load a library with a sanitizer in it")
    def test_libfopd_does_not_load_it_for_tcp(self):
        self.listen_at("tcp")
        program = self.program_with_libfopd()
        self.assertTrue(has_library(program.pid, "libfopd"))
        self.assertEqual(loaded(program.pid), [])
        self.n.stop(self.daemon)

    def program_with_libfopd(self):
        program = self.run_beside(sys.executable, "-B", "-c", LIBFOPD_PROGRAM, self.address, str(self.key_path),
                                  str(DEADLINE_SECONDS))
        self.assertEqual(program.stdout.readline(), "called\n")
        return program

    def test_an_address_loads_it(self):
        self.listen_at("ofi+tcp")
        self.assertEqual(loaded(self.daemon.pid), [*LIBRARIES])
        pings = self.run_beside(FOPCTL, "ping", "--interval", "0.05")
        wait_until(lambda: "seq=1 " in pings.stdout.readline(), "an answer")
        self.assertEqual(loaded(pings.pid), [*LIBRARIES])
        self.n.stop(self.daemon)

    @unittest.skipIf(IS_SANITIZED, "Python cannot load a library with a sanitizer in it")
    def test_libfopd_loads_it_for_an_address(self):
        """The library hides its own symbols, and Python those of the library."""
        self.listen_at("ofi+tcp")
        self.assertEqual(loaded(self.program_with_libfopd().pid), [*LIBRARIES])
        self.n.stop(self.daemon)


@unittest.skipUnless(SCHEME == "tcp", "for addresses tcp:// only")
class PlugInTest(FabricTestCase):
    """Copies of the programs, with another plug-in beside them or none."""

    def setUp(self):
        super().setUp()
        self.prefix = self.directory / "prefix"
        self.prefix.mkdir()
        self.fopd, self.fopctl = (copied(each, self.prefix) for each in (FOPD, FOPCTL))
        self.n.write_config(fabric={"listen": ["ofi+tcp://127.0.0.1:0"]})

    def refused(self, *words):
        """Both programs say these words, which end with the name of the package to install."""
        problem = self.n.refused(SYSTEM, "the network:", *words, executable=self.fopd)
        asked = run_program(self.fopctl, "--server", "ofi+tcp://127.0.0.1:1", "ping", "--count", "1")
        self.assertEqual(asked.returncode, REFUSED, asked.stderr)
        for word in words:
            self.assertIn(word, asked.stderr)
        return problem

    def place(self, file, folder="lib/fopd"):
        target = self.prefix / folder
        target.mkdir(parents=True)
        shutil.copy(file, target / "fopd-ofi.so")

    @unittest.skipIf(IS_INSTALLED, "the package fopd-ofi is installed")
    def test_without_it_they_name_its_package(self):
        self.refused("fopd-ofi.so is missing", "package fopd-ofi")

    def test_it_is_found_where_the_package_has_it(self):
        """In the folder of the system's architecture, from wherever the programs are."""
        self.place(plug_in_of(FOPD)[0], f"lib/{os.uname().machine}-linux-gnu/fopd")
        daemon = self.n.start_ready(executable=self.fopd)
        address = daemon.address
        self.assertEqual(loaded(daemon.pid), [*LIBRARIES])
        asked = run_program(self.fopctl, "--server", address, "--key", self.key_path, "ping", "--count", "1")
        self.assertEqual(asked.returncode, 0, asked.stderr)
        self.n.stop(daemon)

    @unittest.skipUnless("OTHER_BUILD_PLUG_IN" in os.environ, "not started by CTest")
    def test_one_of_another_build_is_refused(self):
        self.place(os.environ["OTHER_BUILD_PLUG_IN"])
        self.refused("fopd-ofi.so is of another build", "package fopd-ofi")
        failed = self.n.test.daemons[-1].events("fopd.fabric.plug_in_failed")
        self.assertEqual([each["file"] for each in failed], [str(self.prefix / "lib/fopd/fopd-ofi.so")])
        self.assertRegex(failed[0]["reason"], r"^0\.0\.9 0123456789abcdef, not \d+\.\d+\.\d+ [0-9a-f]{16}$")

    def test_a_file_that_is_no_library_is_refused(self):
        self.place(__file__)
        self.refused("fopd-ofi.so cannot be loaded", "package fopd-ofi")
        failed = self.n.test.daemons[-1].events("fopd.fabric.plug_in_failed")
        self.assertEqual([each["file"] for each in failed], [str(self.prefix / "lib/fopd/fopd-ofi.so")])
        self.assertIn("ELF", failed[0]["reason"])

    def test_one_that_others_may_write_is_refused(self):
        self.place(plug_in_of(FOPD)[0])
        folder = self.prefix / "lib/fopd"
        for path, mode in ((folder, 0o777), (folder / "fopd-ofi.so", 0o664), (folder / "fopd-ofi.so", 0o646)):
            with self.subTest(path=path, mode=mode):
                usual = path.stat().st_mode & 0o777
                path.chmod(mode)
                self.refused("fopd-ofi.so or its folder can be written by others", "package fopd-ofi")
                failed = self.n.test.daemons[-1].events("fopd.fabric.plug_in_failed")
                self.assertEqual([each["reason"] for each in failed], [f"{path} can be written by others than its owner"])
                path.chmod(usual)

    @unittest.skipUnless(IS_ROOT, "needs root")
    def test_one_of_another_user_is_refused(self):
        self.place(plug_in_of(FOPD)[0])
        os.chown(self.prefix / "lib/fopd/fopd-ofi.so", OTHER_USER, OTHER_USER)
        self.refused("fopd-ofi.so or its folder can be written by others")
        # Who owns the program may change it anyway.
        for program in (self.fopd, self.fopctl):
            os.chown(program, OTHER_USER, OTHER_USER)
        daemon = self.n.start_ready(executable=self.fopd)
        self.assertEqual(loaded(daemon.pid), [*LIBRARIES])
        self.n.stop(daemon)

    def test_a_daemon_at_tcp_needs_none(self):
        self.n.write_config(fabric={"listen": ["tcp://127.0.0.1:0"]})
        daemon = self.n.start_ready(executable=self.fopd)
        self.n.stop(daemon)


if __name__ == "__main__":
    unittest.main()

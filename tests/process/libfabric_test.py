"""libfabric is loaded by whom an address asks to, and by nobody else: its start takes 0.3 s of each process."""

import subprocess
import sys
import unittest
from pathlib import Path

from fabric_test import FabricTestCase
from fopd_process import DEADLINE_SECONDS, FOPCTL, IS_SANITIZED, SCHEME, wait_until

LIBRARY = "libfabric"
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


def has_library(pid, name=LIBRARY):
    return any(each.startswith(name) for each in mapped_files(pid))


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
        self.assertFalse(has_library(pings.pid))
        self.assertFalse(has_library(self.daemon.pid))
        self.n.stop(self.daemon)

    @unittest.skipIf(IS_SANITIZED, "Python cannot load a library with a sanitizer in it")
    def test_libfopd_does_not_load_it_for_tcp(self):
        self.listen_at("tcp")
        program = self.run_beside(sys.executable, "-B", "-c", LIBFOPD_PROGRAM, self.address, str(self.key_path),
                                  str(DEADLINE_SECONDS))
        self.assertEqual(program.stdout.readline(), "called\n")
        self.assertTrue(has_library(program.pid, "libfopd"))
        self.assertFalse(has_library(program.pid))
        self.n.stop(self.daemon)

    def test_an_address_loads_it(self):
        """So that the other tests would notice."""
        self.listen_at("ofi+tcp")
        self.assertTrue(has_library(self.daemon.pid))
        pings = self.run_beside(FOPCTL, "ping", "--interval", "0.05")
        wait_until(lambda: "seq=1 " in pings.stdout.readline(), "an answer")
        self.assertTrue(has_library(pings.pid))
        self.n.stop(self.daemon)


if __name__ == "__main__":
    unittest.main()

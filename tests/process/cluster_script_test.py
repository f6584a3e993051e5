"""scripts/cluster.py, which scripts/quickstart --cluster runs: its daemons find each other, answer the commands that it prints, and
stop with it. The program is the script's own, with ports that are free instead of those that people can remember."""

import json
import signal
import socket
import subprocess
import sys
import unittest
from pathlib import Path

from epochs_process import free_ports
from etcd_process import needs_etcd
from fopd_process import PROGRAM_SECONDS, ProcessTestCase, wait_until
from page_shell import Shell, environment_with, make_programs

SCRIPTS = Path(__file__).resolve().parent.parent.parent / "scripts"
COUNT = 3
PROGRAM = """
import sys
sys.path.insert(0, {scripts!r})
import cluster
cluster.FIRST_PORT, cluster.ETCD_PORTS = {first}, {etcd}
sys.exit(cluster.main())
"""


def free_port_row(count):
    """The first of so many ports beside each other."""
    while True:
        first, taken = free_ports(1)[0], []
        try:
            for port in range(first, first + count):
                taken.append(socket.socket())
                taken[-1].bind(("127.0.0.1", port))
            return first
        except (OSError, OverflowError):
            continue
        finally:
            for each in taken:
                each.close()


class ClusterScriptTest(ProcessTestCase):
    def start(self, *options):
        self.programs = make_programs(self.directory / "programs", "none")
        self.cluster = self.directory / "cluster"
        program = PROGRAM.format(scripts=str(SCRIPTS), first=free_port_row(COUNT), etcd=tuple(free_ports(2)))
        self.output = self.directory / "output"
        with open(self.output, "wb") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-B", "-c", program, str(self.programs), str(COUNT), str(self.cluster), *options],
                stdin=subprocess.DEVNULL, stdout=output, stderr=output)
        self.addCleanup(self.end)
        wait_until(self.is_together, "the daemons move together")

    def end(self):
        """The script ends what it has started."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        self.process.wait(PROGRAM_SECONDS)

    def is_together(self):
        text = self.output.read_text(errors="replace")
        self.assertIsNone(self.process.poll(), text)
        return "they stop with Ctrl-C" in text

    def run_all(self):
        shell = Shell(self.directory, environment_with(self.programs))
        self.addCleanup(shell.end)
        for name in ("node-a", "node-b", "node-c"):
            self.assertEqual(shell.run(f". {self.cluster}/{name}/env.sh")[0], 0)
            status, output = shell.run("fopctl --json epoch show")
            self.assertEqual(status, 0, output)
            # In the order in which they have joined.
            names = sorted(each["name"] for each in json.loads(output)["members"])
            self.assertEqual(names, ["node-a", "node-b", "node-c"])
            status, output = shell.run("fopctl --json status")
            self.assertEqual(status, 0, output)
            self.assertEqual(json.loads(output)["state"], "ready")
        self.end()
        self.assertEqual(self.process.returncode, 0, self.output.read_text(errors="replace"))
        for name in ("node-a", "node-b", "node-c"):
            self.assertFalse((self.cluster / name / "admin.sock").exists())
            self.assert_no_report((self.cluster / name / "fopd.log").read_text())

    def test_members_in_a_file(self):
        self.start()
        self.run_all()

    @needs_etcd
    def test_members_in_etcd(self):
        self.start("--etcd")
        self.run_all()


if __name__ == "__main__":
    unittest.main()

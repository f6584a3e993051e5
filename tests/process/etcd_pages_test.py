"""The commands for etcd on the pages: each one is run, in the order of its page, against an etcd server.

What stands on a page is run as it stands, but that a user gets a password: etcdctl would ask a terminal for it.
"""

import os
import shutil
import unittest

from etcd_process import Etcd, needs_etcd
from fopd_process import ProcessTestCase
from page_commands import commands_of_markdown, program_of
from page_shell import Shell, environment_with
from pages_test import ROOT

PROGRAM = "etcdctl"
PAGES = ("docs/running.md", "docs/reference/epochs.md")
PASSWORDS = {"etcdctl user add fopd ": "etcdctl user add fopd:secret "}
VIEW = "/fopd/view"


def commands_of(page):
    return [each for each in commands_of_markdown((ROOT / page).read_text()) if program_of(each.text) == PROGRAM]


@needs_etcd
@unittest.skipUnless("FOPD_FULL_RUN" in os.environ or shutil.which(PROGRAM), f"{PROGRAM} is not installed")
class EtcdPagesTest(ProcessTestCase):
    def setUp(self):
        super().setUp()
        etcd = Etcd(self.directory)
        self.addCleanup(etcd.stop)
        etcd.start()
        programs = self.directory / "programs"
        programs.mkdir()
        self.shell = Shell(self.directory, environment_with(programs, ETCDCTL_API="3", ETCDCTL_ENDPOINTS=etcd.url))
        self.addCleanup(self.shell.end)

    def test_the_commands(self):
        for page in PAGES:
            commands = commands_of(page)
            self.assertTrue(commands, page)
            for command in commands:
                self.run_one(f"{PROGRAM} put {VIEW} 1", "before each command")
                self.run_one(command.text, f"{page}, line {command.line}")

        self.assertIn("epochs", self.run_one(f"{PROGRAM} user get fopd", "after all"))
        self.assertIn("/fopd/", self.run_one(f"{PROGRAM} role get epochs", "after all"))

    def test_the_key_of_the_view_is_deleted(self):
        deletes = [each.text for each in commands_of("docs/running.md") if " del " in each.text]
        self.assertEqual(len(deletes), 1)
        self.run_one(f"{PROGRAM} put {VIEW} 1", "before")
        self.assertEqual(self.run_one(deletes[0], "docs/running.md").strip(), "1")

    def run_one(self, text, where):
        for there, here in PASSWORDS.items():
            text = text.replace(there, here)
        status, output = self.shell.run(text)
        self.assertEqual(status, 0, f"{where}: {text}\nprinted\n{output}")
        return output


if __name__ == "__main__":
    unittest.main()

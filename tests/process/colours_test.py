"""Colours of fopctl: on terminals, unless somebody does not want them, and nowhere else."""

import os
import unittest

from fopd_process import FOPCTL, NO_SERVER, USAGE, run_program
from storage_process import StorageTestCase
from terminal import Terminal

RED, GREEN, YELLOW, END = "\x1b[31m", "\x1b[32m", "\x1b[33m", "\x1b[0m"
NOBODY = ("--admin", "/nonexistent/admin.sock")


class ColoursTest(StorageTestCase):
    def on_terminal(self, *arguments, code=0, **variables):
        environment = {key: value for key, value in self.environment.items() if key != "NO_COLOR"}
        terminal = Terminal(self, [FOPCTL, *arguments], environment | {"TERM": "xterm"} | variables)
        self.assertEqual(terminal.wait_end(), code, terminal.output)
        return terminal.output.replace("\r", "")

    def test_errors_are_red(self):
        self.assertRegex(self.on_terminal(*NOBODY, "status", code=NO_SERVER), f"^\x1b\\[31mfopctl: [^\x1b]+\x1b\\[0m\n$")
        self.assertTrue(self.on_terminal("nothing", code=USAGE).startswith(RED + "fopctl: there is no verb nothing"))

    def test_states_that_need_attention(self):
        self.assertTrue(self.on_terminal("health").startswith(f"{GREEN}OK:{END} "))
        self.assertNotIn("\x1b", self.on_terminal("devices") + self.on_terminal("status"))
        self.stop()
        (self.dir / "d1.img").unlink()
        self.start()
        self.assertTrue(self.on_terminal("health", code=2).startswith(f"{RED}CRITICAL:{END} "))
        page = self.on_terminal("devices")
        self.assertIn(f"{RED}given-up{END}", page)
        self.assertIn(f"{RED}CRITICAL:{END}", self.on_terminal("status"))
        # The colours take no room.
        self.assertEqual(page.replace(RED, "").replace(END, ""), self.ctl("devices").decode())

    def test_where_there_are_none(self):
        for wish in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
            with self.subTest(wish):
                self.assertNotIn("\x1b", self.on_terminal("health", **wish))
        self.assertIn(GREEN, self.on_terminal("health", NO_COLOR=""))
        self.assertNotIn("\x1b", self.on_terminal("--color", "never", "health"))
        self.assertNotIn("\x1b", self.on_terminal("--json", "health"))
        self.assertIn(GREEN, self.on_terminal("--color", "always", "health", NO_COLOR="1"))
        done = run_program(FOPCTL, *NOBODY, "status", env=os.environ | {"TERM": "xterm"})
        self.assertNotIn("\x1b", done.stderr)
        self.assertNotIn("\x1b", self.ctl("health").decode())
        self.assertIn(GREEN, self.ctl("health", "--color", "always").decode())


if __name__ == "__main__":
    unittest.main()

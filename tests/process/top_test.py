"""fopctl top: on a terminal it fits, has keys and gives the terminal back; elsewhere it prints pages."""

import json
import os
import re
import signal
import subprocess
import termios
import unittest

from fopd_process import DONE, FOPCTL, NO_SERVER, is_stopped, wait_until
from storage_process import StorageTestCase
from terminal import Terminal

LEAVE = "\x1b[?1049l"


class Screen(Terminal):
    """A terminal on which a program draws frames."""

    def frame(self):
        """The lines of the newest complete frame."""
        self.read()
        frames = re.findall("\x1b\\[H(.*?)\x1b\\[J", self.output, re.DOTALL)
        return re.sub("\x1b\\[[0-9;?]*[A-Za-z]", "", frames[-1]).replace("\r", "").split("\n") if frames else []

    def wait_frame(self, condition, what):
        def found():
            lines = self.frame()
            return lines if lines and condition(lines) else None
        try:
            return wait_until(found, what)
        except AssertionError as problem:
            raise AssertionError(f"{problem}; the last frame: {self.frame()}") from None


class TopTest(StorageTestCase):
    def top(self, *arguments, **options):
        return Screen(self, [FOPCTL, "top", *arguments], self.environment, **options)

    def load(self):
        process = subprocess.Popen([FOPCTL, "bench", "--op", "write", "--object-size", "1M", "--depth", "4", "--seconds", "600"],
                                   env=self.environment, stdout=subprocess.DEVNULL)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)

        def writes():
            # One interval after another, until one has writes, also among the classes, which are asked for apart.
            page = json.loads(self.ctl("--json", "top", "--interval", 0.1, "--count", 1))
            is_busy = any(each["name"] == "write" and each["ops_per_s"] > 0 for each in page["ops"]) and \
                any(each["served_per_s"] > 0 and each["p50_us"] > 0 for each in page["classes"])
            return page if is_busy else None
        return wait_until(writes, "writes in top")

    def test_figures_by_op_class_principal_and_device(self):
        page = self.load()
        by_name = {key: {each["name"]: each for each in page[key]} for key in ("ops", "principals", "devices", "classes")}
        write, dev = by_name["ops"]["write"], by_name["principals"]["dev"]
        self.assertAlmostEqual(write["bytes_per_s"], write["ops_per_s"] * 4096, delta=write["bytes_per_s"] * 0.01)
        # Of the same fops, but the counters are not read in one moment.
        self.assertGreater(dev["ops_per_s"], 0.9 * write["ops_per_s"])
        for each in (write, dev, max(page["devices"], key=lambda each: each["ops_per_s"])):
            self.assertGreater(each["ops_per_s"], 0)
            self.assertTrue(0 < each["p50_us"] <= each["p99_us"], each)
        busiest = max(page["classes"], key=lambda each: each["served_per_s"])
        self.assertTrue(0 < busiest["p50_us"] <= busiest["p99_us"], page["classes"])
        text = self.ctl("top", "--interval", 0.1, "--count", 1).decode()
        for title in ("LOCALITY", "CLASS", "OP ", "PRINCIPAL", "DEVICE"):
            self.assertRegex(text, f"(?m)^ *{title} ")
        self.assertEqual([line for line in text.splitlines() if len(line) > 80], [])

    def test_what_begins_within_the_interval_counts(self):
        top = subprocess.Popen([FOPCTL, "--json", "top", "--interval", "0.2"], env=self.environment, stdout=subprocess.PIPE)
        self.addCleanup(top.stdout.close)
        self.addCleanup(top.wait)
        self.addCleanup(top.kill)
        self.assertEqual([each for each in json.loads(top.stdout.readline())["ops"] if each["name"] == "create"], [])
        made = json.loads(self.ctl("--json", "bench", "--op", "create", "--seconds", 0.1))["ops"]
        counted, pages = 0, 0
        while round(counted) < made:
            page = json.loads(top.stdout.readline())
            counted += sum(each["ops_per_s"] * page["interval_s"] for each in page["ops"] if each["name"] == "create")
            pages += 1
            self.assertLess(pages, 100, f"of {made} created objects {counted:.0f} were shown")

    def test_it_fits_the_terminal(self):
        terminal = self.top("--interval", 600, columns=80, rows=24)
        lines = terminal.wait_frame(lambda lines: len(lines) == 24, "a frame")
        self.assertLessEqual(max(map(len, lines)), 80)
        # Nothing else makes it draw again within the interval.
        for columns, rows in ((43, 7), (200, 50), (10, 2), (80, 24)):
            terminal.resize(columns, rows)
            lines = terminal.wait_frame(lambda lines, rows=rows: len(lines) == rows, f"a frame of {rows} lines")
            terminal.wait_frame(lambda lines, columns=columns: max(map(len, lines)) <= columns, f"{columns} columns")
        terminal.press("q")
        self.assertEqual(terminal.wait_end(), DONE)

    def test_keys(self):
        self.load()
        terminal = self.top("--interval", 0.1)
        terminal.wait_frame(lambda lines: any(line.startswith("write ") for line in lines), "the operations")
        for key, title, name in (("p", "PRINCIPAL", "dev"), ("d", "DEVICE", "d0"), ("c", "CLASS", ""), ("l", "LOCALITY", ""),
                                 ("o", "OP", "write")):
            with self.subTest(key=key):
                terminal.press(key)
                lines = terminal.wait_frame(lambda lines, title=title, key=key: lines[1].split()[0] == title
                                            and f"[{key}]" in lines[-1], title)
                self.assertTrue(any(line.startswith(name) for line in lines[2:-1]), lines)
        terminal.press(">")
        terminal.wait_frame(lambda lines: "sort: BYTES/S, largest first" in lines[-1], "another column")
        terminal.press("r")
        terminal.wait_frame(lambda lines: "sort: BYTES/S, smallest first" in lines[-1], "the other order")
        terminal.press("<<")
        lines = terminal.wait_frame(lambda lines: "sort: OP, smallest first" in lines[-1], "by name")
        names = [line.split()[0] for line in lines[2:-1] if line.strip()]
        self.assertEqual(names, sorted(names))
        terminal.press("?")
        terminal.wait_frame(lambda lines: any("sort the other way round" in line for line in lines), "the help")
        terminal.press("?")
        terminal.wait_frame(lambda lines: lines[1].startswith("OP "), "the table again")
        self.assertTrue(all(len(line) <= 80 for line in terminal.frame()), terminal.frame())
        terminal.press("q")
        self.assertEqual(terminal.wait_end(), DONE)

    def test_the_terminal_is_given_back(self):
        endings = [("q", lambda terminal: terminal.press("q"), DONE), ("Ctrl-C", lambda terminal: terminal.press("\x03"), -signal.SIGINT)]
        endings += [(number.name, lambda terminal, number=number: os.kill(terminal.pid, number), -number)
                    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)]
        for name, end, code in endings:
            with self.subTest(name):
                terminal = self.top("--interval", 600)
                terminal.wait_frame(lambda lines: True, "a frame")
                self.assertFalse(terminal.modes() & termios.ICANON, "keys come one by one")
                end(terminal)
                self.assertEqual(terminal.wait_end(), code)
                self.assertTrue(terminal.output.endswith(LEAVE), terminal.output[-40:])
                self.assertTrue(terminal.modes() & termios.ICANON and terminal.modes() & termios.ECHO)

    def test_the_terminal_is_given_back_when_the_daemon_ends(self):
        terminal = self.top("--interval", 0.1)
        terminal.wait_frame(lambda lines: " ready " in lines[0], "figures")
        self.daemon.kill()
        self.assertEqual(terminal.wait_end(), NO_SERVER)
        # What is wrong can be read: it comes when the screen is given back. The daemon may have been killed before an answer.
        self.assertRegex(terminal.output.rpartition(LEAVE)[2],
                         "fopctl: (no fopd answers at .*admin.sock|fopd at .*admin.sock ended before it answered)")
        self.assertTrue(terminal.modes() & termios.ICANON)

    def test_it_ends_while_the_daemon_is_silent(self):
        terminal = self.top("--interval", 0.1)
        terminal.wait_frame(lambda lines: " ready " in lines[0], "figures")
        self.daemon.signal(signal.SIGSTOP)
        try:
            wait_until(self.daemon.is_stopped, "the daemon is stopped")
            terminal.press("q")
            self.assertEqual(terminal.wait_end(), DONE)
        finally:
            self.daemon.signal(signal.SIGCONT)

    def test_it_is_stopped_and_continued(self):
        terminal = self.top("--interval", 600)
        terminal.wait_frame(lambda lines: True, "a frame")
        os.kill(terminal.pid, signal.SIGTSTP)
        wait_until(lambda: terminal.read() or terminal.output.endswith(LEAVE), "the terminal is given back")
        self.assertTrue(terminal.modes() & termios.ICANON)
        # It stops itself, after that. An earlier SIGCONT would be without effect.
        wait_until(lambda: is_stopped(terminal.pid), "it is stopped")
        before = len(terminal.output)
        os.kill(terminal.pid, signal.SIGCONT)
        wait_until(lambda: terminal.read() or "\x1b[?1049h" in terminal.output[before:], "it goes on")
        terminal.press("q")
        self.assertEqual(terminal.wait_end(), DONE)


if __name__ == "__main__":
    unittest.main()

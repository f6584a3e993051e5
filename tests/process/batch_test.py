"""Many verbs in a session: `fopctl batch` and `fopctl shell`."""

import fcntl
import json
import os
import pty
import re
import select
import signal
import subprocess
import termios
import time
import unittest
from pathlib import Path

from fopd_process import DONE, FOPCTL, NO_SERVER, USAGE, wait_until
from storage_process import NOT_ALLOWED, NOT_FOUND, REFUSED, SECONDS, StorageTestCase


class BatchTest(StorageTestCase):
    def batch(self, text, *options, exit_code=DONE):
        """Runs the lines from standard input. Returns standard output and the lines of standard error."""
        done = self.ctl_bytes("batch", *options, data=text.encode())
        self.assertEqual(done.returncode, exit_code, done.stderr)
        return done.stdout.decode(), done.stderr.decode().splitlines()

    def sessions(self):
        return sum(line.count("fabric.session_opened") for line in self.daemon.log().splitlines())

    def test_words_are_those_of_a_shell(self):
        for name in ("a b", "a#b", "it's", 'a"b', "$x", "a\\b", "-x"):
            self.put(f"p/{name}", name.encode())
        out, complaints = self.batch("""
            # a comment
            read 'p/a b'   # another one
            read p/a#b
            read p/it\\'s
            read "p/it's"
            read 'p/a"b'
            read "p/a\\"b"
            read p/$x
            read "p/a\\\\b"
            read 'p/a\\b'
            read p/""-x
            ls 'p/a '""")
        self.assertEqual(out, "a ba#bit'sit'sa\"ba\"b$xa\\ba\\b-xp/a b\n")
        self.assertEqual(complaints, [])

    def test_the_first_failure_ends_it(self):
        self.put("a", b"1")
        lines = "ls\n\nstat none\nls\n"
        self.assertEqual(self.batch(lines, exit_code=NOT_FOUND),
                         ("a\n", ["fopctl: line 3: stat: none: no object has that name in pool fast"]))
        self.assertEqual(self.batch(lines + "put x\n", "--keep-going", exit_code=NOT_FOUND),
                         ("a\na\n", ["fopctl: line 3: stat: none: no object has that name in pool fast",
                                     "fopctl: line 5: put: name is required; see fopctl put --help"]))

    def test_lines_that_cannot_be_understood(self):
        for line, words in (("ls 'a", "there is no closing '"), ('ls "a', 'there is no closing "'),
                            ("ls a\\", "a backslash stands before the end of the line"),
                            ("lss", "there is no verb lss; did you mean ls?"), ("--quiet", "no verb; fopctl --help"),
                            ("batch -", "it cannot be a line of batch or shell"),
                            ("shell", "it cannot be a line of batch or shell")):
            with self.subTest(line):
                _, complaints = self.batch(f"\n{line}\nls", exit_code=USAGE)
                self.assertEqual(len(complaints), 1)
                self.assertTrue(complaints[0].startswith("fopctl: line 2: "), complaints)
                self.assertIn(words, complaints[0])
        _, complaints = self.batch("ls " + "x" * (3 << 20), exit_code=USAGE)
        self.assertEqual(complaints, ["fopctl: batch: standard input: a line is longer than 1 MiB"])

    def test_a_file_of_lines(self):
        lines = self.directory / "lines"
        lines.write_text("append a\nread a")
        self.put("a", b"1")
        self.assertEqual(self.ctl("batch", lines, data=b"23"), b"123")
        self.refused(USAGE, ["none: No such file"], "batch", self.directory / "none")

    def test_verbs_do_not_take_the_lines(self):
        out, _ = self.batch("put - a\nread a\nls\n")
        self.assertEqual(out, "a\n")

    def test_json_is_an_object_in_each_line(self):
        for name in ("a", "b"):
            self.put(name, b"1")
        tree = self.directory / "tree"
        tree.mkdir()
        for name in ("c", "d"):
            (tree / name).write_bytes(b"2")
        done = self.ctl_bytes("--json", "batch", "--keep-going",
                              data=f"ls\nstat a\nstat none\nput -r --dry-run {tree} t\nls --pool none\nstat b\n".encode())
        self.assertEqual(done.returncode, NOT_FOUND)
        results = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual([each["name"] for each in results[0]["objects"]], ["a", "b"])
        self.assertEqual((results[1]["name"], results[3]["name"]), ("a", "b"))
        self.assertEqual([each["name"] for each in results[2]["planned"]], ["t/c", "t/d"])
        errors = [json.loads(line) for line in done.stderr.splitlines()]
        self.assertEqual([(each["line"], each["code"]) for each in errors], [(3, "not_found"), (5, "wrong_pool")])

    def test_options_of_the_batch_are_those_of_each_line(self):
        self.put("a", b"1")
        environment = self.environment | {"FOPD_SERVER": "tcp://127.0.0.1:1"}
        done = self.ctl_bytes("--server", self.address, "batch", data=b"ls\nls --json\nls\n", env=environment)
        self.assertEqual(done.returncode, DONE, done.stderr)
        plain, listed, again = done.stdout.splitlines()
        self.assertEqual((plain, again), (b"a", b"a"))
        self.assertEqual(json.loads(listed)["objects"][0]["name"], "a")
        done = self.ctl_bytes("batch", "--keep-going", "--timeout", "2", data=f"ls\nls --server {self.address}\n".encode(),
                              env=environment)
        self.assertEqual((done.returncode, done.stdout), (NO_SERVER, b"a\n"))

    def test_all_lines_have_one_session(self):
        self.daemon.ctl("log-level", "debug")
        before = self.sessions()
        self.ctl("stat", "none", exit_code=NOT_FOUND)
        wait_until(lambda: self.sessions() > before, "a session")
        one = self.sessions() - before
        self.batch("stat none\n" * 50, "--keep-going", exit_code=NOT_FOUND)
        self.assertLessEqual(self.sessions() - before, 4 * one)

    def test_a_thousand_lines_are_faster_than_a_thousand_programs(self):
        self.put("a", b"1")
        begun = time.monotonic()
        for _ in range(50):
            self.ctl("stat", "a")
        programs = (time.monotonic() - begun) / 50
        begun = time.monotonic()
        out, _ = self.batch("stat a\n" * 1000)
        lines = (time.monotonic() - begun) / 1000
        self.assertEqual(out.count("name"), 1000)
        print(f"stat: {programs * 1e3:.2f} ms as a program, {lines * 1e3:.3f} ms as a line")
        self.assertLess(lines, programs / 3)

    def test_a_server_that_starts_anew(self):
        self.put("a", b"1")
        process = self.start_ctl("batch", "--keep-going")
        for _ in range(2):
            process.stdin.write(b"read a\n")
            process.stdin.flush()
            wait_until(lambda: select.select([process.stdout], [], [], 0)[0], "an answer")
            self.assertEqual(os.read(process.stdout.fileno(), 10), b"1")
            self.kill_and_start()
        process.stdin.write(b"read a\n")
        process.stdin.flush()
        output, complaints = process.communicate(timeout=SECONDS)
        self.assertEqual((process.returncode, output, complaints), (DONE, b"1", b""))

    def test_a_key_that_is_valid_again(self):
        """The session of a revoked key is refused for good; the next line connects anew."""
        self.put("a", b"1")
        principals = self.dir / "principals.yaml"
        text = principals.read_text()
        process = self.start_ctl("batch", "--keep-going")

        def read_a():
            process.stdin.write(b"read a\n")
            process.stdin.flush()

        read_a()
        wait_until(lambda: select.select([process.stdout], [], [], 0)[0], "an answer")
        self.assertEqual(os.read(process.stdout.fileno(), 10), b"1")
        principals.write_text(re.sub("[0-9a-f]{64}", "ab" * 32, text))
        self.daemon.ctl("reload")
        read_a()
        wait_until(lambda: select.select([process.stderr], [], [], 0)[0], "a refusal")
        principals.write_text(text)
        self.daemon.ctl("reload")
        read_a()
        output, complaints = process.communicate(timeout=SECONDS)
        self.assertEqual((process.returncode, output), (NOT_ALLOWED, b"1"), complaints)

    def test_an_interrupt_ends_the_batch(self):
        rules = self.directory / "rules"
        rules.write_text("slow job=slow rate=5/s burst=1 by=none\ndefault * rate=unlimited\n")
        self.daemon.ctl("lrs", "set", "tbf", "--rules", rules)
        self.put("a", b"1")
        process = self.start_ctl("batch", "--job", "slow")
        process.stdin.write(b"read a\n" * 1000)
        process.stdin.flush()
        wait_until(lambda: select.select([process.stdout], [], [], 0)[0], "the first line")
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(SECONDS), -signal.SIGINT)

    # -- the shell --

    def test_a_shell_without_a_terminal(self):
        self.put("a", b"1")
        done = self.ctl_bytes("shell", data=b"ls\nstat none\nls\nhelp stat\nexit\nls\n")
        self.assertEqual(done.returncode, NOT_FOUND)
        self.assertTrue(done.stdout.startswith(b"a\na\nShow size"), done.stdout)
        self.assertEqual(done.stderr, b"fopctl: line 2: stat: none: no object has that name in pool fast\n")

    def start_shell(self):
        """On a terminal of its own. Returns the process, its terminal, and a function that waits for a text there."""
        terminal, end = pty.openpty()
        self.addCleanup(os.close, terminal)
        process = subprocess.Popen([FOPCTL, "shell"], env=self.environment | {"TERM": "dumb"}, stdin=end, stdout=end,
                                   stderr=end, start_new_session=True,
                                   preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        os.close(end)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        shown = bytearray()

        def shows(text):
            def look():
                if select.select([terminal], [], [], 0)[0]:
                    shown.extend(os.read(terminal, 4096))
                return text in shown
            wait_until(look, text)
            del shown[:shown.index(text) + len(text)]
        shows(b"fopctl> ")
        return process, terminal, shows

    def test_a_shell_on_a_terminal(self):
        self.put("a", b"1")
        process, terminal, shows = self.start_shell()
        for line, answer in ((b"ls\n", b"\na\r\n"), (b"stat none\n", b"fopctl: stat: none: no object has that name in pool fast\r\n"),
                             (b"ls 'a\n", b"fopctl: there is no closing '\r\n"), (b"\n", b""),
                             (b"help ls\n", b"List objects by name"), (b"ls x\x03", b"^C\r\n")):
            os.write(terminal, line)
            shows(answer)
            shows(b"fopctl> ")
        os.write(terminal, b"\x04")
        self.assertEqual(process.wait(SECONDS), DONE)

    def test_an_interrupt_ends_a_verb_and_not_the_shell(self):
        process, terminal, shows = self.start_shell()
        os.write(terminal, b"put - b\n")
        tasks = Path(f"/proc/{process.pid}/task")
        wait_until(lambda: any(each.joinpath("comm").read_text().startswith("fopctl-files") for each in tasks.iterdir()),
                   "the verb has begun")
        os.write(terminal, b"\x03")
        shows(b"fopctl> ")
        self.assertEqual(self.names(), [])
        os.write(terminal, b"exit\n")
        self.assertEqual(process.wait(SECONDS), DONE)


if __name__ == "__main__":
    unittest.main()

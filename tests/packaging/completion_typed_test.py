#!/usr/bin/env python3
"""What a command becomes that is typed with Tab in it: bash, zsh and fish, each on a terminal of its own, complete the line and run
it. A stand-in for fopctl has the help pages of the real program, answers as a daemon does, and records with which words it is run.

    completion_typed_test.py FOPCTL

Exits 77 (skipped) where zsh or fish is missing."""

import os
import pty
import select
import shutil
import sys
import tempfile
import time
import unittest
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent.parent
COMPLETION = SOURCE / "scripts" / "completion"
FOPCTL = ""
DEADLINE_SECONDS = 120

# NUL stands between the words of a run, and behind them.
STAND_IN = r"""#!/bin/bash
case " $* " in
    *" --help "*)
        [[ -e $ANSWERS/$* ]] || "$FOPCTL_OF_TEST" "$@" >"$ANSWERS/$*"
        exec cat "$ANSWERS/$*"
        ;;
    *" --timeout 2 "*) ;;
    *)
        printf '%s\0' "$@" >"$RUNS.new"
        exec mv "$RUNS.new" "$RUNS"
        ;;
esac
echo "$*" >>"$ASKED"
case " $* " in
    *" df "*) printf '%s\n' '{"pools":[{"pool":"fast"},{"pool":"two words"},{"pool":"$(touch ran)"},{"pool":"`touch ran`"},{"pool":"a:b=c"}]}' ;;
    *" devices "*) printf '%s\n' '{"devices":[{"name":"-d"},{"name":"d0"}]}' ;;
    *" lrs show --all "*) cat "$ANSWERS/lrs.txt" ;;
    *" ls -- job:"*) printf '%s\n' job:read ;;
    *" ls -- run:"*) printf '%s\n' 'run:$(touch ran);`touch ran`' ;;
    *" ls -- two"*) printf '%s\n' "two words: it's" ;;
esac
"""

# Each says PROMPT when it waits for a line.
BASH = "source {completion}/fopctl.bash\nPS1='PRO''MPT'\n"
ZSH = """unsetopt beep prompt_cr prompt_sp
fpath=({scratch}/functions $fpath)
autoload -Uz compinit && compinit -u -D
PS1='PRO''MPT'
"""
FISH = "source {completion}/fopctl.fish; function fish_prompt; echo PRO''MPT; end; set -g fish_greeting"


class Shell:
    def __init__(self, test, name):
        self.directory = Path(tempfile.mkdtemp())
        test.addCleanup(shutil.rmtree, self.directory)
        for each in ("bin", "functions", "answers", "files dir"):
            (self.directory / each).mkdir()
        (self.directory / "files dir" / "admin.sock").touch()
        (self.directory / "admin:1.sock").touch()
        stand_in = self.directory / "bin" / "fopctl"
        stand_in.write_text(STAND_IN, encoding="utf-8")
        stand_in.chmod(0o755)
        shutil.copy(COMPLETION / "fopctl.zsh", self.directory / "functions" / "_fopctl")
        os.spawnv(os.P_WAIT, str(SOURCE / "tests/packaging/page_answers.py"), ["page_answers.py", str(self.directory / "answers")])
        start = {"bash": BASH, "zsh": ZSH, "fish": FISH}[name].format(completion=COMPLETION, scratch=self.directory)
        (self.directory / ("rc" if name == "bash" else ".zshrc")).write_text(start, encoding="utf-8")
        command = {"bash": ["bash", "--noprofile", "--rcfile", "rc", "-i"], "zsh": ["zsh", "-d", "-i"],
                   "fish": ["fish", "--no-config", "--interactive", "--init-command", start]}[name]
        environment = {"PATH": f"{self.directory}/bin:{os.environ['PATH']}", "HOME": str(self.directory), "ZDOTDIR": str(self.directory),
                       "TERM": "dumb" if name == "bash" else "xterm", "LC_ALL": "C.UTF-8", "FOPCTL_OF_TEST": FOPCTL,
                       "ANSWERS": str(self.directory / "answers"), "RUNS": str(self.directory / "runs"),
                       "ASKED": str(self.directory / "asked"), "XDG_CONFIG_HOME": str(self.directory),
                       "XDG_DATA_HOME": str(self.directory)}
        self.output = ""
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            try:
                os.chdir(self.directory)
                os.execvpe(command[0], command, environment)
            finally:
                os._exit(126)
        test.addCleanup(self.close)
        self.wait(lambda: "PROMPT" in self.output)

    def close(self):
        os.kill(self.pid, 9)
        os.waitpid(self.pid, 0)
        os.close(self.fd)

    def wait(self, is_done):
        end = time.monotonic() + DEADLINE_SECONDS
        while not is_done():
            assert time.monotonic() < end, f"waited in vain; on the terminal: {self.output!r}"
            # The pause is for files, about which select says nothing.
            if select.select([self.fd], [], [], 0.01)[0]:
                self.output += os.read(self.fd, 65536).decode(errors="replace")

    def run(self, line):
        """The words with which fopctl is run by the line."""
        runs = self.directory / "runs"
        runs.unlink(missing_ok=True)
        self.output = ""
        os.write(self.fd, (line + "\r").encode())
        self.wait(runs.exists)
        self.wait(lambda: "PROMPT" in self.output)
        return runs.read_text(encoding="utf-8").split("\0")[:-1]


class CompletionTypedTest(unittest.TestCase):
    def check(self, name):
        shell = Shell(self, name)
        for line, words in (
                ("fopctl stat job:\t", ["stat", "job:read"]),
                ("fopctl stat job:r\t", ["stat", "job:read"]),
                ("fopctl stat 'job:r\t", ["stat", "job:read"]),
                ("fopctl stat \"job:r\t", ["stat", "job:read"]),
                ("fopctl stat two\t", ["stat", "two words: it's"]),
                ("fopctl stat \"two w\t", ["stat", "two words: it's"]),
                ("fopctl stat two\\ w\t", ["stat", "two words: it's"]),
                ("fopctl ls --pool=fa\t", ["ls", "--pool=fast"]),
                ("fopctl ls --pool fa\t", ["ls", "--pool", "fast"]),
                ("fopctl ls --pool=two\t", ["ls", "--pool=two words"]),
                ("fopctl ls --pool=a\t", ["ls", "--pool=a:b=c"]),
                ("fopctl ls --pool=a:b\t", ["ls", "--pool=a:b=c"]),
                ("fopctl --protect=s\tls", ["--protect=seal", "ls"]),
                # A word is not a pattern of verbs, and a name is not taken for an option.
                ("fopctl 'st*' sess\t", ["st*", "sessions"]),
                ("fopctl 'stat?s' sess\t", ["stat?s", "sessions"]),
                ("fopctl device remove \t", ["device", "remove", "d0"]),
                ("fopctl device remove -- -\t", ["device", "remove", "--", "-d"]),
                ("fopctl lrs set crr qu\t4", ["lrs", "set", "crr", "quantum=4"]),
                ("fopctl status --admin=fil\tad\t", ["status", "--admin=files dir/admin.sock"]),
                ("fopctl status --admin ~/fil\tad\t", ["status", "--admin", f"{shell.directory}/files dir/admin.sock"]),
                ("fopctl status --admin admin:\t", ["status", "--admin", "admin:1.sock"]),
                # None of these may run as a command.
                ("fopctl stat run:\t", ["stat", "run:$(touch ran);`touch ran`"]),
                ("fopctl stat 'run:\t", ["stat", "run:$(touch ran);`touch ran`"]),
                ("fopctl stat \"run:\t", ["stat", "run:$(touch ran);`touch ran`"]),
                ("fopctl ls --pool=\\$\t", ["ls", "--pool=$(touch ran)"]),
                ("fopctl ls --pool '$\t", ["ls", "--pool", "$(touch ran)"]),
                ("fopctl ls --pool \\`\t", ["ls", "--pool", "`touch ran`"])):
            with self.subTest(f"{name}: {line!r}"):
                self.assertEqual(shell.run(line), words)
        self.assertFalse((shell.directory / "ran").exists())
        # Who asks for names is given what the shell would give to the program.
        self.assertEqual(shell.run("fopctl --admin ~/\"files dir\"/admin.sock device remove \t"),
                         ["--admin", f"{shell.directory}/files dir/admin.sock", "device", "remove", "d0"])
        self.assertIn(f"--admin {shell.directory}/files dir/admin.sock --json devices",
                      (shell.directory / "asked").read_text(encoding="utf-8"))

    def test_bash(self):
        self.check("bash")

    def test_zsh(self):
        self.check("zsh")

    def test_fish(self):
        self.check("fish")


if __name__ == "__main__":
    FOPCTL = str(Path(sys.argv.pop(1)).resolve())
    if not all(map(shutil.which, ("zsh", "fish"))):
        sys.exit(77)
    unittest.main()

"""A bash that runs the commands of a page in a directory of its own, with this build's programs and with free ports."""

import os
import shlex
import signal
import socket
import subprocess
import threading
from pathlib import Path

from fopd_process import FOPCTL, FOPD, PROGRAM_SECONDS

END_MARK = "the command has ended with"


class Shell:
    """A bash that is given one command after the other."""

    def __init__(self, directory, environment):
        self._bash = subprocess.Popen(["bash", "--noprofile", "--norc"], cwd=directory, env=environment, text=True,
                                      errors="replace", stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                      stderr=subprocess.STDOUT, start_new_session=True)
        self._watchdog = threading.Timer(PROGRAM_SECONDS, self._kill)
        self._watchdog.start()

    def run(self, command):
        """Its exit status and output."""
        self._bash.stdin.write(f"{{ {command}\n}} </dev/null; printf '\\n%s %s\\n' {shlex.quote(END_MARK)} $?\n")
        self._bash.stdin.flush()
        lines = []
        for line in self._bash.stdout:
            if line.startswith(END_MARK):
                return int(line.split()[-1]), "".join(lines)[:-1]
            lines.append(line)
        raise AssertionError(f"the shell ended, or did not end in time, with: {command}\n{''.join(lines)}")

    def end(self):
        """With all that it has started."""
        self._watchdog.cancel()
        self._watchdog.join()
        self._kill()
        self._bash.wait()
        self._bash.stdin.close()
        self._bash.stdout.close()

    def _kill(self):
        os.killpg(self._bash.pid, signal.SIGKILL)  # The shell is not waited for before, so this is its number.


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def make_programs(directory, metrics):
    """fopd and fopctl as they would be installed, with other ports than those that may be taken."""
    directory.mkdir()
    (directory / "fopctl").symlink_to(Path(FOPCTL).resolve())
    make_script(directory / "fopd", f'case "$1" in --dev) set -- "$@" --listen tcp://127.0.0.1:{free_port()} '
                                    f"--metrics {metrics} ;; esac\n"
                                    f'exec {shlex.quote(str(Path(FOPD).resolve()))} "$@"\n')
    return directory


def make_script(path, text):
    path.write_text(f"#!/bin/sh\n{text}")
    path.chmod(0o755)


def environment_with(programs, **more):
    """That of this process without anything of fopd, with these programs found first."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("FOPD")}
    return environment | {"PATH": f"{programs}:{os.environ['PATH']}", "LC_ALL": "C.UTF-8"} | more

"""docs/tutorial.md: each of its commands works, in the order of the page, and prints what the page shows.

The page is read like this. An indented block whose first line begins with "$ " is a part of a session with bash: a line with
"$ " is a command, to which the lines with "> " directly below it belong; what is below them is its output, standard error included. Each command must end with 0; "; echo $?"
shows another exit status. A line that is only "…" stands for any lines, "…" within a line for its rest. A comment of HTML
directly before a block says what is special about it:

    <!-- varies -->          numbers, sizes, times, addresses and ids may be others, and so may blanks and ends of lines;
                             a row of # may have another length
    <!-- again -->           the command is repeated until it ends with 0 and prints this
    <!-- varies, again -->   both

All run in one shell, in a directory of its own. The page is about a service of systemd: here programs of these names start and
stop fopd, and look into its log, and the directories and ports are others. tests/vm/systemd_test.sh does the same with systemd.
"""

import re
import shlex
import time
import unittest
from pathlib import Path
from typing import NamedTuple

from fopd_process import DEADLINE_SECONDS, FOPCTL, FOPD, ProcessTestCase
from page_shell import Shell, environment_with, free_port, make_script

PAGE = Path(__file__).resolve().parent.parent.parent / "docs" / "tutorial.md"
PROMPT, MORE, INDENT, LEFT_OUT = "$ ", "> ", "    ", "…"
# Directories of the page, each of which is a directory of the test of that name, and where the page has the metrics.
PAGE_DIRECTORIES = {"/etc/fopd": "etc", "/var/lib/fopd": "lib", "/var/log/fopd": "log"}
PAGE_METRICS = "127.0.0.1:9420"

# An id; or a number, time, date or address, with its unit if it has one.
NUMBER = r"(?<!\w)(?:[0-9a-f]{8,}(?:-\d+)?|\d+(?:[.:T-]\d+)*(?:Z|[mun]?s| ?(?:B|[KMGT]iB))?)(?!\w)"


class Step(NamedTuple):
    line: int
    command: str
    output: str
    marks: frozenset


def steps_of(page):
    """The commands of a page, in their order."""
    steps, marks, in_block, is_session = [], frozenset(), False, False
    for number, line in enumerate(page.splitlines(), start=1):
        comment = re.fullmatch(r"<!-- ([a-z, ]+) -->", line)
        if comment:
            marks, in_block = frozenset(comment[1].split(", ")), False
            if not marks <= {"varies", "again"}:
                raise ValueError(f"line {number}: no such mark: {comment[1]}")
        elif line.startswith(INDENT):
            text = line[len(INDENT):]
            if not in_block:
                in_block, is_session = True, text.startswith(PROMPT)
            if is_session and text.startswith(PROMPT):
                steps.append(Step(number, text[len(PROMPT):], "", marks))
            elif is_session and text.startswith(MORE) and not steps[-1].output:
                steps[-1] = steps[-1]._replace(command=f"{steps[-1].command}\n{text[len(MORE):]}")
            elif is_session:
                steps[-1] = steps[-1]._replace(output=f"{steps[-1].output}{text}\n")
        elif not line:
            if in_block and is_session:
                steps[-1] = steps[-1]._replace(output=f"{steps[-1].output}\n")
        else:
            marks, in_block = frozenset(), False
    return [each._replace(output=each.output.strip("\n")) for each in steps]


def pattern_of(output, varies):
    """A regular expression for what the page shows."""
    def literal(text):
        if not varies:
            return re.escape(text)
        pattern = r"\s+".join(NUMBER.join(map(re.escape, re.split(NUMBER, part))) for part in re.split(r"\s+", text))
        return re.sub(r"(?:\\#)+", "#+", pattern)

    def in_line(text):
        return ".*".join(map(literal, text.split(LEFT_OUT)))
    parts = re.split(rf"^{LEFT_OUT}\n?", output, flags=re.MULTILINE)
    return r"(?:.*\n)*?".join(map(in_line, parts))


def matches(step, output):
    varies = "varies" in step.marks
    wanted = re.sub(r"(?<=\d) (?=(?:B|[KMGT]iB)\b)", "", step.output) if varies else step.output
    given = re.sub(r"(?<=\d) (?=(?:B|[KMGT]iB)\b)", "", output) if varies else output
    return re.fullmatch(pattern_of(wanted.strip(), varies) + r"\s*", given.strip() + "\n") is not None


# What a service has that is not on the page: its directories and ports are those of the test.
SETTINGS = """
admin: {{ socket: {top}/admin.sock, metrics: "{metrics}" }}
fabric: {{ listen: ["{server}"] }}
localities: {{ buffers: 16MiB }}
"""
SET_UP = """
grep -q '^admin:' {top}/etc/fopd.yaml || cat {top}/settings >>{top}/etc/fopd.yaml
sed -i 's|^node: {{ name: shop }}|node: {{ name: shop, data_dir: {top}/lib }}|' {top}/etc/fopd.yaml
"""
PROGRAMS = {
    "fopd": SET_UP + """
case " $* " in *" --config "*) ;; *) set -- "$@" --config {top}/etc/fopd.yaml ;; esac
exec {fopd} "$@"
""",
    # Root is asked to name a file of principals that is not in /etc/fopd.
    "fopctl": """
case "$1" in
    key) if [ -S {top}/admin.sock ]; then set -- "$@" --principals {top}/etc/principals.yaml
         else set -- "$@" --config {top}/etc/fopd.yaml; fi ;;
esac
exec {fopctl} "$@"
""",
    "systemctl": """
start() {{
    fopd >>{top}/journal 2>&1 </dev/null &
    echo $! >{top}/pid
    fopctl --quiet --timeout {seconds} status --wait ready
}}
stop() {{
    kill "$(cat {top}/pid)"
    while [ -e "/proc/$(cat {top}/pid)/exe" ]; do sleep 0.05; done
}}
case "$*" in
    "enable --now fopd" | "start fopd") start ;;
    "stop fopd") stop ;;
    "restart fopd") stop; start ;;
    *) echo "not on the page: systemctl $*"; exit 1 ;;
esac
""",
    "journalctl": """
event=${{5#FOPD_EVENT=}}
[ "$1 $2 $3 $4 $event" = "-u fopd -o cat $event" ] || exit 1
sed -n "s/^[^ ]* *[a-z]* *\\($event .*\\)/\\1/p" {top}/journal
""",
}


class TutorialTest(ProcessTestCase):
    def shell_of_service(self, metrics):
        programs = self.directory / "programs"
        programs.mkdir()
        for name in PAGE_DIRECTORIES.values():
            (self.directory / name).mkdir()
        top = shlex.quote(str(self.directory))
        server = f"tcp://127.0.0.1:{free_port()}"
        (self.directory / "settings").write_text(SETTINGS.format(top=self.directory, metrics=metrics, server=server))
        for name, text in PROGRAMS.items():
            make_script(programs / name, text.format(top=top, fopd=shlex.quote(str(Path(FOPD).resolve())),
                                                     fopctl=shlex.quote(str(Path(FOPCTL).resolve())), seconds=DEADLINE_SECONDS))
        session = self.directory / "session"
        session.mkdir()
        return Shell(session, environment_with(programs, XDG_STATE_HOME=str(self.directory / "state"), FOPD_SERVER=server,
                                               FOPD_ADMIN=str(self.directory / "admin.sock")))

    def test_the_page(self):
        metrics = f"127.0.0.1:{free_port()}"
        shell = self.shell_of_service(metrics)
        self.addCleanup(shell.end)
        page = PAGE.read_text().replace(PAGE_METRICS, metrics)
        for there, here in PAGE_DIRECTORIES.items():
            page = page.replace(there, str(self.directory / here))
        steps = steps_of(page)
        self.assertTrue(steps)
        for step in steps:
            self.run_step(shell, step, self.directory / "journal")
        self.assert_no_report((self.directory / "journal").read_text())

    def run_step(self, shell, step, log):
        deadline = time.monotonic() + DEADLINE_SECONDS
        while True:
            status, output = shell.run(step.command)
            if status == 0 and matches(step, output):
                return
            if "again" not in step.marks or time.monotonic() > deadline:
                self.fail(f"{PAGE.name}, line {step.line}: {step.command}\nended with {status} and printed\n{output}\n"
                          f"The page has\n{step.output}\nThe log of fopd:\n{log.read_text() if log.exists() else ''}")
            time.sleep(0.1)  # A person is slower; nothing depends on its length.


class ReadingTest(unittest.TestCase):
    """How the page is read, so that a wrong page is found."""

    def test_steps(self):
        steps = steps_of("Text.\n\n    $ a\n    1\n\n    2\n    $ b\n\n<!-- varies, again -->\n\n    $ c\n\n"
                         "    no output: belongs to c\n\nText.\n\n    not: run\n    $ not run\n")
        self.assertEqual([(each.line, each.command, each.output) for each in steps],
                         [(3, "a", "1\n\n2"), (7, "b", ""), (11, "c", "no output: belongs to c")])
        self.assertEqual([each.marks for each in steps], [set(), set(), {"varies", "again"}])
        with self.assertRaises(ValueError):
            steps_of("<!-- vary -->\n\n    $ a\n")

    def test_lines_of_one_command(self):
        steps = steps_of("    $ cat <<END\n    > a\n    >   b\n    > END\n    1\n    > 2\n    $ b\n")
        self.assertEqual([(each.line, each.command, each.output) for each in steps],
                         [(1, "cat <<END\na\n  b\nEND", "1\n> 2"), (7, "b", "")])

    def assert_matches(self, shown, printed, marks="", *, yes=True):
        step = Step(1, "", shown, frozenset(marks.split()))
        self.assertEqual(matches(step, printed), yes, (shown, printed))

    def test_what_the_page_shows_is_compared(self):
        self.assert_matches("OK: 2 disks", "OK: 2 disks\n")
        self.assert_matches("", "")
        for printed in ("OK: 3 disks\n", "OK: 2  disks\n", "OK: 2 disks\nmore\n", ""):
            self.assert_matches("OK: 2 disks", printed, yes=False)
        self.assert_matches("", "unexpected\n", yes=False)
        self.assert_matches("", "unexpected\n", "varies", yes=False)

    def test_what_varies(self):
        shown = "d1  good  7.9 GiB  pid=24 2026-11-26T14:40:14.92Z 1.0s now  photos/2.jpg"
        self.assert_matches(shown, "d1 good 900 B pid=7 2027-01-01T00:00:00.1Z 30ms  now\nphotos/6.jpg", "varies")
        for printed in ("d0 good 900 B pid=7 2027-01-01T00:00:00.1Z 30ms now photos/6.jpg",
                        "d1 bad 900 B pid=7 2027-01-01T00:00:00.1Z 30ms now photos/6.jpg",
                        "d1 good 900 B pid=x 2027-01-01T00:00:00.1Z 30ms now photos/6.jpg",
                        "d1 good 900 B pid=7 2027-01-01T00:00:00.1Z 30ms photos/6.jpg"):
            self.assert_matches(shown, printed, "varies", yes=False)

    def test_bars_vary(self):
        self.assert_matches("1.0 ##\n2.0 ####", "3.5 #######\n4.5 #########", "varies")
        self.assert_matches("1.0 ##\n2.0 ####", "3.5 #######\n4.5", "varies", yes=False)
        self.assert_matches("1.0 ##", "1.0 ###", yes=False)

    def test_what_is_left_out(self):
        self.assert_matches("a\n…\nb", "a\nb")
        self.assert_matches("a\n…\nb", "a\n1\n\n2\nb")
        self.assert_matches("a\n…", "a\n1\n2\n")
        self.assert_matches("a …\nb", "a 1 2\nb")
        self.assert_matches("a\n…\nb", "a\n1\nc", yes=False)
        self.assert_matches("a …\nb", "a 1\n2\nb", yes=False)


if __name__ == "__main__":
    unittest.main()

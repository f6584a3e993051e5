"""Each command on each page for users is run, or page_plans.py says which other test runs it or why none does.

The commands of a page are run in its order, in one bash, in a directory of its own, beside a daemon of its own with some
objects. Each must end with 0 unless page_plans.py says otherwise. A row of page_plans.py for which no page has a command fails,
too. docs/tutorial.md has blocks that tutorial_test.py runs; here its sentences are.
"""

import re
import time
import unittest
from pathlib import Path

from fopd_process import DEADLINE_SECONDS, USAGE, ProcessTestCase
from page_commands import UnknownBlock, commands_of_manual, commands_of_markdown
from page_plans import COMMON, PLANS, Elsewhere, Page, Run
from page_shell import Shell, environment_with, free_port, make_programs, make_script

ROOT = Path(__file__).resolve().parent.parent.parent
# Whose blocks show bytes, rules, JSON and output.
WITH_OTHER_BLOCKS = ("docs/formats/", "docs/decisions/", "docs/libfabric-report.md")

PRELUDE = r"""
begin() {
    fopd --dev node >>fopd.log 2>&1 & fopd=$!
    until [ -e node/env.sh ]; do sleep 0.02; done
    . node/env.sh
    fopctl --quiet status --wait ready
}
end() { kill $fopd; wait $fopd; }
mkdir -p results && head -c 20000 /dev/urandom >copy && cp copy results/summary.txt && cp copy results/b
echo 'limits * rate=unlimited' >limits
echo 'shares * weight=2' >shares
"""
OBJECTS = r"""
begin && for name in reports/a reports/b notes; do fopctl put copy $name || exit; done
fid=$(fopctl --json stat reports/a | sed 's/.*"fid":"\([0-9a-f]*\)".*/\1/')
"""


def pages():
    """The name and the commands of each page, each command once."""
    paths = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/**/*.md"), *ROOT.glob("docs/man/*.[1-9]")]
    for path in sorted(paths):
        name, text = str(path.relative_to(ROOT)), path.read_text()
        if path.suffix != ".md":
            commands = commands_of_manual(text)
        else:
            commands = commands_of_markdown(text, strict=not name.startswith(WITH_OTHER_BLOCKS))
        if name == "docs/tutorial.md":
            commands = (each for each in commands if each.is_inline)
        first = {}
        for each in commands:
            first.setdefault(each.text, each)
        yield name, list(first.values())


def row_of(plan, text):
    return plan.rows.get(text) or COMMON.get(text) or Run()


class PagesTest(ProcessTestCase):
    def test_each_row_has_its_command(self):
        found = {name: {each.text for each in commands} for name, commands in pages()}
        for name, plan in PLANS.items():
            for text in plan.rows:
                self.assertIn(text, found[name], name)
        for text in COMMON:
            self.assertTrue(any(text in texts for texts in found.values()), text)

    def test_what_another_test_runs_is_there(self):
        for rows in (COMMON, *(plan.rows for plan in PLANS.values())):
            for text, row in rows.items():
                if isinstance(row, Elsewhere):
                    # The text of a command may go on in the next line there.
                    there = re.sub(r"\s*(\||&&|\\)\s*\n\s*", r" \1 ", (ROOT / row.file).read_text())
                    self.assertIn(row.text, there.replace(" \\ ", " "), text)

    def test_the_commands(self):
        for name, commands in pages():
            plan = PLANS.get(name, Page({}))
            if any(isinstance(row_of(plan, each.text), Run) for each in commands):
                with self.subTest(name):
                    self.run_page(name, plan, commands)

    def run_page(self, name, plan, commands):
        directory = self.directory / name.replace("/", "-")
        (directory / "build" / "release").mkdir(parents=True)
        metrics = f"127.0.0.1:{free_port()}"
        programs = make_programs(directory / "build" / "release" / "bin", metrics)
        make_script(programs / "sudo", '[ "$1" = -u ] && shift 2\nexec "$@"\n')
        (directory / "README.md").symlink_to(ROOT / "README.md")
        (directory / "docs").mkdir()
        (directory / "docs" / "page.md").write_text("A page.\n")
        self.shell = Shell(directory, environment_with(programs, XDG_STATE_HOME=str(directory)))
        try:
            self.run_unseen(PRELUDE + (OBJECTS if plan.has_node else ""))
            replacements = {"/run/fopd/admin.sock": "node/admin.sock", "/etc/fopd/fopd.yaml": "node/fopd.yaml",
                            "/var/lib/fopd": "node/data", "/var/tmp/fopd-dev": "fopd-dev", "/root/": "",
                            "127.0.0.1:9420": metrics}
            for command in commands:
                row = row_of(plan, command.text)
                if command.text.startswith("#!"):
                    script = directory / re.search(r"^# usage: (\S+)", command.text, re.M)[1]
                    script.write_text(f"{command.text}\n")
                elif isinstance(row, Run):
                    self.run_command(f"{name}, line {command.line}", row, command.text, replacements)
            self.run_unseen("end")
            self.assert_no_report((directory / "fopd.log").read_text())
        finally:
            self.shell.end()

    def run_unseen(self, text):
        status, output = self.shell.run(text)
        self.assertEqual(status, 0, output)

    def run_command(self, where, row, shown, replacements):
        text = row.text or shown
        for there, here in replacements.items():
            text = text.replace(there, here)
        if "--config " not in text:
            text = re.sub(r"\bfopd (?=--(?:check|restore|print))", "fopd --config node/fopd.yaml ", text)
        if row.before:
            self.run_unseen(row.before)
        deadline = time.monotonic() + DEADLINE_SECONDS
        status, output = self.shell.run(text)
        while row.again and status != row.status and time.monotonic() < deadline:
            time.sleep(0.05)  # A person is slower; nothing depends on its length.
            status, output = self.shell.run(text)
        if status == USAGE != row.status and re.fullmatch(r"fopctl(?: [a-z-]+)+", text):  # Only a verb.
            _, help_page = self.shell.run(f"{text} --help")
            if f"\nUsage: {text} " in help_page:
                return
        self.assertEqual(status, row.status, f"{where}: {shown}\nrun as: {text}\nprinted\n{output}")


class ReadingTest(unittest.TestCase):
    """How the pages are read, so that no command is overlooked."""

    def texts(self, page, **options):
        return [(each.line, each.text) for each in commands_of_markdown(page, **options)]

    def test_blocks_of_markdown(self):
        self.assertEqual(self.texts("Text.\n\n    fopctl ls   # names\n    curl a |\n        grep b\n\nText:\n\n"
                                    "    key: value\n\n1. Item.\n\n       fopctl df\n\nText:\n\n    $ fopctl stat a\n    output\n"),
                         [(3, "fopctl ls"), (4, "curl a | grep b"), (13, "fopctl df"), (17, "fopctl stat a")])
        self.assertEqual(self.texts("```sh\n#!/bin/sh\n# usage: a.sh\n\nls\n```\n\n```cpp\nfopctl ls\n```\n"),
                         [(2, "#!/bin/sh\n# usage: a.sh\nls")])

    def test_an_unknown_block_is_refused(self):
        with self.assertRaises(UnknownBlock):
            self.texts("Text.\n\n    frobnicate --all\n")
        self.assertEqual(self.texts("Text.\n\n    frobnicate --all\n", strict=False), [])

    def test_sentences(self):
        self.assertEqual(self.texts("Say `fopctl ls`, or `fopctl df --pool\nfast`; `lrs set` and `fopctl` are words.\n"
                                    "| `fopctl status \\| wc` |\n"),
                         [(1, "fopctl ls"), (1, "fopctl df --pool fast"), (3, "fopctl status | wc")])

    def test_manual_pages(self):
        page = ".Dl fopctl reload || echo \\(dqno\\(dq\n.Bd -literal\nfopd --dev &\n\\&. a/env.sh\n.Ed\n" \
               ".Li systemctl stop fopd ;\n.Li fopctl\n.Dl rules: [ \\(dqa * rate=1/s\\(dq ]\n"
        self.assertEqual([each.text for each in commands_of_manual(page)],
                         ['fopctl reload || echo "no"', "fopd --dev &", ". a/env.sh", "systemctl stop fopd"])


if __name__ == "__main__":
    unittest.main()

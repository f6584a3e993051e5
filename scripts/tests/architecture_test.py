#!/usr/bin/env python3
"""ARCHITECTURE.md: its folder table says what scripts/check_layers.py enforces, and what its table "Where to find"
names is there."""

import re
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "scripts"))

import check_layers

NOTHING = {"–", ""}


def rows():
    """(folder, may use, third party) of each row of the table, top down."""
    for line in (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) != 5 or not cells[0].startswith("`"):
            continue
        for folder in re.findall(r"`(\w+)/`", cells[0]):
            yield folder, cells[3], cells[4]


def places():
    """(what happens, files, functions) of each row of "Where to find"."""
    page = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    section = page.split("\n## Where to find\n")[1].split("\n## ")[0]
    for line in section.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 3 and "`" in cells[1]:
            yield cells[0], re.findall(r"`([^`]+)`", cells[1]), re.findall(r"`([^`]+)`", cells[2])


def defines(text, function):
    """Whether a source defines the function: in a .cc with its class, in a header by its name alone."""
    return any(re.search(rf"^(?!\s*(?:if|for|while|switch)\b)[^/#=\n]*(?<![\w:.>]){re.escape(name)}\([^;]*?\) [^;]*?\{{", text, re.MULTILINE)
               for name in (function, function.split("::")[-1]))


def folders_of(cell, above):
    """The folders that a cell allows, and the folder of whose handler it allows the header."""
    words = {word for word in re.sub(r"all of the above|but tests|\w+'s handler header|,", "", cell).split()}
    folders = words - NOTHING
    if "all of the above" in cell:
        folders |= set(above)
    if "but tests" in cell:
        folders.discard("tests")
    return folders, set(re.findall(r"(\w+)'s handler header", cell))


def is_used(folder, header, target):
    """Whether a file below the folder includes a header of the library, or a target of it links to the library."""
    for path in folder.rglob("*"):
        if path.name == "CMakeLists.txt" and re.search(target, path.read_text(encoding="utf-8")):
            return True
        if path.suffix in {".h", ".cc", ".c"} and re.search(f"#include <({header})", path.read_text(encoding="utf-8")):
            return True
    return False


class ArchitectureTest(unittest.TestCase):
    def test_who_may_use_whom(self):
        above = []
        for folder, cell, _ in rows():
            if folder not in check_layers.ALLOWED:
                self.assertIn(cell, NOTHING, folder)
                continue
            folders, handlers = folders_of(cell, above)
            headers = {f"{used}/handler.h" for used in handlers}
            self.assertEqual(folders, check_layers.ALLOWED[folder], folder)
            self.assertEqual(headers, check_layers.HEADER_EXCEPTIONS.get(folder, set()), folder)
            above.append(folder)
        self.assertEqual(set(above), set(check_layers.ALLOWED))

    def test_who_owns_which_library(self):
        owners = {}
        for folder, _, cell in rows():
            for library in re.sub(r"\([^)]*\)", "", cell).split(","):
                if library.strip() not in NOTHING:
                    owners.setdefault(library.strip(), set()).add(folder)
        self.assertEqual(owners, {row[0]: row[3] for row in check_layers.THIRD_PARTY})

    def test_what_is_to_be_found_is_there(self):
        self.assertGreater(len(list(places())), 20)
        for what, files, functions in places():
            with self.subTest(what=what):
                self.assertTrue(functions)
                self.assertEqual([file for file in files if not (ROOT / file).is_file()], [])
                texts = [(ROOT / file).read_text(encoding="utf-8") for file in files]
                missing = [each for each in functions if not any(defines(text, each) for text in texts)]
                idle = [file for file, text in zip(files, texts, strict=True)
                        if not any(defines(text, each) for each in functions)]
                self.assertEqual((missing, idle), ([], []))

    def test_a_call_is_no_definition(self):
        self.assertTrue(defines("bool CommitPath::flush_due() const {\n", "CommitPath::flush_due"))
        self.assertTrue(defines("    bool take_from(Ticks start) {\n", "Meter::take_from"))
        self.assertFalse(defines("    if (flushing_ || !flush_due()) co_return;\n", "CommitPath::flush_due"))
        self.assertFalse(defines("    if (flush_due()) {\n", "CommitPath::flush_due"))
        self.assertFalse(defines("    bool flush_due() const;\n", "CommitPath::flush_due"))

    def test_each_library_is_used_where_the_table_says(self):
        for library, header, target, folders in check_layers.THIRD_PARTY:
            for folder in folders:
                with self.subTest(library=library, folder=folder):
                    self.assertTrue(is_used(ROOT / folder, header, target))


if __name__ == "__main__":
    unittest.main()

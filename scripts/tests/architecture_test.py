#!/usr/bin/env python3
"""The folder table people read in ARCHITECTURE.md says what scripts/check_layers.py enforces."""

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

    def test_each_library_is_used_where_the_table_says(self):
        for library, header, target, folders in check_layers.THIRD_PARTY:
            for folder in folders:
                with self.subTest(library=library, folder=folder):
                    self.assertTrue(is_used(ROOT / folder, header, target))


if __name__ == "__main__":
    unittest.main()

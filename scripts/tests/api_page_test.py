#!/usr/bin/env python3
"""docs/reference/api.md has each path of the admin socket, with its method, parameters, statuses and limit, and no other."""

import re
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
PAGE = ROOT / "docs" / "reference" / "api.md"
SOURCES = [ROOT / "daemon" / f"admin_{name}.cc" for name in ("api", "backup", "epochs", "fops", "io_sched", "lrs", "reply", "tape")]

STATUSES = {"kBadRequest": 400, "kNotFound": 404, "kConflict": 409, "kUnprocessable": 422, "kUnavailable": 503,
            "not_valid": 422, "not_found": 404}
# How the source names parameters.
PARAMETER = re.compile(r'(?:query\.find\(|query\[|query\.contains\(|number_in\(request, |is_yes\(request, |value_of\()("\w+"|k\w+Key)')


def functions():
    """name -> text of each function in the sources."""
    found = {}
    for path in SOURCES:
        text = path.read_text(encoding="utf-8")
        for match in re.finditer(r"^(?!//)\S[^\n;]*?\b(?:AdminApi::)?(\w+)\([^;{}]*\{\n.*?^\}$", text, re.MULTILINE | re.DOTALL):
            found[match[1]] = match[0]
    return found


def texts_of(name, all_functions):
    """The text of a function and of those of these files that it calls."""
    reached, rest = {}, [name]
    while rest:
        each = rest.pop()
        if each in all_functions and each not in reached:
            reached[each] = all_functions[each]
            # Calls of other classes' functions stand behind a dot.
            rest += re.findall(r"(?<![.\w])(\w+)\(", all_functions[each].partition("{")[2])
    return "\n".join(reached.values())


def paths_of_source():
    """(method, path) -> (parameters, statuses, limit)."""
    text = "\n".join(path.read_text(encoding="utf-8") for path in SOURCES)
    constants = dict(re.findall(r'constexpr const char\* (k\w+Key) = "(\w+)";', text))
    usual_limit = re.search(r"Duration patience = (\w+);", text)[1]
    all_functions = functions()
    found = {}
    for method, path, handler, limit in re.findall(
            r'\.method = "(\w+)", \.path = "(/v1/[\w/-]+)"[^}]*\},\s*&AdminApi::(\w+)(?:,\s*(\w+))?\}', text):
        body = texts_of(handler, all_functions)
        parameters = {name.strip('"') if name.startswith('"') else constants[name] for name in PARAMETER.findall(body)}
        statuses = {status for word, status in STATUSES.items() if re.search(rf"\b{word}\b", body)}
        found[method, path] = (parameters, statuses, limit or usual_limit)
    return found


def paths_of_page():
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        match = re.fullmatch(r"`(\w+) (/v1/\S+)`", cells[0])
        if match and len(cells) == 5:
            yield match.groups(), cells[1], cells[3], cells[4]


class ApiPageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.source = paths_of_source()
        cls.page = list(paths_of_page())

    def test_the_source_was_understood(self):
        text = SOURCES[0].read_text(encoding="utf-8")
        self.assertEqual(len(self.source), int(re.search(r"std::array<AdminApi::Verb, (\d+)>", text)[1]))

    def test_the_page_has_each_path_once(self):
        self.assertEqual(sorted(path for path, *_ in self.page), sorted(self.source))

    def test_parameters(self):
        for path, parameters, _, _ in self.page:
            with self.subTest(path):
                # Names are in lower case; values, and what stands for a name, stand behind a colon or "such as".
                for each in self.source[path][0]:
                    self.assertIn(f"`{each}`", parameters)
                named = {re.match(r"(?:either )?`(\w+)`", each.strip()) for each in parameters.split(";")} - {None}
                self.assertLessEqual({each[1] for each in named}, self.source[path][0])

    def test_statuses(self):
        for path, _, statuses, _ in self.page:
            with self.subTest(path):
                self.assertEqual({int(each) for each in statuses.split(", ") if each}, self.source[path][1])

    def test_limits(self):
        for path, _, _, limit in self.page:
            with self.subTest(path):
                self.assertEqual(limit.replace(" ", "") or "0s", self.source[path][2])


if __name__ == "__main__":
    unittest.main()

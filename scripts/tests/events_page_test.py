#!/usr/bin/env python3
"""docs/reference/events.md lists each event of the source, with its levels and fields, and no other."""

import re
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "scripts"))

import check_layers
import cpp_source

PAGE = ROOT / "docs" / "reference" / "events.md"

NOT_OF_THE_DAEMON = {"bench", "client", "sim", "tests"}
# They define emit(), or pass on what they are given.
INTERFACES = {"core/events.h", "daemon/log.h", "daemon/event_router.cc"}
# How the log writes its own events.
OWN_CALL = {"daemon/log.cc": "post"}

NAME = re.compile(r'"([a-z]+\.[a-z_]+)"')
LEVEL = re.compile(r"\bLevel::k([A-Z]\w+)")
KEY = re.compile(r'\{\s*"(\w+)"\s*,')
ANY_LEVEL = "any"


def end_of(code, at):
    """The offset behind the bracket that closes the one at `at`."""
    depth = 0
    for i in range(at, len(code)):
        depth += (code[i] in "([{") - (code[i] in ")]}")
        if depth == 0:
            return i + 1
    raise ValueError("a bracket is not closed")


def arguments(text, code, at):
    """The arguments of the call whose bracket is at `at`, as they are written."""
    last = end_of(code, at) - 1
    found, depth, begin = [], 0, at + 1
    for i in range(at + 1, last):
        depth += (code[i] in "([{") - (code[i] in ")]}")
        if depth == 0 and code[i] == ",":
            found.append(text[begin:i])
            begin = i + 1
    return [*found, text[begin:last]]


def choice_in(argument):
    """The condition of `condition ? one : other`, and its two values."""
    match = re.fullmatch(r"\s*(\w+)\s*\?(.*?[^:]):([^:].*)", argument, re.DOTALL)
    return (match[1], match.group(2, 3)) if match else (None, None)


def levels_in(text):
    return {name.lower() for name in LEVEL.findall(text)}


def keys_before(text, at):
    """The keys of an array of fields that was filled above a call: in its braces, or one by one in the function."""
    above = text[: at]
    function = max((match.end() for match in re.finditer(r"^\S.*\{$", above, re.MULTILINE)), default=0)
    braces = above.rfind("fields{", function)
    return set(re.findall(r'"([a-z_]+)"', above[max(function, braces):]))


class Events:
    """name -> (levels, keys), as they are in the source."""

    def __init__(self):
        self.found = {}

    def add(self, name, levels, keys):
        seen = self.found.setdefault(name, (set(), set()))
        seen[0].update(levels or {ANY_LEVEL})
        seen[1].update(keys)

    def read(self, path, text):
        source = cpp_source.Source(path, text)
        text = "".join(" " if comment else char for char, comment in zip(text, self._comments(source)))
        direct, relays = [], []  # Of calls: begin, end.
        call = rf"\b(?:emit|emit_each|{OWN_CALL.get(path, 'emit')})\("
        for match in re.finditer(call, source.code):
            if re.search(r"\bvoid (?:Log::)?$|\bbool (?:Log::)?$", text[: match.start()]):
                continue  # A definition.
            begin, end = match.end() - 1, end_of(source.code, match.end() - 1)
            if NAME.search(text, begin, end):
                direct.append((begin, end))
                self._read_call(text, source.code, match)
            elif path not in OWN_CALL:
                relays.append((begin, end))
        if len(relays) > 1:
            raise ValueError(f"{path}: two functions emit what they are given; which event is whose?")
        for begin, end in relays:
            self._read_relay(text, source.code, (begin, end), direct)

    @staticmethod
    def _comments(source):
        covered = bytearray(len(source.text))
        for offset, comment in source.comments:
            covered[offset : offset + len(comment)] = b"\1" * len(comment)
        return covered

    def _read_call(self, text, code, match):
        begin = match.end() - 1
        given = arguments(text, code, begin)
        at = next(i for i, argument in enumerate(given) if NAME.search(argument))
        level, name = given[at - 1], given[at]
        keys = set(KEY.findall("".join(given[at + 1 :])))
        if not keys and len(given) > at + 1:
            keys = keys_before(text, match.start())
        condition, values = choice_in(level)
        same, names = choice_in(name)
        if condition is not None and condition == same:
            for one_level, one_name in zip(values, names):
                self.add(NAME.search(one_name)[1], levels_in(one_level), keys)
            return
        for each in NAME.findall(name):
            self.add(each, levels_in(level), keys)

    def _read_relay(self, text, code, relay, direct):
        """A function emits the event it is given: its name is elsewhere in the file, perhaps with a level."""
        given = text[relay[0] : relay[1]]
        keys = set(KEY.findall(given))
        names = [match for match in NAME.finditer(text)
                 if not any(begin <= match.start() < end for begin, end in [*direct, relay])]
        if not names:
            raise ValueError("an event without a name")
        for match in names:
            call = code.rfind("(", 0, match.start())
            levels = levels_in(text[call : match.start()]) or levels_in(given)
            self.add(match[1], levels, keys)


def events_of_source():
    events = Events()
    for folder in sorted(set(check_layers.ALLOWED) - NOT_OF_THE_DAEMON):
        for path in sorted((ROOT / folder).rglob("*")):
            name = str(path.relative_to(ROOT))
            if path.suffix in {".h", ".cc"} and name not in INTERFACES:
                events.read(name, path.read_text(encoding="utf-8"))
    return events.found


def rows():
    """(event, levels, fields) of each row of the page's tables, top down."""
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 5 and re.fullmatch(r"`[a-z]+\.[a-z_]+`", cells[0]):
            yield cells[0].strip("`"), cells[1], cells[2]


class EventsPageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.source = events_of_source()
        cls.page = list(rows())

    def test_the_source_was_understood(self):
        self.assertGreater(len(self.source), 80)

    def test_the_page_has_each_event_once(self):
        names = [name for name, _, _ in self.page]
        self.assertEqual(sorted(names), sorted(set(names)))
        self.assertEqual(set(names), set(self.source))

    def test_levels(self):
        for name, levels, _ in self.page:
            with self.subTest(event=name):
                self.assertEqual(set(levels.split(", ")), self.source.get(name, ({}, {}))[0])

    def test_fields(self):
        for name, _, fields in self.page:
            with self.subTest(event=name):
                wanted = self.source.get(name, ({}, set()))[1]
                self.assertEqual(set(re.findall(r"`(\w+)`", fields)), set(wanted))

    def test_tables_are_sorted(self):
        table = []
        for line in PAGE.read_text(encoding="utf-8").splitlines():
            match = re.match(r"\| `([a-z]+\.[a-z_]+)` \|", line)
            if match:
                table.append(match[1])
            else:
                self.assertEqual(table, sorted(table))
                table = []


class ReadingTest(unittest.TestCase):
    def read(self, text, path="store/some.cc"):
        events = Events()
        events.read(path, text)
        return events.found

    def test_a_call(self):
        found = self.read('core::emit(events_, core::Level::kWarn, "store.some", {{"one", a(1)}, {"two", "b"}});')
        self.assertEqual(found, {"store.some": ({"warn"}, {"one", "two"})})

    def test_a_choice_of_both(self):
        found = self.read('emit(e, bad ? core::Level::kError : core::Level::kInfo, bad ? "a.b" : "a.c", {{"d", d}});')
        self.assertEqual(found, {"a.b": ({"error"}, {"d"}), "a.c": ({"info"}, {"d"})})

    def test_a_choice_of_levels(self):
        found = self.read('emit(e, ok ? Level::kInfo : Level::kWarn, "a.b");')
        self.assertEqual(found, {"a.b": ({"info", "warn"}, set())})

    def test_a_function_that_emits_what_it_is_given(self):
        found = self.read("""void Disk::report(core::Level level, std::string_view event) const {
    emit_each(events_, level, event, {{"path", path_}});
}
void Disk::fail() {
    report(core::Level::kError, "disk.gone");  // Not "disk.here".
}
""")
        self.assertEqual(found, {"disk.gone": ({"error"}, {"path"})})

    def test_fields_that_are_collected(self):
        found = self.read("""void Handler::report() {
    std::array<core::Field, 2> fields;
    say({"one", 1});
    events_.emit(core::Level::kWarn, "a.b", std::span(fields).first(count));
}
""")
        self.assertEqual(found, {"a.b": ({"warn"}, {"one"})})


if __name__ == "__main__":
    unittest.main()

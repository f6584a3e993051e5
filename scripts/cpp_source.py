"""A C++ file as the checks see it: its text, its code without comments and strings, and what it allows itself."""

import bisect
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

CPP_SUFFIXES = (".h", ".hpp", ".cc", ".c")

# Comments, raw strings, strings and characters. A quote after a letter or digit separates digits: 1'000.
_NOT_CODE = re.compile(
    r"""(?P<comment>//(?:[^\\\n]|\\.)*|/\*.*?\*/)
      | (?:u8|[uUL])?R"(?P<mark>[^()\\\s]{0,16})\(.*?\)(?P=mark)"
      | "(?:[^"\\\n]|\\.)*"
      | (?<![0-9A-Za-z_])'(?:[^'\\\n]|\\.)+'
    """,
    re.DOTALL | re.VERBOSE,
)
_ALLOW = re.compile(r"//\s*check:\s*allow\(([^)]*)\)[ \t]*(.*)")
_INCLUDE = re.compile(r"^[ \t]*#[ \t]*include[ \t]*([<\"])([^>\"\n]*)[>\"]", re.MULTILINE)


@dataclass(frozen=True, order=True)
class Finding:
    path: str
    line: int
    rule: str
    message: str

    def __str__(self):
        return f"{self.path}:{self.line}: {self.message} [{self.rule}]"


@dataclass(frozen=True)
class Include:
    line: int
    name: str
    is_ours: bool  # In quotes.


class Source:
    """One file. `code` is as long as `text` and has its line ends; a string keeps only its quotes."""

    def __init__(self, path, text):
        self.path = path
        self.text = text
        self.folder = path.split("/", 1)[0] if "/" in path else ""
        self.comments = []  # (offset, text)
        self.code = _NOT_CODE.sub(self._blank, text)
        self._line_starts = [0] + [match.end() for match in re.finditer("\n", text)]
        self._allowed = {}  # line -> {rule: reason}
        self._used = set()  # (line, rule)
        for offset, comment in self.comments:
            match = _ALLOW.match(comment)
            if match:
                rules = self._allowed.setdefault(self.line_of(offset), {})
                for rule in match[1].split(","):
                    rules[rule.strip()] = match[2].strip()

    def _blank(self, match):
        piece = match[0]
        if match["comment"] is not None:
            self.comments.append((match.start(), piece))
            return re.sub(r"[^\n]", " ", piece)
        quote = piece[-1]
        opening = piece.index(quote)
        return " " * opening + quote + re.sub(r"[^\n]", " ", piece[opening + 1 : -1]) + quote

    def line_of(self, offset):
        return bisect.bisect_right(self._line_starts, offset)

    def includes(self):
        result = []
        for match in _INCLUDE.finditer(self.text):
            if self.code[match.start() : match.start(2)].lstrip().startswith("#"):  # Not commented out.
                result.append(Include(self.line_of(match.start(2)), match[2], match[1] == '"'))
        return result

    def is_allowed(self, line, rule):
        """Whether a comment on this line, or on a line of its own above it, allows the rule to be broken here."""
        for candidate in (line, line - 1):
            if rule not in self._allowed.get(candidate, {}):
                continue
            if candidate != line and self.code.split("\n")[candidate - 1].strip():
                continue
            self._used.add((candidate, rule))
            return True
        return False

    def allow_findings(self, rules):
        """Allowances that name no rule, give no reason or are not needed. Call after every check has run."""
        for line, allowed in self._allowed.items():
            for rule, reason in allowed.items():
                if rule not in rules:
                    known = ", ".join(sorted(rules))
                    yield Finding(self.path, line, "allow", f"no rule is called '{rule}', name one of: {known}")
                elif not reason:
                    yield Finding(self.path, line, "allow", "no reason given, say why after the parenthesis")
                elif (line, rule) not in self._used:
                    yield Finding(self.path, line, "allow", f"nothing here breaks '{rule}', remove the comment")


def tracked_files():
    """Every file of the tree that is not ignored, also those not added yet, relative to the root."""
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, check=True, capture_output=True, text=True,
    ).stdout
    return sorted({name for name in listing.split("\0") if name and (ROOT / name).is_file()})


def is_cpp(path):
    return path.endswith(CPP_SUFFIXES)

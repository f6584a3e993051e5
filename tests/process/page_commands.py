"""Finds the commands in a page: in Markdown and in the source of a manual page.

In Markdown, commands stand in indented blocks and in fenced ones of the language sh, and between backticks in a sentence. A
block whose first line begins with a program has commands only; if it begins with "$ ", those lines are its commands and the
others their output. A fenced block that begins with #!/bin/sh is a script, and is one command: it makes the file of the name
that its line "# usage: NAME …" has. In a manual page, commands stand in .Dl, .Bd, .Li, .Dq and .Ql.
"""

import re
from typing import NamedTuple

# A word by which a command is known, where no shell is needed to find it.
PROGRAMS = frozenset("""
    . apt blkdiscard cc cmake cp cpack ctest curl du etcdctl export fopctl fopd install journalctl kill logrotate make man mv perf pkg-config
    promtool scripts sh strace sudo sudoedit systemctl tar ulimit wipefs
    """.split())
# Blocks that are something else: YAML, JSON, lines of a log, tables of bytes and numbers, rules, C.
DATA = re.compile(r"[\w./-]+:(?:\s|$)|- |[\[{]|\d{4}-|[0-9a-f]{2}[0-9a-f]*\s|\d+ |#include|fopd_\w+\{")
ROFF_ESCAPES = (("\\(dq", '"'), ("\\(aq", "'"), ("\\[u2026]", "…"), ("\\&", ""), ("\\e", "\\"), ("\\-", "-"))


class Command(NamedTuple):
    line: int
    text: str
    is_inline: bool


class UnknownBlock(ValueError):
    pass


def program_of(text):
    """The program that a command begins with, or an empty text if it is no command."""
    word = re.match(r"(?:[A-Z_]+=\S+ )*\(?(?:cd \S+ && )?(\S*)", text)[1].rstrip(",;)")
    if re.match(r"(?:scripts|bench|build)/.", word):
        return word
    return word if word in PROGRAMS else ""


def whole_lines(lines):
    """(number, text) with lines that go on joined."""
    joined = []
    for number, text in lines:
        if joined and re.search(r"(?:\\|\||&&)$", joined[-1][1]):
            before = joined.pop()
            joined.append((before[0], f"{before[1].removesuffix(chr(92)).rstrip()} {text.strip()}"))
        else:
            joined.append((number, text))
    return joined


def without_remark(text):
    return re.sub(r"\s+#\s.*$", "", text).strip()


def commands_of_block(lines, *, strict):
    first = lines[0][1]
    if first.startswith("#!/bin/sh"):
        yield Command(lines[0][0], "\n".join(text for _, text in lines), False)
    elif first.startswith("$ "):
        yield from (Command(number, without_remark(text[2:]), False)
                    for number, text in whole_lines(lines) if text.startswith("$ "))
    elif program_of(first) or re.match(r"[a-z_]+=\S", first):
        yield from (Command(number, without_remark(text), False) for number, text in whole_lines(lines))
    elif strict and not DATA.match(first):
        raise UnknownBlock(f"line {lines[0][0]}: neither a command nor data: {first}")


def commands_of_sentence(number, text):
    for span in re.finditer(r"`([^`]+)`", text):
        inner = " ".join(span[1].replace("\\|", "|").split())
        if " " in inner and program_of(inner):
            yield Command(number + text[:span.start()].count("\n"), inner, True)


def blocks_of_markdown(page):
    """(kind, [(number, line)]) in the order of the page; kind is text, code, or the language of a fenced block."""
    kind, lines = "text", []
    for number, line in enumerate(page.splitlines(), start=1):
        fence = re.match(r"\s*```(\w*)", line)
        if fence or (kind not in ("text", "code") and kind is not None):
            if fence:
                if lines:
                    yield kind, lines
                kind, lines = ("text", []) if kind not in ("text", "code") else (fence[1] or "plain", [])
            else:
                lines.append((number, line))
            continue
        is_code = line.startswith("    ") and (kind == "code" or not lines or not lines[-1][1].strip())
        if line.strip() and is_code != (kind == "code"):
            if lines:
                yield kind, lines
            kind, lines = "code" if is_code else "text", []
        lines.append((number, line))
    if lines:
        yield kind, lines


def commands_of_markdown(page, *, strict=True):
    page = re.sub(r"<!--.*?-->", lambda comment: "\n" * comment[0].count("\n"), page, flags=re.S)
    for kind, lines in blocks_of_markdown(page):
        if kind == "text":
            yield from commands_of_sentence(lines[0][0], "\n".join(text for _, text in lines))
        elif kind in ("code", "sh"):
            full = [(number, text) for number, text in lines if text.strip()]
            margin = min(len(text) - len(text.lstrip()) for _, text in full) if full else 0
            if full:
                yield from commands_of_block([(number, text[margin:]) for number, text in full], strict=strict)


def commands_of_manual(page):
    block = None
    for number, line in enumerate(page.splitlines(), start=1):
        for escape, text in ROFF_ESCAPES:
            line = line.replace(escape, text)
        if line.startswith(".Bd"):
            block = []
        elif line == ".Ed":
            yield from commands_of_block(block, strict=True)
            block = None
        elif block is not None:
            block.append((number, line))
        elif line.startswith(".Dl "):
            yield from commands_of_block([(number, line.removeprefix(".Dl "))], strict=True)
        elif span := re.match(r"\.(?:Li|Dq|Ql) (.*?)(?: [.,;:)])?$", line):
            text = span[1].strip('"')
            if " " in text and program_of(text):
                yield Command(number, text, True)

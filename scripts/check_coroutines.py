"""Shapes of co_await that GCC 12 compiles wrongly or that outlive what they borrow (CONTRIBUTING.md, coroutines).

No parser: brackets, statements and the word in front of a bracket are enough to tell these shapes. Where the
heuristic is wrong, `// check: allow(rule) reason` says so in the code.
"""

import re

from cpp_source import Finding

RULES = {
    "await-condition", "await-ternary", "await-logical", "await-nested", "await-braces", "await-macro",
    "await-twice", "await-binding", "await-lambda", "coroutine-lambda", "coroutine-reference",
}

# Files that show the compiler wrong shapes on purpose.
EXEMPT = {"tests/core/compiler_test.cc"}

_NAME_IT = "name the result in a statement of its own: `const auto x = co_await ...;`"

_DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\\\n]|\\.)*", re.MULTILINE | re.DOTALL)
_TOKEN = re.compile(r"[()\[\]{}]|(?<!\boperator )\bco_(?:await|return|yield)\b")
_CLOSING = {")": "(", "]": "[", "}": "{"}
_CONTROL = re.compile(r"\b(if|for|while|switch|catch)(?:\s+constexpr)?\s*$")
_STARTS_BLOCK = re.compile(r"\s*(?:if|for|while|switch|do|try|case|default|else)\b")
_BEFORE_EMPTY_BLOCK = re.compile(r"(?:[){};:]|\b(?:else|do|try|const|noexcept|override|final|mutable))\s*$")
_QUALIFIER_AT_END = re.compile(
    r"(?:\b(?:const|mutable|constexpr|override|final)|\bnoexcept(?:\s*\(\s*\))?|(?<=[\s)])&&?)$")
_DECLARATION = re.compile(r"\s*[A-Za-z_][\w:<>,*&\s]*[\s*&]\w+\s*=\s*")
_BINDING = re.compile(r"\bauto\s*&{0,2}\s*\[[^\]]*\]\s*=\s*$")


def without_qualifiers(text):
    """What is left of a text whose end may be those of a function. Long stretches of it are blank."""
    while True:
        text = text.rstrip()
        found = _QUALIFIER_AT_END.search(text, max(0, len(text) - 200))
        if not found:
            return text
        text = text[: found.start()]


class Bracket:
    def __init__(self, kind, start, parent):
        self.kind = kind  # One of ( [ { or, for the whole file, nothing.
        self.start = start
        self.end = start
        self.parent = parent
        self.children = []


class Shape:
    """The brackets of a file as a tree, and where its co_ words stand in it."""

    def __init__(self, code):
        self.code = _DIRECTIVE.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), code)
        self.root = Bracket("", -1, None)
        self.words = []  # (offset, word, innermost bracket)
        self._direct = {}
        self._is_block = {}
        here = self.root
        for token in _TOKEN.finditer(self.code):
            text = token[0]
            if text in "([{":
                here.children.append(Bracket(text, token.start(), here))
                here = here.children[-1]
            elif text in _CLOSING:
                if here.kind == _CLOSING[text]:  # Else the file does not parse; the compiler will say so.
                    here.end = token.start()
                    here = here.parent
            else:
                self.words.append((token.start(), text, here))
        self.root.end = len(self.code)
        while here is not self.root:
            here.end = len(self.code)
            here = here.parent

    def direct(self, bracket, begin=None, end=None):
        """What stands directly in a bracket between two offsets; nested brackets are emptied."""
        base = bracket.start + 1
        if bracket not in self._direct:
            text = self.code[base : bracket.end]
            pieces, at = [], 0
            for child in bracket.children:
                pieces.append(text[at : child.start - base + 1])
                at = max(child.end - base, child.start - base + 1)
                pieces.append(" " * (at - (child.start - base + 1)))
            pieces.append(text[at:])
            self._direct[bracket] = "".join(pieces)
        text = self._direct[bracket]
        return text[(begin - base if begin is not None else 0) : (end - base if end is not None else len(text))]

    def before(self, bracket):
        return self.direct(bracket.parent, end=bracket.start)

    def is_block(self, bracket):
        """Whether statements stand in it, rather than the values of an initialiser."""
        if bracket not in self._is_block:
            self._is_block[bracket] = bracket.kind == "" or bracket.kind == "{" and self._holds_statements(bracket)
        return self._is_block[bracket]

    def _holds_statements(self, bracket):
        inside = self.direct(bracket)
        if not inside.strip():
            return bool(_BEFORE_EMPTY_BLOCK.search(self.before(bracket)[-40:]))
        return ";" in inside or bool(_STARTS_BLOCK.match(inside))

    def control_word(self, bracket):
        if bracket.kind != "(":
            return None
        match = _CONTROL.search(self.before(bracket)[-40:])
        return match[1] if match else None

    def callee(self, block):
        """("lambda"|"function", its parameters or None, its captures or None) when a block is a body, else None."""
        if block.kind != "{":
            return None
        siblings = block.parent.children
        text = self.before(block)[-2000:]
        arrow = text.rfind("->")
        if arrow >= 0 and not re.search(r"[;={}]", text[arrow:]):
            if re.search(r"[)\]]$", without_qualifiers(text[:arrow])):
                text = text[:arrow]
        text = without_qualifiers(text)
        end = block.start - len(self.before(block)[-2000:]) + len(text) - 1
        last = next((child for child in siblings if child.end == end), None)
        if last is None:
            return None
        if last.kind == "[":
            return ("lambda", None, last)
        if last.kind != "(" or self.control_word(last):
            return None
        head = self.before(last)[-500:].rstrip()
        head = re.sub(r"(?<=\])\s*<[^;{}]*>$", "", head)
        if head.endswith("]"):
            end = last.start - len(self.before(last)[-500:]) + len(head) - 1
            captures = next((child for child in siblings if child.end == end), None)
            return ("lambda", last, captures)
        return ("function", last, None) if re.search(r"[\w>)]$", head) else None

    def owner(self, bracket):
        """The body a bracket stands in: (block, callee)."""
        while bracket.kind:
            if self.is_block(bracket):
                callee = self.callee(bracket)
                if callee:
                    return bracket, callee
            bracket = bracket.parent
        return None

    def statement(self, block, offset):
        """Where the statement around an offset of a block begins and ends."""
        base = block.start + 1
        text = self.direct(block)
        begin = base + text.rfind(";", 0, offset - base) + 1
        end = text.find(";", offset - base)
        end = block.end if end < 0 else base + end
        for child in block.children:
            if child.kind == "{" and self.is_block(child) and (self.callee(child) or ("",))[0] != "lambda":
                if child.end < offset:
                    begin = max(begin, child.end + 1)
                elif child.start > offset:
                    end = min(end, child.start)
            elif child.start >= begin and child.end < offset and self.control_word(child):
                begin = max(begin, child.end + 1)
        return begin, end


def check(source):
    if source.path in EXEMPT or "co_" not in source.code:
        return
    for directive in _DIRECTIVE.finditer(source.code):
        for match in re.finditer(r"\bco_await\b", directive[0]):
            yield Finding(source.path, source.line_of(directive.start() + match.start()), "await-macro",
                          "co_await in a macro, write it out or make it a function")
    shape = Shape(source.code)
    statements = {}
    owners = {}
    for offset, word, bracket in shape.words:
        owner = shape.owner(bracket)
        if owner:
            owners.setdefault(owner[0], owner[1])
        if word != "co_await":
            continue
        line = source.line_of(offset)
        broken, statement = _judge(shape, offset, bracket)
        if broken:
            yield Finding(source.path, line, *broken)
        if statement in statements:
            yield Finding(source.path, line, "await-twice", f"a second co_await in one statement, {_NAME_IT}")
        statements.setdefault(statement, offset)
    for (block, begin, end), first in statements.items():
        yield from _check_operands(source, shape, block, begin, end, first)
    for callee in owners.values():
        yield from _check_owner(source, shape, callee)


def _judge(shape, offset, bracket):
    """What is wrong with where a co_await stands, as (rule, message) or None; and its statement."""
    levels = [(bracket, offset)]  # From the innermost bracket out to the block.
    while not shape.is_block(levels[-1][0]):
        inner = levels[-1][0]
        levels.append((inner.parent, inner.start))
    block, at = levels[-1]
    begin, end = shape.statement(block, at)
    broken = None
    for depth, (level, at) in enumerate(levels):
        inside = None
        if level is not block:
            inside = shape.direct(level)
        control = shape.control_word(level)
        if level is block:
            piece = shape.direct(level, begin, end)
        elif control:
            base = level.start + 1
            first = base + inside.rfind(";", 0, at - base) + 1
            last = inside.find(";", at - base)
            last = level.end if last < 0 else base + last
            piece = shape.direct(level, first, last)
            broken = _judge_control(shape, control, level, at, first, last, depth == 0) or broken
            begin, end = first, last
        else:
            base = level.start + 1
            first = inside.rfind(",", 0, at - base) + 1
            last = inside.find(",", at - base)
            piece = inside[first : len(inside) if last < 0 else last]
        broken = broken or _judge_expression(piece)
        if level is block or control:
            head = shape.direct(level, begin, at)
            if depth == 0 and _BINDING.search(head):
                broken = broken or ("await-binding", "a structured binding of a co_await, name the result first and "
                                                     "bind its parts in the next statement")
            break
        broken = broken or _judge_bracket(shape, level)
    return broken, (block, begin, end)


def _judge_control(shape, control, level, at, first, last, is_direct):
    inside = shape.direct(level)
    is_initialiser = ";" in inside and last < level.end and ";" not in inside[: at - level.start - 1]
    if is_initialiser:
        return None
    if control != "for" and is_direct and _DECLARATION.fullmatch(shape.direct(level, first, at)):
        return None
    return ("await-condition", f"co_await in the head of `{control}`, {_NAME_IT} or use an initialiser: "
                               "`if (const auto x = co_await ...; x)`")


def _judge_expression(piece):
    if "?" in piece:
        return ("await-ternary", "co_await in a ?:, use if and else")
    expression = re.split(r"(?<![=!<>])=(?!=)", piece, maxsplit=1)[-1]
    if "&&" in expression or "||" in expression:
        return ("await-logical", f"co_await beside && or ||, {_NAME_IT}")
    return None


def _judge_bracket(shape, level):
    before = shape.before(level)[-80:].rstrip()
    if level.kind == "{":
        return ("await-braces", f"co_await in the braces of an initialiser, {_NAME_IT}")
    if level.kind == "(" and re.search(r"\b[A-Z][A-Z0-9_]{2,}$", before):
        return ("await-macro", f"co_await in a macro's argument, {_NAME_IT}")
    if level.kind == "(" and re.search(r"\bstatic_cast<void>$", before):
        return None
    return ("await-nested", f"co_await inside a larger expression, {_NAME_IT}")


def _check_operands(source, shape, block, begin, end, first):
    """What must not be made inside a statement that awaits."""
    waiting = [child for child in block.children if begin <= child.end and child.start < end]
    while waiting:
        bracket = waiting.pop()
        if bracket.kind == "[" and begin <= bracket.start and _captures(shape, bracket):
            yield Finding(source.path, source.line_of(bracket.start), "await-lambda",
                          "a capturing lambda in a statement that awaits is destroyed twice, "
                          "name it first and std::move it in")
        elif bracket.kind == "{" and bracket.start > first and not shape.is_block(bracket):
            if re.match(r'\s*"', shape.code[bracket.start + 1 : bracket.end]):
                yield Finding(source.path, source.line_of(bracket.start), "await-braces",
                              "a braced string literal in a statement that awaits, name the value first")
        if not shape.is_block(bracket):
            waiting.extend(child for child in bracket.children if child.start < end)


def _captures(shape, bracket):
    """Whether a [ opens a lambda that captures."""
    if not shape.code[bracket.start + 1 : bracket.end].strip() or bracket.children and \
            bracket.children[0].kind == "[" and bracket.children[0].start == bracket.start + 1:
        return False
    before = shape.before(bracket)[-20:].rstrip()
    if re.search(r"[\w)\]\"]$", before) and not re.search(r"\b(?:return|co_return|co_await|co_yield)$", before):
        return False
    after = shape.code[bracket.end + 1 : bracket.end + 40].lstrip()
    return bool(re.match(r"[({<]|->|mutable\b|noexcept\b|constexpr\b", after))


def _check_owner(source, shape, callee):
    kind, parameters, captures = callee
    if kind == "lambda" and captures and shape.code[captures.start + 1 : captures.end].strip():
        yield Finding(source.path, source.line_of(captures.start), "coroutine-lambda",
                      "a lambda coroutine loses its captures when the lambda is gone, pass them as parameters "
                      "or make it a class whose run() is the coroutine")
    if parameters is None:
        return
    at = parameters.start + 1
    for text in _split(shape.code[at : parameters.end]):
        value = re.split(r"=", text, maxsplit=1)[0]
        bare = value
        for pair in (r"\([^()]*\)", r"<[^<>]*>"):
            while re.search(pair, bare):
                bare = re.sub(pair, "", bare)
        what = "a reference" if "&" in bare else "a string_view" if "string_view" in bare else None
        if what:
            offset = at + len(text) - len(text.lstrip())
            yield Finding(source.path, source.line_of(offset), "coroutine-reference",
                          f"a coroutine's parameter is {what}, which may be gone when it resumes; take a value, a "
                          "pointer whose life the comment states, or make it a member of the class")
        at += len(text) + 1


def _split(text):
    """Parameters, split at the commas that stand in no bracket."""
    depth, begin = 0, 0
    for i, character in enumerate(text):
        if character in "(<[{":
            depth += 1
        elif character in ")>]}":
            depth -= 1
        elif character == "," and depth == 0:
            yield text[begin:i]
            begin = i + 1
    yield text[begin:]

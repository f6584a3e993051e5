"""Calls that break determinism, and rules about files: names, length, own header first, TODO."""

import re
from fnmatch import fnmatchcase
from pathlib import PurePosixPath

from cpp_source import Finding, is_cpp

# (rule, what it looks like, its name in the message, what to do instead)
BANNED = [
    ("clock",
     r"\b(?:steady|system|high_resolution)_clock\b|\b(?:clock_gettime|gettimeofday|timespec_get)\b"
     r"|(?<![\w.>:])(?:std::|::)?time\s*\(\s*(?:nullptr|NULL|0|&\s*\w+)\s*\)",
     "reads a clock", "ask the core::Clock or the reactor that was handed in"),
    ("random",
     r"(?<![\w.>])(?:std::)?(?:s?rand|rand_r|srandom|[delmn]rand48|arc4random\w*|getrandom|getentropy)\s*\("
     r"|\b(?:random_device|mt19937(?:_64)?|minstd_rand0?|default_random_engine)\b",
     "draws from a generator nobody can replay", "draw from the core::Random that was handed in"),
    ("thread",
     r"\bstd::(?:j?thread\b(?!::)|(?:recursive_|shared_|timed_)*mutex|condition_variable(?:_any)?|lock_guard|unique_lock"
     r"|scoped_lock|shared_lock|async|promise|call_once|counting_semaphore|binary_semaphore|latch|barrier)\b"
     r"|\bpthread_(?:create|mutex\w*|cond\w*|rwlock\w*)\b",
     "makes or blocks threads",
     "use a coroutine, post to the other reactor's mailbox, or give the call to core::Offload"),
    ("sleep",
     r"\bthis_thread\s*::\s*sleep_(?:for|until)\b|\b(?:usleep|nanosleep|clock_nanosleep)\b"
     r"|(?:^|[;{}()=!?]|(?<!\w)::|\breturn\b)[ \t]*sleep\s*\("
     r"|\bp?poll\s*\(\s*(?:nullptr|NULL|0)\s*,",
     "sleeps", "co_await the reactor's timer, or wait for the event itself with a deadline"),
    ("environment", r"\b(?:secure_)?getenv\b", "reads the environment", "read it in main and pass the value down"),
]

# The only files that touch the real world, and what they may do there. The first row that fits counts.
EVERYTHING = {row[0] for row in BANNED}
REAL_WORLD = [
    ("core/posix_clock.cc", {"clock"}),
    ("core/uring_*", {"clock", "sleep"}),
    ("core/poll_*", {"clock", "sleep"}),
    ("core/offload*", {"thread"}),
    ("core/killed_process.*", {"sleep"}),  # Between two tries of a lock; its callers may block.
    ("core/mailbox*", {"thread"}),
    ("core/system_entropy.cc", {"random"}),
    ("daemon/main.cc", EVERYTHING),
    ("daemon/locality_threads.*", {"thread", "clock"}),  # The clock of CPU time.
    ("daemon/admin_*", {"thread", "clock"}),  # A thread for each connection, which waits for the control thread.
    ("daemon/listen_socket.*", {"sleep"}),  # Between two tries of a lock; the start of the server is an offloaded call.
    ("daemon/class_ledger.*", {"thread"}),  # Metrics are asked for on any thread.
    ("daemon/log*", {"thread", "clock", "environment"}),  # JOURNAL_STREAM says whether the journal reads us.
    ("daemon/missing_disks.*", {"thread"}),  # Metrics are asked for on any thread.
    ("daemon/node_disks.*", {"thread"}),  # Metrics are asked for on any thread while disks come and go.
    ("daemon/node_layout.*", {"thread"}),  # Metrics are asked for on any thread.
    ("daemon/repeat_limiter.*", {"thread"}),  # Events come from every thread.
    ("daemon/service_manager.*", {"clock", "environment"}),  # systemd's socket and watchdog are in the environment.
    ("daemon/dev_setup.*", {"random", "environment"}),  # Makes keys, and finds where a user's state belongs.
    ("fabric/ofi/*", {"clock"}),
    ("fabric/mem/mem_network.*", {"thread"}),  # Hosts and listeners are found by name from every thread; data needs no lock.
    ("client/*", EVERYTHING),  # Lives in other people's programs.
    ("tests/*", EVERYTHING - {"sleep", "random"}),
    ("bench/*", EVERYTHING),
    ("docs/libfabric-report.c", {"sleep"}),  # Alone, without anything of ours.
]

RULES = EVERYTHING | {"todo", "file-name", "long-file", "twin-name", "pragma-once", "own-header"}

LINES_MAX = 600
LONG_BECAUSE = "The file is long because"

VAGUE_NAMES = {"util", "utils", "utility", "utilities", "helper", "helpers", "common", "misc", "manager", "managers"}
# What the outside world calls by such a name.
PROPER_NAMES = {"service_manager"}  # systemd
_TODO = re.compile(r"\b(?:TODO|FIXME|XXX|HACK)\b")
# A file up to its first line that is neither empty nor a comment.
_CPP_HEAD = re.compile(r"(?:[ \t]*(?://[^\n]*|#pragma once)?\n|/\*.*?\*/)*", re.DOTALL)
_SCRIPT_HEAD = re.compile(r'(?:[ \t]*(?:#[^\n]*)?\n|""".*?""")*', re.DOTALL)
# Of an anonymous namespace, and in it functions and constants; an alias may be made twice.
# Its end has a comment, which is blank in the code of a source.
_HIDDEN = re.compile(r"^namespace \{\n(.*?)^\} +$", re.DOTALL | re.MULTILINE)
_HIDDEN_FUNCTION = re.compile(r"^(?!using|return|static_assert)[A-Za-z\[][\w:<>,*&\[\] ]*?[ *&](\w+)\(", re.MULTILINE)
_HIDDEN_CONSTANT = re.compile(r"^(?:constexpr|const) [\w:<>*, ]+?\b(\w+)(?:\[\w*\])*(?: =|\{)", re.MULTILINE)
_GOOD_TODO = re.compile(r"TODO\((correctness|limit|speed|cleanup)\): [^\n]*\S")
_BANNED = [(rule, re.compile(pattern, re.MULTILINE), what, instead) for rule, pattern, what, instead in BANNED]


def may_do(path):
    return next((rules for pattern, rules in REAL_WORLD if fnmatchcase(path, pattern)), set())


def check(source):
    allowed = may_do(source.path)
    for rule, pattern, what, instead in _BANNED:
        if rule in allowed:
            continue
        for match in pattern.finditer(source.code):
            word = re.search(r"[\w:]+", match[0])
            yield Finding(source.path, source.line_of(match.start() + word.start()), rule,
                          f"{word[0]} {what}, {instead}")
    yield from _check_todo(source)
    yield from _check_headers(source)


def _check_todo(source):
    for offset, comment in source.comments:
        for match in _TODO.finditer(comment):
            line = source.line_of(offset + match.start())
            good = _GOOD_TODO.match(comment, match.start())
            if not good:
                yield Finding(source.path, line, "todo",
                              "write it as `TODO(correctness|limit|speed|cleanup): sentence.`, or do it")
            elif good[1] == "correctness":
                yield Finding(source.path, line, "todo", "known to be wrong, put it right before it is merged")


def _check_headers(source):
    path = PurePosixPath(source.path)
    if path.suffix in {".h", ".hpp"}:
        if not re.search(r"^#pragma once$", source.code, re.MULTILINE):
            yield Finding(source.path, 1, "pragma-once", "a header without `#pragma once`, add it as the first line")
        return
    own = str(path.with_suffix(".h"))
    includes = source.includes()
    position = next((i for i, include in enumerate(includes) if include.is_ours and include.name == own), None)
    if position:
        yield Finding(source.path, includes[position].line, "own-header",
                      f'include "{own}" first, so that it is compiled on its own')


def check_file_name(path):
    """Any file of the tree."""
    pure = PurePosixPath(path)
    for part in () if pure.parts[0] == "docs" else (*pure.parts[:-1], pure.name.split(".")[0]):
        vague = set() if part in PROPER_NAMES else VAGUE_NAMES.intersection(re.split(r"[_-]", part.lower()))
        if vague:
            yield Finding(path, 1, "file-name", f"'{vague.pop()}' says nothing, name it for the noun it defines")
    if pure.suffix in {".cpp", ".cxx", ".c++", ".hh", ".hxx", ".C"}:
        yield Finding(path, 1, "file-name", "C++ files end in .h and .cc")
    elif pure.suffix in {".h", ".cc"} and not re.fullmatch(r"[a-z0-9_]+\.(?:h|cc)", pure.name):
        yield Finding(path, 1, "file-name", "C++ files are named in snake_case")


def check_length(path, text):
    """Any file of the tree; of those that are neither C++ nor scripts nothing is said."""
    is_script = path.endswith((".py", ".sh")) or text.startswith("#!")
    lines = text.count("\n")
    if lines <= LINES_MAX or not (is_cpp(path) or is_script):
        return
    head = (_SCRIPT_HEAD if is_script else _CPP_HEAD).match(text)[0]
    words = re.sub(r"\s+(?:(?://|#|\*)\s*)?", " ", head)
    if LONG_BECAUSE not in words:
        yield Finding(path, 1, "long-file", f"{lines} lines are more than {LINES_MAX}, divide it where a second noun is hiding, "
                                            f"or say in its first comment: {LONG_BECAUSE} …")


def shares_a_unit(path):
    """Whether a source is compiled together with all others of its folder. Tests are not, and may repeat each other's names."""
    return path.endswith(".cc") and "/" in path and path.split("/", 1)[0] not in {"tests", "bench", "docs"}


def check_twins(sources):
    """Of two hidden functions of a folder with one name, one would silently be called for the other where arguments convert."""
    seen = {}  # (folder, name) -> path
    for source in sources:
        if not shares_a_unit(source.path):
            continue
        for space in _HIDDEN.finditer(source.code):
            for pattern in (_HIDDEN_FUNCTION, _HIDDEN_CONSTANT):
                for match in pattern.finditer(space[1]):
                    first = seen.setdefault((source.folder, match[1]), source.path)
                    if first != source.path:
                        line = source.line_of(space.start(1) + match.start(1))
                        yield Finding(source.path, line, "twin-name", f"`{match[1]}` is in {first} too, which is compiled with this "
                                                                      "file: give one of them another name")

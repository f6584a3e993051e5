#!/usr/bin/env python3
"""Runs clang-tidy 19 on the C++ files that changed, or on all of them.

    scripts/tidy.py [--all]

Changed means: since this branch left origin/main (or, where there is no such branch, in the last commit), or not
committed yet. A header that changed is checked through its own .cc, or else through one file that includes it.
"""

import functools
import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from cpp_source import ROOT, is_cpp, tracked_files

CLANG_TIDY = "clang-tidy-19"


def is_looked_at(path):
    """Of C it asks for functions that no C library has."""
    return path.endswith(".cxx") or is_cpp(path) and not path.endswith(".c")


@dataclass(frozen=True)
class Database:
    """What clang-tidy has to know of files: how they are compiled. Configured, and of the build only the generated
    headers. Precompiled headers are off because they exist only once built."""

    directory: Path
    configure: tuple
    options: tuple

    def entries(self):
        """By the file's name, of those that are our own: not what only tries a header."""
        for command in (("cmake", "--preset", "clang", "-B", str(self.directory), "-DFOPD_FUZZ=ON",
                         "-DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON", *self.configure),
                        ("cmake", "--build", str(self.directory), "--target", "fopd_generated")):
            done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            if done.returncode != 0:
                sys.exit(f"{done.stdout}\ntidy.py: cmake could not prepare {self.directory}")
        self.clean().mkdir(exist_ok=True)
        # clang-tidy takes the rules from the folders above a file, and files compiled together lie below build/.
        for extra in filter(None, (git("ls-files", "*/.clang-tidy") or "").split("\n")):
            shutil.copy(ROOT / extra, self.directory / extra)
        listed = json.loads((self.directory / "compile_commands.json").read_text())
        files = {Path(entry["directory"], entry["file"]): entry for entry in listed}
        return {os.path.relpath(path, ROOT): entry for path, entry in files.items()
                if path.is_relative_to(ROOT) and is_looked_at(str(path)) and "verify_interface" not in str(path)}

    def clean(self):
        """Holds the fingerprints of files without findings."""
        return self.directory / "clean"


ONE_BY_ONE = Database(ROOT / "build" / "tidy", ("-DCMAKE_UNITY_BUILD=OFF",), ())
# Most of the time goes into headers, so files compiled together take much less of it. To the compiler those are files
# that another includes: the analyzer has to be told to look at them.
TOGETHER = Database(ROOT / "build" / "tidy-all", ("-DCMAKE_UNITY_BUILD=ON", "-DCMAKE_UNITY_BUILD_BATCH_SIZE=64"),
                    ("--extra-arg=-Xclang", "--extra-arg=-analyzer-opt-analyze-headers"))


def not_asked(unit):
    """Not of files compiled together: whether an #include of a .cc is meant. Not of tests and benches: what the analyzer
    sees, which takes minutes for what the macros of Catch2 become, where the sanitizers look at every run."""
    parts = Path(unit).parts
    checks = [("bugprone-suspicious-include", "Unity" in parts),
              ("clang-analyzer-*", "tests" in parts or "bench" in parts)]
    without = ",".join(f"-{name}" for name, is_off in checks if is_off)
    return [f"--checks={without}"] if without else []


def git(*arguments):
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else None


def changed_files():
    base = git("merge-base", "HEAD", "origin/main")
    if base is None or base == git("rev-parse", "HEAD"):
        base = git("rev-parse", "HEAD~1") or git("hash-object", "-t", "tree", "/dev/null")
    changed = git("diff", "--name-only", "--diff-filter=d", base)
    untracked = git("ls-files", "--others", "--exclude-standard")
    if changed is None or untracked is None:
        sys.exit("tidy.py: git cannot tell what changed")
    return sorted({name for name in f"{changed}\n{untracked}".split("\n") if is_looked_at(name)})


def includers(sources):
    """Of each header, the files that name it."""
    users = {}
    for path in sources:
        for header in re.findall(r'^#include "(.+?)"', (ROOT / path).read_text(), re.MULTILINE):
            users.setdefault(header, []).append(path)
    return users


def unit_of(path, compiled, users):
    """The nearest compiled file that sees it, none if nothing does."""
    nearest, seen = [re.sub(r"\.(h|hpp)$", ".cc", path), path], set()
    while nearest:
        found = next((each for each in nearest if each in compiled), None)
        if found:
            return found
        seen.update(nearest)
        nearest = sorted({user for each in nearest for user in users.get(each, [])} - seen)
    return None


def units_for(changed, compiled):
    """The compiled files through which clang-tidy sees what changed, and the changed files it cannot see."""
    users = includers([path for path in tracked_files() if is_cpp(path)])
    units = {path: unit_of(path, compiled, users) for path in changed}
    return sorted(set(filter(None, units.values()))), [path for path, unit in units.items() if unit is None]


@functools.cache
def rules():
    """What is the same for all files: the checks, and the program that makes them."""
    version = subprocess.run([CLANG_TIDY, "--version"], capture_output=True, check=True).stdout
    listed = (git("ls-files", ".clang-tidy", "*/.clang-tidy") or ".clang-tidy").split("\n")
    return version + b"".join((ROOT / name).read_bytes() for name in listed)


def fingerprint(command):
    """Of all that decides what clang-tidy says of a file: its text with everything included, and the rules."""
    words = shlex.split(command["command"])
    words = [word for at, word in enumerate(words) if word not in ("-o", "-c") and words[at - 1] != "-o"]
    done = subprocess.run([*words, "-E", "-C"], cwd=command["directory"], capture_output=True)
    if done.returncode != 0:
        return None  # clang-tidy says why.
    return hashlib.sha256(b"\0".join((" ".join(words).encode(), rules(), done.stdout))).hexdigest()


def run_one(unit, command, database):
    """What it finds. A file without findings leaves its fingerprint, and is not looked at again until that changes."""
    text = fingerprint(command)
    if text is None:
        return look_at(unit, database)
    mark = database.clean() / text
    output = "" if mark.exists() else look_at(unit, database)
    if not output:
        mark.touch()
    return output


def look_at(unit, database):
    done = subprocess.run([CLANG_TIDY, "-p", str(database.directory), "--quiet", *database.options, *not_asked(unit), unit],
                          cwd=ROOT, capture_output=True, text=True)
    if done.returncode == 0:
        return ""
    # On stderr it counts the warnings it kept to itself; that is worth reading only if there is nothing else.
    return done.stdout or done.stderr


def look_at_all(units, compiled, database):
    failed = 0
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        runs = pool.map(lambda unit: run_one(unit, compiled[unit], database), units)
        for output in filter(None, runs):
            failed += 1
            print(output.replace(f"{ROOT}/", ""), flush=True)
    print(f"{len(units)} files, {failed} with findings")
    return 1 if failed else 0


def main(arguments):
    if arguments not in ([], ["--all"]):
        sys.exit(__doc__)
    if shutil.which(CLANG_TIDY) is None:
        sys.exit(f"tidy.py: {CLANG_TIDY} is missing, scripts/setup --all installs it")
    if arguments:
        compiled = TOGETHER.entries()
        return look_at_all(sorted(compiled), compiled, TOGETHER)
    changed = changed_files()
    if not changed:
        print("no C++ file changed")
        return 0
    compiled = ONE_BY_ONE.entries()
    units, unseen = units_for(changed, compiled)
    for path in unseen:
        print(f"note: {path} is compiled by nothing, clang-tidy cannot see it")
    if unseen and not units:
        sys.exit("tidy.py: it can see none of what changed")
    return look_at_all(units, compiled, ONE_BY_ONE)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

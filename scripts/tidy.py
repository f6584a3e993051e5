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

from cpp_source import ROOT, is_cpp, tracked_files

CLANG_TIDY = "clang-tidy-19"
# Configured, and of the build only the generated headers: a compilation database of clang is all that is needed.
# Precompiled headers are off because they exist only once built.
DATABASE = ROOT / "build" / "tidy"
CONFIGURE = ["cmake", "--preset", "clang", "-B", str(DATABASE), "-DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON",
             "-DFOPD_FUZZ=ON"]
CLEAN = DATABASE / "clean"
GENERATE = ["cmake", "--build", str(DATABASE), "--target", "fopd_generated"]


def git(*arguments):
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else None


def is_looked_at(path):
    """Of C it asks for functions that no C library has."""
    return is_cpp(path) and not path.endswith(".c")


def changed_files():
    base = git("merge-base", "HEAD", "origin/main")
    if base is None or base == git("rev-parse", "HEAD"):
        base = git("rev-parse", "HEAD~1") or git("hash-object", "-t", "tree", "/dev/null")
    changed = git("diff", "--name-only", "--diff-filter=d", base)
    untracked = git("ls-files", "--others", "--exclude-standard")
    if changed is None or untracked is None:
        sys.exit("tidy.py: git cannot tell what changed")
    return sorted({name for name in f"{changed}\n{untracked}".split("\n") if is_looked_at(name)})


def compiled_files():
    for command in (CONFIGURE, GENERATE):
        done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode != 0:
            sys.exit(f"{done.stdout}\ntidy.py: cmake could not prepare {DATABASE}")
    entries = json.loads((DATABASE / "compile_commands.json").read_text())
    CLEAN.mkdir(exist_ok=True)
    commands = {os.path.relpath(os.path.join(entry["directory"], entry["file"]), ROOT): entry for entry in entries}
    return {path: entry for path, entry in commands.items() if not path.startswith(("..", "build/"))}


def units_for(changed, compiled):
    """The compiled files through which clang-tidy sees what changed, and the changed files it cannot see."""
    units, unseen = set(), []
    for path in changed:
        own = re.sub(r"\.(h|hpp)$", ".cc", path)
        if own in compiled:
            units.add(own)
            continue
        line = f'#include "{path}"'
        user = next((unit for unit in sorted(compiled) if line in (ROOT / unit).read_text()), None)
        if user:
            units.add(user)
        else:
            unseen.append(path)
    return sorted(units), unseen


@functools.cache
def rules():
    """What is the same for all files: the checks, and the program that makes them."""
    version = subprocess.run([CLANG_TIDY, "--version"], capture_output=True, check=True).stdout
    return version + (ROOT / ".clang-tidy").read_bytes()


def fingerprint(command):
    """Of all that decides what clang-tidy says of a file: its text with everything included, and the rules."""
    words = shlex.split(command["command"])
    words = [word for at, word in enumerate(words) if word not in ("-o", "-c") and words[at - 1] != "-o"]
    done = subprocess.run([*words, "-E", "-C"], cwd=command["directory"], capture_output=True)
    if done.returncode != 0:
        return None  # clang-tidy says why.
    return hashlib.sha256(b"\0".join((" ".join(words).encode(), rules(), done.stdout))).hexdigest()


def run_one(unit, command):
    """What it finds. A file without findings leaves its fingerprint, and is not looked at again until that changes."""
    text = fingerprint(command)
    if text is None:
        return look_at(unit)
    mark = CLEAN / text
    output = "" if mark.exists() else look_at(unit)
    if not output:
        mark.touch()
    return output


def look_at(unit):
    done = subprocess.run([CLANG_TIDY, "-p", str(DATABASE), "--quiet", unit], cwd=ROOT, capture_output=True, text=True)
    if done.returncode == 0:
        return ""
    # On stderr it counts the warnings it kept to itself; that is worth reading only if there is nothing else.
    return done.stdout or done.stderr


def main(arguments):
    if arguments not in ([], ["--all"]):
        sys.exit(__doc__)
    if shutil.which(CLANG_TIDY) is None:
        sys.exit(f"tidy.py: {CLANG_TIDY} is missing, scripts/setup --all installs it")
    changed = [path for path in tracked_files() if is_looked_at(path)] if arguments else changed_files()
    if not changed:
        print("no C++ file changed")
        return 0
    compiled = compiled_files()
    units, unseen = units_for(changed, compiled)
    for path in unseen:
        print(f"note: {path} is compiled by nothing, clang-tidy cannot see it")
    failed = 0
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for unit, output in zip(units, pool.map(run_one, units, map(compiled.get, units))):
            if output:
                failed += 1
                print(output.replace(f"{ROOT}/", ""), flush=True)
    print(f"{len(units)} files, {failed} with findings")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

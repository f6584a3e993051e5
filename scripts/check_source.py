#!/usr/bin/env python3
"""Checks every file of the tree, or those named: layers, banned calls, files, coroutines.

Prints `file:line: what is wrong, what to do instead [rule]` and ends with 1 if it found something. A line that must
break a rule says so itself, there or on the line above: `// check: allow(rule) reason`.
"""

import sys

import check_calls
import check_coroutines
import check_layers
from cpp_source import ROOT, Source, is_cpp, tracked_files

RULES = check_layers.RULES | check_calls.RULES | check_coroutines.RULES


def check_cpp(path, text):
    """The findings of one C++ file, given as text so that tests need no files."""
    source = Source(path, text)
    findings = []
    for module in (check_layers, check_calls, check_coroutines):
        for finding in module.check(source):
            if not source.is_allowed(finding.line, finding.rule):
                findings.append(finding)
    findings.extend(source.allow_findings(RULES))
    return sorted(set(findings))


def check_file(path):
    findings = list(check_calls.check_file_name(path))
    text = (ROOT / path).read_text(encoding="utf-8", errors="replace")
    findings += check_calls.check_length(path, text)
    if is_cpp(path):
        findings += check_cpp(path, text)
    elif path.endswith("CMakeLists.txt"):
        findings += check_layers.check_cmake(path, text)
    return findings


def check_tree(paths):
    """What only shows between files."""
    shared = filter(check_calls.shares_a_unit, paths)
    return check_calls.check_twins(Source(path, (ROOT / path).read_text(encoding="utf-8")) for path in shared)


def main(arguments):
    paths = arguments or tracked_files()
    findings = [finding for path in paths for finding in check_file(path)]
    if not arguments:
        findings += check_tree(paths)
    for finding in findings:
        print(finding)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

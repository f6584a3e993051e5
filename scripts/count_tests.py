#!/usr/bin/env python3
"""Adds up JUnit files of ctest and prints `PASSED FAILED SKIPPED`. A file that is missing or broken is an error."""

import sys
import xml.etree.ElementTree as ElementTree


def count(path):
    passed = failed = skipped = 0
    for case in ElementTree.parse(path).getroot().iter("testcase"):
        # ctest: "run" passed, "fail" failed, "notrun" could not be started or skipped itself, "disabled" is switched off.
        status = case.get("status")
        skip = case.find("skipped")
        if status == "run":
            passed += 1
        elif status == "disabled" or (skip is not None and "SKIP" in (skip.get("message") or "")):
            skipped += 1
        else:
            failed += 1
    return passed, failed, skipped


if __name__ == "__main__":
    print(*(sum(column) for column in zip((0, 0, 0), *map(count, sys.argv[1:]))))

#!/usr/bin/env python3
"""Which file clang-tidy is shown for a file that changed."""

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tidy import unit_of  # noqa: E402

COMPILED = {"store/volume.cc", "store/log.cc", "tests/store/log_test.cc"}


class UnitOf(unittest.TestCase):
    def test_a_file_is_seen_through_itself_and_a_header_through_its_own_file(self):
        self.assertEqual(unit_of("store/log.cc", COMPILED, {}), "store/log.cc")
        self.assertEqual(unit_of("store/log.h", COMPILED, {"store/log.h": ["store/volume.cc"]}), "store/log.cc")

    def test_a_header_without_a_file_is_seen_through_the_nearest_that_includes_it(self):
        users = {"store/fid.h": ["store/extent.h"], "store/extent.h": ["store/extent.h", "store/volume.cc"]}
        self.assertEqual(unit_of("store/fid.h", COMPILED, users), "store/volume.cc")

    def test_what_nothing_includes_is_not_seen(self):
        self.assertIsNone(unit_of("store/unused.h", COMPILED, {"store/unused.h": ["store/also_unused.h"]}))


if __name__ == "__main__":
    unittest.main()

#!/usr/bin/env python3
"""bench/io_sched_page.py fills docs/performance.md with tables and plots of the figures that bench_io_sched prints."""

import re
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "bench"))

from figures_page import filled  # noqa: E402
from io_sched_page import EXPERIMENTS  # noqa: E402
from plots import check_within_frame  # noqa: E402


class Figures(dict):
    """Figures as bench_io_sched prints them, and the names that were asked for."""

    def __init__(self):
        super().__init__()
        self.asked = set()

    def __getitem__(self, name):
        self.asked.add(name)
        if re.match("locate_|.*_by_", name):
            return {"4": 50.0, "16": 1234.5, "2000": 0.25}
        return 17974.0


def page_text():
    return (ROOT / "docs" / "performance.md").read_text()


class IoSchedPageTest(unittest.TestCase):
    def test_every_figure_is_one_of_the_program(self):
        figures = Figures()
        filled(page_text(), EXPERIMENTS, figures, "performance")
        source = (ROOT / "bench" / "bench_io_sched.cc").read_text()
        for name in figures.asked:
            composed = re.match("locate_|fair_share_(error_percent|moves_per_hour)_", name)
            with self.subTest(name):
                self.assertTrue(f'"{composed[0] if composed else name}"' in source, f"{name} is not in bench_io_sched.cc")

    def test_tables_and_plots_are_written_again_and_again(self):
        once, plots = filled(page_text(), EXPERIMENTS, Figures(), "performance")
        again, _ = filled(once, EXPERIMENTS, Figures(), "performance")
        self.assertEqual(once, again)
        for name in plots:
            self.assertIn(f"(performance/{name})", once)
        self.assertIn("| fifo | 17 974 | 17 974 s | 1.0 |", once)
        self.assertEqual(sorted(plots), ["e1.svg", "e2.svg", "e3.svg", "e4-mounts.svg", "e4-reads.svg", "e5.svg", "e6.svg"])

    def test_plots_are_drawings_within_their_frame(self):
        _, plots = filled(page_text(), EXPERIMENTS, Figures(), "performance")
        check_within_frame(self, plots)

    def test_a_page_without_the_places_is_refused(self):
        with self.assertRaises(SystemExit):
            filled("# nothing\n", EXPERIMENTS, Figures(), "performance")


if __name__ == "__main__":
    unittest.main()

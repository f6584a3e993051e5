#!/usr/bin/env python3
"""bench/epochs_page.py fills docs/epochs-performance.md with tables and plots of the figures that bench_epochs prints."""

import re
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "bench"))

from epochs_page import EXPERIMENTS  # noqa: E402
from figures_page import filled  # noqa: E402
from plots import check_within_frame  # noqa: E402

OUTCOME = {"reduction": 0.4275, "makespan": 1.0, "mean_fifo": 7.87, "mean": 4.5, "p99_fifo": 8.0, "p99": 8.5, "jain_fifo": 0.997,
           "jain": 0.605, "epochs": 9.0}


def losses(what, ways, amounts):
    # Some make the mean time longer.
    return [OUTCOME | {"what": what, "way": way, "amount": amount, "reduction": -0.272 if way == "wait" else 0.4275}
            for way in ways for amount in amounts]


def figures():
    two, three = ("serve", "wait"), ("serve", "wait", "serve, 10 ms")
    return {
        "latency": [{"members": 10 ** i, "us": 66.5 * i, "messages": 3 * 10 ** i - 3} for i in range(1, 5)],
        "coordination": [OUTCOME | {"servers": servers, "apps": 8, "expected": 0.428, "expected_mean_fifo": 7.87, "expected_mean": 4.5,
                                    "reduction": -0.01 if servers == 1 else 0.4275}
                         for servers in (1, 4, 16)],
        "losses": losses("nothing", three, [0.0]) + losses("no epochs", ("serve",), [0.0]) +
        losses("epoch cost", two, [0.1, 2.0]) + losses("raggedness", two, [0.5, 2.0]) +
        losses("unequal times", two, [0.25, 0.9]) + losses("striping", three, [0.75, 0.0625]),
    }


def page_text():
    return (ROOT / "docs" / "epochs-performance.md").read_text()


class EpochsPageTest(unittest.TestCase):
    def test_every_figure_is_one_of_the_program(self):
        source = (ROOT / "bench" / "bench_epochs.cc").read_text()
        script = (ROOT / "bench" / "epochs_page.py").read_text()
        names = {name for name in re.findall(r"""\[["'](\w+)["']\]""", script) if name not in ("serve", "fifo")}
        for name in names | {"reduction", "p99", "p99_fifo", "jain", "jain_fifo"}:
            with self.subTest(name):
                self.assertIn(f'\\"{name}\\":', source)
        for what in {each["what"] for each in figures()["losses"]}:
            self.assertIn(f'"{what}"', source)

    def test_tables_and_plots_are_written_again_and_again(self):
        once, plots = filled(page_text(), EXPERIMENTS, figures(), "epochs-performance")
        again, _ = filled(once, EXPERIMENTS, figures(), "epochs-performance")
        self.assertEqual(once, again)
        for name in plots:
            self.assertIn(f"(epochs-performance/{name})", once)
        self.assertIn("| 16 | 8 | 7.87; 7.87 | 4.50; 4.50 | 42.8 % | 0.0 % | 8.00 | 8.50 | 0.997 | 0.605 |", once)
        self.assertIn("| 10 000 | 266 µs | 29 997 | 3.00 |", once)
        # All servers, 12 of them, and one.
        for servers in (16, 12, 1):
            self.assertIn(f"| {servers} | 42.8 % | −27.2 % | 42.8 % |", once)
        self.assertEqual(len(plots), 2 + 4 * 3)

    def test_plots_are_drawings_within_their_frame(self):
        _, plots = filled(page_text(), EXPERIMENTS, figures(), "epochs-performance")
        check_within_frame(self, plots)


if __name__ == "__main__":
    unittest.main()

"""docs/reference/metrics.md describes each metric of a real scrape, with its type, labels and unit, and no other."""

import collections
import re
import unittest
from pathlib import Path

from fopd_process import needs_promtool, run_program, wait_until
from storage_process import StorageTestCase

PAGE = Path(__file__).resolve().parent.parent.parent / "docs" / "reference" / "metrics.md"

PARTS_OF_HISTOGRAM = "_bucket _sum _count".split()


def metrics_of_page():
    """name -> (type, labels, unit), in the order of the page."""
    found = {}
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 5 and re.fullmatch("`(fopd|process)_[a-z_]+`", cells[0]):
            name = cells[0].strip("`")
            if name in found:
                raise AssertionError(f"{name} stands twice on the page")
            found[name] = (cells[1], set(re.findall(r"`(\w+)`", cells[2])), cells[3])
    return found


def metrics_of_scrape(text):
    """name, as samples have it -> (type, labels, unit if it is said)."""
    types = dict(re.findall(r"^# TYPE (\S+) (\S+)$", text, re.MULTILINE))
    units = dict(re.findall(r"^# UNIT (\S+) (\S+)$", text, re.MULTILINE))
    labels = collections.defaultdict(set)
    for name, in_braces in re.findall(r"^((?:fopd|process)_\w+)(?:\{(.*)\})? \S+$", text, re.MULTILINE):
        labels[name].update(re.findall(r'(?:^|,)(\w+)="(?:[^"\\]|\\.)*"', in_braces))
    found = {}
    for name, kind in types.items():
        sample = name + "_total" if kind == "counter" else name
        parts = [name + part for part in PARTS_OF_HISTOGRAM] if kind == "histogram" else [sample]
        seen = set().union(*(labels.pop(part, set()) for part in parts))
        found[sample] = (kind, seen - {"le"}, units.get(name))
    if labels:
        raise AssertionError(f"samples without a type: {sorted(labels)}")
    return found


class MetricsPageTest(StorageTestCase):
    """With objects, a class and a rule, so that nothing is missing for want of a series."""

    def make_all_series(self):
        self.ctl("lrs", "set", "tbf")
        self.ctl("lrs", "rule", "add", "writes op={write upload_write} rate=unlimited")
        self.put("object", b"bytes")
        self.assertEqual(self.get("object"), b"bytes")
        wait_until(lambda: "fopd_lrs_rule_served_total{" in self.daemon.metrics_text(), "the rule is in the metrics")
        wait_until(lambda: "fopd_lrs_class_queued{" in self.daemon.metrics_text(), "the class is in the metrics")

    def test_page_and_scrape(self):
        self.make_all_series()

        page, scrape = metrics_of_page(), metrics_of_scrape(self.daemon.metrics_text())

        self.assertEqual(set(page), set(scrape))
        for name, (kind, labels, unit) in scrape.items():
            with self.subTest(metric=name):
                self.assertEqual(page[name][:2], (kind, labels))
                if unit is not None:
                    self.assertEqual(page[name][2], unit)

    @needs_promtool
    def test_promtool_takes_a_scrape(self):
        self.make_all_series()
        text = self.daemon.metrics_text(accept="text/plain")
        done = run_program("promtool", "check", "metrics", stdin=None, input=text)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)

    def test_the_page_is_sorted(self):
        table = []
        for line in PAGE.read_text(encoding="utf-8").splitlines():
            match = re.match("[|] `((?:fopd|process)_[a-z_]+)` [|]", line)
            if match:
                table.append(match[1])
            else:
                self.assertEqual(table, sorted(table))
                table = []


if __name__ == "__main__":
    unittest.main()

#!/usr/bin/env python3
"""The alert rules and the dashboard of systemd/monitoring/ name metrics, labels, causes and sections that exist."""

import json
import os
import re
import shutil
import subprocess
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
RULES = ROOT / "systemd" / "monitoring" / "fopd.rules.yml"
DASHBOARD = ROOT / "systemd" / "monitoring" / "fopd.dashboard.json"
METRICS_PAGE = ROOT / "docs" / "reference" / "metrics.md"
RUNNING_PAGE = ROOT / "docs" / "running.md"

METRIC = re.compile(r"\b(?:fopd|process)_[a-z_]+\b")
# What Prometheus adds to what it scrapes.
LABELS_OF_PROMETHEUS = {"instance", "job", "le", "severity"}


def page_metrics():
    """name -> (type, labels)"""
    found = {}
    for line in METRICS_PAGE.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 5 and METRIC.fullmatch(cells[0].strip("`")):
            found[cells[0].strip("`")] = (cells[1], set(re.findall(r"`(\w+)`", cells[2])))
    return found


def page_values(label):
    """The values of a label that the page lists."""
    line = re.search(rf"^\| `{label}` \| (.*) \|$", METRICS_PAGE.read_text(encoding="utf-8"), re.M)[1]
    return set(re.findall(r"`(\w+)`", line))


def alerts():
    """The alerts, as lists of lines; YAML is not in Python's library."""
    return RULES.read_text(encoding="utf-8").split("      - alert: ")[1:]


def field(alert, name):
    return re.search(rf"^ +{name}: (.*)$", alert, re.M)[1]


def text_of(alert, name):
    """Of an annotation, which is written as JSON would be."""
    return json.loads(field(alert, name))


def expressions_of_dashboard():
    dashboard = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    for panel in dashboard["panels"]:
        for target in panel.get("targets", []):
            yield panel["title"], target["expr"]
    for variable in dashboard["templating"]["list"]:
        if variable["type"] == "query":
            yield variable["name"], variable["definition"]


class MonitoringTest(unittest.TestCase):
    def check_expression(self, expression):
        known = page_metrics()
        names = METRIC.findall(expression)
        for name in names:
            base = re.sub("_(bucket|sum|count)$", "", name)
            is_histogram = known.get(base, ("", ()))[0] == "histogram"
            self.assertTrue(name in known or (base != name and is_histogram), name)
        # Selected by, or summed by: each label is one of the metrics of the expression.
        labels = LABELS_OF_PROMETHEUS.union(*(known.get(re.sub("_(bucket|sum|count)$", "", each), known.get(each, ("", set())))[1]
                                              for each in names))
        for selector in re.findall(r"\{([^}]*)\}", expression):
            self.assertLessEqual(set(re.findall(r'(\w+)\s*(?:=~|!~|!=|=)\s*"', selector)), labels, expression)
        for group in re.findall(r"\bby \(([^)]*)\)", expression):
            self.assertLessEqual(set(group.replace(" ", "").split(",")), labels, expression)

    def test_alerts_name_metrics_that_exist(self):
        self.assertGreaterEqual(len(alerts()), 15)
        for alert in alerts():
            name = alert.split("\n", 1)[0]
            with self.subTest(alert=name):
                expression = field(alert, "expr")
                self.check_expression(expression)
                self.assertTrue(METRIC.search(expression) or expression.startswith("up{"))

    def test_alerts_say_what_to_do(self):
        headings = set(re.findall("^#+ (.*)$", RUNNING_PAGE.read_text(encoding="utf-8"), re.M))
        names = [alert.split("\n", 1)[0] for alert in alerts()]
        self.assertEqual(len(names), len(set(names)))
        for name, alert in zip(names, alerts()):
            with self.subTest(alert=name):
                self.assertRegex(name, "^Fopd[A-Za-z]+$")
                self.assertRegex(field(alert, "labels"), r"^\{ severity: (critical|warning) \}$")
                self.assertIn("{{ $labels.instance }}", text_of(alert, "summary"))
                description = text_of(alert, "description")
                self.assertIn("running.md", description)
                sections = re.findall('"([^"]+)"', description)
                self.assertTrue(sections)
                self.assertLessEqual(set(sections), headings)

    def test_causes_exist(self):
        named = set()
        for alert in alerts():
            for causes in re.findall(r'cause(?:=|=~|!~)"([^"]*)"', field(alert, "expr")):
                named.update(causes.split("|"))
        self.assertTrue(named)
        self.assertLessEqual(named, page_values("cause"))

    def test_results_exist(self):
        for results in re.findall(r'result=~"([^"]*)"', RULES.read_text(encoding="utf-8")):
            self.assertLessEqual(set(results.split("|")), page_values("result"))

    def test_the_dashboard_names_metrics_that_exist(self):
        seen = 0
        for where, expression in expressions_of_dashboard():
            with self.subTest(panel=where):
                self.check_expression(expression)
                self.assertTrue(METRIC.search(expression))
                seen += 1
        self.assertGreater(seen, 30)

    def test_panels_do_not_overlap(self):
        panels = json.loads(DASHBOARD.read_text(encoding="utf-8"))["panels"]
        self.assertEqual(len({each["id"] for each in panels}), len(panels))
        taken = set()
        for each in panels:
            at = each["gridPos"]
            self.assertLessEqual(at["x"] + at["w"], 24)
            cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
            self.assertFalse(cells & taken, each["title"])
            taken |= cells

    # In a full run, scripts/test has installed it, or this fails.
    @unittest.skipUnless("FOPD_FULL_RUN" in os.environ or shutil.which("promtool"), "promtool is not installed")
    def test_promtool_takes_the_rules(self):
        done = subprocess.run(["promtool", "check", "rules", RULES], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main()

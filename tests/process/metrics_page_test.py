"""docs/reference/metrics.md describes each metric of a real scrape, with its type, labels and unit, and no other."""

import collections
import re
import unittest
from pathlib import Path

from fopd_process import DONE, needs_promtool, run_program, wait_until
from storage_process import MIB, StorageTestCase

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
        config = self.dir / "fopd.yaml"
        config.write_text(config.read_text().replace("{ name: fast }", "{ name: fast, quota: 1TiB }"))
        self.ctl("reload")
        self.ctl("key", "create", "ann", "--quota", "fast=1GiB,1000", "--out", self.directory / "ann.key")
        self.ctl("lrs", "set", "tbf")
        self.ctl("lrs", "rule", "add", "writes op={write upload_write} rate=unlimited")
        self.ctl("lrs", "rule", "add", "shared * rate=1000000/s scope=cluster")
        self.put("object", b"bytes")
        self.assertEqual(self.get("object"), b"bytes")
        wait_until(lambda: "fopd_lrs_rule_served_total{" in self.daemon.metrics_text(), "the rule is in the metrics")
        wait_until(lambda: "fopd_lrs_class_share{" in self.daemon.metrics_text(), "the share of a class is in the metrics")
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

    def test_a_scrape_has_few_lines(self):
        """However many kinds of fops there were."""
        self.make_all_series()
        self.ctl("append", "object", data=b"more")
        self.ctl("write", "object", "--offset", 0, data=b"B")
        self.ctl("read", "object", "--offset", 0, "--length", 1)
        self.ctl("truncate", "object", 3)
        self.ctl("punch", "object", "--offset", 0, "--length", 1)
        self.ctl("stat", "object")
        self.ctl("mv", "object", "other")
        self.put("large", bytes(MIB))
        self.names()
        self.ctl("ls", "--long")
        self.ctl("df")
        self.ctl("quota")
        self.ctl("rm", "other")
        lines = self.daemon.metrics_text().splitlines()
        of = collections.Counter(re.match("[a-z_]+", line)[0] for line in lines if not line.startswith("#"))
        kinds = {match[1] for match in re.finditer(r'^fopd_fop_duration_seconds_count\{op="(\w+)"\}', "\n".join(lines), re.M)}

        self.assertGreaterEqual(len(kinds), 15, kinds)
        self.assertEqual(of["fopd_fop_duration_seconds_bucket"], 13 * len(kinds))
        self.assertEqual(of["fopd_fop_seconds_bucket"], 5 * of["fopd_fop_seconds_count"])
        self.assertLess(len(lines), 2000 + 100 * (of["fopd_locality_turns_total"] - 1), of.most_common(10))

    def test_the_state_of_the_node_and_its_reloads(self):
        def metric(name):
            return self.daemon.metrics()[name]
        self.assertEqual({name: value for name, value in self.daemon.metrics().items()
                          if name.startswith("fopd_node_state{") and value}, {'fopd_node_state{state="ready"}': 1})
        started = metric("process_start_time_seconds")
        self.assertEqual(metric("fopd_config_last_reload_successful"), 1)
        read_at = metric("fopd_config_last_reload_success_timestamp_seconds")
        self.assertGreaterEqual(read_at, int(started))
        config = self.dir / "fopd.yaml"
        good = config.read_text()
        config.write_text(good.replace("pools:", "pools: wrong\nother:"))
        self.assertNotEqual(self.ctl_bytes("reload").returncode, DONE)
        self.assertEqual(metric("fopd_config_last_reload_successful"), 0)
        self.assertEqual(metric("fopd_config_last_reload_success_timestamp_seconds"), read_at)
        config.write_text(good)
        # Until it is in a later second.
        wait_until(lambda: self.ctl("reload") is not None
                   and metric("fopd_config_last_reload_success_timestamp_seconds") > read_at, "a later time")
        self.assertEqual(metric("fopd_config_last_reload_successful"), 1)
        self.ctl("drain")
        self.assertEqual(metric('fopd_node_state{state="drained"}'), 1)
        self.assertEqual(metric('fopd_node_state{state="ready"}'), 0)

    def test_quotas(self):
        self.make_all_series()
        self.put("large", bytes([1]) * MIB, "--key", self.directory / "ann.key")
        ann = '{pool="fast",principal="ann"}'
        metrics = self.daemon.metrics()
        self.assertEqual(metrics["fopd_principal_used_bytes" + ann], MIB)
        self.assertEqual(metrics["fopd_principal_objects" + ann], 1)
        self.assertEqual(metrics["fopd_principal_quota_bytes" + ann], 1 << 30)
        self.assertEqual(metrics["fopd_principal_quota_objects" + ann], 1000)
        self.assertEqual(metrics['fopd_pool_quota_bytes{pool="fast"}'], 1 << 40)
        self.assertEqual(metrics['fopd_pool_objects{pool="fast"}'], 2)
        self.assertEqual(metrics['fopd_pool_used_bytes{pool="fast"}'], MIB + 4096)

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

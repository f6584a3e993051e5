"""A real daemon is scraped before and while there is the cause of an alert of systemd/monitoring/fopd.rules.yml. promtool evaluates
the rules with these figures as if they stayed so for hours, and as if counters rose each minute by what they rose between the two
scrapes. So no test waits until an alert that is pending fires. The time of the second scrape is 0 for promtool: figures that are
times are shifted.
"""

import json
import re
import time
from pathlib import Path

from fopd_process import run_program, wait_until
from held_disk import HeldDisk
from storage_process import MIB, StorageTestCase

RULES = Path(__file__).resolve().parent.parent.parent / "systemd" / "monitoring" / "fopd.rules.yml"
LABELS_OF_PROMETHEUS = 'instance="node-a:9420",job="fopd"'
MINUTES = 120  # Longer than any alert is pending.

# A disk of a busy machine may be slow at any time.
NOT_EXCLUDED = {"FopdDiskSlow"}


def all_alerts():
    return re.findall(r"^      - alert: (\w+)$", RULES.read_text(encoding="utf-8"), re.M)


def fires(*alerts):
    """Marks a test that makes the cause of these alerts."""
    def mark(test):
        test.alerts = alerts
        return test
    return mark


def promtool_series(series, start, added, minutes=MINUTES):
    name, _, labels = series.partition("{")
    labels = f"{LABELS_OF_PROMETHEUS},{labels}" if labels else LABELS_OF_PROMETHEUS + "}"
    return {"series": f"{name}{{{labels}", "values": f"{start:.6f}+{added:.6f}x{minutes}"}


class Scrape:
    def __init__(self, daemon):
        self.at = time.time()
        text = daemon.metrics_text(accept="text/plain")
        self.counters = set(re.findall(r"^# TYPE (\S+) counter$", text, re.M))
        self.values = {}
        for line in text.splitlines():
            if not line.startswith("#"):
                series, value = line.rsplit(" ", 1)
                self.values[series] = float(value)

    def series_since(self, earlier, minutes=MINUTES, rising=()):
        """As they are for promtool. Ages are `rising` if their cause stays: by a minute in each minute."""
        found = [promtool_series("up", 1, 0, minutes)]
        for series, value in self.values.items():
            name = series.partition("{")[0]
            added = value - earlier.values.get(series, 0) if name in self.counters else 0
            added = 60 if name in rising else added
            shifted = value - self.at if name.endswith("_timestamp_seconds") else value
            found.append(promtool_series(series, shifted, added, minutes))
        return found


class AlertTestCase(StorageTestCase):
    held_disk = None

    def tearDown(self):
        if self.held_disk is not None:
            self.held_disk.release()
        super().tearDown()

    def promtool(self, series, firing, minute=MINUTES):
        """These alerts fire then, and no others."""
        quiet = set(all_alerts()) - NOT_EXCLUDED - set(firing)
        test = {"interval": "1m", "input_series": series,
                "alert_rule_test": [{"eval_time": f"{minute}m", "alertname": each, "exp_alerts": []} for each in sorted(quiet)],
                "promql_expr_test": [{"eval_time": f"{minute}m", "expr": f'group(ALERTS{{alertname="{each}",alertstate="firing"}})',
                                      "exp_samples": [{"labels": "{}", "value": 1}]} for each in firing]}
        # JSON is YAML, too.
        file = self.directory / "alerts.yml"
        file.write_text(json.dumps({"rule_files": [str(RULES)], "evaluation_interval": "1m", "tests": [test]}))
        done = run_program("promtool", "test", "rules", file)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def expect_firing(self, earlier=None, more=()):
        """The alerts of this test, and `more`, with the figures of now."""
        scrape = Scrape(self.daemon)
        firing = [*getattr(self, self._testMethodName).alerts, *more]
        self.promtool(scrape.series_since(earlier or scrape), firing)

    def wait_health(self, cause):
        """The metric is some seconds old."""
        wait_until(lambda: any(value and f'cause="{cause}"' in series for series, value in Scrape(self.daemon).values.items()
                               if series.startswith("fopd_health_problems{")), f"the problem {cause} is in the metrics")

    def wait_metric(self, series, condition):
        wait_until(lambda: condition(self.daemon.metrics()[series]), f"{series} is so")

    def change_config(self, old, new):
        config = self.dir / "fopd.yaml"
        self.assertIn(old, config.read_text())
        config.write_text(config.read_text().replace(old, new))

    def start_on_held_disk(self, settings=""):
        """The daemon, with one disk whose operations a test can delay and hold, and nothing on it."""
        self.stop()
        mount_point = self.directory / "held"
        mount_point.mkdir()
        disk = self.held_disk = HeldDisk(mount_point, self.directory / "held.img", 256 * MIB)
        self.addCleanup(disk.close)
        config = self.dir / "fopd.yaml"
        lines = [line for line in config.read_text().splitlines() if "d1.img" not in line]
        text = "\n".join(re.sub(r"path: .*d0\.img.*", f"path: {disk.path}, pool: fast }}", line) for line in lines) + "\n"
        self.assertIn(str(disk.path), text)
        config.write_text(text + settings)
        self.forget_disks()
        self.start()
        return disk

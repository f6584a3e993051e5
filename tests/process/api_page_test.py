"""docs/reference/api.md against a real daemon: the answers have the fields of the page, and refusals the statuses."""

import json
import re
import subprocess
import unittest
from pathlib import Path
from urllib.parse import quote

from json_rules import faults
from json_test import IDENTIFIERS, Page
from storage_process import StorageTestCase

PAGE = Path(__file__).resolve().parent.parent.parent / "docs" / "reference" / "api.md"
# What has to be given for an answer, and what must be done before.
PARAMETERS = {"/v1/lrs/which": "request=op%3Dread", "/v1/log-level": "level=info", "/v1/lrs/rule/add": "rule=" + quote("a job=x rate=9/s"),
              "/v1/lrs/rule/change": "rule=" + quote("a rate=5/s"), "/v1/lrs/rule/del": "name=a", "/v1/lrs/set": "policy=tbf", "/v1/io_sched/set": "tape.read_algo=fifo"}
# These change the disks, end the node's work, need a body or peers, or answer with bytes; tests of their own run them. The last
# one needs a file that was saved.
NOT_ASKED = {"/v1/device/add", "/v1/device/remove", "/v1/device/forget", "/v1/drain", "/v1/store/backup-part",
             "/v1/store/backup-end", "/v1/lrs/rule/load", "/v1/epoch/force", "/v1/lrs/saved"}
# By verb, when the arguments are not the verb alone.
ARGUMENTS = {"lrs which": ["op=read"], "log-level": ["info"], "lrs rule add": ["b job=y rate=7/s"], "lrs rule change": ["b rate=6/s"],
             "lrs rule del": ["b"], "lrs set": ["tbf", "max_foms=99"], "io-sched set": ["tape.write_algo=fifo"]}


def rows():
    """(method, path), answer, statuses."""
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        match = re.fullmatch(r"`(\w+) (/v1/\S+)`", cells[0])
        if match:
            yield *match.groups(), cells[2], [int(each) for each in cells[3].split(", ") if each]


def shape(value):
    """The fields of an object, or of the first element of a list."""
    if isinstance(value, list):
        return ["list", shape(value[0]) if value else None]
    return sorted(value) if isinstance(value, dict) else None


class ApiPageTest(StorageTestCase):
    def ask(self, method, path, parameters=""):
        return self.daemon.ask(method, path + ("?" + parameters if parameters else ""))

    def test_answers(self):
        self.put("object", b"bytes")
        # Fields have the same meaning on both pages.
        identifiers = {re.split(r"[.\[\]]+", row.path)[-1] for row in Page().rows if IDENTIFIERS & set(row.types)}
        for method, path, answer, _ in rows():
            if path in NOT_ASKED:
                continue
            with self.subTest(path):
                status, value = self.ask(method, path, PARAMETERS.get(path, ""))
                self.assertEqual(status, 200, value)
                self.assertEqual(faults(value, lambda path: path.split(".")[-1].strip("[]") in identifiers), [])
                verb = re.fullmatch("as `(.*)`", answer)
                if verb is None:
                    fields = [re.search(r"`(\w+)`(?: and `(\w+)`)?", each) for each in answer.split(";")]
                    self.assertEqual(shape(value), sorted(name for each in fields for name in each.groups() if name))
                elif not path.startswith("/v1/store/"):  # Their verbs write a file, or wait.
                    printed = json.loads(self.ctl("--json", *verb[1].split(), *ARGUMENTS.get(verb[1], [])))
                    self.assertEqual(shape(value), shape(printed))
        printed = json.loads(self.ctl("--json", "lrs", "save"))
        self.assertEqual(shape(self.ask("POST", "/v1/lrs/saved")[1]), shape(printed))

    def test_refusals(self):
        for method, path, _, statuses in rows():
            with self.subTest(path):
                other = {"GET": "POST", "POST": "GET"}[method]
                self.assertEqual(self.ask(other, path)[0], 405)
                self.assertEqual(self.ask(method, path, "a=1&a=2")[0], 400)
                if 400 in statuses and path not in ("/v1/trace", "/v1/scrub", "/v1/store/check", "/v1/lrs/which") \
                        and not path.startswith("/v1/lrs/rule/"):
                    status, value = self.ask(method, path)
                    self.assertEqual((status, sorted(value)), (400, ["error"]))
        for parameters, path, status in (
                ("id=x", "/v1/trace", 400), ("id=5f3a-17", "/v1/trace", 404), ("device=none", "/v1/device/remove", 404),
                ("do=x", "/v1/scrub", 400), ("device=none", "/v1/store/check", 404), ("request=op%3Dnone", "/v1/lrs/which", 400),
                ("if_version=x", "/v1/lrs/rule/load", 400), ("if_version=1", "/v1/lrs/rule/load", 409),
                ("name=none", "/v1/lrs/rule/del", 404), ("rule=x", "/v1/lrs/rule/add", 422), ("policy=none", "/v1/lrs/set", 422),
                ("backup=9&at=0", "/v1/store/backup-part", 404)):
            with self.subTest(path):
                method = next(each[0] for each in rows() if each[1] == path)
                found, value = self.ask(method, path, parameters)
                self.assertEqual(found, status, value)
                self.assertIn("error", value)
        self.assertEqual(self.ask("GET", "/v1/none")[0], 404)

    def test_the_commands_of_the_page(self):
        for line in re.findall("^    (curl .*)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE):
            line = line.replace("/run/fopd/admin.sock", str(self.daemon.socket_path))
            done = subprocess.run(["sh", "-c", line], check=True, capture_output=True, text=True)
            self.assertNotIn("error", json.loads(done.stdout))


if __name__ == "__main__":
    unittest.main()

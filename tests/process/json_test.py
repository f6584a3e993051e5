"""docs/formats/json.md describes each field that `fopctl --json` prints, with its type, and no other; all of it has one shape.

The tables of the page become trees of forms, with which everything is compared that the verbs print here, and each example
of the page. In the end each row of a table must have been seen, so that nothing stays on the page that is printed no more.
"""

import json
import os
import re
import unittest
from pathlib import Path

from epochs_process import EpochsTestCase
from fopd_process import DONE, NO_SERVER, wait_until
from help_test import verbs
from json_rules import faults
from storage_process import NOT_FOUND, REFUSED, SECONDS, USAGE, StorageTestCase

PAGE = Path(__file__).resolve().parent.parent.parent / "docs" / "formats" / "json.md"

# What they print is not JSON, or nothing at all.
VERBS_WITHOUT_JSON = {"read", "batch", "shell", "keygen", "key revoke", "token revoke"}
# What only a check finds that meets a damaged index or log, and what a test of its own sees.
NOT_SEEN_HERE = re.compile(r"`epoch force`|`store check` checks\[\]\.found\[\]|`queue` recalls\[\]|`queue` formats\[\]|`queue` reason|`stage` staged\[\]\.reason|`repack` failed\[\]|"
                           r"`rescue` rescues\[\]\.failed\[\]|"
                           r"`scrub --medium`, `scrub --pool` scrubs\[\]\.failed\[\]")

BOOLEAN, LISTS_OF_TEXTS = "true or false", ("list of texts", "list of identifiers")
IDENTIFIERS = {"identifier", "list of identifiers"}
TYPES = {
    "text": lambda value: isinstance(value, str),
    "identifier": lambda value: isinstance(value, str),
    "whole number": lambda value: type(value) is int,
    "number": lambda value: type(value) in (int, float),
    BOOLEAN: lambda value: isinstance(value, bool),
    "list": lambda value: isinstance(value, list),
    **{name: lambda value: isinstance(value, list) and all(isinstance(each, str) for each in value) for name in LISTS_OF_TEXTS},
    "object": lambda value: isinstance(value, dict),
    "null": lambda value: value is None,
}


class Row:
    """Of a table of the page."""

    def __init__(self, section, path, type_cell):
        self.name = f"{section} {path}"
        self.path = path
        words, optional, _ = type_cell.partition(", optional")
        self.types = [each.replace("boolean", BOOLEAN) for each in words.replace(BOOLEAN, "boolean").split(" or ")]
        self.is_optional = bool(optional)
        self.is_seen = False


class Form:
    """What a value may be, and the forms of its fields or elements."""

    def __init__(self, path):
        self.path = path
        self.types = set()
        self.is_optional = False
        self.fields = {}  # "[]" is for the elements of a list.
        self.rows = []  # What the page says of it.

    def child(self, token):
        if token not in self.fields:
            between = "" if token == "[]" else "." if ": " in self.path else ": "
            self.fields[token] = Form(self.path + between + token)
        return self.fields[token]

    def describe(self, row, shared):
        """`shared` has the rows of forms with a name."""
        self.rows.append(row)
        self.is_optional = row.is_optional
        for each in row.types:
            if each in shared:
                self.add(shared[each], shared)
                self.types.add("object")
            elif each in TYPES:
                self.types.add(each)
            else:
                raise AssertionError(f"{self.path}: {each!r} is no type")

    def add(self, rows, shared):
        for row in rows:
            form = self
            for token in re.findall(r"\[\]|[^.\[\]]+", row.path):
                form = form.child(token)
            if form is not self and form.types:
                raise AssertionError(f"{form.path} stands twice on the page")
            form.describe(row, shared)

    def compare(self, value, differences):
        for row in self.rows:
            row.is_seen = True
        # Elements of which only the fields have rows are objects.
        types = self.types or {"object"}
        if not any(TYPES[each](value) for each in types):
            differences.append(f"{self.path} is {json.dumps(value)}, not {' or '.join(sorted(types))}")
        elif isinstance(value, list):
            if "[]" in self.fields:
                for each in value:
                    self.fields["[]"].compare(each, differences)
            elif value and not types & set(LISTS_OF_TEXTS):
                differences.append(f"{self.path}: the page does not have its elements")
        elif isinstance(value, dict):
            for name, each in value.items():
                if name in self.fields:
                    self.fields[name].compare(each, differences)
                else:
                    differences.append(f"{self.path}: the page does not have {name}")
            for name, form in self.fields.items():
                if name not in value and not form.is_optional:
                    differences.append(f"{self.path}: {name} is not there, and not optional")


    def is_identifier(self, path):
        """Whether the page says so of the value at this path."""
        form = self
        for token in re.findall(r"\[\]|[^.\[\]]+", path):
            if token not in form.fields:
                return token == "[]" and "list of identifiers" in form.types
            form = form.fields[token]
        return bool(form.types & IDENTIFIERS)

    def faults(self, value):
        """How it differs from the page, and from what all JSON has in common."""
        differences = faults(value, self.is_identifier)
        self.compare(value, differences)
        return differences


class Section:
    def __init__(self, title):
        self.title = title
        self.names = re.findall("`([^`]+)`", title)  # Of the verbs.
        self.rows = []
        self.example = ""


def sections_of_page():
    sections = []
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("#"):
            sections.append(Section(line.lstrip("# ")))
        elif line.startswith("    "):
            sections[-1].example += line + "\n"
        elif line.startswith("| `") and len(cells) == 4:
            sections[-1].rows.append(Row(sections[-1].title, cells[0].strip("`"), cells[1]))
    return sections


def unique_fields(pairs):
    names = [name for name, _ in pairs]
    assert len(set(names)) == len(names), names
    return dict(pairs)


def parsed(text):
    return json.loads(text, object_pairs_hook=unique_fields)


class Page:
    def __init__(self):
        sections = [each for each in sections_of_page() if each.rows]
        self.shared = {each.title.lower(): each.rows for each in sections if not each.names}  # And errors.
        self.rows = [row for each in sections for row in each.rows]
        self.forms = {}  # By verb, as the page has it, or by the name of a shared form.
        self.examples = []  # (form, text)
        for section in sections:
            names = section.names or [section.title.lower()]
            for name in names:
                if name in self.forms:
                    raise AssertionError(f"{name} stands twice on the page")
                self.forms[name] = self._form(name, section.rows)
            if section.example:
                self.examples.append((self._form(f"example of {names[0]}", section.rows), section.example))
        no_json = PAGE.read_text(encoding="utf-8").partition("## Verbs that print no JSON\n")[2].partition("\n#")[0]
        self.without_json = set(re.findall("^[|] `([a-z ]+)` [|]", no_json, re.MULTILINE))

    def _form(self, path, rows):
        form = Form(path)
        form.types.add("object")
        form.add(rows, self.shared)
        return form

    def verbs(self):
        return {re.sub(" (-r|--medium|--pool|FOP)$", "", name) for name in self.forms if name not in self.shared}


class PageTest(unittest.TestCase):
    def test_help_and_page_have_the_same_verbs(self):
        page = Page()
        in_help = {" ".join(each) for each in verbs()}
        self.assertEqual(page.without_json, VERBS_WITHOUT_JSON)
        self.assertEqual(in_help, page.verbs() | VERBS_WITHOUT_JSON)
        self.assertFalse(page.verbs() & VERBS_WITHOUT_JSON)

    def test_examples(self):
        examples = Page().examples
        self.assertGreater(len(examples), 35)
        for form, text in examples:
            with self.subTest(form.path):
                self.assertEqual(form.faults(parsed(text)), [])

    def test_rules_of_all_json(self):
        def found(value, *identifiers):
            return [each.split(" ")[0] for each in faults(value, identifiers.__contains__)]

        self.assertEqual(found([{"name": "a"}]), ["."])
        for text in ("0", "-1", "128", "2.5", "1e3", "4096 B", "4096B", "1GiB", "64k", "12.3 ms", "1ms", "10 s", "3 h", "1d", "95%", "95 %",
                     "20000/s", "50MB/s", "7 bytes"):
            with self.subTest(text):
                self.assertEqual(found({"a": text}), ["a"])
                self.assertEqual(found({"a": {"b": [{"c": text}]}}), ["a.b[].c"])
                self.assertEqual(found({"a": [text, "x"]}), ["a[]"])
                self.assertEqual(found({"a": text, "b": [text]}, "a", "b[]"), [])
        for text in ("", "-", "good", "default * rate=5/s", "2026-11-26T14:38:30.525309797Z", "tcp://127.0.0.1:31470", "0.1.0 (732e96f0)",
                     "3 of 5 objects cannot be read"):
            self.assertEqual(found({"a": text}), [], text)
        for mixed in (["a", 1], [1], [{"a": 1}, "b"], [[1, 2]], [None]):
            self.assertEqual(found({"a": mixed})[0], "a", mixed)
        self.assertEqual(found({"a": [], "b": ["x"], "c": [{"d": 1}, {"d": 2}]}), [])

    def test_identifiers_of_the_page(self):
        forms = Page().forms
        self.assertTrue(forms["stat"].is_identifier("fid"))
        self.assertTrue(forms["key list"].is_identifier("principals[].groups[]"))
        for verb, path in (("stat", "created"), ("key list", "principals[].rights[]"), ("lrs show", "settings[].value"), ("stat", "none")):
            self.assertFalse(forms[verb].is_identifier(path), path)


class EpochJsonTest(EpochsTestCase):
    """A cluster of one daemon."""

    names = ("a",)

    def test_what_is_printed(self):
        page, daemon = Page(), self.start_all()["a"]
        for verb, arguments in (("epoch show", []), ("epoch force", ["--yes"]), ("status", [])):
            done = daemon.ctl("--json", *verb.split(), *arguments)
            self.assertEqual((done.returncode, done.stderr), (DONE, ""))
            self.assertEqual(page.forms[verb].faults(parsed(done.stdout)), [], done.stdout)


class JsonTest(StorageTestCase):
    def setUp(self):
        super().setUp()
        self.page = Page()
        self.compared = set()

    def compare(self, name, text):
        """The value, when it has the form that the page has under this name."""
        self.compared.add(name)
        value = parsed(text)
        self.assertEqual(self.page.forms[name].faults(value), [], text)
        return value

    def printed(self, name, *arguments, exit_code=DONE, **options):
        """What the verb of this name prints."""
        return self.compare(name, self.ctl("--json", *name.split(), *arguments, exit_code=exit_code, **options))

    def test_what_is_printed(self):
        self.use_objects()
        self.use_trees()
        self.use_tape()
        self.use_network()
        self.use_scheduler()
        self.use_node()
        self.use_disks()
        self.use_keys()
        self.use_errors()
        self.lose_a_disk()
        self.drain()

        self.assertEqual(self.compared - {"errors"}, set(self.page.forms) - set(self.page.shared) - {"epoch force"})
        unseen = [row.name for row in self.page.rows if not row.is_seen]
        self.assertEqual([each for each in unseen if not NOT_SEEN_HERE.match(each)], [])

    def use_objects(self):
        names = "abcdefghijklmnop"  # On both disks.
        for name in names:
            self.printed("put", "-", name, data=b"bytes")
        self.printed("get", "a", self.directory / "a", "--explain")
        self.assertEqual(self.ctl("--json", "get", "a", "-"), b"bytes")
        self.assertEqual(self.ctl("--json", "read", "a"), b"bytes")
        self.printed("write", "a", "--offset", 0, data=b"other")
        self.assertEqual(self.printed("append", "a", data=b"more")["offset"], 5)
        self.assertIsNone(self.printed("append", "a")["offset"])
        self.assertEqual([each["name"] for each in self.printed("ls")["objects"]], list(names))
        self.printed("ls", "--long")
        self.assertEqual(self.printed("ls", "nothing"), {"objects": []})
        fid = self.printed("stat", "a")["fid"]
        self.assertEqual(self.printed("stat", "--fid", fid)["name"], "a")
        self.assertEqual([each["name"] for each in self.printed("ls", "--fid", fid)["objects"]], ["a"])
        self.printed("truncate", "a", 100)
        self.printed("punch", "a", "--offset", 0, "--length", 10)
        self.printed("chmod", 640, "a")
        self.printed("chown", ":staff", "a")
        self.printed("sync")
        self.printed("sync", "a")
        self.printed("df")
        self.assertIn(None, [each["owner"] for each in self.printed("quota")["quotas"]])
        self.printed("put", "-", "old", data=b"bytes")
        self.printed("mv", "old", "new")
        removed = self.printed("rm", "new", "nothing", exit_code=NOT_FOUND)["removed"]
        self.assertEqual([each["name"] for each in removed], ["new"])

    def use_trees(self):
        tree = self.directory / "tree"
        tree.mkdir()
        (tree / "file").write_bytes(b"bytes")
        self.printed("put -r", "--dry-run", tree, "t/")
        self.printed("put -r", tree, "t/")
        self.assertEqual(len(self.printed("put -r", "--no-replace", tree, "t/", exit_code=REFUSED)["failed"]), 1)
        self.printed("get -r", "t/", self.directory / "copy")
        self.printed("mirror put", "--delete", tree, "t/")
        self.printed("mirror get", "--delete", "t/", self.directory / "copy")
        self.printed("rm -r", "t/", "--yes")

    def use_tape(self):
        cold = ("--pool", "cold")
        self.printed("put", "-", "on-tape", *cold, data=b"bytes")
        self.printed("sync", *cold)
        self.printed("release", "on-tape", *cold)
        on_tape = self.printed("stat", "on-tape", *cold)
        self.assertEqual((on_tape["on_disk"], len(on_tape["copies"])), (False, 1))
        self.assertEqual(self.printed("stage", "on-tape", *cold)["staged"][0]["state"], "waiting")
        self.printed("queue")
        self.printed("get", "on-tape", self.directory / "on-tape", *cold)
        self.assertEqual(self.printed("queue"), {"total": 0, "oldest_s": None, "recalls": [], "formats": []})
        self.cancel_a_recall(cold)
        media = self.printed("media")["media"]
        used = next(each["name"] for each in media if each["files"] > 0)
        self.assertEqual(self.printed("scrub --medium", used)["scrubs"][0]["state"], "done")
        self.assertTrue(self.printed("scrub --pool", "cold", "--show")["scrubs"])
        self.assertEqual(self.printed("repack", used, "--show")["state"], "none")
        self.assertEqual(self.printed("repack", used)["state"], "done")
        media = self.printed("media")["media"]
        used = next(each["name"] for each in media if each["files"] > 0 and each["name"] != used)
        blank = next(each["name"] for each in media if each["state"] == "blank")
        self.assertEqual([each["name"] for each in self.printed("drives")["drives"]], ["vtl0-drive0", "vtl0-drive1"])
        drives = {each["drive"] for each in media} - {None}
        for drive in drives:
            self.printed("unload", drive)
        self.printed("drive down", next(iter(drives)))
        self.printed("drive up", next(iter(drives)))
        self.assertEqual(self.printed("rescue", blank)["rescues"][0]["state"], "done")
        self.assertTrue(self.printed("rescue", "--all", "--show")["rescues"])
        self.assertEqual(self.printed("export", blank)["mail_slot"], True)
        self.assertEqual(self.printed("import")["media"], [{"name": blank, "state": "blank", "reason": ""}])
        self.printed("format", blank, *cold)
        self.printed("load", used, drives.pop())

    def cancel_a_recall(self, cold):
        """The recall of a large object takes longer than the start of a program, most of the time."""
        self.ctl("put", "-", "large", *cold, data=bytes(64 << 20))
        self.ctl("sync", *cold)
        for _ in range(50):
            self.ctl("release", "large", *cold)
            self.ctl("stage", "large", *cold)
            done = self.ctl_bytes("--json", "cancel", "large", *cold)
            if done.returncode == DONE:
                self.compare("cancel", done.stdout)
                return
            self.ctl("get", "large", self.directory / "large", *cold)
        self.fail("no recall was cancelled")

    def use_network(self):
        self.printed("ping", "--count", 1)
        self.printed("bench", "--seconds", 0.1)
        parts = ["total", "unsent", "network", "policy", "buffer", "lock", "client", "room", "disk_queue", "disk", "log", "locality", "server"]
        for op in ("echo", "write"):
            done = self.printed("bench", "--op", op, "--object-size", "64k", "--seconds", 0.3, "--explain")
            self.assertEqual([each["name"] for each in done["explain"]["parts"]], parts)
            self.assertGreater(done["explain"]["fops"], 0)
            total, *named = done["explain"]["parts"]
            # A part is rounded by 1/2048, and the sum is not less than the whole, of which it is made.
            self.assertAlmostEqual(sum(each["mean_us"] for each in named), total["mean_us"], delta=0.05 * total["mean_us"] + 2)

    def use_scheduler(self):
        self.printed("lrs show")
        self.printed("lrs set", "mclock", "capacity=20000/s", "cost_unit=8193B")
        settings = {each["name"]: (each["policy"], each["value"], each["unit"]) for each in self.printed("lrs show")["settings"]}
        self.assertEqual(settings, {"max_foms": (None, 128, ""), "io_wait_goal": (None, 0.001, "seconds"),
                                    "capacity": ("mclock", 20000, "per second"), "cost_unit": ("mclock", 8193, "bytes")})
        self.assertIn(b"\nmclock: capacity=20000/s cost_unit=8193\n", self.ctl("lrs", "show"))
        everything = self.printed("lrs show", "--all")
        names = everything["policies"]
        self.assertEqual(names, sorted(names))
        self.assertIn("mclock", names)
        # Each policy has settings, but fifo.
        self.assertEqual({each["policy"] for each in everything["settings"]}, {None, *names} - {"fifo"})
        self.assertNotIn("policies", self.printed("lrs show"))
        lines = self.ctl("lrs", "show", "--all").splitlines()
        self.assertTrue({b"mclock: capacity=20000/s cost_unit=8193", b"crr: quantum=1 by=client", b"fifo:"} <= set(lines), lines)
        self.printed("lrs set", "mclock", "cost_unit=none")
        self.printed("lrs rule add", "r op=read reservation=10/s weight=2 limit=100/s")
        self.printed("lrs rule add", "s op=write soft_limit=100/s")
        self.printed("lrs rule change", "r weight=3")
        self.get("a")
        self.printed("write", "a", "--offset", 0, data=b"other")
        shares = [each["shares"] for each in self.printed("lrs show")["classes"]]
        self.assertTrue(any("limit" in each for each in shares) and any("soft_limit" in each for each in shares), shares)
        for line in self.ctl("--json", "top", "--count", 2, "--interval", 0.05).splitlines():
            self.compare("top", line)
        self.printed("lrs rule list")
        self.printed("lrs which", "op=read", "size=4k")
        self.printed("lrs rule del", "s")
        self.printed("lrs rule load", "-", data=b"r op=read weight=2\n")
        self.printed("lrs save")
        self.printed("lrs set", "epoch_groups", "length=20ms", "others=wait")
        settings = {each["name"]: (each["value"], each["unit"]) for each in self.printed("lrs show")["settings"] if each["policy"]}
        self.assertEqual(settings, {"length": (0.02, "seconds"), "at_end": ("go_on", ""), "others": ("wait", "")})
        self.printed("lrs set", "max_foms=1")
        load = self.start_ctl("bench", "--op", "write", "--depth", 8, "--object-size", "64k", "--seconds", 600)
        wait_until(lambda: any("queued_on_all_nodes" in each["turns"] for each in self.printed("lrs show")["classes"]), "fops wait")
        self.assertEqual({each["turns"]["weight"] for each in self.printed("lrs show")["classes"]}, {1})
        load.kill()
        self.printed("lrs set", "tbf", "max_foms=128", "cluster_interval=50ms", "cut_off=20")
        self.printed("lrs rule add", "w op=write rate=100000/s scope=cluster by=none")
        self.printed("write", "a", "--offset", 0, data=b"other")
        clusters = lambda: [each["cluster"] for each in self.printed("lrs show")["classes"] if "cluster" in each]
        wait_until(lambda: clusters() == [{"share": 1, "cut_off": False, "differs": False}], "the node has the whole rate")
        self.assertEqual(self.printed("lrs which", "op=write")["cluster"]["share"], 1)
        self.printed("lrs set", "crr")
        self.printed("io-sched set", "tape.read_algo=grouped_read", "elevator_max_wait=2s")
        settings = {each["name"]: (each["value"], each["unit"]) for each in self.printed("io-sched show")["settings"]}
        self.assertEqual(settings["elevator_max_wait"], (2, "seconds"))
        self.assertEqual(settings["tape.read_algo"], ("grouped_read", ""))
        self.assertIn(b"\nelevator_max_wait=2s\n", self.ctl("io-sched", "show"))
        self.assertEqual(self.printed("epoch show")["kind"], "local")

    def use_node(self):
        self.printed("status")
        self.printed("health")
        load = self.start_ctl("bench", "--op", "write", "--durable", "--depth", 8, "--object-size", "64k", "--seconds", 600)
        wait_until(lambda: any("waits_for" in each for each in self.printed("trace")["fops"]), "a fop that waits")
        self.printed("sessions")
        load.kill()
        self.use_slow_fops()
        self.printed("log-level", "debug")

    def use_slow_fops(self):
        config = self.dir / "fopd.yaml"
        text = config.read_text()
        config.write_text(text + "log: { slow_fop: 1ms }\n")
        self.ctl("reload")
        def slow_in_log():
            self.ctl("bench", "--op", "write", "--durable", "--depth", 8, "--object-size", "64k", "--seconds", 0.05)
            slow, log = self.printed("trace", "--slow")["fops"], self.daemon.log()
            self.assertEqual({each["state"] for each in slow} - {"finished"}, set())
            ages = [each["age_s"] for each in slow]
            self.assertEqual(ages, sorted(ages, reverse=True))
            # The log holds back events that come too often.
            return next((each for each in slow if f"reqh.slow_fop fop={each['id']} " in log), None)

        slow = wait_until(slow_in_log, "a slow fop that is in the log")
        fop = self.compare("trace FOP", self.ctl("--json", "trace", slow["id"]))
        self.assertEqual(fop["spent"], slow["spent"])
        line = re.search(rf"reqh\.slow_fop fop={fop['id']} .*", self.daemon.log())[0]
        for name, seconds in fop["spent"].items():
            said = re.search(rf"\b{name}_s=(\S+)", line)
            if name != "total" and (seconds or name == "server"):
                self.assertAlmostEqual(float(said[1]), seconds, delta=1e-6, msg=line)
        page = self.ctl("trace", "--slow").decode()
        self.assertRegex(page, r"^ *FOP +OP +PRINCIPAL +TOOK +WHERE THE TIME WENT\n")
        self.assertIn("\nwhere the time went:\n  ", self.ctl("trace", fop["id"]).decode())
        self.refused(USAGE, ["--slow"], "trace", "--slow", fop["id"])
        config.write_text(text)
        self.ctl("reload")

    def use_disks(self):
        self.printed("devices")
        self.printed("scrub")
        done = self.printed("scrub", "d0", "--end")
        self.assertEqual([each["name"] for each in done["devices"]], ["d0"])
        self.printed("store check")
        self.printed("store backup", self.directory / "backup")
        config = self.dir / "fopd.yaml"
        config.write_text("log: { audit_changes: true }\n" + config.read_text().replace(
            "devices:\n", f"devices:\n  - {{ name: d2, path: '{self.dir}/d2.img', size: 64MiB, pool: fast }}\n"))
        self.assertEqual(self.printed("reload")["devices"][0]["result"], "added")
        self.printed("write", "a", "--offset", 0, data=b"durable")
        changed = wait_until(lambda: re.search("audit.changed fop=([0-9a-f-]+) op=write", self.daemon.log()), "a fop in the log")
        wait_until(lambda: "waited_for" in self.compare("trace FOP", self.ctl("--json", "trace", changed[1])), "it has waited")
        self.printed("device remove", "d2")
        self.printed("device add", "d2")

    def use_keys(self):
        self.printed("key create", "ann", "--groups", "staff", "--quota", "fast=,10")
        self.printed("key create", "bob", "--out", self.directory / "bob.key", "--quota", "fast=1GiB")
        quotas = {each["name"]: each["quotas"] for each in self.printed("key list")["principals"]}
        self.assertEqual(quotas, {"dev": [], "ann": [{"pool": "fast", "bytes": None, "objects": 10}],
                                  "bob": [{"pool": "fast", "bytes": 1 << 30, "objects": None}]})
        self.printed("quota")
        issuer, token = self.dir / "issuer.key", self.directory / "token"
        self.printed("token create", "--issuer", issuer, "--rights", "read")
        self.printed("token create", "--issuer", issuer, "--rights", "read", "--out", token)
        for words in (["token", "revoke", token], ["key", "revoke", "ann"], ["keygen", self.directory / "new.key"]):
            self.assertEqual(self.ctl("--json", *words), b"")

    def use_errors(self):
        for exit_code, words in ((NOT_FOUND, ["stat", "nothing"]), (REFUSED, ["device", "add", "d0"]),
                                 (NO_SERVER, ["status", "--admin", self.directory / "none"])):
            done = self.ctl_bytes("--json", *words)
            self.assertEqual((done.returncode, done.stdout), (exit_code, b""))
            self.assertEqual(self.compare("errors", done.stderr)["exit_code"], exit_code)
        done = self.ctl_bytes("--json", "batch", data=b"\nstat nothing\n")
        self.assertEqual(self.compare("errors", done.stderr)["line"], 2)

    def lose_a_disk(self):
        self.stop()
        (self.dir / "d1.img").unlink()
        self.start()
        self.assertEqual(len(self.printed("status")["missing_slots"]), 1)
        self.printed("devices")
        critical = 2
        self.assertEqual(self.printed("health", exit_code=critical)["state"], "critical")
        self.assertEqual(self.printed("df")["pools"][0]["missing_disks"], 1)
        listed = self.printed("ls", exit_code=REFUSED)["objects"]
        lost = [each for each in listed if each["size"] is None]
        self.assertTrue(0 < len(lost) < len(listed), listed)
        self.assertEqual(self.printed("ls", "--missing"), {"objects": lost})
        done = self.ctl_bytes("ls", "--missing")
        self.assertEqual((done.returncode, done.stdout.decode().split()), (DONE, [each["name"] for each in lost]))
        self.assertRegex(done.stderr, rb"^fopctl: ls: there may be others, [^\n]*d1 \([^\n]*\n$")
        self.assertEqual(self.printed("ls", "--missing", "nothing"), {"objects": []})
        self.refused(USAGE, ["--missing"], "ls", "--missing", "--fid", lost[0]["fid"])
        self.printed("device forget", "d1", "--yes")

    def drain(self):
        warning, critical = 1, 2
        self.printed("drain")
        self.printed("health", exit_code=warning)
        self.stop()
        self.printed("health", exit_code=critical)

    def test_a_list_that_ends_early_is_json(self):
        """More than fits into a pipe is listed, and the server is killed before it is read."""
        tree = self.directory / "tree"
        tree.mkdir()
        for number in range(3000):
            (tree / f"{number:04}-{'x' * 100}").write_bytes(b"")
        self.ctl("put", "-r", tree, "t")
        process = self.start_ctl("ls", "--json", "--timeout", "0.5")
        first = os.read(process.stdout.fileno(), 1)
        self.daemon.kill()
        printed, complaints = process.communicate(timeout=SECONDS)
        self.assertNotEqual(process.returncode, DONE)
        self.assertRegex(json.loads(complaints)["error"], "^ls: ")
        listed = json.loads(first + printed)["objects"]
        self.assertGreater(len(listed), 0)
        self.assertLess(len(listed), 3000)


if __name__ == "__main__":
    unittest.main()

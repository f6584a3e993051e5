"""A rule of the request scheduler that names a principal that does not exist: such a rule never matches."""

import json
import unittest

from fopd_process import DONE
from storage_process import StorageTestCase

EVENT = "fopd.daemon.rule_of_unknown_principal"


class RuleWarningsTest(StorageTestCase):
    def warnings(self):
        return [each for each in json.loads(self.ctl("status", "--json"))["warnings"] if "lrs rule" in each]

    def events(self):
        return [line.split(EVENT, 1)[1].split() for line in self.daemon.log().splitlines() if EVENT in line]

    def test_a_principal_that_does_not_exist(self):
        self.ctl("key", "create", "ann", "--out", self.directory / "ann.key")
        rules = self.directory / "rules"
        rules.write_text("a principal={ann anne} rate=100/s\nb principal=an* rate=100/s\nc job=bob rate=100/s\n")
        self.ctl("lrs", "set", "tbf", "--rules", rules)
        self.assertEqual(self.warnings(), ["lrs rule a names principal anne, which auth.principals does not have"])
        self.assertEqual(self.events(), [["rule=a", "principal=anne"]])
        # Only what is new is an event.
        self.ctl("lrs", "rule", "add", "d principal!=tom rate=100/s")
        self.assertEqual(len(self.warnings()), 2)
        self.assertEqual(self.events(), [["rule=a", "principal=anne"], ["rule=d", "principal=tom"]])
        self.ctl("key", "create", "anne", "--out", self.directory / "anne.key")
        self.assertEqual(len(self.warnings()), 1)
        self.ctl("lrs", "rule", "del", "d")
        self.assertEqual(self.warnings(), [])

    def test_a_change_warns_of_the_rules_that_it_brings(self):
        says = "lrs rule {} names principal {}, which auth.principals does not have".format
        def warned(*words, **options):
            """The warnings of a change, on standard error and in JSON."""
            done = self.ctl_bytes("--json", "lrs", *words, **options)
            self.assertEqual(done.returncode, DONE, done.stderr)
            warnings = json.loads(done.stdout)["warnings"]
            if not warnings:
                self.assertEqual(done.stderr, b"")
                return []
            complaint = json.loads(done.stderr)
            self.assertEqual((complaint["code"], complaint["exit_code"]), ("warning", DONE))
            self.assertEqual([complaint["error"], *complaint["details"]], [f"warning: {each}" for each in warnings])
            return warnings
        self.assertEqual(warned("rule", "add", "a principal=anne rate=1/s"), [says("a", "anne")])
        # Not of those that were there before.
        self.assertEqual(warned("rule", "add", "b job=b rate=1/s"), [])
        self.assertEqual(warned("set", "fifo"), [])
        self.assertEqual(warned("set", "tbf"), [says("a", "anne")])
        self.assertEqual(warned("set", "max_foms=99"), [])
        self.assertEqual(warned("rule", "change", "b principal={tom tim}"), [says("b", "tim"), says("b", "tom")])
        self.assertEqual(warned("rule", "del", "b"), [])
        self.assertEqual(warned("rule", "load", "-", data=b"a principal=anne rate=1/s\nc principal=ann* rate=1/s\nd principal!=bob rate=1/s\n"),
                         [says("d", "bob")])
        done = self.ctl_bytes("lrs", "rule", "change", "d rate=2/s")
        self.assertEqual((done.returncode, done.stderr.decode()), (DONE, f"fopctl: warning: {says('d', 'bob')}\n"))

    def test_the_start_looks_at_the_configuration(self):
        self.stop()
        config = self.dir / "fopd.yaml"
        config.write_text(config.read_text() + 'lrs: { policy: tbf, tbf: { rules: [ "x principal=nobody rate=1/s" ] } }\n')
        self.start()
        self.assertEqual(self.warnings(), ["lrs rule x names principal nobody, which auth.principals does not have"])
        self.assertEqual(self.events(), [["rule=x", "principal=nobody"]])


if __name__ == "__main__":
    unittest.main()

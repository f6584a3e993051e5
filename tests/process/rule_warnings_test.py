"""A rule of the request scheduler that names a principal that does not exist: such a rule never matches."""

import json
import unittest

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

    def test_the_start_looks_at_the_configuration(self):
        self.stop()
        config = self.dir / "fopd.yaml"
        config.write_text(config.read_text() + 'lrs: { policy: tbf, tbf: { rules: [ "x principal=nobody rate=1/s" ] } }\n')
        self.start()
        self.assertEqual(self.warnings(), ["lrs rule x names principal nobody, which auth.principals does not have"])
        self.assertEqual(self.events(), [["rule=x", "principal=nobody"]])


if __name__ == "__main__":
    unittest.main()

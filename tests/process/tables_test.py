"""The tables of all verbs fit 80 columns, however long the names are; --wide shows all of them."""

import json
import subprocess
import unittest

from fopd_process import FOPCTL, wait_until
from storage_process import StorageTestCase

LONG = "long-" + "x" * 55  # Names of pools, devices and principals have at most 63 bytes.
JOB = "job-" + "y" * 60


class TablesTest(StorageTestCase):
    def use_long_names(self):
        """Of a pool, a disk, a class and a principal."""
        self.stop()
        config = self.dir / "fopd.yaml"
        config.write_text(config.read_text()
                          .replace("pools:\n", f"pools:\n  - {{ name: {LONG} }}\n")
                          .replace("devices:\n", f"devices:\n  - {{ name: d{LONG}, path: '{self.dir}/d2.img', size: 64MiB, "
                                                  f"pool: {LONG} }}\n"))
        self.start()
        self.key = self.dir / "long.key"
        self.ctl("key", "create", LONG, "--rights", "read,write,create,delete,admin", "--groups", f"{LONG},other",
                 "--out", self.key)
        self.ctl("lrs", "set", "mclock", "capacity=20000/s")
        self.ctl("lrs", "rule", "add", "r job=* weight=2 limit=10/s")

    def load(self):
        process = subprocess.Popen([FOPCTL, "--key", str(self.key), "--job", JOB, "bench", "--op", "write", "--pool", LONG,
                                    "--object-size", "64k", "--depth", "8", "--seconds", "600"],
                                   env=self.environment, stdout=subprocess.DEVNULL)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        wait_until(lambda: any(each["queued"] > 0 for each in json.loads(self.ctl("--json", "lrs", "show"))["classes"]),
                   "requests that wait")

    def lines(self, *arguments):
        return self.ctl(*arguments).decode().splitlines()

    def test_they_fit(self):
        self.use_long_names()
        self.load()
        # Lines that begin as these are no rows of a table, or have a path.
        rests = ("differs from the file:", "policy ", "mclock:", "config ", "d0 ", "d1 ")
        for verb in ("status", "sessions", "trace", "devices", "scrub", "store check", "df", "quota", "lrs show", "lrs rule list",
                     "key list", "top --count 1 --interval 0.1"):
            with self.subTest(verb):
                lines = [line for line in self.lines(*verb.split()) if not line.startswith(rests) and str(self.dir) not in line]
                if verb != "lrs rule list":
                    self.assertLessEqual(max(map(len, lines)), 80, "\n".join(lines))

    def test_classes_of_clusters_fit_and_their_names_can_be_told_apart(self):
        self.use_long_names()
        self.load()
        for policy, rule, title, column in (("epoch_groups", "rule-of-groups job=* weight=1000", "turns", "ON ALL NODES"),
                                            ("tbf", "rule-of-cluster job=* rate=10/s scope=cluster", "cluster", "SHARE")):
            with self.subTest(policy):
                self.ctl("lrs", "set", policy)
                self.ctl("lrs", "rule", "add", rule)
                wait_until(lambda: any(each["name"].startswith("rule-of-") and title in each
                                       for each in json.loads(self.ctl("--json", "lrs", "show"))["classes"]), "the class is there")
                lines = self.lines("lrs", "show")
                head = next(at for at, line in enumerate(lines) if line.startswith("CLASS "))
                self.assertIn(column, lines[head])
                self.assertLessEqual(max(map(len, lines[head:])), 80, "\n".join(lines))
                self.assertTrue(any(line.startswith("rule-of-") for line in lines[head:]), "\n".join(lines))
                self.assertIn("BYTES PER S", self.ctl("lrs", "show", "--wide").decode())

    def test_wide_has_everything(self):
        self.use_long_names()
        self.load()
        for verb, words in (("sessions", ["CLIENT", "CREDITS", "TRANSFERRED", LONG]), ("key list", ["PREVIOUS", f"{LONG}, other"]),
                            ("lrs show", ["SERVED", "BY WEIGHT", JOB]), ("devices", ["d" + LONG]), ("df", [LONG]),
                            ("trace", ["PEER"])):
            with self.subTest(verb):
                text = self.ctl(*verb.split(), "--wide").decode()
                for word in words:
                    self.assertIn(word, text)
                self.assertNotIn("…", text)

    def test_what_is_copied_is_whole(self):
        self.use_long_names()
        self.load()
        for session in json.loads(self.ctl("--json", "sessions"))["sessions"]:
            self.assertIn(session["id"], self.ctl("sessions").decode())
        for principal in json.loads(self.ctl("--json", "key", "list"))["principals"]:
            self.assertIn(principal["key_id"], self.ctl("key", "list").decode())


if __name__ == "__main__":
    unittest.main()

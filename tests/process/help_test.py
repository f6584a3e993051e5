"""fopctl --help, and what it says about wrong command lines."""

import re
import shlex
import unittest

from fopd_process import DONE, FOPCTL, LIBRARY_WORDS, USAGE, ProcessTestCase, run_program

def help_of(*words):
    done = run_program(FOPCTL, *words, "--help")
    assert (done.returncode, done.stderr) == (DONE, ""), done
    return done.stdout


def verbs(*words):
    """All verbs, as lists of words."""
    page = help_of(*words)
    names = re.findall("^  ([a-z][a-z-]*) ", page.partition("Options:")[2], re.M)
    if "SUBCOMMAND" not in page:
        return [list(words)]
    return [verb for name in names for verb in verbs(*words, name)]


def groups(*words):
    """All groups of verbs, as lists of words; first the empty one of the front page."""
    page = help_of(*words)
    if "SUBCOMMAND" not in page:
        return []
    names = re.findall("^  ([a-z][a-z-]*) ", page.partition("Options:")[2], re.M)
    return [list(words)] + [group for name in names for group in groups(*words, name)]


class HelpTest(ProcessTestCase):
    def test_pages_of_groups(self):
        all_groups = groups()
        self.assertIn(["lrs", "rule"], all_groups)
        summaries = {}
        for words in all_groups:
            with self.subTest(" ".join(words)):
                page = help_of(*words)
                self.assertRegex(page, r"\A[ -~\n]*\Z")
                self.assertLessEqual(max(map(len, page.splitlines())), 80)
                summaries.setdefault(page.splitlines()[0], []).append(words)
        self.assertEqual([each for each in summaries.values() if len(each) > 1], [])
        self.assertEqual(help_of("drive").splitlines()[0], "Take a tape drive out of use, or use it again")

    def test_usage_has_what_is_required(self):
        for words, usage in (
                (["write"], "[OPTIONS] --offset OFFSET name"),
                (["punch"], "[OPTIONS] --offset OFFSET --length LENGTH name"),
                (["format"], "[OPTIONS] --pool POOL cartridge"),
                (["token", "create"], "[OPTIONS] --issuer FILE --rights RIGHTS"),
                (["read"], "[OPTIONS] name"),
                (["mirror", "put"], "[OPTIONS] directory name"),
                (["mirror", "get"], "[OPTIONS] name directory")):
            with self.subTest(" ".join(words)):
                self.assertIn(f"Usage: fopctl {' '.join(words)} {usage}\n", help_of(*words))

    def test_values_have_names(self):
        for words in [[], *verbs()]:
            with self.subTest(" ".join(words)):
                # A name in capital letters, or the words that are allowed.
                self.assertNotRegex(help_of(*words), r"(?m)^  -\S+ (VALUE|[A-Z]+:)")
        page = help_of()
        for option in ("--admin FILE", "--protect seal|encrypt", "--color auto|always|never", "--timeout SECONDS"):
            self.assertIn(f"  {option} ", page)
        self.assertIn("\n  --op echo|bulk_echo|ping|read|write|mixed|create\n", help_of("bench"))
        self.assertIn("\n  --wait ready ", help_of("status"))
        self.assertIn("\n  level trace|debug|info|warn|error\n", help_of("log-level"))
        self.assertIn("\n  --pool POOL ", help_of("ls"))

    def test_options_of_one_name_mean_what_the_verb_does(self):
        self.assertIn("End the running checks", help_of("store", "check"))
        self.assertIn("End the running scrubs", help_of("scrub"))
        for verb in ("df", "quota"):
            self.assertIn("by default all pools", help_of(verb))

    def test_each_verb_has_an_example_that_is_understood(self):
        all_verbs = verbs()
        (self.directory / "lines").touch()
        self.assertGreater(len(all_verbs), 40)
        for words in all_verbs:
            with self.subTest(" ".join(words)):
                page = help_of(*words)
                self.assertRegex(page, r"\A[ -~\n]*\Z")
                self.assertNotRegex(page, LIBRARY_WORDS)
                self.assertLessEqual(max(map(len, page.splitlines())), 80)
                self.assertIn("\nExample: ", page)
                for text in re.findall("^(?:Example:|        ) fopctl (.*)$", page, re.M):
                    example = shlex.split(text.partition(" <")[0].partition(" >")[0])
                    self.assertEqual(example[:len(words)], words)
                    # Without a daemon, all that are understood fail for another reason.
                    done = run_program(FOPCTL, "--admin", self.directory / "none", "--server", "tcp://127.0.0.1:1",
                                       "--timeout", "0.1", *example, cwd=self.directory)
                    if words != ["health"]:  # Its exit codes are those of monitoring systems.
                        self.assertNotEqual(done.returncode, USAGE, done.stderr)
                limit = ("no limit" if words[0] in ("device", "reload", "drain") or words == ["store", "backup"]
                         else "10 seconds" if words == ["health"] else "30 seconds")
                self.assertRegex(page, f"(?m)^Default of --timeout: {limit}$")

    def test_help_is_a_word_too(self):
        self.assertEqual(run_program(FOPCTL, "help", "put").stdout, help_of("put"))
        self.assertEqual(run_program(FOPCTL, "help").stdout, help_of())

    def test_sections(self):
        page = help_of()
        self.assertNotRegex(page, LIBRARY_WORDS)
        self.assertEqual(re.findall("^([A-Z].*):$", page, re.M),
                         ["Options", "Objects", "Tape", "Many verbs in one session", "Network", "Node", "Disks", "Request scheduler (LRS)", "I/O schedulers", "Principals, keys and tokens"])

    def test_words_about_a_wrong_command_line(self):
        for words, message in (
                (["staus"], "there is no verb staus; did you mean status?"),
                (["delete", "a"], "there is no verb delete; did you mean rm?"),
                (["drive", "vtl0-drive0", "up"],
                 'drive up: "vtl0-drive0" must come after up; see fopctl drive up --help'),
                (["lrs", "bob", "rule", "del"],
                 'lrs rule del: "bob" must come after del; see fopctl lrs rule del --help'),
                (["mirror", "docs", "put", "docs/"],
                 'mirror put: "docs" must come after put; see fopctl mirror put --help'),
                (["--job", "b", "stat", "a", "b"], 'stat: unexpected "b": stat takes at most 1 value'),
                (["a", "stat"], 'stat: "a" must come after stat; see fopctl stat --help'),
                (["lrs", "rule", "ad"], "lrs rule: there is no verb ad; did you mean add?"),
                (["bench", "--sise", "3"], "bench: there is no option --sise; did you mean --size?"),
                (["bench", "--depth", "0"], 'bench: --depth: must be a whole number from 1 to 100000, not "0"'),
                (["bench", "--size", "4kb"], 'bench: --size: "4kb" has the unknown unit "kb"; did you mean "kB"?'),
                (["bench", "--op", "raed"], 'bench: --op: must be one of echo, bulk_echo, ping, read, write, mixed, create, '
                                            'not "raed"; did you mean read?'),
                (["put", "a"], "put: name is required; see fopctl put --help"),
                (["get", "a", "b", "c"], 'get: unexpected "c": get takes at most 2 values'),
                (["stat", "a", "b"], 'stat: unexpected "b": stat takes at most 1 value'),
                (["status", "now"], 'status: unexpected "now": status takes no values'),
                (["--", "staus"], "there is no verb staus; did you mean status?"),
                (["bench", "--foo"], "bench: there is no option --foo; see fopctl bench --help"),
                (["bench", "--zzz"], "bench: there is no option --zzz; see fopctl bench --help"),
                (["ls", "--pool"], "ls: --pool needs a value"),
                (["ls", "--pool", "a", "--pool", "b"], "ls: --pool is given more than once"),
                (["device", "forget", "--slot", "x"],
                 'device forget: --slot: must be a whole number from 1 to 65535, not "x"')):
            with self.subTest(words=words):
                done = run_program(FOPCTL, *words)
                self.assertEqual((done.returncode, done.stdout), (USAGE, ""))
                self.assertTrue(done.stderr.startswith("fopctl: " + message), done.stderr)
                self.assertEqual(done.stderr.count("\n"), 1)

    def test_sizes_have_the_units_of_the_configuration(self):
        for size, number in (("4k", 4096), ("4KiB", 4096), ("4kB", 4000), ("1MB", 1000000), ("1M", 1 << 20), ("7", 7)):
            done = run_program(FOPCTL, "truncate", "a", size, "--server", "tcp://127.0.0.1:1", "--timeout", "0.1")
            self.assertNotEqual(done.returncode, USAGE, size)
            done = run_program(FOPCTL, "bench", "--op", "read", "--size", size, "--object-size", number - 1)
            self.assertEqual(done.returncode, USAGE, (size, done.stderr))
            done = run_program(FOPCTL, "bench", "--op", "read", "--size", size, "--object-size", number,
                               "--server", "tcp://127.0.0.1:1", "--timeout", "0.1")
            self.assertNotEqual(done.returncode, USAGE, (size, done.stderr))


if __name__ == "__main__":
    unittest.main()

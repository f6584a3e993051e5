"""The command line and the configuration file: what is good, what is refused, with which words and exit code."""

import os
import unittest

from fopd_process import (CONFIG, DONE, LIBRARY_WORDS, SYSTEM, USAGE, ProcessTestCase, as_other_user, needs_root, run_fopd)


class CommandLineTest(ProcessTestCase):
    def setUp(self):
        super().setUp()
        self.config = self.directory / "fopd.yaml"

    def run_fopd(self, *arguments, code=DONE, **options):
        done = run_fopd(*arguments, **options)
        self.assertEqual(done.returncode, code, f"{done.stdout}{done.stderr}")
        self.assert_no_report(f"{done.stdout}{done.stderr}")
        return done

    def assert_config_refused(self, *words, **options):
        """Checked, printed or run: the file is refused in the same words."""
        for mode in (("--check-config",), ("--print-config",), ()):
            with self.subTest(mode=mode):
                done = self.run_fopd(*mode, "--config", self.config, code=CONFIG, **options)
                self.assertEqual(done.stdout, "")
                self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
                self.assertTrue(done.stderr.startswith(f"{self.config}:1:1: "), done.stderr)
                for word in words:
                    self.assertIn(word, done.stderr)

    def test_version_and_help(self):
        self.assertRegex(self.run_fopd("--version").stdout, r"^fopd \d+\.\d+\.\d+.*\n$")
        self.assertIn("--check-config", self.run_fopd("--help").stdout)

    def test_help_has_no_words_of_the_library(self):
        page = self.run_fopd("--help").stdout
        self.assertNotRegex(page, LIBRARY_WORDS)
        self.assertLessEqual(max(map(len, page.splitlines())), 80)
        for option in ("--config FILE", "--dev [DIR]", "--listen ADDRESS", "--metrics ADDRESS", "--restore-store FILE"):
            self.assertIn(f"  {option}  ", page)
        self.assertIn("(default /etc/fopd/fopd.yaml)", " ".join(page.split()))

    def test_usage(self):
        for words, message in (
                (["--confg", "x"], "there is no option --confg; did you mean --config?"),
                (["--check-confg"], "there is no option --check-confg; did you mean --check-config?"),
                (["--zzz"], "there is no option --zzz; see fopd --help"),
                (["word"], 'unexpected "word": fopd takes no values'),
                (["--config"], "--config needs a value"),
                (["--config", "a", "--config", "b"], "--config is given more than once"),
                (["--check-config", "--print-config"], "--check-config excludes --print-config: give only one of them"),
                (["--dev", "--config", "x"], "--config excludes --dev: give only one of them"),
                (["--dev", "--check-config"], "--check-config excludes --dev: give only one of them"),
                (["--print-config", "--dev"], "--print-config excludes --dev: give only one of them")):
            with self.subTest(words):
                done = self.run_fopd(*words, code=USAGE)
                self.assertEqual((done.stdout, done.stderr), ("", f"fopd: {message}\n"))

    def test_bad_metrics_address(self):
        for address in ("127.0.0.1", ":9420", "127.0.0.1:port", "127.0.0.1:65536", "[::1:9420", "a b:1"):
            with self.subTest(address):
                done = self.run_fopd("--metrics", address, "--config", self.config, code=USAGE)
                self.assertRegex(done.stderr, r"^fopd: --metrics: [^\n]+\n$")

    def test_a_good_file(self):
        self.config.write_text("log: { level: debug }\n")
        done = self.run_fopd("--check-config", "--config", self.config)
        self.assertEqual(done.stdout + done.stderr, "")

    def test_an_empty_file_is_good(self):
        for text in ("", "\n", "# nothing\n", "---\n"):
            with self.subTest(repr(text)):
                self.config.write_text(text)
                self.run_fopd("--check-config", "--config", self.config)

    def test_what_is_printed_loads_again(self):
        self.config.write_text("node: { name: a-b, drain_timeout: 90s }\nlocalities: { buffers: 3MiB }\n"
                               "admin: { socket: '/tmp/it''s \"here\"', metrics: '[::1]:1' }\n")
        first = self.run_fopd("--print-config", "--config", self.config).stdout
        self.config.write_text(first)
        self.assertEqual(self.run_fopd("--print-config", "--config", self.config).stdout, first)
        self.assertIn("it's", first.replace("''", "'"))

    def test_every_error_at_once(self):
        self.config.write_text("node:\n"
                               "  nme: a\n"
                               "  drain_timeout: soon\n"
                               "localities: { cores: 0, buffers: 5 }\n"
                               "log: { level: loud }\n"
                               "tapes: []\n")
        done = self.run_fopd("--check-config", "--config", self.config, code=CONFIG)
        self.assertEqual(done.stdout, "")
        complaints = [line.split(": ")[:2] for line in done.stderr.splitlines()]
        self.assertEqual(complaints, [[f"{self.config}:2:3", "node.nme"],
                                      [f"{self.config}:3:18", "node.drain_timeout"],
                                      [f"{self.config}:4:22", "localities.cores"],
                                      [f"{self.config}:4:34", "localities.buffers"],
                                      [f"{self.config}:5:15", "log.level"],
                                      [f"{self.config}:6:1", "tapes"]])

    def test_a_file_that_is_missing(self):
        self.assert_config_refused("No such file")

    def test_a_directory_as_file(self):
        self.config.mkdir()
        self.assert_config_refused("a directory")

    def test_a_fifo_as_file_does_not_hang(self):
        os.mkfifo(self.config)
        self.assert_config_refused("not a regular file")

    @needs_root
    def test_a_file_that_cannot_be_read(self):
        self.config.write_text("")
        self.config.chmod(0o600)
        self.assert_config_refused("Permission denied", **as_other_user())

    def test_output_that_cannot_be_written_is_said(self):
        self.config.write_text("")
        for arguments in (("--version",), ("--help",), ("--print-config", "--config", self.config)):
            with self.subTest(arguments), open("/dev/full", "w", encoding="ascii") as full:
                done = self.run_fopd(*arguments, stdout=full, code=SYSTEM)
                self.assertRegex(done.stderr, r"^fopd: standard output: [^\n]+\n$")

    def test_closed_output_is_said(self):
        self.config.write_text("")
        for arguments in (("--version",), ("--print-config", "--config", self.config)):
            with self.subTest(arguments):
                done = self.run_fopd(*arguments, stdout=None, preexec_fn=lambda: os.close(1), code=SYSTEM)
                self.assertRegex(done.stderr, r"^fopd: standard output: [^\n]+\n$")

    def test_checking_needs_no_output(self):
        self.config.write_text("")
        done = run_fopd("--check-config", "--config", self.config, stdin=None, stdout=None, stderr=None,
                        preexec_fn=lambda: os.closerange(0, 3))
        self.assertEqual(done.returncode, DONE)


if __name__ == "__main__":
    unittest.main()

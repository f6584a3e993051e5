#!/usr/bin/env python3
"""docs/words.md explains the words that users meet, and the pages where they meet them lead there."""

import re
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
EXPLAINED = {"LRS", "fop", "fom", "class", "rule", "epoch", "pool", "slot", "locality", "lease", "ticket", "recall", "staging"}
LEAD_THERE = ("README.md", "docs/tutorial.md", "docs/if-you-know.md", "docs/man/fopctl.1", "docs/man/fopd.8", "docs/man/fopd.yaml.5")


def words():
    page = (ROOT / "docs" / "words.md").read_text(encoding="utf-8")
    return re.findall(r"^\| (.+?) \| (.+) \|$", page, re.M)[1:]


class WordsPageTest(unittest.TestCase):
    def test_each_word_has_a_line(self):
        self.assertLessEqual(EXPLAINED, {word for word, _ in words()})

    def test_words_are_sorted(self):
        names = [word.lower() for word, _ in words()]
        self.assertEqual(names, sorted(names))

    def test_meanings_are_sentences_without_places_in_the_code(self):
        for word, meaning in words():
            with self.subTest(word):
                self.assertRegex(meaning, r"^[A-Z`].*\.$")
                self.assertNotRegex(meaning, r"\w\.(h|cc)\b")

    def test_pages_lead_there(self):
        for page in LEAD_THERE:
            with self.subTest(page):
                self.assertIn("words.md", (ROOT / page).read_text(encoding="utf-8"))


if __name__ == "__main__":
    unittest.main()

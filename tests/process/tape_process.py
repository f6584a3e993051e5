"""A node with a library of tapes in a directory, and what its users and administrators do with it."""

import json
import sys
from pathlib import Path

from storage_process import StorageTestCase

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "store" / "tape"))
from written_tapes import check_tapes  # noqa: E402

COLD = ("--pool", "cold")


class TapeTestCase(StorageTestCase):
    def tearDown(self):
        """Other programs read what is on the tapes, and it is what the records say."""
        copies = self.recorded_copies() if self.daemon.process.poll() is None else []
        super().tearDown()
        check_tapes(self, self.dir / "vtl0", copies)

    def recorded_copies(self):
        copies = []
        for name in self.names(*COLD):
            found = self.answer("stat", name, *COLD)
            copies += [(each["medium"], each["file"], found["fid"], each["offset"], each["size"])
                       for each in found["copies"]]
        return copies

    def answer(self, *arguments, **options):
        return json.loads(self.ctl(*arguments, "--json", **options))

    def put_on_tape(self, name, data):
        self.put(name, data, *COLD)
        self.ctl("sync", *COLD)
        self.ctl("release", name, *COLD)

    def get_cold(self, name):
        return self.ctl("get", name, "-", *COLD)

    def allocated(self, name):
        return self.answer("stat", name, *COLD)["allocated"]

    def media(self):
        return self.answer("media")["media"]

    def start_with(self, **words):
        """With other words in the configuration."""
        config = self.dir / "fopd.yaml"
        text = config.read_text()
        for before, after in words.values():
            self.assertIn(before, text)
            text = text.replace(before, after)
        config.write_text(text)
        self.start()

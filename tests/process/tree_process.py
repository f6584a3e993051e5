"""For tests of verbs about trees: a directory to store, one to fetch into, and files in them."""

from storage_process import StorageTestCase


class TreeTestCase(StorageTestCase):
    def setUp(self):
        super().setUp()
        self.source, self.target = self.directory / "source", self.directory / "target"

    def write(self, files, top=None):
        """{path: bytes}"""
        for path, data in files.items():
            file = (top or self.source) / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data)

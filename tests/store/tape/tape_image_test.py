"""What fopd writes to a tape is read by programs of others: Python's tarfile, and tar itself."""

import os
import struct
import subprocess
import tempfile
import unittest

from tape_image import Tape, Wrong


class TapeImageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls._folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls._folder.cleanup)
        cls.folder = cls._folder.name
        subprocess.run([os.environ["TEST_STORE_TAPE"], "[tape-image]"], cwd=cls.folder, check=True,
                       stdout=subprocess.DEVNULL, timeout=300)
        with open(os.path.join(cls.folder, "large", "FPD001.tap"), "rb") as file:
            cls.image = file.read()
        cls.expected = []
        with open(os.path.join(cls.folder, "expected"), encoding="utf-8") as file:
            for line in file:
                number, fid, version, size, name = line.rstrip("\n").split(" ", 4)
                cls.expected.append((int(number), fid, version, int(size), name))

    def _bytes_of(self, fid):
        with open(os.path.join(self.folder, fid), "rb") as file:
            return file.read()

    def test_tarfile_reads_all_objects(self):
        tape = Tape(self.image)
        self.assertFalse(tape.incomplete)
        self.assertEqual(tape.volume["vsn"], "FPD001")
        tape.check_indexes()
        self.assertEqual(sum(file.is_index for file in tape.files), 2)
        found = [(file.number, member.fopd["fid"], member.fopd["version"], len(member.data), member.fopd["name"])
                 for file, member in tape.copies()]
        self.assertEqual(found, self.expected)
        for _, member in tape.copies():
            self.assertEqual(member.data, self._bytes_of(member.fopd["fid"]))
            self.assertEqual(member.fopd["owner"], "alice@example.org")
            self.assertEqual(member.fopd["group"], "physics")
            self.assertEqual(member.fopd["mode"], "640")
            self.assertEqual(member.fopd["collection"], "run 7")

    def test_a_tape_with_an_index_that_refers_to_another(self):
        with open(os.path.join(self.folder, "small", "FPD001.tap"), "rb") as file:
            tape = Tape(file.read())
        tape.check_indexes()
        self.assertEqual([file.is_index for file in tape.files], [False, True, False, True, False])
        self.assertEqual([len(member.data) for _, member in tape.copies()], [10, 0, 1, 2])

    def test_tar_lists_and_extracts_without_a_word(self):
        for file in Tape(self.image).files:
            with self.subTest(file=file.number), tempfile.TemporaryDirectory() as folder:
                archive = os.path.join(folder, "payload")
                with open(archive, "wb") as out:
                    out.write(file.payload)
                listed = self._tar("-tf", archive)
                names = [name for member in file.members for name in (member.name, member.name + ".meta")]
                self.assertEqual(listed.splitlines(), names)
                self._tar("-xf", archive, "-C", folder)
                for member in file.members:
                    with open(os.path.join(folder, member.name), "rb") as extracted:
                        self.assertEqual(extracted.read(), member.data)
                    if not file.is_index:
                        self.assertEqual(os.stat(os.path.join(folder, member.name)).st_mtime_ns, 1700000001500000000)

    def test_tar_restores_the_attributes(self):
        with tempfile.TemporaryDirectory(dir=self.folder) as folder:
            probe = os.path.join(folder, "probe")
            with open(probe, "wb"):
                pass
            try:
                os.setxattr(probe, "user.fopd.probe", b"1")
            except OSError:
                self.skipTest("the file system has no extended attributes")
            file = Tape(self.image).files[0]
            archive = os.path.join(folder, "payload")
            with open(archive, "wb") as out:
                out.write(file.payload)
            self._tar("--xattrs", "-xf", archive, "-C", folder)
            extracted = os.path.join(folder, file.members[0].name)
            self.assertEqual(os.getxattr(extracted, "user.fopd.name").decode(), self.expected[0][4])
            self.assertEqual(os.getxattr(extracted, "user.fopd.owner"), b"alice@example.org")

    def test_a_cut_image_has_an_incomplete_file(self):
        # Without the last filemark. An image may have a mark of its own behind that.
        image = self.image.removesuffix(b"\xff\xff\xff\xff")
        self.assertTrue(image.endswith(b"\0\0\0\0"))
        tape = Tape(image[:-4])
        self.assertTrue(tape.incomplete)
        self.assertEqual(len(tape.files), len(Tape(self.image).files) - 1)

    def test_changed_bytes_are_found(self):
        # In the data of the first object: behind VOL1, three labels, a filemark, a length and a header.
        at = 4 * 88 + 4 + 4 + 4096 + 1000
        changed = bytearray(self.image)
        changed[at] ^= 1
        with self.assertRaisesRegex(Wrong, "checksum"):
            Tape(bytes(changed))
        changed = bytearray(self.image)
        changed[4 + 4] = ord("X")  # The VSN.
        with self.assertRaisesRegex(Wrong, "VSN"):
            Tape(bytes(changed))

    def test_the_first_blocks_are_as_documented(self):
        lengths = [struct.unpack_from("<I", self.image, 88 * i)[0] for i in range(4)]
        self.assertEqual(lengths, [80] * 4)
        self.assertEqual(struct.unpack_from("<I", self.image, 88 * 4)[0], 0)

    def _tar(self, *arguments):
        done = subprocess.run(["tar", "-b", "512", *arguments], check=True, capture_output=True, text=True, timeout=60)
        self.assertEqual(done.stderr, "")
        return done.stdout


if __name__ == "__main__":
    unittest.main()

"""What fopd writes to a tape is read by programs of others: Python's tarfile, and tar itself."""

import os
import struct
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from types import SimpleNamespace

from tape_image import Tape, Wrong, extract

PROGRAM = Path(__file__).resolve().parent / "tape_image.py"
PAGE = Path(__file__).resolve().parents[3] / "docs" / "formats" / "tape.md"


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
        tape.check_indexes(complete=True)
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
        tape.check_indexes(complete=True)
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

    def test_the_commands_of_the_page(self):
        """Those without mt, with the image in place of a drive."""
        recovery = PAGE.read_text(encoding="utf-8").split("\n## Recovery without fopd\n")[1]
        commands = [line.strip() for line in recovery.splitlines() if line.startswith("    ")]
        of_image = [each for each in commands if "tape_image.py IMAGE" in each]
        of_drive = [each for each in commands if "/dev/nst0" in each and not each.startswith("mt ")]
        self.assertEqual((len(of_image), len(of_drive)), (3, 4))
        image = os.path.join(self.folder, "large", "FPD001.tap")
        with tempfile.TemporaryDirectory() as folder:
            parts = {}
            for part in ("labels", "payload"):
                parts[part] = os.path.join(folder, part)
                with open(parts[part], "wb") as out:
                    subprocess.run([sys.executable, PROGRAM, image, f"--{part}", "1"], stdout=out, check=True)
            printed = {}
            for command in of_drive + of_image:
                drive = parts["labels" if "unblock" in command else "payload"]
                command = command.replace("/usr/share/doc/fopd/formats/tape_image.py", str(PROGRAM))
                command = command.replace("IMAGE", image).replace("/dev/nst0", drive).replace("of=payload", "of=copy")
                # The file system of the test may have no extended attributes.
                command = command.replace("--xattrs ", "")
                done = subprocess.run(["bash", "-c", f"n=1; {command}"], cwd=folder, capture_output=True, check=False)
                self.assertEqual(done.returncode, 0, f"{command}: {done.stderr.decode()}")
                kind = next(each for each in ("unblock", "grep", "tar", "copy") if each in command.replace("tape_image", ""))
                self.assertEqual(printed.setdefault(kind, done.stdout), done.stdout)
            self.assertEqual([line[:4] for line in printed["unblock"].decode().splitlines()], ["VOL1", "HDR1", "HDR2", "UHL1"])
            self.assertTrue(all(len(line) <= 80 for line in printed["unblock"].splitlines()))
            for member in Tape(self.image).files[0].members:
                for key in ("name", "owner", "fid", "offset"):
                    self.assertIn(f"SCHILY.xattr.user.fopd.{key}={member.fopd[key]}\n", printed["grep"].decode())
                self.assertIn(f"{member.name}\n", printed["tar"].decode())
                self.assertTrue(os.path.exists(os.path.join(folder, member.name)))
            self.assertEqual(Path(folder, "copy").read_bytes(), Path(folder, "payload").read_bytes())

    def test_extracting_makes_the_directory(self):
        with tempfile.TemporaryDirectory() as folder:
            target = os.path.join(folder, "new", "one")
            subprocess.run([sys.executable, PROGRAM, os.path.join(self.folder, "small", "FPD001.tap"), "--extract", target],
                           stdout=subprocess.DEVNULL, check=True)
            self.assertTrue(os.listdir(target))

    def test_extracting_puts_pieces_together(self):
        def copy(fid, version, offset, data):
            return None, SimpleNamespace(fopd={"fid": fid, "version": version, "offset": offset}, data=data)
        # Pieces in any order, which may overlap; an older version is left out, on whichever side it is.
        copies = [copy("a", "3", "8", b"33"), copy("a", "3", "0", b"000000000"), copy("b", "9", "0", b"9999"),
                  copy("b", "10", "0", b"10"), copy("a", "2", "0", b"older, and longer"), copy("b", "9", "0", b"9999")]
        with tempfile.TemporaryDirectory() as folder:
            extract(SimpleNamespace(copies=lambda: copies), folder)
            self.assertEqual(Path(folder, "a").read_bytes(), b"0000000003")
            self.assertEqual(Path(folder, "b").read_bytes(), b"10")

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

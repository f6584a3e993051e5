"""What nodes leave on cartridges, read without fopd."""

import subprocess

from tape_image import Tape, read_image


def check_with_tar(case, file):
    """tar lists a tape file without a word, as Python's tarfile does."""
    names = [name for member in file.members for name in (member.name, member.name + ".meta")]
    listed = subprocess.run(["tar", "-b", "512", "-tf", "-"], input=file.payload, capture_output=True, check=True, timeout=60)
    case.assertEqual(listed.stderr, b"")
    case.assertEqual(listed.stdout.decode().splitlines(), names)


def check_tapes(case, directory, copies=()):
    """Every image is right, and has these copies: barcode, file, fid, offset, size. Returns how many tape files there are."""
    tapes = {}
    for image in sorted(directory.glob("*.tap")):
        data = image.read_bytes()
        if not read_image(data):
            continue
        with case.subTest(image=image.name):
            tapes[image.stem] = Tape(data)
            tapes[image.stem].check_indexes()
            for file in tapes[image.stem].files:
                check_with_tar(case, file)
    for barcode, number, fid, offset, size in copies:
        with case.subTest(barcode=barcode, file=number, fid=fid):
            there = [(member.fopd["fid"], int(member.fopd["offset"]), len(member.data))
                     for member in tapes[barcode].files[number - 1].members]
            case.assertIn((fid, offset, size), there)
    return sum(len(tape.files) for tape in tapes.values())

#!/usr/bin/env python3
"""Reads a tape that fopd wrote, from an image in the framing of SIMH, with Python's tarfile and nothing of fopd.

    tape_image.py IMAGE                lists what is on the tape
    tape_image.py IMAGE --extract DIR  also extracts the objects, named by their ids
    tape_image.py IMAGE --payload N    writes what file N has between its labels, for tar
    tape_image.py IMAGE --labels N     writes the labels before it

docs/formats/tape.md describes the bytes. It shares no code with fopd on purpose: what both read in the same way is
what the document says.
"""

import argparse
import io
import os
import struct
import sys
import tarfile
import urllib.parse

BLOCK = 262144
ATTRIBUTE = "SCHILY.xattr.user.fopd."
# Of an object, without its bytes.
CHANGEABLE = ("changed", "mode", "name", "name_version", "owner", "group", "pool", "collection")


class Wrong(Exception):
    """Something on the tape is not as the document says."""


def require(condition, what):
    if not condition:
        raise Wrong(what)


def crc32c_table():
    table = []
    for byte in range(256):
        value = byte
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
        table.append(value)
    return table


CRC_TABLE = crc32c_table()
# Of each number in the table its lowest byte, and so on to its highest.
CRC_TABLE_BYTES = [bytes(value >> shift & 0xFF for value in CRC_TABLE) for shift in (0, 8, 16, 24)]
MANY_BLOCKS = 24  # From here on it is faster to take them side by side.
BLOCKS_AT_ONCE = 1024  # More are hardly faster, and take memory.


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ CRC_TABLE[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


def checksums_side_by_side(data):
    """As crc32c() of each 4096 bytes, and for many of these several times as fast: each step takes the next byte of all blocks.

    The state of all blocks are four numbers: the first has the lowest byte of each block's sum, the last the highest.
    """
    count = len(data) // 4096
    sums = [int.from_bytes(b"\xff" * count, "little")] * 4
    for at in range(4096):
        mixed = sums[0] ^ int.from_bytes(data[at::4096], "little")
        indices = mixed.to_bytes(count, "little")
        added = [int.from_bytes(indices.translate(table), "little") for table in CRC_TABLE_BYTES]
        sums = [sums[1] ^ added[0], sums[2] ^ added[1], sums[3] ^ added[2], added[3]]
    columns = [each.to_bytes(count, "little") for each in sums]
    return [int.from_bytes(four, "little") ^ 0xFFFFFFFF for four in zip(*columns)]


def block_checksums(data):
    """The checksum of each 4096 bytes, the last ones filled up with zeros."""
    checksums = []
    for begin in range(0, len(data), BLOCKS_AT_ONCE * 4096):
        some = data[begin:begin + BLOCKS_AT_ONCE * 4096]
        some = some.ljust(-(-len(some) // 4096) * 4096, b"\0")
        if len(some) >= MANY_BLOCKS * 4096:
            checksums += checksums_side_by_side(some)
        else:
            checksums += [crc32c(some[at:at + 4096]) for at in range(0, len(some), 4096)]
    return checksums


def checksum_of(checksums):
    return crc32c(b"".join(struct.pack("<I", checksum) for checksum in checksums))


def read_image(image):
    """The records: bytes for a block, None for a filemark."""
    records = []
    at = 0
    while at < len(image):
        require(len(image) - at >= 4, "the image ends within a length")
        length, = struct.unpack_from("<I", image, at)
        at += 4
        if length == 0xFFFFFFFF:  # The end of the medium.
            break
        if length == 0:
            records.append(None)
            continue
        require(length <= BLOCK, "a block is too large")
        padded = length + length % 2
        require(len(image) - at >= padded + 4, "the image ends within a block")
        records.append(image[at:at + length])
        at += padded
        require(struct.unpack_from("<I", image, at)[0] == length, "the two lengths of a block differ")
        at += 4
    return records


def fields(block, *widths):
    """The fields of a label, with their spaces."""
    require(block is not None and len(block) == 80, "a label has 80 bytes")
    text = block.decode("ascii")
    assert sum(widths) == 80
    parts = []
    for width in widths:
        parts.append(text[:width])
        text = text[width:]
    return parts


def read_volume_label(block):
    name, vsn, access, reserved, implementation, owner, reserved2, protection, standard = fields(
        block, 4, 6, 1, 13, 13, 14, 26, 2, 1)
    require((name, access, reserved.strip(), reserved2.strip(), standard) == ("VOL1", " ", "", "", "3"), "VOL1")
    require(protection in ("00", "  "), "VOL1: block protection")
    require(implementation[:5] == "FOPD " and implementation[5:].isdigit(), "VOL1: not of fopd")
    return {"vsn": vsn, "generation": int(implementation[5:]), "owner": owner}


def read_file_labels(blocks, vsn, number, names):
    first, second, third = blocks
    (name, file_id, volume, section, short_number, generation, version, created, expires, access, count, system,
     reserved) = fields(first, 4, 17, 6, 4, 4, 4, 2, 6, 6, 1, 6, 13, 7)
    require(name == names[0], f"{names[0]} of file {number}")
    require(volume == vsn, f"{name} of file {number}: VSN")
    require((section, generation, version, access) == ("0001", "0001", "00", " "), f"{name} of file {number}")
    require(int(short_number) == number % 10000, f"{name} of file {number}: number")
    require(created == expires and created[1:].isdigit(), f"{name} of file {number}: date")
    require(system.rstrip() == "FOPD 1" and reserved.strip() == "", f"{name} of file {number}")

    name, form, block, record, density, reserved, technique, reserved2, offset, reserved3 = fields(
        second, 4, 1, 5, 5, 1, 18, 2, 14, 2, 28)
    require((name, form, block, record, offset) == (names[1], "F", "00000", "00000", "00"), f"{names[1]} of file {number}")
    require((density + reserved + technique + reserved2 + reserved3).strip() == "", f"{names[1]} of file {number}")

    name, long_number, block, record, site, mover, vendor, model, serial = fields(third, 4, 10, 10, 10, 8, 10, 8, 8, 12)
    require((name, int(long_number)) == (names[2], number), f"{names[2]} of file {number}")
    require(int(block) == int(record) == BLOCK, f"{names[2]} of file {number}: size of a block")
    return {"id": file_id.rstrip(), "blocks": int(count), "created": created, "site": site.rstrip(),
            "mover": mover.rstrip(), "vendor": vendor.rstrip(), "model": model.rstrip(), "serial": serial.rstrip()}


class Member:
    """A copy of an object, or a part of an index."""

    def __init__(self, archive, info, position):
        self.name = info.name
        self.position = position
        self.fopd = {key[len(ATTRIBUTE):]: value for key, value in info.pax_headers.items() if key.startswith(ATTRIBUTE)}
        self.data = archive.extractfile(info).read()
        require(info.offset_data % 4096 == 0, f"{self.name}: bytes do not begin at a multiple of 4096")
        require(len(self.data) == int(self.fopd["size"]), f"{self.name}: size")
        self.checksums = block_checksums(self.data)
        require(checksum_of(self.checksums) == int(self.fopd["checksum"], 16), f"{self.name}: checksum")

    def check_list(self, name, data):
        require(name == self.name + ".meta", f"{self.name}: {name} follows")
        require(data == b"".join(b"%08x\n" % checksum for checksum in self.checksums), f"{name}: checksums")


def read_members(payload):
    members = []
    with tarfile.open(fileobj=io.BytesIO(payload), mode="r:") as archive:
        entries = archive.getmembers()
        require(len(entries) % 2 == 0, "members come with their lists")
        for info, meta in zip(entries[::2], entries[1::2]):
            member = Member(archive, info, info.offset)
            member.check_list(meta.name, archive.extractfile(meta).read())
            members.append(member)
    return members


class File:
    """A complete file of the tape."""

    def __init__(self, number, block, header, payload, label_bytes=b""):
        self.number = number
        self.block = block
        self.labels = header
        self.label_bytes = label_bytes
        self.payload = payload
        self.is_index = header["id"] == "INDEX"
        self.members = read_members(payload)
        for member in self.members:
            require(member.fopd["kind"] == ("index" if self.is_index else "object"), f"file {number}: kind")

    def index_lines(self):
        text = b"".join(member.data for member in self.members).decode()
        return [{key: urllib.parse.unquote(value) for key, value in (field.split("=", 1) for field in line.split(" "))}
                for line in text.splitlines()]


class Tape:
    """All of a tape. `incomplete` is true if something follows the last complete file."""

    def __init__(self, image):
        records = read_image(image)
        require(records and records[0] is not None, "a blank tape")
        self.volume = read_volume_label(records[0])
        self.files = []
        self.incomplete = False
        at = 1
        if len(records) == 3 and records[1][4:12] == b"PRELABEL" and records[2] is None:
            return
        while at < len(records):
            file, at_next = self._read_file(records, at)
            if file is None:
                self.incomplete = True
                break
            self.files.append(file)
            at = at_next

    def _read_file(self, records, at):
        number = len(self.files) + 1
        marks = [i for i in range(at, len(records)) if records[i] is None][:3]
        if len(marks) < 3:
            return None, at
        require(marks[0] == at + 3 and marks[2] == marks[1] + 4, f"file {number}: positions of filemarks")
        vsn = self.volume["vsn"]
        header = read_file_labels(records[at:at + 3], vsn, number, ("HDR1", "HDR2", "UHL1"))
        trailer = read_file_labels(records[marks[1] + 1:marks[2]], vsn, number, ("EOF1", "EOF2", "UTL1"))
        blocks = records[marks[0] + 1:marks[1]]
        require(trailer.pop("blocks") == len(blocks) % 1000000, f"file {number}: number of blocks")
        require(header.pop("blocks") == 0 and header == trailer, f"file {number}: header and trailer differ")
        require(blocks and all(len(block) == BLOCK for block in blocks[:-1]), f"file {number}: short block")
        # File 1 begins with VOL1.
        first = 0 if number == 1 else at
        return File(number, first, header, b"".join(blocks), b"".join(records[first:marks[0]])), marks[2] + 1

    def copies(self):
        return [(file, member) for file in self.files if not file.is_index for member in file.members]

    def check_indexes(self, complete=False):
        """Each index lists copies in the files that it covers. `complete`: all of them, as they were written; otherwise
        those of deleted objects may be left out, and objects may have other names, owners and rights since."""
        last = "0:0"
        for file in self.files:
            for member in file.members:
                require(member.fopd["index"] == last, f"file {file.number}: position of the last index")
                require(int(member.fopd["generation"]) == self.volume["generation"], f"file {file.number}: generation")
                require(member.fopd["node"][:14].upper() == self.volume["owner"], f"file {file.number}: node")
            if not file.is_index:
                continue
            head, *lines, end = file.index_lines()
            require(head["fopd-index"] == "1" and head["vsn"] == self.volume["vsn"], f"index {file.number}")
            require(int(head["last"]) == file.number - 1, f"index {file.number}: last")
            require(head["first"] == "1" or head["previous"] == last, f"index {file.number}: previous")
            require(int(end["lines"]) == len(lines), f"index {file.number}: lines")
            covered = {(f.number, m.position): (f, m) for f, m in self.copies()
                       if int(head["first"]) <= f.number <= int(head["last"])}
            for line in lines:
                found = covered.pop((int(line["file"]), int(line["position"])), None)
                require(found is not None, f"index {file.number}: there is no copy {line}")
                copy_file, member = found
                expected = {"file": str(copy_file.number), "block": str(copy_file.block),
                            "id": copy_file.labels["id"].lower(), "position": str(member.position)}
                expected.update({key: value for key, value in member.fopd.items()
                                 if key not in ("kind", "node", "generation", "index")})
                if not complete:
                    expected = {key: value for key, value in expected.items() if key not in CHANGEABLE}
                    line = {key: value for key, value in line.items() if key not in CHANGEABLE}
                require(line == expected, f"index {file.number}: {line} is not {expected}")
            require(not complete or not covered, f"index {file.number}: copies")
            last = f"{file.number}:{file.block}"


def extract(tape, directory):
    """Writes the latest version of each object, of all of its pieces that are on the tape."""
    os.makedirs(directory, exist_ok=True)
    versions = {}
    for _, member in tape.copies():
        fid, version = member.fopd["fid"], int(member.fopd["version"])
        if versions.get(fid, version) > version:
            continue
        mode = "r+b" if versions.get(fid) == version else "wb"
        versions[fid] = version
        with open(os.path.join(directory, fid), mode) as out:
            out.seek(int(member.fopd["offset"]))
            out.write(member.data)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("image")
    parser.add_argument("--extract", metavar="DIR")
    parser.add_argument("--payload", metavar="N", type=int)
    parser.add_argument("--labels", metavar="N", type=int)
    arguments = parser.parse_args()
    with open(arguments.image, "rb") as file:
        tape = Tape(file.read())
    number = arguments.payload or arguments.labels
    if number:
        require(1 <= number <= len(tape.files), f"there is no complete file {number}")
        file = tape.files[number - 1]
        sys.stdout.buffer.write(file.payload if arguments.payload else file.label_bytes)
        return
    tape.check_indexes()
    print(f"{tape.volume['vsn']}: {len(tape.files)} files" + (", and an incomplete one" if tape.incomplete else ""))
    for file, member in tape.copies():
        print(file.number, member.fopd["fid"], member.fopd["version"], len(member.data), member.fopd["name"])
    if arguments.extract:
        extract(tape, arguments.extract)


if __name__ == "__main__":
    try:
        main()
    except (Wrong, OSError) as error:
        sys.exit(f"tape_image.py: {error}")

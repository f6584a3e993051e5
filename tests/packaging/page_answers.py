#!/usr/bin/env python3
"""Writes answers of fopctl into files of a directory, for stand-ins of tests of completion: lrs.txt, and devices.json, media.json,
drives.json, df.json and keys.json. Those in JSON have the form of the examples in docs/formats/json.md, which tests/process/json_test.py
compares with what the programs print, with other names.

    page_answers.py DIRECTORY
"""

import copy
import json
import re
import sys
from pathlib import Path

PAGE = Path(__file__).resolve().parent.parent.parent / "docs" / "formats" / "json.md"
# File: the section with the example, the field of the answer with the list, and the values of its elements.
ANSWERS = {
    "devices": ("Disk", "devices", [{"name": "d0", "pool": "fast"}, {"name": "d1", "pool": "fast"}]),
    "media": ("`media`", "media", [{"name": "A00001L9", "pool": "cold"}, {"name": "A00002L9", "pool": ""}]),
    "drives": ("`drives`", "drives", [{"name": "vtl0-drive0"}, {"name": "vtl0-drive1"}]),
    "df": ("`df`", "pools", [{"pool": "fast"}, {"pool": "slow"}]),
    "keys": ("`key list`", "principals", [{"name": "ann"}, {"name": "bob"}]),
}


def example(section):
    """The first block that is indented, in the section of that heading."""
    text = re.search(rf"^### {re.escape(section)}$(.*?)^##", PAGE.read_text(encoding="utf-8"), re.M | re.S)[1]
    return json.loads(re.search(r"(?:^    .*\n)+", text, re.M)[0])


for name, (section, field, elements) in ANSWERS.items():
    shown = example(section)
    # The section of a form has one element, that of a verb a whole answer.
    answer = shown if field in shown else {field: [shown]}
    pattern = answer[field][0]
    answer[field] = [copy.deepcopy(pattern) | values for values in elements]
    assert all(values.keys() <= pattern.keys() for values in elements), name
    # As the programs write it: in one line, without blanks.
    (Path(sys.argv[1]) / f"{name}.json").write_text(json.dumps(answer, separators=(",", ":")) + "\n", encoding="utf-8")
# As `fopctl lrs show --all` prints it.
(Path(sys.argv[1]) / "lrs.txt").write_text("""policy crr, 0 queued
max_foms=128 io_wait_goal=1ms
crr: quantum=1 by=client
deadline: policy=crr wait_max=1s
delay: min=100ms max=1s percent=100
epoch_groups: length=100ms at_end=go_on others=serve
mclock: capacity=none cost_unit=64KiB
orr: quantum=256 ops=reads offsets=logical
tbf: cluster_interval=100ms cut_off=auto
trr: quantum=256 ops=reads offsets=logical
fifo:
differs from the file: lrs.crr.quantum; `fopctl lrs save` writes it there
CLASS  QUEUED  PER S  BYTES PER S  THROTTLED  OLDEST
job:   0       1      8            0s         0s
""", encoding="utf-8")

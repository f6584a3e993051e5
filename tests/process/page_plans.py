"""How the commands of the pages are run by pages_test.py, where not as they stand.

A command that is not here is run as it stands, in the order of the page, and must end with 0. A command that is only a verb,
such as `fopctl put` in a sentence, may also end with 2 if its --help is there.
"""

from typing import NamedTuple


class Run(NamedTuple):
    """`text` instead, if it is not empty; `before` first, which is not on the page."""
    text: str = ""
    status: int = 0
    before: str = ""
    again: bool = False  # Repeated until it ends like this: a person waits a moment.


class Elsewhere(NamedTuple):
    """Another test runs it: the file has this text."""
    file: str
    text: str


class Not(NamedTuple):
    """No test runs it, for this reason."""
    reason: str


class Page(NamedTuple):
    rows: dict
    has_node: bool = True  # Else the page starts one.


MEASURES = Not("it measures for minutes, and wants a quiet machine")
PART = Not("it is a part of a command")
BY_SYSTEMD = "tests/vm/systemd_test.sh"
START = "fopd --dev >>fopd.log 2>&1 & fopd=$!"
NEW_DISK = "echo \"  - { name: d2, path: '$PWD/node/d2.img', size: 1GiB, thin: true, pool: fast }\" >>node/fopd.yaml"
LOSE_D1 = "end; mv node/d1.img lost.img; begin"

BY_PAGES = Elsewhere("tests/process/pages_test.py", "fopd --dev node >>fopd.log")

# On each page that has them.
COMMON = {
    "fopctl bench": Run("fopctl bench --op write --seconds 0.1"),
    "fopctl bench --op read": Run("fopctl bench --op read --seconds 0.1"),
    "fopctl bench --op write --durable": Run("fopctl bench --op write --durable --seconds 0.1"),
    "fopctl drain": Run("fopctl drain && end && begin"),
    "fopctl epoch show": Run(again=True),
    "fopctl epoch force": Run(status=1),
    "fopctl epoch force --yes": Run(status=1),
    "fopctl drain --unload": Run("fopctl drain --unload && end && begin"),
    "fopctl ls --fid FID": Run("fopctl ls --fid $fid"),
    "fopctl device add NAME": Run("fopctl device add d2", before=NEW_DISK),
    "fopctl device remove NAME": Run("fopctl device remove d2"),
    "fopctl lrs set mclock --rules FILE": Run("fopctl lrs set mclock --rules shares"),
    "fopctl lrs set tbf --rules FILE": Run("fopctl lrs set tbf --rules limits"),
    "fopctl ping": Run("fopctl ping --count 1"),
    "fopctl put -r DIR NAME/": Run("fopctl put -r results tree/"),
    "fopctl stat --fid FID": Run("fopctl stat --fid $fid"),
    "fopctl store backup FILE": Run("fopctl store backup backup.file"),
    "fopctl top": Run("fopctl top --count 1 --interval 0.1"),
    "fopctl top --interval 5 --count 12": Run("fopctl top --interval 0.1 --count 2"),
    "fopctl trace 5f3a-17": Run(status=66),
    "fopctl trace FOP": Run("fopctl trace 5f3a-17", status=66),
    "fopd --check-store": Run("end; fopd --check-store && begin"),
    "fopd --dev": BY_PAGES,
    "fopd --dev DIR": BY_PAGES,
    "fopd --restore-store": PART,
    "fopd --restore-store FILE": Run("end; rm node/data/slots; fopd --restore-store backup.file && begin"),
    "kill -9": PART,
    "man fopctl": Elsewhere("tests/packaging/man_test.sh", "man --warnings"),
    "man fopd": Elsewhere("tests/packaging/man_test.sh", "man --warnings"),
    "man fopd.yaml": Elsewhere("tests/packaging/man_test.sh", "man --warnings"),
    "man libfopd": Elsewhere("tests/packaging/man_test.sh", "man --warnings"),
    "systemctl enable --now fopd": Elsewhere(BY_SYSTEMD, "systemctl --quiet enable --now fopd"),
    "systemctl reload fopd": Elsewhere(BY_SYSTEMD, "systemctl reload fopd"),
    "systemctl start fopd": Elsewhere(BY_SYSTEMD, "systemctl start fopd"),
    "systemctl stop fopd": Elsewhere(BY_SYSTEMD, "systemctl stop fopd"),
    "ulimit -l": Run(),
}

README = {
    "scripts/quickstart": Elsewhere("scripts/test", 'scripts/quickstart" --demo'),
    "scripts/quickstart --demo": Elsewhere("scripts/test", 'scripts/quickstart" --demo'),
    "scripts/test": Elsewhere(".ci/run", "scripts/test"),
    "scripts/setup && cmake --preset release && cmake --build --preset release":
        Elsewhere("scripts/quickstart", "cmake --build --preset release"),
    "build/release/bin/fopd --dev &": Run(START),
    ". /var/tmp/fopd-dev/env.sh": Run(again=True),
    "build/release/bin/fopctl status": Run(again=True),
    "build/release/bin/fopctl ping --count 3": Run(again=True),
    "build/release/bin/fopctl bench --op read --size 4k --depth 32 --seconds 3":
        Run("build/release/bin/fopctl bench --op read --size 4k --depth 32 --seconds 0.1 --object-size 4M"),
    "build/release/bin/fopctl top --interval 1 --count 5": Run("build/release/bin/fopctl top --interval 0.1 --count 2"),
    "kill %1": Run("kill %1; wait $fopd"),
    "(cd build/release && cpack -G DEB)": Elsewhere("scripts/test", "cpack -G DEB"),
    "sudo apt install ./build/release/fopd_*.deb ./build/release/fopctl_*.deb":
        Elsewhere(BY_SYSTEMD, 'dpkg --install "$here"/fopd_*.deb'),
    "apt install ./fopctl_*.deb": Elsewhere(BY_SYSTEMD, 'dpkg --install "$here"/fopctl_*.deb'),
    "sudoedit /etc/fopd/fopd.yaml": Elsewhere(BY_SYSTEMD, "sudoedit /etc/fopd/fopd.yaml"),
    "sudo fopctl key create admin --rights read,write,create,delete,admin --out admin.key":
        Elsewhere(BY_SYSTEMD, "fopctl key create admin --rights read,write,create,delete,admin --out"),
    "sudo systemctl enable --now fopd": Elsewhere(BY_SYSTEMD, "systemctl --quiet enable --now fopd"),
    "sudo fopctl status": Elsewhere(BY_SYSTEMD, "fopctl --json status"),
    "fopctl status": Run(before=f"{START}; until fopctl --quiet status; do sleep 0.05; done"),
    "cmake --workflow --preset dev": Elsewhere("CMakePresets.json", '"workflowPresets"'),
    "FOPD_SWARM_SEEDS=5000 build/dev/bin/test_sim '[swarm]'": Elsewhere("scripts/test", "FOPD_SWARM_SEEDS=$2"),
}

CONTRIBUTING = {
    "scripts/setup --all": Elsewhere("scripts/test", 'scripts/setup "$packages"'),
    "scripts/check": Elsewhere("scripts/test", "scripts/check"),
    "scripts/check --fix": Not("it changes the sources"),
    "scripts/test": Elsewhere(".ci/run", "scripts/test"),
    "scripts/test --long": Not("it takes hours, and runs all other tests"),
    "scripts/test --long asan": Not("it takes an hour, and runs all other tests"),
    "scripts/test-vm": Not("it emulates a machine for most of an hour"),
    "scripts/test-vm tape": Not("it emulates a machine"),
    "scripts/test-vm rdma": Not("it emulates a machine"),
    "cmake --preset dev && cmake --build --preset dev && ctest --preset dev": Elsewhere("CMakePresets.json", '"dev"'),
    "cmake --workflow --preset dev": Elsewhere("CMakePresets.json", '"workflowPresets"'),
}

IN_ETCD = Elsewhere("tests/process/etcd_pages_test.py", "commands_of(page)")
EPOCHS = dict.fromkeys([
    "etcdctl compact $(etcdctl endpoint status --write-out=json | grep -o '\"revision\":[0-9]*' | grep -o '[0-9]*' | head -1)",
    "etcdctl defrag --cluster && etcdctl alarm disarm",
    "etcdctl user add fopd && etcdctl role add epochs",
    "etcdctl role grant-permission epochs --prefix=true readwrite /fopd/ && etcdctl user grant-role fopd epochs",
], IN_ETCD)

RUNNING = {
    "etcdctl del /fopd/view": IN_ETCD,
    "scripts/quickstart --cluster 3 --etcd": Elsewhere("tests/process/cluster_script_test.py", 'self.start("--etcd")'),
    **dict.fromkeys([
        "journalctl -u fopd -p err",
        "journalctl -u fopd -p warning --since today",
        "journalctl -u fopd FOPD_EVENT=fopd.devices.state",
        "journalctl -u fopd FOPD_EVENT=fopd.store.scrub_found_damage --since today -o json |"
        " jq -r '.FOPD_OBJECT + \" \" + .FOPD_NAME' | sort -u",
        "journalctl -u fopd FOPD_EVENT=fopd.audit.administration",
        "journalctl -u fopd FOPD_EVENT=fopd.audit.denied FOPD_PRINCIPAL=ann",
        "systemctl show --property MemoryPeak fopd",
        "cp /usr/share/doc/fopd/examples/logrotate /etc/logrotate.d/fopd",
        "install -D -m 644 /usr/share/doc/fopd/drop-ins/tape.conf /etc/systemd/system/fopd.service.d/tape.conf",
        "systemctl daemon-reload",
        "systemctl edit fopd",
        'blkdiscard --zeroout --length 1MiB "$disk"',
        'blkdiscard --zeroout --offset $(( $(blockdev --getsize64 "$disk") - 1048576 )) "$disk"',
    ]),
    "fopctl mirror get": PART,
    'fopctl mirror get --pool fast "" /backup/fast': Run('fopctl mirror get --pool fast "" backup'),
    "promtool check config /etc/prometheus/prometheus.yml": Elsewhere("tests/process/monitoring_test.py", "promtool"),
    "systemctl reload prometheus": Not("Prometheus is not a part of fopd"),
    "fopd --check-config && fopctl device add d2":
        Run(before=NEW_DISK),
    "sh empty.sh SLOT fast": Run("sh empty.sh 1 fast"),
    "fopctl scrub d0": Run("fopctl scrub d2"),
    "fopctl repack V00001L9":
        Run("fopctl repack $medium",
            before="fopctl put copy on-tape --pool cold; fopctl sync --pool cold; "
                   "medium=$(fopctl --json media | jq -r '[.media[] | select(.files > 0)][0].name')"),
    "fopctl rescue --all": Run(),
    "fopctl rescue V00001L9": Run("fopctl rescue $medium", status=1),
    "fopctl rescue --all --show": Run(),
    "fopctl export V00001L9":
        Run("fopctl export $exported",
            before="exported=$(fopctl --json media | jq -r '[.media[] | select(.state == \"blank\")][0].name')"),
    "fopctl import": Run(),
    "fopctl format V00001L9 --pool cold": Run("fopctl format $medium --pool cold"),
    "fopctl scrub --medium V00001L9": Run("fopctl scrub --medium $medium"),
    "fopctl device forget --slot 2": Run(status=1, before=LOSE_D1),
    "fopctl device forget --slot N": Run("fopctl device forget --slot 2", status=1),
    "disk=/dev/disk/by-id/…": Elsewhere(BY_SYSTEMD, "disk=/dev/disk/by-id/"),
    "fopctl ls --fid 0001000000000000000000000000002a":
        Run("fopctl ls --fid $fid", before="fopctl put copy reports/a; fid=$(fopctl stat --json reports/a | jq -r .fid)"),
    "fopctl read NAME --offset N --length 4k": Run("fopctl read reports/a --offset 4k --length 4k"),
    "fopctl put --pool fast COPY NAME": Run("fopctl put --pool fast copy reports/a"),
    "fopctl chown --pool fast OWNER:GROUP NAME": Run("fopctl chown --pool fast dev: reports/a"),
    "fopctl chmod --pool fast MODE NAME": Run("fopctl chmod --pool fast 640 reports/a"),
    "fopctl rm --pool fast NAME": Run("fopctl rm --pool fast reports/a"),
    "sudo -u fopd fopd --restore-store FILE":
        Run("end; rm node/data/slots; fopd --restore-store fopd-backup && begin"),
    "sudo -u fopd fopd --check-store": Run("end; fopd --check-store && begin"),
    "fopctl token revoke FILE":
        Run("fopctl token revoke a.token",
            before="fopctl token create --issuer node/issuer.key --rights read --out a.token"),
    "fopctl key create ann --out ann.key": Run(before="rm ann.key"),
    "fopctl --key ann.key ping": Run("fopctl --key ann.key ping --count 1"),
    "apt install ./fopd_….deb ./fopctl_….deb": Elsewhere(BY_SYSTEMD, 'dpkg --install "$here"/fop*.deb'),
    ". DIR/env.sh": Run(". node/env.sh"),
    "fopd --config DIR/fopd.yaml --restore-store FILE":
        Run("fopd --config node/fopd.yaml --restore-store backup.file && begin",
            before="fopctl store backup backup.file; end; rm -r node/data/*"),
    "fopd --check-config --config FILE":
        Run("fopd --check-config --config wrong.yaml", status=78, before="echo 'log: { levle: info }' >wrong.yaml"),
}
RUNNING |= {text: Elsewhere(BY_SYSTEMD, text) for text, row in RUNNING.items() if row is None}

TUTORIAL = {
    "fopctl stat photos/1.jpg": Run(before="fopctl put copy photos/1.jpg"),
    "fopctl device add d1": Run("fopctl device add d2", before=NEW_DISK),
    "fopd --dev node": BY_PAGES,
    "fopd --dev node &": BY_PAGES,
    # With the redirection of the page.
    "fopd --dev node 2>fopd.log &":
        Run("fopd --dev node 2>fopd.log & fopd=$!; until [ -e node/env.sh ] && . node/env.sh && fopctl --quiet status --wait ready; "
            "do sleep 0.02; done", before="end"),
    "journalctl -u fopd": Elsewhere(BY_SYSTEMD, "journalctl -u fopd"),
    "kill %1": Run("end; begin"),
}

IN_BENCH = ["bench/epochs.py --seconds 10",
            "bench/groups.py --rounds 5",
            "bench/objects.py --seconds 3",
            "bench/objects.py --start 1000000",
            "bench/objects.py --explain 200 --seconds 0.7 --dir /dev/shm",
            "bench/policies.py --dir /dev/shm --parts cost --policies fifo,crr,orr,tbf,mclock --turns 60",
            "bench/policies.py --parts reader,shares --policies fifo,crr --seconds 8 --disk-rate 100000000",
            "bench/policies.py --parts reader"]

MEASUREMENTS = {
    **{text: Elsewhere("tests/bench/programs_test.py", text) for text in IN_BENCH},
    "FOPD_SWARM_SEEDS=5000 build/release/bin/test_eh '[swarm]'": Elsewhere("scripts/test", "FOPD_SWARM_SEEDS=$2"),
    "FOPD_SWARM_SEEDS=2000 build/release/bin/test_sim '[swarm]'": Elsewhere("scripts/test", "FOPD_SWARM_SEEDS=$2"),
    "build/release/bin/test_eh '[.exploration]'":
        Elsewhere("scripts/test", "build/release/bin/test_eh '[.exploration]'"),
    **dict.fromkeys([
        "build/release/bin/bench_fabric --ofi",
        "build/release/bin/test_sim -d yes",
        "scripts/test --long swarm",
        "build/release/bin/bench_store /var/tmp 100000",
        "ctest --preset release -R 'network_(stopped|guests|ends_many)' --verbose",
        "bench/objects.py --beside nbdkit,qsd --seconds 1 --rounds 1",
    ], MEASURES),
    'FOPD_SWARM_SEEDS=2000 build/release/bin/test_sim "sim epochs: after any faults all move together again"':
        Elsewhere("tests/sim/epochs_test.cc", 'TEST_CASE("sim epochs: after any faults all move together again"'),
    'build/release/bin/test_sim "sim policies*" -s': Elsewhere("tests/sim/policies_test.cc", 'TEST_CASE("sim policies: '),
    **dict.fromkeys(["perf stat -e raw_syscalls:sys_enter", "perf stat -r 20", "perf record"], PART),
    "fopctl bench --op read --size 4k": Run("fopctl bench --op read --size 4k --seconds 0.1 --object-size 4M"),
    "fopctl bench --op echo --size 64 --depth 64 --jobs 2":
        Run("fopctl bench --op echo --size 64 --depth 64 --jobs 2 --seconds 0.1"),
    "fopctl bench --op read --size 4k --depth 1":
        Run("fopctl bench --op read --size 4k --depth 1 --seconds 0.1 --object-size 4M"),
    "fopctl bench --op echo --size 64 --depth 1": Run("fopctl bench --op echo --size 64 --depth 1 --seconds 0.1"),
    "fopctl bench --op read --size 4k --depth 32":
        Run("fopctl bench --op read --size 4k --depth 32 --seconds 0.1 --object-size 4M"),
    "fopctl rm -r t/ --yes": Run(before="fopctl put -r results t/"),
}

CHANGES = {
    "fopctl cancel format:BARCODE": Run(status=66),
    "apt install ./fopd_….deb ./fopctl_….deb": Elsewhere(BY_SYSTEMD, 'dpkg --install "$here"/fop*.deb'),
    "cmake --install": PART,
    "pkg-config --static --libs fopd": Elsewhere("tests/packaging/packages_test.sh", "pkg-config --static --libs"),
}

EVENTS = {
    "journalctl -u fopd FOPD_EVENT=fopd.devices.error FOPD_DEVICE=d0":
        Elsewhere(BY_SYSTEMD, "journalctl -u fopd FOPD_EVENT=fopd.devices.error FOPD_DEVICE=d0"),
}

FOPCTL = {
    "fopctl get -r 2026/ copy": Run("rm copy; fopctl get -r 2026/ copy"),
    "fopctl rm -r 2026/": Run("fopctl rm -r 2026/ --yes"),
    "fopctl token create --issuer issuer.key --rights read --object results.tar.gz --expires 2h --out results.token":
        Run(before="cp -p node/issuer.key ."),
}

FOPD = {
    "fopd --restore-store file": Run("end; rm node/data/slots; fopd --restore-store backup.file && begin",
                                     before="fopctl store backup backup.file"),
    "fopd --check-config --config ./fopd.yaml": Run(before="cp node/fopd.yaml ."),
    "fopd --dev &": Run(START, before="end"),
    ". /var/tmp/fopd-dev/env.sh": Run(again=True),
    "fopctl status": Run(again=True),
}

LIBRARY = {
    "cc program.c $(pkg-config --cflags --libs fopd)":
        Elsewhere("tests/packaging/packages_test.sh", "$(pkg-config --cflags --libs fopd)"),
}

IF_YOU_KNOW = {
    "fopctl put --pool fast FILE NAME": Run("fopctl put --pool fast copy NAME"),
    "fopctl bench --op write --durable --seconds 10 --pool fast":
        Run("fopctl bench --op write --durable --seconds 0.1 --pool fast --object-size 4M"),
    # Of so many objects some are on each disk.
    "fopctl device remove d0": Run(before="for i in $(seq 20); do fopctl put copy spread/$i; done", status=1),
    "fopctl device forget d0": Run(status=1),
    "fopctl put FILE NAME": Run("fopctl put copy NAME"),
    "fopctl mirror put DIR NAME/": Run("fopctl mirror put results NAME/"),
    "fopctl mirror put --delete DIR NAME/": Run("fopctl mirror put --delete results NAME/"),
    "fopctl rm -r NAME/ --yes": Run(before="fopctl put -r results NAME/"),
    "fopctl token create --issuer issuer.key --rights read --object NAME --expires 12h":
        Run(before="fopctl put copy NAME; cp -p node/issuer.key ."),
    "fopctl get NAME FILE": Run(before="fopctl put copy NAME"),
    "fopctl stage NAME --pool cold": Run(before="fopctl put --pool cold copy NAME; fopctl sync --pool cold"),
    "fopctl cancel NAME --pool cold": Run(status=66),
}

REPORT = {
    "cc -o libfabric-report libfabric-report.c -lfabric && ./libfabric-report":
        Elsewhere("tests/bench/CMakeLists.txt", "libfabric_report"),
}

PLANS = {
    "README.md": Page(README, has_node=False),
    "CONTRIBUTING.md": Page(CONTRIBUTING),
    "docs/changes.md": Page(CHANGES),
    "docs/if-you-know.md": Page(IF_YOU_KNOW),
    "docs/libfabric-report.md": Page(REPORT, has_node=False),
    "docs/measurements.md": Page(MEASUREMENTS),
    "docs/running.md": Page(RUNNING),
    "docs/trials.md": Page({
        "fopctl --principals FILE key create ann": Run(status=2),
        "fopctl drive vtl-drive1 down": Run(status=2),
    }),
    "docs/tutorial.md": Page(TUTORIAL),
    "docs/reference/epochs.md": Page(EPOCHS, has_node=False),
    "docs/reference/events.md": Page(EVENTS),
    "docs/man/fopctl.1": Page(FOPCTL),
    "docs/man/fopd.8": Page(FOPD),
    "docs/man/libfopd.3": Page(LIBRARY),
}

"""Servers that others use for the same purpose, beside a daemon: nbdkit and qemu-storage-daemon, over TCP.

All serve files of the same size on the same file system and take turns under the same loads. Of each figure the median
of the rounds is printed. The clients are `fopctl bench` and fio's engine nbd, with one connection each.
"""

import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import socket
import statistics
import subprocess
import sys
import time
from typing import NamedTuple

FILE_BYTES = 256 << 20
TICKS = os.sysconf("SC_CLK_TCK")


class Load(NamedTuple):
    title: str
    op: str  # read or write.
    size: int
    depth: int


LOADS = (
    Load("4 KiB read, one at a time", "read", 4096, 1),
    Load("4 KiB read, 32 at a time", "read", 4096, 32),
    Load("1 MiB read, 8 at a time", "read", 1 << 20, 8),
    Load("1 MiB written, 8 at a time", "write", 1 << 20, 8),
)


class Done(NamedTuple):
    ops_per_s: float
    p50_us: float


class Figures(NamedTuple):
    ops_per_s: float
    p50_us: float
    cpu_us: float  # The server's, for each operation.
    calls: float | None  # Its system calls for each operation; None without perf.


def cpu_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def run(command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{command[0]}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


class Fopd:
    name = "fopd"

    def __init__(self, daemon):
        self.daemon = daemon
        self.pid = daemon.process.pid

    def load(self, load, seconds):
        result = json.loads(run([
            self.daemon.programs / "fopctl", "bench", "--server", self.daemon.address, "--json", "--op", load.op,
            "--object", "beside", "--object-size", str(FILE_BYTES), "--size", str(load.size), "--depth", str(load.depth),
            "--seconds", str(seconds)]))
        return Done(result["ops_per_s"], result["p50_us"])


class NbdServer:
    """A server of the file `path`, which is made here."""

    def __init__(self, path, *, in_memory):
        fill(path)
        port = free_port()
        self.path = path
        self.in_memory = in_memory
        self.uri = f"nbd://127.0.0.1:{port}/{self.export}"
        self.log = path.with_suffix(".log")
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(self.command(path, port), stdout=log, stderr=log)
        self.pid = self.process.pid
        self.wait_until_it_listens(port)

    def wait_until_it_listens(self, port):
        until = time.monotonic() + 30
        while True:
            if self.process.poll() is not None:
                sys.exit(f"{self.name} ended at once: {self.log.read_text().strip()}")
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    return
            if time.monotonic() > until:
                sys.exit(f"{self.name} does not listen")
            time.sleep(0.05)

    def load(self, load, seconds):
        if not self.in_memory:
            drop_from_page_cache(self.path)
        pattern = f"rand{load.op}" if load.size < 1 << 20 else load.op
        out = run(["fio", "--name=beside", "--ioengine=nbd", f"--uri={self.uri}", f"--size={FILE_BYTES}", f"--rw={pattern}",
                   f"--bs={load.size}", f"--iodepth={load.depth}", "--time_based", f"--runtime={seconds}",
                   "--norandommap", "--output-format=json"])
        job = json.loads(out[out.index("{"):])["jobs"][0]
        part = job[load.op]
        return Done(part["iops"], part["clat_ns"]["percentile"]["50.000000"] / 1000)

    def end(self):
        self.process.terminate()
        self.process.wait()


class Nbdkit(NbdServer):
    name = "nbdkit"
    program = "nbdkit"
    package = "nbdkit"
    export = ""

    def command(self, path, port):
        # It cannot read past the page cache, but with cache=none drops from it what it has read.
        cache = "default" if self.in_memory else "none"
        return [self.program, "--foreground", "--ipaddr=127.0.0.1", f"--port={port}", "file", f"file={path}",
                f"cache={cache}"]


class Qsd(NbdServer):
    name = "qsd"
    program = "qemu-storage-daemon"
    package = "qemu-system-common"
    export = "disk"

    def command(self, path, port):
        return [self.program,
                "--blockdev", f"driver=file,node-name=file,filename={path},aio=io_uring,cache.direct=on",
                "--blockdev", "driver=raw,node-name=disk,file=file,cache.direct=on",
                "--nbd-server", f"addr.type=inet,addr.host=127.0.0.1,addr.port={port}",
                "--export", "type=nbd,id=export,node-name=disk,name=disk,writable=on"]


PEERS = {each.name: each for each in (Nbdkit, Qsd)}


def fill(path):
    with open(path, "wb") as file:
        for _ in range(FILE_BYTES >> 20):
            file.write(os.urandom(1 << 20))


def drop_from_page_cache(path):
    with open(path, "rb") as file:
        os.fsync(file.fileno())  # Only what is written can be dropped.
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def installed(names):
    """The classes of those peers that can run here; says which cannot."""
    if not shutil.which("fio") or "nbd" not in run(["fio", "--enghelp"]).split():
        sys.exit("fio with its engine nbd is not installed, which is the client of the others (Debian's package: fio)")
    found = []
    for name in names:
        if name not in PEERS:
            sys.exit(f"{name} is not known here; known are {', '.join(PEERS)}")
        peer = PEERS[name]
        if shutil.which(peer.program):
            found.append(peer)
        else:
            print(f"{peer.program} is not installed and is left out (Debian's package: {peer.package})", flush=True)
    return found


def in_the_middle(server, load, seconds, look):
    """Runs the load, and look(time) while it is under way: before, clients start and warm up, and servers make threads.
    Returns the load's figures, and what look() counted, for each operation."""
    part = 0.4 * seconds
    with concurrent.futures.ThreadPoolExecutor() as pool:
        loading = pool.submit(server.load, load, seconds)
        time.sleep(part)
        counted = look(part)
        done = loading.result()
    return done, None if counted is None else counted / (done.ops_per_s * part)


def system_calls(server, load, seconds):
    """Those of the server for each operation."""
    def count(time_s):
        perf = ["perf", "stat", "-x,", "-e", "raw_syscalls:sys_enter", "-p", str(server.pid), "sleep", str(time_s)]
        counted = re.search(r"^(\d+),", subprocess.run(perf, capture_output=True, text=True).stderr, re.MULTILINE)
        return int(counted[1]) if counted else None

    return in_the_middle(server, load, seconds, count)[1] if shutil.which("perf") else None


def measure(server, load, seconds):
    def cpu_us(time_s):
        before = cpu_seconds(server.pid)
        time.sleep(time_s)
        return (cpu_seconds(server.pid) - before) * 1e6

    done, cpu = in_the_middle(server, load, seconds, cpu_us)
    return Figures(done.ops_per_s, done.p50_us, cpu, system_calls(server, load, min(seconds, 1)))


def median(rounds):
    def of(values):
        return None if None in values else statistics.median(values)
    return Figures(*(of(values) for values in zip(*rounds)))


def compare(servers, where, seconds, rounds):
    """Lets the servers take turns, and prints a table for each load."""
    for server in servers:
        for load in LOADS:
            server.load(load, 0.3)  # So that nothing is written or asked for the first time.
    for load in LOADS:
        measured = {server.name: [] for server in servers}
        for _ in range(rounds):
            for server in servers:
                measured[server.name].append(measure(server, load, seconds))
        print(f"\n{load.title}, {where}, {rounds} rounds")
        for name, figures in measured.items():
            print(row(name, load, median(figures)), flush=True)


def row(name, load, figures):
    calls = "unknown" if figures.calls is None else f"{figures.calls:.2f}"
    return (f"  {name:8} {figures.ops_per_s:9.0f}/s {figures.ops_per_s * load.size / (1 << 20):7.0f} MiB/s  p50"
            f" {figures.p50_us:6.0f} us  server: {figures.cpu_us:7.1f} us CPU, {calls} system calls each")

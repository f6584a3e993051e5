#!/usr/bin/env python3
"""Measures objects over the network, and beside it what fio does to a file on the same file system.

    bench/objects.py [--bin build/release/bin] [--dir /var/tmp] [--localities 1] [--disks 1] [--seconds 5] [--rounds 1]
    bench/objects.py --start 1000000   # how long a start takes after kill -9, with so many objects
    bench/objects.py --explain 200 --seconds 0.7 --dir /dev/shm   # what --explain costs the daemon, in so many turns
    bench/objects.py --beside nbdkit,qsd --rounds 5   # the same loads for these servers, in turns, in memory and in files

Starts a daemon of its own on disks that are files below --dir, and removes everything again. CPU is the daemon's, for
each operation; memory is what it has after each run.
"""

import argparse
import contextlib
import json
import os
import pathlib
import platform
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

import peers

MIB = 1 << 20


def processor():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()


def anonymous_mib(pid):
    for line in pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Anonymous:"):
            return int(line.split()[1]) // 1024
    return 0


class Daemon:
    def __init__(self, programs, top, localities, disks):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.address = f"tcp://127.0.0.1:{probe.getsockname()[1]}"
        self.programs = programs
        self.top = top
        self.admin = top / "admin.sock"
        (top / "data").mkdir()
        devices = [{"name": f"d{n}", "path": str(top / f"d{n}.img"), "size": "16GiB", "thin": True, "pool": "default"}
                   for n in range(disks)]
        self.config = top / "fopd.yaml"
        self.config.write_text(json.dumps({  # Which is YAML, too.
            "node": {"data_dir": str(top / "data")},
            "fabric": {"listen": [self.address]},
            "localities": {"cores": localities},
            "auth": {"mode": "none"},
            "admin": {"socket": str(self.admin), "metrics": "none"},
            "pools": [{"name": "default", "family": "disk"}],
            "devices": devices,
        }, indent=1))
        self.process = None

    def start(self):
        """Seconds until it is ready."""
        begun = time.monotonic()
        notify = self.top / "notify"
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as ready, open(self.top / "log", "ab") as log:
            notify.unlink(missing_ok=True)
            ready.bind(str(notify))
            ready.settimeout(600)
            self.process = subprocess.Popen([self.programs / "fopd", "--config", self.config], stdout=log, stderr=log,
                                            env=os.environ | {"NOTIFY_SOCKET": str(notify)})
            while b"READY=1" not in ready.recv(4096):
                pass
        return time.monotonic() - begun

    def end(self, how=signal.SIGTERM):
        if self.process and self.process.poll() is None:
            self.process.send_signal(how)
            self.process.wait()

    def bench(self, title, *options):
        before = peers.cpu_seconds(self.process.pid)
        done = subprocess.run([self.programs / "fopctl", "bench", "--server", self.address, "--json", *options],
                              capture_output=True, text=True)
        used = peers.cpu_seconds(self.process.pid) - before
        if done.returncode != 0:
            sys.exit(f"{title}: {done.stderr.strip()}")
        result = json.loads(done.stdout)
        print(f"{title:34} {result['ops_per_s']:9.0f}/s {result['bytes_per_s'] / MIB:7.0f} MiB/s"
              f" {used * 1e6 / max(1, result['ops']):8.1f} us CPU  p50 {result['p50_us']:.0f} p99 {result['p99_us']:.0f} us"
              f"  {anonymous_mib(self.process.pid)} MiB", flush=True)
        return result


def fio(title, path, seconds, *options):
    if not shutil.which("fio"):
        return
    done = subprocess.run(["fio", "--name=file", f"--filename={path}", "--size=256M", "--ioengine=io_uring", "--direct=1",
                           "--output-format=json", *(["--time_based", f"--runtime={seconds}"] if seconds else []), *options],
                          capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{title}: {done.stderr.strip()}")
    job = json.loads(done.stdout[done.stdout.index("{"):])["jobs"][0]
    part = job["read"] if job["read"]["total_ios"] else job["write"]
    cpu = (job["usr_cpu"] + job["sys_cpu"]) / 100
    print(f"{title:34} {part['iops']:9.0f}/s {part['bw'] / 1024:7.0f} MiB/s"
          f" {cpu * 1e6 / max(1, part['iops']):8.1f} us CPU", flush=True)


def compare(daemon, top, asked):
    seconds = str(asked.seconds)
    daemon.start()
    path = top / "fio.bin"
    fio("(filling)", path, None, "--rw=write", "--bs=1M")  # So that nothing is written for the first time.
    small = ["--object", "small", "--size", "4k", "--depth", "32", "--seconds"]
    large = ["--object", "large", "--size", "1M", "--depth", "8", "--seconds"]
    daemon.bench("(filling)", "--op", "write", *small, "0.2")
    daemon.bench("(filling)", "--op", "write", *large, "0.2")
    for _ in range(asked.rounds):
        daemon.bench("1 MiB get", "--op", "read", *large, seconds)
        fio("  fio: 1 MiB read", path, seconds, "--rw=read", "--bs=1M", "--iodepth=8")
        daemon.bench("1 MiB written durably", "--op", "write", "--durable", *large, seconds)
        fio("  fio: 1 MiB written with O_DSYNC", path, seconds, "--rw=write", "--bs=1M", "--iodepth=8", "--sync=dsync")
        daemon.bench("4 KiB read", "--op", "read", *small, seconds)
        fio("  fio: 4 KiB read", path, seconds, "--rw=randread", "--bs=4k", "--iodepth=32")
        daemon.bench("4 KiB written durably", "--op", "write", "--durable", *small, seconds)
        fio("  fio: 4 KiB written with O_DSYNC", path, seconds, "--rw=randwrite", "--bs=4k", "--iodepth=32",
            "--sync=dsync")
        daemon.bench("4 KiB written, buffered", "--op", "write", *small, seconds)
        daemon.bench("objects created", "--op", "create", "--object", "made", "--depth", "32", "--seconds", seconds)


def compare_beside(asked):
    found = peers.installed(asked.beside.split(","))
    for folder, in_memory in (("/dev/shm", True), (asked.dir, False)):
        with tempfile.TemporaryDirectory(prefix="fopd-bench-", dir=folder) as name, contextlib.ExitStack() as at_end:
            top = pathlib.Path(name)
            daemon = Daemon(asked.bin, top, asked.localities, asked.disks)
            at_end.callback(daemon.end)
            daemon.start()
            servers = [peers.Fopd(daemon)]
            for peer in found:
                servers.append(peer(top / f"{peer.name}.img", in_memory=in_memory))
                at_end.callback(servers[-1].end)
            peers.compare(servers, f"files in {folder}", asked.seconds, asked.rounds)


def start_with(daemon, count):
    daemon.start()
    made = 0
    while made < count:
        made += daemon.bench("created", "--op", "create", "--object", "o", "--depth", "256", "--seconds", "10")["ops"]
    daemon.end(signal.SIGKILL)
    print(f"start after kill -9 with {made} objects: {daemon.start():.2f} s, {anonymous_mib(daemon.process.pid)} MiB")
    daemon.end()
    print(f"start after a stop: {daemon.start():.2f} s, {anonymous_mib(daemon.process.pid)} MiB")


def cpu_of_threads(pid):
    """Seconds that its threads ran, in nanoseconds' steps; threads that have ended do not count."""
    return sum(int(each.read_text().split()[0]) for each in pathlib.Path(f"/proc/{pid}/task").glob("*/schedstat")) / 1e9


def cost_of_explain(daemon, turns, seconds):
    """The daemon's CPU for a read with --explain, as a part of that without, in turns of four: without, with, with, without."""
    daemon.start()
    load = ["--op", "read", "--object", "small", "--object-size", "4M", "--size", "4k", "--depth", "32", "--seconds", str(seconds)]
    subprocess.run([daemon.programs / "fopctl", "bench", "--server", daemon.address, "--quiet", *load], check=True)

    def cpu(*options):
        """For an operation. A run in which a busy machine left no time for operations is made again."""
        before = cpu_of_threads(daemon.process.pid)
        done = subprocess.run([daemon.programs / "fopctl", "bench", "--server", daemon.address, "--json", *load, *options],
                              capture_output=True, text=True, check=True)
        ops = json.loads(done.stdout)["ops"]
        return (cpu_of_threads(daemon.process.pid) - before) / ops if ops > 1000 else cpu(*options)
    plain, explained, ratios, same = [], [], [], []
    for _ in range(turns):
        first, with_1, with_2, last = cpu(), cpu("--explain"), cpu("--explain"), cpu()
        plain += [first, last]
        explained += [with_1, with_2]
        ratios.append((with_1 + with_2) / (first + last))
        same.append(last / first)
    # Other work of the machine only adds to the CPU of an operation: the runs with the least of it say most.
    least = [sorted(each)[len(each) // 10] for each in (plain, explained)]
    print(f"a tenth of the runs took less than {least[0] * 1e6:.3f} us, with --explain {least[1] * 1e6:.3f}: {least[1] / least[0]:.4f}")
    for title, values in (("with --explain", ratios), ("without, last against first", same)):
        quarters = statistics.quantiles(values)
        print(f"{title:28} {statistics.median(values):.4f} of {statistics.median(plain) * 1e6:.2f} us, half of the turns "
              f"{quarters[0]:.4f} to {quarters[2]:.4f}")
    daemon.end()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, default=pathlib.Path("build/release/bin"))
    parser.add_argument("--dir", default="/var/tmp")
    parser.add_argument("--localities", type=int, default=1)
    parser.add_argument("--disks", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--explain", type=int, metavar="TURNS")
    parser.add_argument("--start", type=int, metavar="OBJECTS")
    parser.add_argument("--beside", metavar="NAMES", help="nbdkit, qsd (qemu-storage-daemon), or both with a comma")
    asked = parser.parse_args()
    print(f"{processor()}, {len(os.sched_getaffinity(0))} cores, Linux {platform.release()}; {asked.localities} localities,"
          f" {asked.disks} disks in {asked.dir}")
    if asked.beside:
        compare_beside(asked)
        return
    with tempfile.TemporaryDirectory(prefix="fopd-bench-", dir=asked.dir) as name, contextlib.ExitStack() as at_end:
        top = pathlib.Path(name)
        daemon = Daemon(asked.bin, top, asked.localities, asked.disks)
        at_end.callback(daemon.end)
        if asked.explain:
            cost_of_explain(daemon, asked.explain, asked.seconds)
        elif asked.start:
            start_with(daemon, asked.start)
        else:
            compare(daemon, top, asked)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Several daemons on this machine that move from epoch to epoch together, in the foreground.

    scripts/cluster.py BIN COUNT DIR [--etcd]     BIN is where fopd and fopctl are, DIR where the daemons keep everything

Makes in DIR, unless they exist, the keys and a directory with a configuration for each daemon, and starts the daemons. They
stop with Ctrl-C, or when one of them ends. The list of members is in a file of the first daemon; with --etcd it is in an etcd
server that is started as well, and when the root is killed another daemon becomes root.
"""

import json
import os
import secrets
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

FIRST_PORT = 31470
ETCD_PORTS = (31490, 31491)  # For clients, and for other servers of etcd.
READY_SECONDS = 60
STOP_SECONDS = 45
LOOK_SECONDS = 0.2


def write_once(path, text):
    """Readable by its owner only, as keys have to be. A file that exists stays: people edit configurations."""
    if path.exists():
        return
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)


def names_of(count):
    return [f"node-{chr(ord('a') + i)}" for i in range(count)]


def address_of(i):
    return f"tcp://127.0.0.1:{FIRST_PORT + i}"


def etcd_url(i):
    return f"http://127.0.0.1:{ETCD_PORTS[i]}"


def configuration(directory, names, i, with_etcd):
    """In JSON, which is YAML."""
    node = directory / names[i]
    if with_etcd:
        members = {"store": {"kind": "etcd", "endpoints": [etcd_url(0)]}}
    else:
        members = {"store": {"kind": "static", "root": names[0]},
                   "members": [{"name": name, "address": address_of(j)} for j, name in enumerate(names)]}
    return json.dumps({
        "node": {"name": names[i], "data_dir": str(node / "data")},
        "fabric": {"listen": [address_of(i)]},
        # The daemons share the cores of one machine.
        "localities": {"cores": 1, "buffers": "2MiB", "spin": "0s"},
        "auth": {"principals": str(directory / "principals.yaml"), "peer_key": str(directory / "peer.key")},
        "admin": {"socket": str(node / "admin.sock"), "metrics": "none"},
        "eh": {"kind": "peers", "expect": len(names), **members},
        "pools": [{"name": "fast"}],
        "devices": [{"name": "d0", "path": str(node / "d0.img"), "size": "8GiB", "thin": True, "pool": "fast"}],
    }, indent=1)


def make_files(directory, names, with_etcd=False):
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    for name in ("peer.key", "client.key"):
        write_once(directory / name, secrets.token_hex(32) + "\n")
    if not (directory / "principals.yaml").exists():
        client_key = (directory / "client.key").read_text(encoding="utf-8").strip()
        rights = ["read", "write", "create", "delete", "admin"]
        write_once(directory / "principals.yaml",
                   json.dumps({"principals": [{"name": "dev", "key": client_key, "rights": rights}]}, indent=1))
    for i, name in enumerate(names):
        (directory / name / "data").mkdir(parents=True, exist_ok=True)
        write_once(directory / name / "fopd.yaml", configuration(directory, names, i, with_etcd))
        write_once(directory / name / "env.sh", "".join(
            f"export {key}={shlex.quote(str(value))}\n" for key, value in (
                ("FOPD_SERVER", address_of(i)), ("FOPD_KEY", directory / "client.key"),
                ("FOPD_ADMIN", directory / name / "admin.sock"))))


class Cluster:
    def __init__(self, programs, directory, names, with_etcd=False):
        self.fopd, self.fopctl = programs / "fopd", programs / "fopctl"
        self.directory, self.names, self.with_etcd = directory, names, with_etcd
        self.daemons = {}
        self.etcd = None

    def start_etcd(self):
        """The daemons wait for it."""
        with open(self.directory / "etcd.log", "ab") as log:
            self.etcd = subprocess.Popen(
                ["etcd", "--name", "etcd", "--data-dir", self.directory / "etcd",
                 "--listen-client-urls", etcd_url(0), "--advertise-client-urls", etcd_url(0),
                 "--listen-peer-urls", etcd_url(1), "--initial-advertise-peer-urls", etcd_url(1),
                 "--initial-cluster", f"etcd={etcd_url(1)}"],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)  # Ctrl-C is for this program.

    def start(self):
        if self.with_etcd:
            self.start_etcd()
        for name in self.names:
            with open(self.directory / name / "fopd.log", "ab") as log:
                self.daemons[name] = subprocess.Popen([self.fopd, "--config", self.directory / name / "fopd.yaml"],
                                                      stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                                      start_new_session=True)  # Ctrl-C is for this program.

    def ended(self):
        """The logs of those that have ended."""
        logs = [self.directory / name / "fopd.log" for name, daemon in self.daemons.items() if daemon.poll() is not None]
        if self.etcd is not None and self.etcd.poll() is not None:
            logs.append(self.directory / "etcd.log")
        return logs

    def members(self):
        """How many daemons the first one moves with; 0 while it cannot tell."""
        done = subprocess.run([self.fopctl, "--admin", self.directory / self.names[0] / "admin.sock", "--json", "epoch", "show"],
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
        if done.returncode != 0:
            return 0
        return sum(each["state"] in ("member", "ready") for each in json.loads(done.stdout)["members"])

    def wait_together(self):
        deadline = time.monotonic() + READY_SECONDS
        while self.members() < len(self.names):
            if self.ended() or time.monotonic() > deadline:
                return False
            time.sleep(LOOK_SECONDS)
        return True

    def stop(self):
        stop_all(self.daemons.values())
        if self.etcd is not None:
            stop_all([self.etcd])


def stop_all(programs):
    for program in programs:
        if program.poll() is None:
            program.send_signal(signal.SIGTERM)
    for program in programs:
        try:
            program.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            program.kill()
            program.wait()


def told_to_stop(_number, _frame):
    raise KeyboardInterrupt


def main():
    with_etcd = sys.argv[4:] == ["--etcd"]
    if len(sys.argv) != 4 + with_etcd or not sys.argv[2].isdecimal() or not 1 <= int(sys.argv[2]) <= 9:
        print(__doc__, file=sys.stderr)
        return 2
    programs, directory = Path(sys.argv[1]), Path(sys.argv[3]).absolute()
    names = names_of(int(sys.argv[2]))
    make_files(directory, names, with_etcd)
    cluster = Cluster(programs, directory, names, with_etcd)
    signal.signal(signal.SIGTERM, told_to_stop)
    try:
        cluster.start()
        if cluster.wait_together():
            print(f"cluster: {len(names)} daemons move from epoch to epoch together. In another terminal:\n\n"
                  f"    . {shlex.quote(str(directory / names[0] / 'env.sh'))}     # or that of another\n"
                  f"    {shlex.quote(str(cluster.fopctl))} epoch show\n"
                  f"    {shlex.quote(str(cluster.fopctl))} status\n\n"
                  "cluster: they stop with Ctrl-C", flush=True)
            while not cluster.ended():
                time.sleep(LOOK_SECONDS)
        logs = cluster.ended()
        for log in logs:
            print(f"cluster: a program has ended; its log: {log}", file=sys.stderr)
        if not logs:
            print(f"cluster: the daemons did not find each other in {READY_SECONDS} s; see {directory / names[0] / 'fopd.log'}",
                  file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 0
    finally:
        cluster.stop()


if __name__ == "__main__":
    sys.exit(main())

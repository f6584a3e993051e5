"""A few daemons that move from epoch to epoch together."""

import json
import socket

from fopd_process import DONE, GOOD_KEY, PROTECT, SCHEME, ProcessTestCase, wait_until


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


class EpochsTestCase(ProcessTestCase):
    """A cluster of daemons, a, b and c."""

    names = ("a", "b", "c")
    times = {"timeout": "2s", "grace": "300ms", "root_silent": "1s"}

    def setUp(self):
        super().setUp()
        self.prepare()
        self.addresses = self.make_addresses()
        self.nodes = {name: self.make_node(name) for name in self.names}

    def prepare(self):
        """What the daemons need is started here."""

    def make_addresses(self):
        return {name: f"{SCHEME}://127.0.0.1:{port}" for name, port in zip(self.names, free_ports(len(self.names)))}

    def store(self):
        """Where the list of members is kept. a is the root, and no other daemon can be."""
        return {"kind": "static", "root": "a"}

    def make_node(self, name, key=GOOD_KEY, directory=None, **eh):
        node = self.node(directory or name)
        key_path = self.write_key(node, "peer.key", key)
        settings = {"kind": "peers", **self.times, "store": self.store(),
                    "members": [{"name": each, "address": self.addresses[each]} for each in self.names]}
        return node.write_config(node={"name": name, "data_dir": str(node.data_dir), "drain_timeout": "5s"},
                                 fabric={"listen": [self.addresses[name]], "protect": PROTECT},
                                 auth={"peer_key": str(key_path)}, eh=settings | eh)

    @staticmethod
    def write_key(node, file_name, key):
        path = node.path / file_name
        path.touch(0o600)
        path.write_text(key)
        return path

    def start(self, name):
        return self.nodes[name].start()

    def start_all(self):
        daemons = {name: self.start(name) for name in self.names}
        for each in daemons.values():
            each.wait_ready()
        self.wait_members(daemons.values(), self.names)
        return daemons

    @staticmethod
    def epochs(daemon):
        done = daemon.ctl("--json", "epoch", "show")
        if done.returncode != DONE:
            raise AssertionError(f"epoch show: exit code {done.returncode}: {done.stderr}")
        return json.loads(done.stdout)

    def members(self, daemon):
        return tuple(sorted(each["name"] for each in self.epochs(daemon)["members"] if each["state"] in ("member", "ready")))

    def wait_members(self, daemons, names):
        for each in daemons:
            wait_until(lambda each=each: self.members(each) == tuple(names), f"the members are {names}")

    def wait_epoch_after(self, daemon, epoch):
        return wait_until(lambda: (lambda now: now if now > epoch else None)(self.epochs(daemon)["epoch"]),
                          f"an epoch after {epoch}")

    def assert_all_move(self, daemons):
        """In one view, and a few epochs further."""
        self.wait_members(daemons.values(), daemons)
        before = {name: self.epochs(daemon)["epoch"] for name, daemon in daemons.items()}
        for name, daemon in daemons.items():
            self.wait_epoch_after(daemon, before[name] + 1)
        wait_until(lambda: len({self.epochs(daemon)["view"] for daemon in daemons.values()}) == 1, "all have one view")

    @staticmethod
    def those(daemons, names):
        return {name: daemons[name] for name in names}

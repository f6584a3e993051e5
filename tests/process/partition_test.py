"""Five daemons with networks of their own, that are cut apart: both ways, one way, and in two parts.

Each daemon has a network namespace; all are joined by a bridge in another one, where etcd runs. What is cut off drops
packets by rules of nft.
"""

import itertools
import os
import shutil
import subprocess
import unittest

from epochs_process import EpochsTestCase
from etcd_process import Etcd, needs_etcd
from fopd_process import IS_ROOT, SCHEME, wait_until

PORT = 31470
HUB = "hub"
HUB_ADDRESS = "10.231.7.250"


def run(*command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(command)}: {done.stdout}")


class Networks:
    """Network namespaces, each with one address, joined by a bridge."""

    def __init__(self, names):
        self.spaces = {name: f"fopd-{os.getpid()}-{name}" for name in (HUB, *names)}
        self.addresses = {name: f"10.231.7.{i}" for i, name in enumerate(names, 1)}

    def make(self):
        for name, space in self.spaces.items():
            run("ip", "netns", "add", space)
            run("ip", "-n", space, "link", "set", "lo", "up")
        hub = self.spaces[HUB]
        run("ip", "-n", hub, "link", "add", "bridge0", "type", "bridge")
        run("ip", "-n", hub, "addr", "add", f"{HUB_ADDRESS}/24", "dev", "bridge0")
        run("ip", "-n", hub, "link", "set", "bridge0", "up")
        for name, address in self.addresses.items():
            space = self.spaces[name]
            run("ip", "-n", space, "link", "add", "net0", "type", "veth", "peer", "name", f"to-{name}", "netns", hub)
            run("ip", "-n", space, "addr", "add", f"{address}/24", "dev", "net0")
            run("ip", "-n", space, "link", "set", "net0", "up")
            run("ip", "-n", hub, "link", "set", f"to-{name}", "master", "bridge0", "up")

    def remove(self):
        for space in self.spaces.values():
            subprocess.run(["ip", "netns", "delete", space], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)

    def within(self, name):
        """What makes a command run there."""
        return ["ip", "netns", "exec", self.spaces[name]]

    def deafen(self, name, *others):
        """It receives nothing more of the others. All of them if none is named."""
        run(*self.within(name), "nft", "add table inet cut; add chain inet cut in { type filter hook input priority 0; }")
        sources = ", ".join(self.addresses[each] for each in others)
        match = f"ip saddr {{ {sources} }}" if others else "iifname net0"
        run(*self.within(name), "nft", f"add rule inet cut in {match} drop")

    def heal(self):
        for name in self.spaces:
            subprocess.run([*self.within(name), "nft", "delete table inet cut"], stderr=subprocess.DEVNULL, check=False)


@unittest.skipUnless(IS_ROOT, "only root can make networks")
@unittest.skipUnless("FOPD_FULL_RUN" in os.environ or shutil.which("nft"), "nft is not installed")
@needs_etcd
class PartitionTest(EpochsTestCase):
    names = ("a", "b", "c", "d", "e")

    def prepare(self):
        self.networks = Networks(self.names)
        self.addCleanup(self.networks.remove)
        self.networks.make()
        self.etcd = Etcd(self.directory, HUB_ADDRESS, self.networks.within(HUB))
        self.addCleanup(self.etcd.stop)
        self.etcd.start()

    def make_addresses(self):
        return {name: f"{SCHEME}://{address}:{PORT}" for name, address in self.networks.addresses.items()}

    def store(self):
        return {"kind": "etcd", "endpoints": [self.etcd.url], "timeout": "1s"}

    def start(self, name):
        return self.nodes[name].start(program=self.networks.within(name))

    def assert_no_epochs(self, daemon):
        """It hears only errors, and its epoch stays."""
        daemon.wait_event("fopd.eh.no_epochs")
        seen = self.epochs(daemon)["epoch"]
        failures = daemon.metrics()["fopd_epoch_failures_total"]
        wait_until(lambda: daemon.metrics()["fopd_epoch_failures_total"] > failures, "another failure")
        self.assertEqual(self.epochs(daemon)["epoch"], seen)

    def test_one_that_is_cut_off_both_ways_hears_errors_and_returns(self):
        daemons = self.start_all()
        root = self.epochs(daemons["a"])["root"]
        lost = next(name for name in self.names if name != root)
        rest = self.those(daemons, [name for name in self.names if name != lost])
        self.networks.deafen(lost)
        self.assert_all_move(rest)
        self.assert_no_epochs(daemons[lost])
        self.networks.heal()
        self.assert_all_move(daemons)

    def test_a_root_that_is_cut_off_is_replaced(self):
        daemons = self.start_all()
        root = self.epochs(daemons["a"])["root"]
        rest = self.those(daemons, [name for name in self.names if name != root])
        self.networks.deafen(root)
        self.assert_all_move(rest)
        self.assert_no_epochs(daemons[root])
        self.networks.heal()
        self.assert_all_move(daemons)
        self.assertNotEqual(self.epochs(daemons["a"])["root"], root)

    def test_one_that_is_not_heard_and_one_that_hears_nothing(self):
        daemons = self.start_all()
        root = self.epochs(daemons["a"])["root"]
        lost = next(name for name in self.names if name != root)
        others = [name for name in self.names if name != lost]
        for deaf, sources in ((others, [lost]), ([lost], others)):
            with self.subTest(deaf=deaf):
                for name in deaf:
                    self.networks.deafen(name, *sources)
                self.assert_all_move(self.those(daemons, others))
                self.networks.heal()
                self.assert_all_move(daemons)

    def test_of_two_parts_the_larger_goes_on(self):
        daemons = self.start_all()
        root = self.epochs(daemons["a"])["root"]
        small = [root, next(name for name in self.names if name != root)]
        large = [name for name in self.names if name not in small]
        for one, other in itertools.permutations((small, large), 2):
            for name in one:
                self.networks.deafen(name, *other)
        self.assert_all_move(self.those(daemons, large))
        for name in small:
            self.assert_no_epochs(daemons[name])
        self.networks.heal()
        self.assert_all_move(daemons)


if __name__ == "__main__":
    unittest.main()

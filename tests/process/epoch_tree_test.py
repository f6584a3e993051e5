"""Five daemons of which two report to each: the root, an inner one and one at the end are killed, and hang."""

import signal
import unittest

from epochs_process import EpochsTestCase
from etcd_process import Etcd, needs_etcd


@needs_etcd
class EpochTreeTest(EpochsTestCase):
    names = ("a", "b", "c", "d", "e")

    def prepare(self):
        self.etcd = Etcd(self.directory)
        self.addCleanup(self.etcd.stop)
        self.etcd.start()

    def store(self):
        return {"kind": "etcd", "endpoints": [self.etcd.url], "timeout": "1s"}

    def make_node(self, name, **others):
        return super().make_node(name, **({"fanout": 2} | others))

    def roster(self, daemon):
        """The root first, then those that report to it, then those that report to them."""
        return [each["name"] for each in self.epochs(daemon)["members"]]

    def test_each_place_in_the_tree_may_hang_or_be_killed(self):
        daemons = self.start_all()
        for position in (0, 1, len(self.names) - 1):
            for number in (signal.SIGSTOP, signal.SIGKILL):
                with self.subTest(position=position, number=number):
                    lost = self.roster(daemons["a"])[position]
                    daemons[lost].signal(number)
                    self.assert_all_move(self.those(daemons, [name for name in self.names if name != lost]))
                    if number == signal.SIGSTOP:
                        daemons[lost].signal(signal.SIGCONT)
                    else:
                        daemons[lost].kill()
                        daemons[lost] = self.nodes[lost].start_ready()
                    self.assert_all_move(daemons)

    def test_several_are_lost_at_once(self):
        daemons = self.start_all()
        roster = self.roster(daemons["a"])
        for name in roster[:2]:
            daemons[name].kill()
        self.assert_all_move(self.those(daemons, sorted(roster[2:])))
        for name in roster[:2]:
            daemons[name] = self.nodes[name].start_ready()
        self.assert_all_move(daemons)


if __name__ == "__main__":
    unittest.main()

"""Start and stop, again and again: each time it ends with 0 and leaves nothing, and no sanitizer finds anything."""

import unittest

from fopd_process import CXX_FLAGS, ProcessTestCase

# A start under ThreadSanitizer takes longest.
CYCLES_COUNT = 50 if "-fsanitize=thread" in CXX_FLAGS else 200 if "-fsanitize=address" in CXX_FLAGS else 100


class CyclesTest(ProcessTestCase):
    def run_cycles(self, node, use):
        node.stop(node.start_ready())  # The first start makes what the node keeps.
        before = sorted(each.name for each in node.path.rglob("*"))
        for _ in range(CYCLES_COUNT):
            daemon = node.start_ready()
            use(daemon)
            node.stop(daemon)
            self.assert_no_report(daemon.log())
            self.assertEqual(sorted(each.name for each in node.path.rglob("*")), before)

    def test_idle(self):
        node = self.node()
        node.write_config(localities={"cores": 2}, admin={"metrics": "127.0.0.1:0"})
        self.run_cycles(node, lambda daemon: None)

    def test_asked_and_reloaded(self):
        node = self.node()
        node.write_config(log={"level": "trace"})

        def use(daemon):
            for method, target in (("GET", "/v1/status"), ("POST", "/v1/reload"), ("POST", "/v1/drain")):
                self.assertEqual(daemon.ask(method, target)[0], 200)

        self.run_cycles(node, use)


if __name__ == "__main__":
    unittest.main()

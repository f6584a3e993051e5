"""What a turn costs a request: bench/README.md has the limits. A release build on a quiet machine."""

import json
import os
import subprocess
import unittest

FIFO_TO_LIST_MAX = 1.2
POLICY_NS_MAX = 250
GROWTH_MAX = 2.5
# More with 1024 rules than with one: 15 % of the 5.4 us that a core takes for a fop without data is 800 ns.
RULES_NS_MAX = 300
PATTERNS_NS_MAX = 800
SWITCH_NS_MAX = 1000
TRIES = 3
POLICIES = ("crr", "orr", "tbf", "tbf_limits", "tbf_cluster", "mclock", "mclock_limits")
# Of 20 000 that wait, when rules change that are about them: in all, and in a turn of the reactor.
CHANGE_MS_MAX = {"20k_100_classes": 10, "20k_10000_classes": 20}
CHANGE_TURN_MS_MAX = 3


def measure():
    done = subprocess.run([os.environ["BENCH_LRS"], "--json"], check=True, capture_output=True, text=True, timeout=200)
    print(done.stdout)
    return json.loads(done.stdout)


def problems(figures):
    found = []

    def hold(what, value, limit):
        if value > limit:
            found.append(f"{what}: {value:.2f}, at most {limit}")

    hold("fifo against a list", figures["fifo_ns"] / figures["list_ns"], FIFO_TO_LIST_MAX)
    for policy in POLICIES:
        hold(policy, figures[f"{policy}_ns"], POLICY_NS_MAX)
        hold(f"{policy} with many classes", figures[f"{policy}_ns"] / figures[f"{policy}_100_classes_ns"], GROWTH_MAX)
    for name, most in (("tbf_1024_rules", RULES_NS_MAX), ("tbf_1024_patterns", PATTERNS_NS_MAX)):
        hold(f"{name}, more than one rule", figures[f"{name}_100_classes_ns"] - figures["tbf_100_classes_ns"], most)
    hold("a switch", figures["switch_ns"], SWITCH_NS_MAX)
    for what, most in CHANGE_MS_MAX.items():
        for policy in ("tbf", "mclock"):
            name = f"{policy}_rules_{what}"
            hold(f"{name}, ms", figures[f"{name}_ms"], most)
            hold(f"{name}, longest turn, ms", figures[f"{name}_longest_turn_ms"], CHANGE_TURN_MS_MAX)
    return found


class BenchLrsTest(unittest.TestCase):
    def test_limits(self):
        for _ in range(TRIES):
            found = problems(measure())
            if not found:
                return
        self.fail("; ".join(found))


if __name__ == "__main__":
    unittest.main(verbosity=2)

"""The network as administrators and scripts see it: fopctl and a real fopd over tcp on the loopback device."""

import json
import os
import re
import signal
import socket
import stat
import statistics
import subprocess
import time
import unittest

from fopd_process import (CLIENT_KEY, DEADLINE_SECONDS, DONE, FOPCTL, IS_SANITIZED, NO_SERVER, OTHER_USER, SCHEME, ProcessTestCase,
                          as_other_user, bench, needs_root, run_program, wait_until)
from storage_process import NOT_ALLOWED, NOT_FOUND, REFUSED

# Seconds until a bench measures. A busy machine takes longer, and nothing is measured yet.
WARM_UPS = (1, 4, 16)


class FabricTestCase(ProcessTestCase):
    def setUp(self):
        super().setUp()
        self.n = self.node()
        self.key_path = self.write_key("tester.key", CLIENT_KEY)
        self.n.principals_path.write_text(
            f"# Ours.\nprincipals:\n  - name: tester\n    key: {CLIENT_KEY}\n    rights: [read, write, admin]\n")

    def write_key(self, name, key):
        path = self.directory / name
        path.write_text(key + "\n")
        path.chmod(0o600)
        return path

    def start(self):
        self.daemon = self.n.start_ready()
        self.address = self.daemon.address
        return self.daemon

    def environment(self, key=None):
        return os.environ | {"FOPD_SERVER": self.address, "FOPD_KEY": str(key or self.key_path),
                             "FOPD_ADMIN": str(self.n.socket_path), "FOPD_PRINCIPALS": str(self.n.principals_path)}

    def ctl(self, *arguments, key=None, code=DONE):
        done = run_program(FOPCTL, *arguments, env=self.environment(key))
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def ping(self, **options):
        return self.ctl("ping", "--count", "1", "--timeout", DEADLINE_SECONDS, **options)


@unittest.skipIf(IS_SANITIZED or SCHEME != "tcp", "the bound is for a usual build and for tcp")
class CostTest(FabricTestCase):
    """docs/measurements.md says what it is. Libraries that a verb does not need have made it twenty times as much before."""
    CPU_MAX = 0.020

    def cpu_of_a_ping(self):
        child = subprocess.Popen([FOPCTL, "ping", "--count", "1", "--quiet"], env=self.environment(), stdout=subprocess.DEVNULL)
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        self.assertEqual(child.returncode, DONE)
        return used.ru_utime + used.ru_stime

    def test_a_verb_from_a_new_process_takes_little_cpu(self):
        self.start()
        medians = []
        while len(medians) < 4:  # A busy machine may make one of them longer.
            medians.append(statistics.median(self.cpu_of_a_ping() for _ in range(9)))
            if medians[-1] <= self.CPU_MAX:
                break
        self.assertLessEqual(min(medians), self.CPU_MAX, medians)
        self.n.stop(self.daemon)


class LoadTest(FabricTestCase):
    def test_bench_of_each_op_without_errors(self):
        self.start()
        for op, size in (("ping", "0"), ("echo", "64"), ("echo", "12k"), ("bulk_echo", "1M")):
            with self.subTest(op=op, size=size):
                result = bench(lambda *arguments: self.ctl(*arguments).stdout,
                               "--op", op, "--size", size, "--depth", "8", "--jobs", "2")
                self.assertGreater(result["ops"], 0)
                self.assertEqual(result["errors"], 0)
        wait_until(lambda: json.loads(self.ctl("sessions", "--json").stdout)["sessions"] == [], "the sessions ended")
        self.n.stop(self.daemon)

    def start_ctl(self, *arguments):
        """What is printed before a signal can be read when the process has ended."""
        process = subprocess.Popen([FOPCTL, *map(str, arguments)], env=self.environment(), text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    def interrupted(self, process, number):
        """Returns what it printed. It ends by the signal, and complains of nothing."""
        process.send_signal(number)
        output, complaints = process.communicate(timeout=DEADLINE_SECONDS)
        self.assertEqual((process.returncode, complaints), (-number, ""))
        return output

    def fops(self):
        return sum(each["fops"] for each in json.loads(self.ctl("sessions", "--json").stdout)["sessions"])

    def wait_measuring(self, warm_up=1):
        """Returns when calls have ended that began after the warm-up, which takes a second at most."""
        wait_until(lambda: self.fops() > 0, "a fop")
        warm = time.monotonic() + warm_up
        wait_until(lambda: time.monotonic() > warm, "the end of the warm-up")
        before = self.fops()
        wait_until(lambda: self.fops() > before + 100, "calls after the warm-up")

    def interrupted_load(self, number, *arguments):
        """The result of a bench that is ended by the signal while it measures. A bench fills its object first: on a busy
        machine this may take longer than it is waited for, and nothing is measured yet."""
        for warm_up in WARM_UPS:
            load = self.start_ctl("--json", "bench", *arguments, "--seconds", 600)
            self.wait_measuring(warm_up)
            result = json.loads(self.interrupted(load, number))
            if result["ops"] > 0:
                break
        return result

    def test_an_interrupted_bench_prints_what_it_has(self):
        self.n.write_principals({"name": "tester", "key": CLIENT_KEY,
                                 "rights": ["read", "write", "create", "delete", "admin"]})
        self.n.settings["pools"] = [{"name": "fast"}]
        self.n.settings["devices"] = [{"name": "d0", "path": str(self.n.path / "d0.img"), "pool": "fast", "size": "256MiB"}]
        self.n.write_config()
        self.start()
        for op, number in (("echo", signal.SIGINT), ("write", signal.SIGTERM), ("create", signal.SIGHUP)):
            with self.subTest(op=op):
                result = self.interrupted_load(number, "--op", op, "--depth", 2, "--object-size", "64k")
                self.assertTrue(result["interrupted"])
                self.assertGreater(result["ops"], 0)
                self.assertGreater(result["p50_us"], 0)
                self.assertEqual(result["errors"], 0)
                self.assertTrue(0 < result["seconds"] < 600, result)
                self.assertAlmostEqual(result["ops_per_s"], result["ops"] / result["seconds"], places=3)
                wait_until(lambda: json.loads(self.ctl("sessions", "--json").stdout)["sessions"] == [], "the sessions ended")
        self.assertEqual(json.loads(self.ctl("ls", "--json").stdout), {"objects": []})
        for warm_up in WARM_UPS:
            load = self.start_ctl("bench", "--op", "ping", "--seconds", 600)
            self.wait_measuring(warm_up)
            page = self.interrupted(load, signal.SIGINT)
            self.assertRegex(page, r"^interrupted: ping  0 B  depth 1  jobs 1  [0-9.]+ s\n[0-9]+ ops, ")
            if "\n0 ops" not in page:
                break
        self.assertNotIn("\n0 ops", page)
        self.n.stop(self.daemon)

    def test_a_signal_that_was_ignored_from_the_start_interrupts_nothing(self):
        """As in `trap '' INT; fopctl bench`, and with nohup."""
        self.start()
        load = subprocess.Popen(["sh", "-c", 'trap "" INT HUP; exec "$@"', "sh", FOPCTL, "--json", "bench", "--op", "ping",
                                 "--seconds", "600"], env=self.environment(), text=True, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE)
        self.addCleanup(load.communicate)
        self.addCleanup(load.kill)
        self.wait_measuring()
        for number in (signal.SIGINT, signal.SIGHUP):
            load.send_signal(number)
            before = self.fops()
            wait_until(lambda before=before: self.fops() > before + 100, "calls after the signal")
        self.assertTrue(json.loads(self.interrupted(load, signal.SIGTERM))["interrupted"])
        self.n.stop(self.daemon)

    def test_a_bench_whose_server_does_not_answer_is_interrupted(self):
        self.start()
        load = self.start_ctl("--json", "--timeout", 600, "bench", "--op", "ping", "--depth", 8, "--seconds", 600)
        self.wait_measuring()
        self.daemon.signal(signal.SIGSTOP)
        try:
            result = json.loads(self.interrupted(load, signal.SIGINT))
        finally:
            self.daemon.signal(signal.SIGCONT)
        self.assertGreater(result["ops"], 0)
        self.n.stop(self.daemon)

    def test_a_client_that_connects_is_interrupted(self):
        """Nobody accepts, so no handshake begins."""
        listener = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(listener.close)
        self.address = f"{SCHEME}://127.0.0.1:{listener.getsockname()[1]}"
        for verb in (["bench", "--op", "ping"], ["bench", "--op", "read"], ["stat", "a"]):
            with self.subTest(verb=verb):
                process = self.start_ctl("--json", "--timeout", 600, *verb)
                connection, _ = listener.accept()
                self.addCleanup(connection.close)
                output = self.interrupted(process, signal.SIGINT)
                if verb[0] == "bench":
                    result = json.loads(output)
                    self.assertEqual((result["ops"], result["ops_per_s"], result["interrupted"]), (0, 0, True))

    def test_the_events_of_a_session_have_its_id(self):
        self.n.write_config(log={"level": "debug"})
        self.start()
        self.ctl("ping", "--count", "1")
        ended = self.daemon.wait_event("fopd.fabric.session_ended")[0]
        opened = self.daemon.events("fopd.fabric.session_opened")[0]
        for field in ("session", "peer", "principal"):
            self.assertEqual(opened[field], ended[field])
        self.assertRegex(opened["session"], "^[0-9a-f]+$")
        self.assertEqual(opened["user"], "tester")
        self.n.stop(self.daemon)

    def test_the_end_of_a_killed_client_says_so(self):
        self.start()
        self.ctl("ping", "--count", "1")
        load = subprocess.Popen([FOPCTL, "bench", "--op", "ping", "--seconds", "600", "--quiet"], env=self.environment())
        self.addCleanup(load.wait)
        self.addCleanup(load.kill)
        wait_until(lambda: json.loads(self.ctl("sessions", "--json").stdout)["sessions"], "a session")
        load.kill()
        wait_until(lambda: not json.loads(self.ctl("sessions", "--json").stdout)["sessions"], "its end")
        reasons = [each["reason"] for each in self.daemon.wait_event("fopd.fabric.session_ended", 2)]
        self.assertEqual(reasons[0], "the client has closed its session")
        self.assertEqual(set(reasons[1:]), {"lost: the client disconnected without ending its session, or the network failed"})
        lost = self.daemon.metrics()['fopd_sessions_lost_total{locality="0"}']
        self.assertEqual(lost, len(reasons) - 1, self.daemon.log())
        self.n.stop(self.daemon)

    def test_sessions_shows_who_is_connected(self):
        self.start()
        load = subprocess.Popen([FOPCTL, "bench", "--op", "bulk_echo", "--size", "16M", "--depth", "2", "--seconds", "600",
                                 "--quiet"], env=self.environment())
        self.addCleanup(load.wait)
        self.addCleanup(load.kill)

        def session():
            sessions = json.loads(self.ctl("sessions", "--json").stdout)["sessions"]
            return sessions and sessions[0]["fops"] > 0 and sessions[0]
        found = wait_until(session, "a session")
        self.assertEqual(found["principal"], "tester")
        self.assertIn("tester", self.ctl("sessions").stdout)

        def running():
            fops = json.loads(self.ctl("trace", "--json").stdout)["fops"]
            return next((each for each in fops if each["state"] == "running"), None)
        found = wait_until(running, "a fop that runs")
        self.assertEqual((found["principal"], found["state"]), ("tester", "running"))
        self.assertEqual(json.loads(self.ctl("trace", found["id"], "--json").stdout)["op"], found["op"])

    def test_a_restart_is_survived_by_who_waits(self):
        self.n.write_config(fabric={"listen": [f"{SCHEME}://127.0.0.1:0"]})
        self.start()
        self.n.write_config(fabric={"listen": [self.address]})
        pings = subprocess.Popen([FOPCTL, "ping", "--interval", "0.05"], env=self.environment(), text=True,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(pings.kill)
        wait_until(lambda: "seq=1 " in pings.stdout.readline(), "an answer")
        self.daemon.kill()
        self.daemon.wait_end()
        self.start()
        for _ in range(3):
            self.assertIn("pong", pings.stdout.readline())
        pings.send_signal(signal.SIGINT)
        rest, complaints = pings.communicate(timeout=DEADLINE_SECONDS)
        self.assertIn(" sent, ", rest)
        self.assertEqual(pings.returncode, DONE, complaints)

    def test_the_log_warns_of_a_transport_that_trusts_strangers(self):
        self.start()
        self.assertEqual(len(self.daemon.events("fopd.fabric.trusts_strangers")), SCHEME == "ofi+tcp")
        self.n.stop(self.daemon)

    def test_exit_codes(self):
        self.start()
        wrong = self.write_key("wrong.key", "ab" * 32)
        self.assertIn("not authenticated", self.ping(key=wrong, code=NOT_ALLOWED).stderr)
        self.n.stop(self.daemon)
        words = self.ping(code=NO_SERVER).stderr
        self.assertRegex(words, rf"^fopctl: ping: {re.escape(SCHEME)}://[^ ]+: connect: Connection refused; ")
        self.assertIn("FOPD_SERVER", words)

    def test_a_locality_that_the_server_does_not_have(self):
        self.start()
        for verb in (["ping", "--count", "1"], ["stat", "a"], ["bench", "--op", "ping", "--seconds", "1"]):
            with self.subTest(verb=verb[0]):
                done = self.ctl("--json", "--timeout", DEADLINE_SECONDS, "--server", self.address + "/9", *verb, code=NOT_FOUND)
                error = json.loads(done.stderr)
                self.assertIn("there is no such locality", error["error"])
                self.assertEqual((error["code"], error["exit_code"]), ("not_found", NOT_FOUND))
        self.ctl("ping", "--count", "1", "--server", self.address + "/0")
        self.n.stop(self.daemon)


class KeyTest(FabricTestCase):
    def test_a_key_counts_from_its_creation_to_its_end(self):
        self.start()
        mode = stat.S_IMODE(self.n.principals_path.stat().st_mode)
        path = self.directory / "reader.key"
        self.ctl("key", "create", "reader", "--rights", "read", "--out", path)
        self.assertEqual(stat.S_IMODE(path.stat().st_mode), 0o600)
        self.ping(key=path)
        self.assertIn("right", self.ctl("bench", "--op", "bulk_echo", key=path, code=NOT_ALLOWED).stderr)
        load = subprocess.Popen([FOPCTL, "bench", "--op", "ping", "--seconds", "600", "--quiet"], env=self.environment(path),
                                stderr=subprocess.PIPE)
        self.addCleanup(load.kill)
        wait_until(lambda: "reader" in self.ctl("sessions").stdout, "the session")
        self.ctl("key", "revoke", "reader")
        self.ping(key=path, code=NOT_ALLOWED)
        load.communicate(timeout=DEADLINE_SECONDS)
        self.assertEqual(load.returncode, NOT_ALLOWED)
        self.ping()
        self.assertEqual(stat.S_IMODE(self.n.principals_path.stat().st_mode), mode)
        self.assertTrue(self.n.principals_path.read_text().startswith("# Ours.\n"))
        self.n.stop(self.daemon)

    def test_live_changes_outlive_a_key(self):
        self.start()
        self.ctl("lrs", "set", "tbf")
        self.ctl("lrs", "rule", "add", "held op=write rate=0")
        self.ctl("log-level", "warn")
        self.n.config_path.write_text("not valid")  # Somebody edits it at the moment.
        before = self.daemon.status()["config"]["differs"]
        self.ctl("key", "create", "reader", "--out", self.directory / "reader.key")
        self.ping(key=self.directory / "reader.key")
        self.ctl("key", "revoke", "reader")
        self.ping(key=self.directory / "reader.key", code=NOT_ALLOWED)
        self.ctl("token", "revoke", "ab" * 16)
        self.assertIn("held", self.ctl("lrs", "rule", "list").stdout)
        status = self.daemon.status()
        self.assertEqual((status["log_level"], status["config"]["differs"]), ("warn", before))
        self.assertIn("lrs.policy", before)
        self.n.stop(self.daemon)

    def test_a_daemon_that_uses_another_file_or_none(self):
        self.n.settings["auth"] = {"mode": "none"}
        self.n.write_config()
        self.start()
        for arguments in (["key", "create", "second"], ["key", "revoke", "tester"], ["key", "list"],
                          ["token", "revoke", "ab" * 16]):
            words = self.ctl(*arguments, code=REFUSED).stderr
            self.assertIn(f"let auth.principals in {self.n.config_path} name one", words)
        # One that the configuration names is taken up, without the rest of the configuration.
        self.ctl("log-level", "debug")
        path = self.n.path / "new.yaml"
        self.n.write_config(auth={"principals": str(path)})
        self.assertIn(f"fopd uses {path} as", self.ctl("key", "create", "second", code=REFUSED).stderr)
        done = run_program(FOPCTL, "key", "create", "second", env=self.environment() | {"FOPD_PRINCIPALS": str(path)})
        self.assertEqual(done.returncode, DONE, done.stderr)
        self.assertIn("second", path.read_text())
        self.assertIn("admits every client", done.stderr)
        self.assertEqual(self.daemon.status()["log_level"], "debug")
        self.assertNotEqual(self.daemon.events("fopd.daemon.keys_reloaded"), [])
        self.n.stop(self.daemon)

    @needs_root
    def test_a_key_of_root_for_a_daemon_of_another_user(self):
        directory = self.directory / "etc"
        directory.mkdir()
        path = directory / "principals.yaml"
        self.n.settings["auth"] = {"mode": "none"}
        self.n.settings["pools"] = [{"name": "fast"}]
        self.n.settings["devices"] = [{"name": "d0", "path": str(self.n.path / "d0.img"), "pool": "fast",
                                       "size": "64MiB"}]
        self.n.write_config()
        self.n.give_to_other_user()
        self.daemon = self.n.start_ready(**as_other_user())
        self.address = self.daemon.address
        self.n.settings["auth"] = {"principals": str(path)}
        self.n.write_config()
        environment = {name: value for name, value in self.environment().items() if name != "FOPD_PRINCIPALS"}
        key = self.directory / "ann.key"
        # The daemon does not choose which file root changes.
        done = run_program(FOPCTL, "key", "create", "ann", "--out", key, env=environment)
        self.assertEqual(done.returncode, REFUSED, done.stderr)
        self.assertIn(f"fopd uses {path} as its file of principals; name it with --principals", done.stderr)
        self.assertFalse(path.exists())
        environment["FOPD_PRINCIPALS"] = str(path)
        done = run_program(FOPCTL, "key", "create", "ann", "--out", key, env=environment)
        self.assertEqual(done.returncode, DONE, done.stderr)
        self.assertEqual((path.stat().st_uid, path.stat().st_gid, stat.S_IMODE(path.stat().st_mode)),
                         (0, OTHER_USER, 0o640))
        self.n.stop(self.daemon)
        os.chown(self.n.config_path, OTHER_USER, OTHER_USER)
        self.daemon = self.n.start_ready(**as_other_user())
        self.address = self.daemon.address
        self.ctl("put", self.n.config_path, "object", key=key)
        self.n.stop(self.daemon)

    def test_the_option_is_stronger_than_the_variable(self):
        self.start()
        before = self.n.principals_path.read_text()
        refused = self.ctl("key", "create", "eve", "--principals", self.directory / "other.yaml", code=REFUSED)
        self.assertIn("other.yaml", refused.stderr)
        self.assertEqual(self.n.principals_path.read_text(), before)
        self.n.stop(self.daemon)

    def test_a_reload_says_that_principals_changed(self):
        self.start()
        self.assertEqual(json.loads(self.ctl("--json", "reload").stdout)["changed"], [])
        text = self.n.principals_path.read_text()
        self.n.principals_path.write_text(text.replace("rights: [read, write, admin]", "rights: [read]"))
        self.assertIn("changed: auth.principals\n", self.ctl("reload").stdout)
        self.assertEqual(self.daemon.wait_event("fopd.daemon.config_changed")[0]["key"], "auth.principals")
        self.assertEqual(self.ctl("reload").stdout, "nothing changed\n")
        self.n.stop(self.daemon)

    def test_what_the_daemon_refuses_is_put_back(self):
        self.start()
        before = self.n.principals_path.read_text().replace("rights: [read, write, admin]", "rights: [read, fly]")
        self.n.principals_path.write_text(before)
        done = self.ctl("key", "create", "second", code=78)
        self.assertIn("as it was", done.stderr)
        self.assertEqual(self.n.principals_path.read_text(), before)
        self.ping()
        self.n.stop(self.daemon)

    def test_tokens_are_revoked_in_the_file_the_daemon_reads(self):
        self.start()
        issuer = self.directory / "issuer.key"
        self.ctl("keygen", issuer, "--public", self.directory / "issuer.pub")
        token = self.ctl("token", "create", "--issuer", issuer, "--rights", "read").stdout.strip()
        self.ctl("token", "revoke", token)
        self.assertIn("revoked:\n  tokens:\n    - ", self.n.principals_path.read_text())
        self.ping()
        self.n.stop(self.daemon)


if __name__ == "__main__":
    unittest.main()

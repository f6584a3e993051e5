"""The audit trail of a real daemon: who administered it, with old and new values, and who was denied what."""

import json
import os
import signal

from fabric_test import FabricTestCase
from fopd_process import DATA_DIR, wait_until
from storage_process import NOT_ALLOWED, REFUSED

STRANGERS_KEY = "00112233445566778899aabbccddeeff" * 2


class AuditTest(FabricTestCase):
    def setUp(self):
        super().setUp()
        self.trail_path = self.directory / "audit.log"
        self.n.write_config(log={"audit": str(self.trail_path)})

    def trail(self, name, path=None):
        lines = (path or self.trail_path).read_text().split("\n")[:-1]
        return [each for each in map(json.loads, lines) if each["event"] == f"fopd.audit.{name}"]

    def wait_trail(self, name, count=1):
        """The trail is written after the answer is sent."""
        wait_until(lambda: len(self.trail(name)) >= count, f"{count} of {name} in the trail")
        return self.trail(name)

    def test_what_administrators_do(self):
        self.start()
        self.ctl("log-level", "warn")
        self.ctl("lrs", "set", "tbf")
        self.ctl("lrs", "rule", "add", "slow job=x rate=5/s")
        self.ctl("lrs", "rule", "del", "unknown", code=66)
        self.ctl("status")
        done = self.wait_trail("administration", 4)
        self.assertEqual([each["verb"] for each in done],
                         ["/v1/log-level", "/v1/lrs/set", "/v1/lrs/rule/add", "/v1/lrs/rule/del"])
        self.assertEqual([each["result"] for each in done], ["done"] * 3 + ["refused"])
        self.assertEqual(done[0]["parameters"], 'level="warn"')
        self.assertIn("unknown", done[3]["reason"])
        for each in done:
            self.assertEqual(each["uid"], os.geteuid())
            self.assertGreater(each["pid"], 0)
        settings = self.trail("setting")
        self.assertEqual((settings[0]["key"], settings[0]["old"], settings[0]["new"]), ("log.level", "info", "warn"))
        self.assertIn(("lrs.policy", "crr", "tbf"), [(each["key"], each["old"], each["new"]) for each in settings])
        self.assertIn("slow job=x rate=5/s", settings[-1]["new"])
        self.assertNotIn("slow job=x", settings[-1]["old"])
        self.assertNotIn("fopd.audit", self.daemon.log())
        self.n.stop(self.daemon)
        self.assertEqual(self.trail("administration")[-1]["verb"], "SIGTERM")

    def test_a_reload_by_a_signal_has_its_sender(self):
        self.start()
        self.n.write_config(log={"slow_fop": "2s"}, localities={"spin": "0s"})
        self.daemon.signal(signal.SIGHUP)
        done = self.wait_trail("administration")[0]
        self.assertEqual((done["verb"], done["result"], done["uid"], done["pid"]),
                         ("SIGHUP", "done", os.geteuid(), os.getpid()))
        settings = {each["key"]: each for each in self.wait_trail("setting", 2)}
        self.assertEqual((settings["log.slow_fop"]["old"], settings["log.slow_fop"]["new"]), ("500ms", "2s"))
        self.assertEqual(settings["log.slow_fop"]["takes_effect"], "now")
        self.assertEqual(settings["localities.spin"]["takes_effect"], "at the next start")
        self.n.config_path.write_text("node: { nme: x }\n")
        self.daemon.signal(signal.SIGHUP)
        self.assertEqual(self.wait_trail("administration", 2)[1]["result"], "refused")
        self.n.stop(self.daemon)

    def test_changes_of_principals_are_named(self):
        self.start()
        key_file = self.directory / "ann.key"
        self.ctl("key", "create", "ann", "--rights", "read,write", "--groups", "staff", "--out", key_file)
        self.ctl("key", "revoke", "ann")
        named = lambda: [each for each in self.trail("setting") if each["key"] == "auth.principals.ann"]
        wait_until(lambda: len(named()) == 2, "both changes in the trail")
        added, removed = named()
        self.assertRegex(added["new"], "^rights=read,write groups=staff keys=[0-9a-f]+$")
        self.assertEqual((added["old"], removed["old"], removed["new"]), ("", added["new"], ""))
        self.assertEqual((added["uid"], added["takes_effect"]), (os.geteuid(), "now"))
        self.assertNotIn(key_file.read_text().strip(), self.trail_path.read_text())
        self.n.stop(self.daemon)

    def test_a_revoked_token_is_named(self):
        self.start()
        issuer, file = self.directory / "issuer.key", self.directory / "a.token"
        self.ctl("keygen", issuer)
        told = self.ctl("--json", "token", "create", "--issuer", issuer, "--rights", "read", "--out", file)
        number = json.loads(told.stdout)["id"]
        self.ctl("token", "revoke", file)
        wait_until(lambda: self.trail("setting"), "the change in the trail")
        self.assertEqual([(each["key"], each["old"], each["new"]) for each in self.trail("setting")
                          if each["key"].startswith("auth.revoked")], [("auth.revoked.tokens", "", number)])
        done, = [each for each in self.trail("administration") if each["verb"] == "/v1/keys/reload"]
        self.assertEqual((done["parameters"], done["result"]), (f'token="{number}"', "done"))
        self.assertNotIn(file.read_text().strip(), self.trail_path.read_text())
        self.n.stop(self.daemon)

    def test_who_is_denied(self):
        self.n.write_principals({"name": "tester", "key": STRANGERS_KEY, "rights": ["read"]})
        self.start()
        key = self.write_key("other.key", STRANGERS_KEY)
        self.ctl("bench", "--op", "echo", "--seconds", "0.1", key=key, code=NOT_ALLOWED)
        denied = self.wait_trail("denied")[0]
        self.assertEqual((denied["op"], denied["principal"]), ("echo", "tester"))
        self.assertIn("admin", denied["reason"])
        # One without a key that is known is refused before it can ask for anything.
        self.ctl("ping", "--count", "1", key=self.key_path, code=NOT_ALLOWED)
        wait_until(lambda: "fopd.fabric.session_refused" in self.trail_path.read_text(), "the refusal in the trail")
        lines = self.trail_path.read_text()
        self.assertIn("fopd.fabric.session_refused", lines)
        self.daemon.wait_event("fopd.fabric.session_refused")
        refused = self.daemon.events("fopd.fabric.session_refused")
        self.assertEqual(len(refused), 1)
        self.assertRegex(refused[0]["key_id"], "^[0-9a-f]{16}$")
        self.assertRegex(refused[0]["session"], "^[0-9a-f]+$")
        self.assertIn("127.0.0.1", refused[0]["peer"])
        for secret in (STRANGERS_KEY, self.key_path.read_text().strip()):
            self.assertNotIn(secret, lines)
        self.n.stop(self.daemon)

    def test_a_trail_that_was_rotated(self):
        self.start()
        self.ctl("log-level", "warn")
        self.wait_trail("administration")
        old = self.directory / "audit.log.1"
        self.trail_path.rename(old)
        self.ctl("log-level", "info")
        wait_until(self.trail_path.exists, "a new file")
        self.wait_trail("administration")
        self.assertEqual(self.trail("administration", old)[0]["parameters"], 'level="warn"')
        self.assertEqual(self.trail("administration")[0]["parameters"], 'level="info"')
        self.n.stop(self.daemon)

    def test_a_trail_that_cannot_be_opened(self):
        self.n.write_config(log={"audit": str(self.directory / "missing" / "audit.log")})
        daemon = self.n.start()
        self.assertEqual(daemon.wait_end(), DATA_DIR)
        self.assertIn("fopd: log.audit: ", daemon.log())
        self.assertIn("No such file or directory", daemon.log())

    def test_without_a_file_the_trail_is_in_the_log(self):
        self.n.write_config(log={"audit": "none"})
        self.start()
        self.ctl("log-level", "nonsense", code=REFUSED + 1)
        self.ctl("log-level", "debug")
        event = self.daemon.wait_event("fopd.audit.administration")[0]
        self.assertEqual((event["verb"], event["result"]), ("/v1/log-level", "done"))
        # Nobody hides what he does by the level of the log.
        self.ctl("log-level", "error")
        self.daemon.wait_event("fopd.audit.administration", 2)
        self.n.stop(self.daemon)

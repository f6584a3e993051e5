"""Each alert of systemd/monitoring/fopd.rules.yml fires when there is its cause, and no other does: see alerts_process.py."""

import json
import os
import re
import time
import unittest

import monitoring_hang_test
from alerts_process import LABELS_OF_PROMETHEUS, AlertTestCase, Scrape, all_alerts, fires, promtool_series
from fopd_process import DONE, needs_promtool, stopped_thread, wait_until
from held_disk import READ, needs_held_disk
from storage_process import MIB, content

LOG_BLOCK = 256  # Of a disk, where its first segment begins, which is the log's.


@needs_promtool
class MonitoringTest(AlertTestCase):
    # -- all of them --

    def test_each_alert_has_a_case(self):
        tested = [alert for case in (MonitoringTest, monitoring_hang_test.HangTest) for name in dir(case)
                  for alert in getattr(getattr(case, name), "alerts", ())]
        self.assertEqual(sorted(tested), sorted(all_alerts()))

    @fires()
    def test_a_node_that_is_well(self):
        earlier = Scrape(self.daemon)
        self.put("a", content(MIB))
        self.assertEqual(self.get("a"), content(MIB))
        self.expect_firing(earlier)

    # -- the node --

    @fires("FopdDown")
    def test_a_daemon_that_does_not_answer(self):
        self.stop()
        with self.assertRaises(OSError):
            Scrape(self.daemon)
        self.promtool([promtool_series("up", 0, 0)], ["FopdDown"])

    @fires("FopdRestartsOften")
    def test_restarts(self):
        def uptime():
            return self.daemon.metrics()["fopd_uptime_seconds"]
        seen = [uptime()]
        for _ in range(2):
            # A start takes a part of a second, or longer on a busy machine.
            while True:
                wait_until(lambda: uptime() > 3 * seen[0], "it has run for longer than it took to start")
                seen.append(uptime())
                self.kill_and_start()
                after_start = uptime()
                if after_start < seen[-1]:
                    break
            seen.append(after_start)
        self.promtool([{"series": f"fopd_uptime_seconds{{{LABELS_OF_PROMETHEUS}}}", "values": " ".join(map(str, seen))}],
                      ["FopdRestartsOften"], minute=len(seen))

    @fires("FopdNotReady")
    def test_a_drained_node(self):
        self.ctl("drain")
        self.expect_firing()

    @fires("FopdLocalityStuck")
    def test_a_locality_that_is_stuck(self):
        with stopped_thread(self.daemon, "fopd-loc-0"):
            self.wait_health("locality_stuck")
            self.expect_firing()

    @fires("FopdReloadFailed")
    def test_a_reload_that_failed(self):
        self.change_config("pools:", "pools: wrong\nother:")
        self.assertNotEqual(self.ctl_bytes("reload").returncode, DONE)
        self.expect_firing()

    @fires("FopdHealthWarning")
    def test_a_restart_that_is_pending(self):
        with (self.dir / "fopd.yaml").open("a") as config:
            config.write("localities: { receive_buffers: 2048 }\n")
        self.ctl("reload")
        self.wait_health("restart_pending")
        self.expect_firing()

    @fires("FopdLogEventsDropped")
    def test_a_log_without_space(self):
        self.stop()
        with open("/dev/full", "wb") as full:
            self.daemon = self.node("full").start("--dev", self.dir, "--metrics", "127.0.0.1:0", "--listen", "tcp://127.0.0.1:0",
                                                  stderr=full)
        self.daemon.socket_path = self.dir / "admin.sock"
        wait_until(lambda: self.ctl_bytes("status").returncode == DONE, "status answers")
        wait_until(lambda: self.daemon.status()["state"] == "ready", "ready")
        earlier = Scrape(self.daemon)
        self.ctl("log-level", "debug")
        self.wait_metric("fopd_log_events_dropped_total",
                         lambda count: count > earlier.values["fopd_log_events_dropped_total"])
        self.expect_firing(earlier)

    # -- disks --

    @fires("FopdDiskMissing", "FopdDiskDown")
    def test_a_missing_disk(self):
        self.put("a", b"x")
        self.stop()
        (self.dir / "d1.img").rename(self.directory / "away")
        self.start()
        self.expect_firing()

    @fires("FopdDiskErrors")
    def test_a_disk_that_fails(self):
        """Its file is shorter than it was, so nothing can be read there; and clients are told."""
        self.put("a", content(MIB))
        # Nothing is left to write, which would make the files longer again.
        self.stop()
        self.start()
        earlier = Scrape(self.daemon)
        for image in self.dir.glob("*.img"):
            os.truncate(image, MIB)
        self.assertNotEqual(self.ctl_bytes("get", "a", "-").returncode, DONE)
        self.expect_firing(earlier, more=["FopdFopsFail"])

    @needs_held_disk
    @fires("FopdDiskSlow")
    def test_a_disk_that_is_slow(self):
        disk = self.start_on_held_disk()
        self.put("a", content(MIB))
        earlier = Scrape(self.daemon)
        disk.delay(1.1, READ)
        self.ctl("read", "a", "--length", "4k")
        self.wait_metric('fopd_device_slow_operations_total{device="d0",op="read"}', lambda count: count == 1)
        self.expect_firing(earlier)

    @needs_held_disk
    @fires("FopdBuffersUsedUp")
    def test_buffers_that_are_used_up(self):
        """Reads and writes wait for a disk that does not answer, and each has a buffer: reads all but those that are kept for fops
        whose bytes are in their messages, such as short writes."""
        disk = self.start_on_held_disk("localities: { cores: 1, buffers: 2MiB }\n")
        self.put("a", content(MIB))
        earlier = Scrape(self.daemon)
        disk.hold(READ)
        for _ in range(8):
            self.start_ctl("read", "a", "--length", "4k", "--timeout", 600)
            writer = self.start_ctl("write", "a", "--offset", 1, "--timeout", 600)
            writer.stdin.write(b"x")
            writer.stdin.flush()
            writer.stdin.close()
        self.wait_metric('fopd_buffers_free{locality="0"}', lambda free: free == 0)
        self.wait_health("disk_suspect")  # It does not answer.
        self.expect_firing(earlier, more=["FopdHealthWarning"])

    @fires("FopdHealthCritical")
    def test_a_damaged_log(self):
        self.put("a", b"x")
        for image in self.dir.glob("*.img"):  # It is on one of them.
            with image.open("r+b") as file:
                byte, = os.pread(file.fileno(), 1, LOG_BLOCK * 4096 + 100)
                os.pwrite(file.fileno(), bytes([byte ^ 1]), LOG_BLOCK * 4096 + 100)
        self.assertNotEqual(self.ctl_bytes("store", "check").returncode, DONE)
        self.wait_health("check_findings")
        self.expect_firing()

    @fires("FopdDiskDamaged", "FopdFopsFail")
    def test_damaged_blocks(self):
        data = content(64 << 10)
        self.put("a", data)
        self.stop()
        for image in self.dir.glob("*.img"):
            with image.open("r+b") as file:
                at = 0
                while (at := self.next_data(file, at)) is not None:
                    end = os.lseek(file.fileno(), at, os.SEEK_HOLE)
                    found = os.pread(file.fileno(), end - at, at).find(data[:4096])
                    if found >= 0:
                        os.pwrite(file.fileno(), b"damaged", at + found)
                    at = end
        self.start()

        def read():
            self.assertNotEqual(self.ctl_bytes("read", "a", "--offset", 0, "--length", 1).returncode, DONE)
        read()
        earlier = Scrape(self.daemon)
        read()
        wait_until(lambda: max(value for series, value in self.daemon.metrics().items()
                               if series.startswith("fopd_device_damaged_blocks")) > 0, "the damage is known")
        self.expect_firing(earlier)

    @staticmethod
    def next_data(file, at):
        try:
            return os.lseek(file.fileno(), at, os.SEEK_DATA)
        except OSError:
            return None  # There is none after that.

    @fires("FopdDiskNearlyFull", "FopdPoolNearlyFull")
    def test_full_disks(self):
        self.start_anew()
        number = 0
        for size in (4 * MIB, MIB // 4):
            while self.ctl_bytes("put", "-", f"o{number}", data=content(size, number)).returncode == DONE:
                number += 1
        free = [f'fopd_device_free_bytes{{device="d{each}",pool="fast"}}' for each in range(2)]
        wait_until(lambda: all(self.daemon.metrics()[each] < MIB for each in free), "the figures are those of now")
        self.expect_firing()

    @fires("FopdScrubOld")
    def test_an_old_scrub(self):
        self.stop()
        slots = self.dir / "data" / "slots"
        slots.write_text(re.sub("scrubbed=[0-9]+", f"scrubbed={int(time.time()) - 40 * 86400}", slots.read_text()))
        self.start()
        self.expect_firing()

    # -- quotas --

    @fires("FopdQuotaNearlyUsed")
    def test_a_quota_that_is_used(self):
        for quota, data in (("fast=1MiB", content(MIB)), ("fast=,1", b"x")):
            with self.subTest(quota):
                key = self.directory / "ann.key"
                self.ctl("key", "create", "ann", "--quota", quota, "--out", key)
                self.put("a", data, "--key", key)
                self.expect_firing()
                self.ctl("rm", "a", "--key", key)
                self.ctl("key", "revoke", "ann")
                key.unlink()

    @fires("FopdPoolQuotaNearlyUsed")
    def test_a_quota_of_a_pool_that_is_used(self):
        self.change_config("{ name: fast }", "{ name: fast, quota: 1MiB }")
        self.ctl("reload")
        self.put("a", content(MIB))
        self.expect_firing()

    # -- tape --

    @fires("FopdTapeMigrationFails")
    def test_a_library_without_barcodes(self):
        self.stop()
        for cartridge in self.dir.glob("**/*.cartridge"):
            cartridge.write_text("")
        self.start()
        earlier = Scrape(self.daemon)
        self.put("a", b"x", "--pool", "cold")
        self.assertNotEqual(self.ctl_bytes("sync", "--pool", "cold").returncode, DONE)
        self.expect_firing(earlier, more=["FopdFopsFail"])

    @fires("FopdTapeDriveDown")
    def test_a_drive_that_is_out_of_use(self):
        self.take_drives_down(1)
        self.expect_firing()

    @fires("FopdTapeRecallOld")
    def test_a_recall_that_waits(self):
        """No drive is in use. promtool is shown how old it is after hours."""
        cold = ("--pool", "cold")
        self.put("a", content(MIB), *cold)
        self.ctl("sync", *cold)
        self.ctl("release", "a", *cold)
        self.take_drives_down(2)
        self.start_ctl("stage", "a", *cold, "--timeout", 600)
        age = "fopd_tape_recalls_oldest_seconds"
        self.wait_metric(age, lambda seconds: seconds > 0)
        first = Scrape(self.daemon)
        self.wait_metric(age, lambda seconds: seconds > first.values[age])
        scrape = Scrape(self.daemon)
        for minutes, firing in ((3 * 60, []), (5 * 60, ["FopdTapeRecallOld"])):
            self.promtool(scrape.series_since(scrape, minutes, rising=[age]), ["FopdTapeDriveDown", *firing], minute=minutes)

    def take_drives_down(self, count):
        wait_until(lambda: "fopd.library.open" in self.daemon.log(), "the library is open")
        for number in range(count):
            self.ctl("drive", "down", f"vtl0-drive{number}")
            self.wait_metric(f'fopd_tape_drive_state{{drive="vtl0-drive{number}",state="down"}}', lambda value: value == 1)

    @fires("FopdTapeLibraryNotOpen")
    def test_a_library_that_is_not_open(self):
        self.stop()
        (self.dir / "data" / "media").write_bytes(b"no table")
        self.start()
        self.wait_health("library_not_open")
        self.expect_firing()

    @fires("FopdTapeCartridgeUnreadable")
    def test_a_cartridge_that_is_missing(self):
        cold = ("--pool", "cold")
        self.put("a", content(MIB), *cold)
        self.ctl("sync", *cold)
        barcode = next(each["name"] for each in json.loads(self.ctl("--json", "media"))["media"] if each["files"] > 0)
        self.stop()
        image, = self.dir.glob(f"**/{barcode}.cartridge")
        image.unlink()
        self.start()
        self.wait_health("cartridge_unreadable")
        self.expect_firing()

    # -- daemons in step --

    @fires("FopdEpochStoreFails")
    def test_an_etcd_that_does_not_answer(self):
        """Nobody listens there. The daemon asks it again and again, because it wants to join."""
        self.stop()
        with (self.dir / "fopd.yaml").open("a") as config:
            config.write(f"eh: {{ kind: peers, timeout: 500ms, root_silent: 500ms, address: '{self.address}', "
                         "store: { kind: etcd, endpoints: ['http://127.0.0.1:1'], timeout: 200ms } }\n")
        self.start()
        self.wait_health("no_epochs")
        failures = "fopd_epoch_store_failures_total"
        earlier = Scrape(self.daemon)
        self.wait_metric(failures, lambda count: count > earlier.values[failures])
        self.expect_firing(earlier, more=["FopdHealthWarning"])

    # -- what is served --

    @fires("FopdSessionsRefused")
    def test_sessions_that_are_refused(self):
        """More than sixty in what counts as a minute."""
        wrong = self.directory / "wrong.key"
        wrong.write_text("f" * 64 + "\n")
        wrong.chmod(0o600)
        earlier = Scrape(self.daemon)
        for _ in range(61):
            self.assertNotEqual(self.ctl_bytes("ping", "--count", "1", "--key", wrong).returncode, DONE)
        # A refusal may be counted after the client has heard of it.
        refused = 'fopd_sessions_refused_total{locality="0"}'
        wait_until(lambda: Scrape(self.daemon).values[refused] - earlier.values[refused] >= 61, "all of them")
        self.expect_firing(earlier)


if __name__ == "__main__":
    unittest.main()

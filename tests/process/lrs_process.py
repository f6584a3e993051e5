"""A node of two localities with one disk, whose request scheduler tests set."""

import json
import subprocess

from fopd_process import DONE, FOPCTL, PROGRAM_SECONDS, ProcessTestCase


class LrsTestCase(ProcessTestCase):
    def setUp(self):
        super().setUp()
        self.fopd = self.node()
        self.fopd.settings["pools"] = [{"name": "fast"}]
        self.fopd.settings["devices"] = [{"name": "d0", "path": str(self.fopd.path / "d0.img"), "pool": "fast",
                                          "size": "256MiB"}]
        self.fopd.settings["auth"] = {"mode": "none"}
        self.fopd.settings["localities"] = {"cores": 2, "buffers": "2MiB"}
        self.daemon = None

    def start(self, **lrs):
        self.fopd.settings["lrs"] = lrs
        self.fopd.write_config()
        self.daemon = self.fopd.start_ready()
        self.server = self.daemon.events("fopd.fabric.listening")[0]["address"]

    def ctl(self, *arguments, code=DONE, job=None, **options):
        about = ["--job", job] if job else []
        done = subprocess.run([FOPCTL, "--server", self.server, "--admin", self.daemon.socket_path, *about,
                               *map(str, arguments)], capture_output=True, text=True, timeout=PROGRAM_SECONDS, **options)
        self.assertEqual(done.returncode, code, f"{done.stdout}{done.stderr}")
        return done

    def start_bench(self, *arguments, job=None):
        """One that goes on until end() of what is returned, at most until the end of the test."""
        about = ["--job", job] if job else []
        bench = subprocess.Popen([FOPCTL, "--server", self.server, *about, "bench", *arguments, "--seconds", "600"],
                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

        def end():
            bench.kill()
            bench.wait()
        bench.end = end
        self.addCleanup(end)
        return bench

    def start_writing(self, job=None):
        return self.start_bench("--op", "write", "--object", "o", "--object-size", "64k", "--depth", "4", "--jobs", "2", job=job)

    def write(self, seconds, depth=4, jobs=2, job=None):
        done = json.loads(self.ctl("bench", "--op", "write", "--object", "o", "--object-size", "64k", "--seconds", seconds,
                                   "--depth", depth, "--jobs", jobs, "--json", job=job).stdout)
        self.assertEqual(done["errors"], 0)
        return done["ops"]

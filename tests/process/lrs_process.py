"""A node of two localities with one disk, whose request scheduler tests set."""

import json
import subprocess
import threading

from fopd_process import DONE, FOPCTL, PROGRAM_SECONDS, ProcessTestCase, wait_until

# Of a bench whose writes are held: each of its calls has begun by then.
HELD_SECONDS = 2


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
        self.server = self.daemon.address

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


class LrsAdminTestCase(LrsTestCase):
    """One that administrators ask and change while it works."""

    def start(self, **lrs):
        super().start(**lrs)
        self.ctl("bench", "--op", "read", "--object", "o", "--object-size", "64k", "--seconds", "0.1")

    def start_with(self, lrs):
        """With a file as people write it."""
        self.fopd.write_config()
        others = "".join(f"{key}: {json.dumps(value)}\n" for key, value in json.loads(self.fopd.config_path.read_text()).items())
        self.fopd.config_path.write_text("# A node to test with.\n" + lrs + others + "# The end.\n")
        self.fopd.config_path.chmod(0o640)
        self.daemon = self.fopd.start_ready()
        self.server = self.daemon.address

    def write_meanwhile(self, **options):
        """Begins to write; what is returned waits for the end, and has the number of writes then."""
        written = []
        load = threading.Thread(target=lambda: written.append(self.write(**options)))
        load.start()

        def ended():
            load.join()
            self.assertEqual(len(written), 1)
            return written[0]
        return ended

    def lrs(self):
        return json.loads(self.ctl("lrs", "show", "--json").stdout)

    def class_named(self, name):
        found = [each for each in self.lrs()["classes"] if each["name"] == name]
        return found[0] if found else None

    def wait_queued(self, count):
        wait_until(lambda: self.lrs()["queued"] == count, f"{count} requests wait")

    def rules(self):
        listed = json.loads(self.ctl("lrs", "rule", "list", "--json").stdout)
        return listed["version"], [each["text"] for each in listed["rules"]]

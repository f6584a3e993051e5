"""An etcd server, alone or one of a few."""

import http.client
import http.server
import json
import os
import shutil
import signal
import subprocess
import threading
import unittest

from epochs_process import free_ports
from fopd_process import wait_until


needs_etcd = unittest.skipUnless("FOPD_FULL_RUN" in os.environ or shutil.which("etcd"), "etcd is not installed")


class Etcd:
    """An etcd server of one test, with ports and a directory of its own."""

    def __init__(self, directory, host="127.0.0.1", within=(), name="e", arguments=()):
        """`within`: a command that runs others in another network."""
        self.directory, self.host, self.within, self.name, self.arguments = directory, host, [*within], name, arguments
        self.ports = free_ports(2)
        self.url, self.peer_url = (f"http://{host}:{port}" for port in self.ports)
        self.members = [self]
        self.process = None

    def start(self):
        self.launch()
        wait_until(self.is_ready, "etcd is ready")

    def launch(self):
        with open(self.directory / "etcd.log", "wb") as log:
            self.process = subprocess.Popen(
                [*self.within, "etcd", "--name", self.name, "--data-dir", self.directory / "etcd", "--listen-client-urls", self.url,
                 "--advertise-client-urls", self.url, "--listen-peer-urls", self.peer_url,
                 "--initial-advertise-peer-urls", self.peer_url,
                 "--initial-cluster", ",".join(f"{each.name}={each.peer_url}" for each in self.members), *self.arguments],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def is_ready(self):
        """It says so in its log: not every network can be reached from here."""
        if self.process.poll() is not None:
            raise AssertionError(f"etcd has ended:\n{self.log()}")
        return "ready to serve client requests" in self.log()

    def log(self):
        return (self.directory / "etcd.log").read_text(errors="replace")

    def ask(self, path, body, token=None):
        connection = http.client.HTTPConnection(self.host, self.ports[0], timeout=10)
        try:
            connection.request("POST", path, json.dumps(body), {"Authorization": token} if token else {})
            answer = connection.getresponse()
            if answer.status != 200:
                raise AssertionError(f"etcd: {path}: {answer.status}: {answer.read()}")
            return json.loads(answer.read())
        finally:
            connection.close()

    def turn_authentication_on(self, password):
        for path, body in (("user/add", {"name": "root", "password": password}), ("role/add", {"name": "root"}),
                           ("user/grant", {"user": "root", "role": "root"}), ("enable", {})):
            self.ask(f"/v3/auth/{path}", body)

    def change_password(self, old, new):
        token = self.ask("/v3/auth/authenticate", {"name": "root", "password": old})["token"]
        self.ask("/v3/auth/user/changepw", {"name": "root", "password": new}, token)

    def stop(self):
        if self.process is None:
            return
        self.process.send_signal(signal.SIGCONT)
        self.process.kill()
        self.process.wait()
        self.process = None


class EtcdCluster:
    """Three etcd servers of one test."""

    def __init__(self, directory):
        self.servers = []
        for name in ("e1", "e2", "e3"):
            (directory / name).mkdir()
            self.servers.append(Etcd(directory / name, name=name))
        for each in self.servers:
            each.members = self.servers

    def start(self):
        for each in self.servers:
            each.launch()
        for each in self.servers:
            wait_until(each.is_ready, f"{each.name} is ready")

    def leader(self):
        """That of those that run."""
        for each in self.servers:
            if each.process is not None:
                status = each.ask("/v3/maintenance/status", {})
                if status["leader"] == status["header"]["member_id"]:
                    return each
        return None

    def stop(self):
        for each in self.servers:
            each.stop()


class LossyProxy:
    """Stands between daemons and an etcd server. While `loses` is set, a transaction that etcd has carried out is not
    answered: its connection ends instead. `lost` counts these."""

    def __init__(self, etcd):
        self.loses, self.lost = False, 0
        proxy = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                proxy.forward(etcd, self)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self.lock = threading.Lock()
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05})
        self.thread.start()

    def forward(self, etcd, request):
        body = request.rfile.read(int(request.headers["Content-Length"]))
        connection = http.client.HTTPConnection(etcd.host, etcd.ports[0], timeout=10)
        try:
            connection.request("POST", request.path, body, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            content = answer.read()
        finally:
            connection.close()
        if self.loses and request.path == "/v3/kv/txn" and json.loads(content).get("succeeded"):
            with self.lock:
                self.lost += 1
            return
        request.send_response(answer.status)
        request.send_header("Content-Type", "application/json")
        request.send_header("Content-Length", str(len(content)))
        request.end_headers()
        request.wfile.write(content)

    def stop(self):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()

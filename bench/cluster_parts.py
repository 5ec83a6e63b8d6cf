"""What the benchmark `cluster` starts: a private Redis, processes of a detector cluster, simulated workers, and the peer in
Python. Each ends with its `with` block, and only by its own process id."""
import pathlib
import subprocess
import urllib.error
import urllib.request

from processes import Load, cpu_seconds, free_port
from worker_parts import end, wait_until

SERVERS = [pathlib.Path("/usr/bin/redis-server"), pathlib.Path("/usr/bin/redis-check-rdb")]  # Debian's package has both in one
PEER = pathlib.Path(__file__).with_name("cluster_peer.py")
PACKAGES = ["hiredis", "redis", "websockets"]


class Redis:
    def __init__(self, folder):
        self.program, self.port = next(path for path in SERVERS if path.exists()), free_port()
        self.words = ["redis-server", "--bind", "127.0.0.1", "--port", str(self.port), "--save", "", "--appendonly", "no",
                      "--dir", str(folder)]

    def __enter__(self):
        self.process = subprocess.Popen(self.words, executable=self.program, stdout=subprocess.DEVNULL)
        self.pid = self.process.pid
        wait_until("Redis answers", lambda: self.ask("ping") == "PONG")
        return self

    def __exit__(self, *_):
        end(self.process)

    def ask(self, *words):
        asked = subprocess.run(["redis-cli", "-p", str(self.port), *words], stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL, text=True)
        return asked.stdout.strip()

    def version(self):
        return next(line.split(":")[1] for line in self.ask("info", "server").split() if line.startswith("redis_version:"))


class Process:
    """`weir cluster`, with a name that says who it is."""

    def __init__(self, build, folder, plane, redis, workers, name):
        self.name, self.log = name, open(folder / f"{name}.log", "ab")
        self.words = [build / "src/apps/weir", "cluster", "--control-plane-url", f"http://127.0.0.1:{plane.port}",
                      "--auth-secret-file", plane.secret, "--cluster-process-id", name, "--listen", "127.0.0.1:0",
                      "--state-dir", folder / name, "--detector-workers", ",".join(workers), "--redis-host", "127.0.0.1",
                      "--redis-port", str(redis.port)]

    def __enter__(self):
        self.process = subprocess.Popen(self.words, stdout=subprocess.PIPE, stderr=self.log, text=True)
        line = self.process.stdout.readline()
        if "listening on" not in line:
            raise RuntimeError(f"{self.name} did not start: {self.said()[-2000:]}")
        self.pid, self.port = self.process.pid, int(line.rsplit(":", 1)[1])
        return self

    def __exit__(self, *_):
        end(self.process)
        self.process.stdout.close()
        self.log.close()

    def said(self):
        return pathlib.Path(self.log.name).read_text(errors="replace")

    def listener(self):
        """Where a product listens to detections at this process; None where its routes are not there."""
        url = f"http://127.0.0.1:{self.port}/v1/cluster/listen?events=false"
        try:
            urllib.request.urlopen(url, timeout=10).close()
        except urllib.error.HTTPError as refused:
            if refused.code == 404:
                return None
        return "ws" + url.removeprefix("http")


class Workers(Load):
    """cluster_load: one line in, one JSON line out."""

    def __init__(self, build, plane, workers):
        self.count = workers
        self.words = [str(word) for word in (build / "bench/cluster_load", plane.port, plane.secret, workers)]

    def __enter__(self):
        super().__enter__()
        self.address = self.hear("its start")["workers"]
        return self

    def urls(self):
        return [f"ws://{self.address}/w/{number}" for number in range(self.count)]

    def wait_for(self, subscriptions, patience_s=120):
        wait_until(f"the workers run {subscriptions} subscriptions", lambda: self.ask("counts")["subscriptions"] ==
                   subscriptions, patience_s)


class PeerProcess:
    def __init__(self, python, *words):
        self.words = [str(word) for word in (python, PEER, *words)]

    def __enter__(self):
        self.process = subprocess.Popen(self.words, stdout=subprocess.PIPE, text=True)
        self.pid = self.process.pid
        return self

    def __exit__(self, *_):
        end(self.process)
        self.process.stdout.close()

    def cpu(self):
        return cpu_seconds(self.pid)

"""What a benchmark starts and watches: a private PostgreSQL, a control plane, a load generator. Each ends with its
`with` block, and only by its own process id."""
import json
import os
import pathlib
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import urllib.request

TICKS = os.sysconf("SC_CLK_TCK")


def check_for(*paths):
    for path in paths:
        if not path.exists():
            raise RuntimeError(f"{path} is missing: ./dev build release fetches and builds")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


# ---- looking at processes ----

def stat_fields(pid):
    return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()


def cpu_seconds(pid):
    """Of one process and of its children that have ended."""
    fields = stat_fields(pid)
    return sum(int(fields[i]) for i in (11, 12, 13, 14)) / TICKS


def children_of(parent):
    """Process id → CPU seconds."""
    found = {}
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            if int(stat_fields(entry)[1]) == parent:
                found[int(entry)] = cpu_seconds(entry)
        except (FileNotFoundError, ProcessLookupError):
            pass  # it ended while we looked
    return found


def family_cpu_seconds(parent):
    return cpu_seconds(parent) + sum(children_of(parent).values())


def machine_cpu_seconds():
    """Of all programs and of the kernel, without idling, waiting and what other machines took."""
    words = open("/proc/stat").readline().split()[1:]
    return sum(int(words[i]) for i in (0, 1, 2, 5, 6)) / TICKS


def memory_mb(pid, what="VmRSS"):
    for line in open(f"/proc/{pid}/status"):
        if line.startswith(what + ":"):
            return int(line.split()[1]) / 1024
    return 0.0


class Folder:
    """A folder on a disk, which /tmp may not be, that is removed with its block."""

    def __enter__(self):
        self.path = pathlib.Path(tempfile.mkdtemp(prefix="weir-bench-", dir="/var/tmp"))
        return self.path

    def __exit__(self, *_):
        shutil.rmtree(self.path, ignore_errors=True)


# ---- PostgreSQL ----

class Postgres:
    """A private server on loopback. Durability is the default: every commit is flushed before it is answered."""

    SETTINGS = {"shared_buffers": "256MB"}

    def __init__(self, folder):
        self.bin = max(pathlib.Path("/usr/lib/postgresql").glob("*/bin/initdb"),
                       key=lambda path: float(path.parts[-3])).parent
        self.folder, self.port = folder, free_port()

    def call(self, program, *arguments, check=True, **more):
        """As the user postgres where this is root, whom initdb refuses."""
        words = [str(self.bin / program), *map(str, arguments)]
        if os.geteuid() == 0:
            words = ["runuser", "-u", "postgres", "--", *words]
        done = subprocess.run(words, cwd="/tmp", stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **more)
        if check and done.returncode != 0:
            raise RuntimeError(f"{program} failed: {done.stdout[-2000:]}")
        return done.stdout

    def __enter__(self):
        if os.geteuid() == 0:
            os.chown(self.folder, pwd.getpwnam("postgres").pw_uid, -1)
        self.call("initdb", "-D", self.folder / "data", "-A", "trust", "-U", "weir", "--locale=C.UTF-8", "-E", "UTF8")
        options = f"-c listen_addresses=127.0.0.1 -p {self.port} -k {self.folder}"
        for name, value in self.SETTINGS.items():
            options += f" -c {name}={value}"
        # A file takes what the server says: a pipe would stay open for as long as it runs.
        try:
            self.call("pg_ctl", "-D", self.folder / "data", "-w", "-l", self.folder / "log", "-o", options, "start")
            self.pid = int((self.folder / "data/postmaster.pid").read_text().split()[0])
            self.call("createdb", *self.where(), "weir")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        self.call("pg_ctl", "-D", self.folder / "data", "-m", "immediate", "-w", "stop", check=False)

    def where(self):
        return ("-h", "127.0.0.1", "-p", str(self.port), "-U", "weir")

    def url(self):
        return f"postgres://weir@127.0.0.1:{self.port}/weir"

    def sql(self, text):
        return self.call("psql", *self.where(), "-d", "weir", "-v", "ON_ERROR_STOP=1", "-qtA", "-f", "-",
                         input=text).strip()

    def settle(self, processes, patience_s=10):
        """Waits until no more than so many processes serve: one that is just ending would be counted twice or never."""
        limit = time.monotonic() + patience_s
        while len(children_of(self.pid)) > processes and time.monotonic() < limit:
            time.sleep(0.05)

    def version(self):
        return self.sql("SHOW server_version").split()[0]


# ---- Weir ----

class ControlPlane:
    def __init__(self, build, folder, database, *more):
        self.secret, self.token = folder / "auth.secret", ""
        self.log = open(folder / "weir.log", "ab")
        self.words = [build / "src/apps/weir", "control-plane", "--db", database, "--listen", "127.0.0.1:0",
                      "--auth-secret-file", self.secret, "--state-dir", folder, *more]

    def __enter__(self):
        self.process = subprocess.Popen(self.words, stdout=subprocess.PIPE, stderr=self.log, text=True)
        line = self.process.stdout.readline()
        if "listening on" not in line:
            said = pathlib.Path(self.log.name).read_text(errors="replace")
            raise RuntimeError(f"the control plane did not start: {said[-2000:]}")
        self.pid, self.port = self.process.pid, int(line.rsplit(":", 1)[1])
        return self

    def answer_ms(self, target):
        """How long the answer to GET takes, asked as an administrator over a connection of its own."""
        if not self.token:
            words = [self.words[0], "token", "--role", "admin", "--sub", "bench", "--auth-secret-file", self.secret]
            self.token = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
        asked = urllib.request.Request(f"http://127.0.0.1:{self.port}{target}",
                                       headers={"Authorization": f"Bearer {self.token}"})
        begun = time.perf_counter()
        with urllib.request.urlopen(asked, timeout=10) as answer:
            answer.read()
        return 1000 * (time.perf_counter() - begun)

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(15)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()
        self.log.close()


class Load:
    """lease_load: one line in, one JSON line out."""

    def __init__(self, build, plane, runners, leases_each, spares=0):
        self.words = [str(word) for word in (build / "bench/lease_load", plane.port, plane.secret, runners, leases_each,
                                             spares)]

    def __enter__(self):
        self.process = subprocess.Popen(self.words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.pid = self.process.pid
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()

    def ask(self, *words):
        self.process.stdin.write(" ".join(map(str, words)) + "\n")
        self.process.stdin.flush()
        return self.hear(words[0])

    def hear(self, during):
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"the load generator ended during {during}")
        return json.loads(line)

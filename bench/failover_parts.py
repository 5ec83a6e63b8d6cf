"""What the benchmark `failover` starts: a control plane that can be killed and comes back, runners with all their
processes, simulated cameras, a listener of the event feed, a proxy that is never in time. Each ends with its `with`
block, and only by its own process id."""
import asyncio
import collections
import http.client
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request

from processes import ControlPlane, Postgres
from worker_parts import LIBRARY, MODEL, Cameras, wait_until

FPS, WATCHED_FPS = 10, 5
PLAIN = f"width=384,height=288,fps={FPS},keyframe_s=1,seconds=20"
TINY = "width=192,height=144,fps=2,keyframe_s=1,seconds=10"  # light enough for a hundred of them
WATCHED = f"width=384,height=288,fps={WATCHED_FPS},keyframe_s=1,seconds=10"
NOT_LOOKED_AT = {"model": {"detector": "none"}}
# Every picture is looked at, and something is seen in every one: a picture without an event is one that got lost.
LOOKED_AT = {"max_fps": 10, "decode": "full", "motion_gating": {"enabled": False}, "min_score": 0.05}
CUT = (OSError, http.client.HTTPException)


def call(method, url, body=None, token=None, patience_s=10):
    headers = {"Content-Type": "application/json"}
    if token:
        headers["Authorization"] = f"Bearer {token}"
    request = urllib.request.Request(url, None if body is None else json.dumps(body).encode(), headers, method=method)
    with urllib.request.urlopen(request, timeout=patience_s) as answer:
        return answer.read().decode()


def samples(text):
    """Name with labels → value."""
    lines = (line.rsplit(" ", 1) for line in text.splitlines() if line[:1] != "#")
    return {name: float(value) for name, value in lines}


# ---- the authority ----

class Plane(ControlPlane):
    """A control plane that comes back under its old address."""

    def __enter__(self):
        super().__enter__()
        self.words[self.words.index("--listen") + 1] = f"127.0.0.1:{self.port}"
        self.url = f"http://127.0.0.1:{self.port}"
        words = [self.words[0], "token", "--auth-secret-file", self.secret, "--role", "admin", "--sub", "bench",
                 "--ttl", "24h"]
        self.token = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
        return self

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def again(self):
        super().__enter__()

    def call(self, method, target, body=None):
        return json.loads(call(method, self.url + target, body, self.token) or "null")

    def versions(self):
        """Camera → the version of its lease, held or not."""
        items = self.call("GET", "/v1/leases?held=false&limit=1000")["items"]
        return {each["camera_uuid"]: each["version"] for each in items}

    def owners(self):
        items = self.call("GET", "/v1/leases?held=true&limit=1000")["items"]
        return {each["camera_uuid"]: each["owner_id"] for each in items}

    def metric(self, name):
        return samples(call("GET", self.url + "/metrics")).get(name, 0.0)

    def warnings(self):
        """Its log lines that are no mere information."""
        lines = pathlib.Path(self.log.name).read_text().splitlines()
        return [line for line in lines if '"level":"warn"' in line or '"level":"error"' in line]


class Server(Postgres):
    """A PostgreSQL that can be stopped without warning and comes back with the options it had."""

    def kill(self):
        self.call("pg_ctl", "-D", self.folder / "data", "-m", "immediate", "-w", "stop")

    def again(self):
        self.call("pg_ctl", "-D", self.folder / "data", "-w", "-l", self.folder / "log", "restart")


class Feed:
    """Everything that the control plane's bus accepted, as (time of arrival, routing key, payload), without a gap over
    cut connections."""

    def __init__(self, plane):
        self.plane, self.events, self.cursor = plane, [], "0"
        self.ended, self.socket = False, None

    def __enter__(self):
        self.reader = threading.Thread(target=self.read)
        self.reader.start()
        return self

    def __exit__(self, *_):
        self.ended = True
        try:
            self.socket.shutdown(2)
        except (AttributeError, OSError):
            pass  # not connected just now
        self.reader.join()

    def read(self):
        while not self.ended:
            try:
                self.follow()
            except CUT:
                time.sleep(0.02)

    def follow(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.plane.port, timeout=5)
        connection.connect()
        self.socket = connection.sock
        headers = {"Authorization": f"Bearer {self.plane.token}", "Last-Event-ID": self.cursor}
        connection.request("GET", "/v1/events?pattern=%23", headers=headers)
        answer, cursor = connection.getresponse(), None
        if answer.status != 200:
            time.sleep(0.1)  # it has no store at the moment
            return connection.close()
        for line in iter(answer.readline, b""):
            if line.startswith(b"id: "):
                cursor = line[4:].decode().strip()
            elif line.startswith(b"data: "):
                arrived, event = time.monotonic(), json.loads(line[6:])
                self.events.append((arrived, event.get("routing_key", ""), event.get("payload", {})))
                self.cursor = cursor
        connection.close()

    def count(self, kind):
        return sum(key.startswith(kind + ".") for _, key, _ in list(self.events))

    def of(self, kind, camera=None):
        return [(arrived, payload) for arrived, key, payload in list(self.events)
                if key.startswith(kind + ".") and camera in (None, payload.get("camera_uuid"))]

    def above(self, kind, versions, since):
        """Camera → (arrival, payload) of the first of its events under a later version than this; of its status, the
        first that says STREAMING."""
        found = {}
        for arrived, payload in self.of(kind):
            camera = payload["camera_uuid"]
            streams = payload.get("state", "STREAMING") == "STREAMING"
            if (arrived >= since and camera in versions and camera not in found and streams
                    and payload["lease_version"] > versions[camera]):
                found[camera] = (arrived, payload)
        return found

    def streaming_above(self, versions, since):
        return self.above("stream.status", versions, since)


# ---- cameras ----

class Simulated(Cameras):
    """Every second one begins a session in the middle of a group of pictures, as behind a relay: whoever dials it waits
    for its next keyframe. The others send their newest keyframe at once."""

    def __init__(self, build, folder, profiles):
        super().__init__(build, folder, profiles)
        path = folder / "camsim.json"
        config = json.loads(path.read_text())
        for camera in config["recorders"][0]["cameras"][1::2]:
            camera["start"] = "live"
        path.write_text(json.dumps(config))


# ---- runners ----

def processes_with(word):
    """Those whose command line holds this word; one that only waits to be reaped has none."""
    found = {}
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            words = pathlib.Path(f"/proc/{entry}/cmdline").read_bytes().decode(errors="replace").split("\0")
        except (FileNotFoundError, ProcessLookupError):
            continue  # it ended while we looked
        if word in words:
            found[int(entry)] = words
    return found


def signal_all(pids, number):
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            pass


class Runner:
    """`weir runner`: a parent, its manager, and workers. All of them have its state folder in their command line."""

    def __init__(self, build, folder, name, url, secret, flags):
        self.name, self.folder = name, folder / name
        self.folder.mkdir()
        # This machine's other programs must not keep a runner from taking cameras: that would be another measure.
        self.words = [str(word) for word in (
            build / "src/apps/weir", "runner", "--lifeline", "--runner-id", name, "--state-dir", self.folder,
            "--auth-secret-file", secret, "--control-plane-url", url, "--prom-manager-port", 0, "--prom-worker-port", 0,
            "--models-dir", MODEL.parent, "--library-dir", LIBRARY.parent, "--cpu-high-pct", 100, "--mem-high-pct", 100,
            *flags)]
        # The same room on every machine, and none of them measures its own first.
        self.words += [] if "--capacity-streams" in self.words else ["--capacity-streams", "40"]
        self.process = None

    def start(self):
        with open(self.folder / "runner.log", "ab") as log:
            self.process = subprocess.Popen(self.words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log,
                                            text=True)
        line = self.process.stdout.readline()
        if "listening on " not in line:
            raise RuntimeError(f"{self.name} did not start: {self.log()[-2000:]}")
        self.url = line.split("listening on ", 1)[1].strip()

    def log(self):
        return (self.folder / "runner.log").read_text()

    def log_tail(self, lines=15):
        return "\n".join(self.log().splitlines()[-lines:])

    def state(self):
        try:
            return json.loads(call("GET", self.url + "/state", patience_s=2))
        except (*CUT, urllib.error.URLError):
            return {"registered": False, "owned": 0, "workers": [], "cameras": []}

    def camera(self, name):
        return next((each for each in self.state()["cameras"] if each["camera_uuid"] == name), {})

    def ready(self):
        """Known to the control plane, and with an idle worker, so that it can take over."""
        state = self.state()
        return state["registered"] and any(worker["cameras"] == 0 for worker in state["workers"])

    def worker_of(self, camera):
        shard, state = self.camera(camera).get("shard_id"), self.state()
        return next(each["pid"] for each in state["workers"] if each["shard_id"] == shard and each["cameras"] > 0)

    def manager(self):
        return next(pid for pid, words in processes_with(str(self.folder)).items() if "--manager" in words)

    def metrics(self):
        return samples(call("GET", self.url + "/metrics"))

    def worker_metrics(self):
        """Summed over its workers."""
        total = collections.Counter()
        for each in self.state()["workers"]:
            total.update(samples(call("GET", f"{self.url}/workers/{each['shard_id']}/metrics")))
        return total

    def kill(self):
        """Parent, manager and workers at once: nobody is left to send the last will."""
        everybody = processes_with(str(self.folder))
        signal_all([self.process.pid, *everybody], signal.SIGKILL)
        self.wait()
        while left := processes_with(str(self.folder)):  # one may just have been started by another
            signal_all(left, signal.SIGKILL)

    def wait(self, patience_s=90):
        code = self.process.wait(patience_s)
        self.process.stdin.close()
        self.process.stdout.close()
        self.process = None
        return code


class Fleet:
    """A control plane, cameras and runners. `looked_at` of the cameras have the real detector, the others none; `more`
    are simulated but not known to Weir (`spare`). `begun` is when the first runner was started."""

    # Takeover times hold for cameras within their site's budget: where it is not what is measured it is never short.
    def __init__(self, build, folder, plane, feed, cameras=8, looked_at=0, more=0, flags=(), runners=("r1", "r2"),
                 url=None, plain=PLAIN, capacity=1000, refill_per_min=6000):
        self.plane, self.feed, self.watched = plane, feed, [f"cam-{i + 1}" for i in range(looked_at)]
        self.cameras = [f"cam-{i + 1}" for i in range(cameras)]
        self.spare = [f"cam-{cameras + i + 1}" for i in range(more)]
        self.budget = {"capacity": capacity, "refill_rate": refill_per_min}
        profiles = [WATCHED] * looked_at + [plain] * (cameras + more - looked_at)
        self.camsim = Simulated(build, folder, profiles)
        self.runners = {name: Runner(build, folder, name, url or plane.url, plane.secret, flags) for name in runners}

    def __enter__(self):
        self.camsim.__enter__()
        try:
            self.furnish()
            self.begun = time.time()
            for runner in self.runners.values():
                runner.start()
            self.settle()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for runner in self.runners.values():
            if runner.process:
                runner.kill()
        self.camsim.__exit__()

    def furnish(self):
        self.plane.call("POST", "/v1/tenants", {"tenant_id": "t-01"})
        self.plane.call("POST", "/v1/sites", {"site_id": "s-01", "tenant_id": "t-01"})
        self.plane.call("PUT", "/v1/sites/s-01/budget", self.budget)
        for camera in self.cameras:
            self.add(camera)

    def add(self, camera, more=None):
        self.plane.call("POST", "/v1/cameras", {
            "camera_uuid": camera, "tenant_id": "t-01", "site_id": "s-01", "rtsp_url": self.camsim.urls()[camera],
            **(LOOKED_AT if camera in self.watched else NOT_LOOKED_AT), **(more or {})})

    def remove(self, camera):
        self.plane.call("DELETE", f"/v1/cameras/{camera}")

    def about(self):
        """What the simulator says of each camera."""
        listed = json.loads(call("GET", self.camsim.control + "/v1/cameras"))
        return {each["name"]: each for each in (listed["cameras"] if isinstance(listed, dict) else listed)}

    def all_dials(self):
        """What the simulator says of the connections that were made to its cameras."""
        return json.loads(call("GET", self.camsim.control + "/v1/dials"))

    def forget_dials(self):
        call("DELETE", self.camsim.control + "/v1/dials")

    def dials(self, cameras):
        return sum(each["camera"] in cameras for each in self.all_dials()["dials"])

    def streaming(self):
        """Cameras that some runner holds and gets pictures of."""
        cameras = [each for runner in self.runners.values() if runner.process for each in runner.state()["cameras"]]
        return {each["camera_uuid"] for each in cameras
                if each["phase"] == "running" and each.get("state") == "STREAMING"}

    def settle(self, patience_s=120):
        """All cameras stream and every runner could take over."""
        for runner in self.runners.values():
            if not runner.process:
                runner.start()
        try:
            wait_until("all cameras streamed", lambda: self.streaming() >= set(self.cameras), patience_s)
            wait_until("all runners were ready", lambda: all(map(Runner.ready, self.runners.values())), patience_s)
        except RuntimeError as vain:
            raise RuntimeError(f"{vain}; {self.tails()}") from None

    def tails(self):
        return "\n".join(f"{name}:\n{runner.log_tail()}" for name, runner in self.runners.items())

    def owner(self):
        """The runner with the most cameras."""
        owners = list(self.plane.owners().values())
        return self.runners[max(self.runners, key=owners.count)]

    def cameras_of(self, runner):
        return [camera for camera, owner in self.plane.owners().items() if owner == runner.name]


# ---- a bad neighbourhood ----

class Jitter:
    """A proxy that keeps back every chunk for up to half a second, in both directions, in order."""

    def __init__(self, port, most_s=0.5):
        self.to, self.most_s, self.loop = port, most_s, asyncio.new_event_loop()

    def __enter__(self):
        self.server = self.loop.run_until_complete(asyncio.start_server(self.serve, "127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.server.sockets[0].getsockname()[1]}"
        self.thread = threading.Thread(target=self.loop.run_forever)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
        self.loop.run_until_complete(self.wind_up())
        self.loop.close()

    async def wind_up(self):
        self.server.close()
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def serve(self, reader, writer):
        try:
            to_reader, to_writer = await asyncio.open_connection("127.0.0.1", self.to)
        except OSError:
            return writer.close()
        try:
            await asyncio.gather(self.pass_on(reader, to_writer), self.pass_on(to_reader, writer))
        except asyncio.CancelledError:
            pass  # the end of this proxy

    async def pass_on(self, reader, writer):
        chunks = asyncio.Queue()
        deliver = asyncio.ensure_future(self.deliver(chunks, writer))
        try:
            while data := await reader.read(65536):
                chunks.put_nowait((self.loop.time() + random.uniform(0, self.most_s), data))
        except OSError:
            pass
        chunks.put_nowait((self.loop.time(), b""))
        await deliver

    async def deliver(self, chunks, writer):
        try:
            while True:
                due, data = await chunks.get()
                await asyncio.sleep(max(0, due - self.loop.time()))
                if not data:
                    break
                writer.write(data)
                await writer.drain()
        except OSError:
            pass
        writer.close()


class Busy:
    """As many processes that never rest as there are cores."""

    def __enter__(self):
        self.children = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in os.sched_getaffinity(0)]
        return self

    def __exit__(self, *_):
        for child in self.children:
            child.kill()
            child.wait()

"""What the benchmark `worker` starts: simulated cameras, a worker on them, ffmpeg beside it. Each ends with its `with`
block, and only by its own process id."""
import json
import pathlib
import signal
import subprocess
import threading
import time
import urllib.error
import urllib.request

from processes import cpu_seconds, memory_mb

ROOT = pathlib.Path(__file__).resolve().parent.parent
FETCHED = ROOT / "build/parts"
MODEL, LIBRARY = FETCHED / "models/efficientdet-lite0.tflite", FETCHED / "lib/libonnxruntime.so.1"
FOOTAGE = FETCHED / "footage/vtest.avi"
TOKEN = "a token of the benchmark alone"


def wait_until(what, condition, patience_s=60):
    limit = time.monotonic() + patience_s
    while not condition():
        if time.monotonic() > limit:
            raise RuntimeError(f"waited {patience_s} s in vain until {what}")
        time.sleep(0.1)


def ask(url, body=None, token=None):
    """The answer's bytes and headers."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    if body is not None:
        headers["Content-Type"] = "application/json"
    request = urllib.request.Request(url, None if body is None else json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=10) as answer:
        return answer.read(), answer.headers


def end(process, patience_s=20):
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(patience_s)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


class Cameras:
    """weir-camsim with one camera a profile: cam-1, cam-2 …"""

    def __init__(self, build, folder, profiles):
        cameras = [{"name": f"cam-{i + 1}", "profile": profile} for i, profile in enumerate(profiles)]
        config = {"footage": str(FOOTAGE), "cache": str(ROOT / "build/camsim"),
                  "recorders": [{"name": "recorder-1", "cameras": cameras}]}
        self.log = open(folder / "camsim.log", "ab")
        (folder / "camsim.json").write_text(json.dumps(config))
        self.words = [build / "src/apps/weir-camsim", "--config", folder / "camsim.json", "--exit-with-stdin"]

    def __enter__(self):
        self.process = subprocess.Popen(self.words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log)
        line = self.process.stdout.readline()  # comes when everything is encoded, which takes a while the first time
        if not line:
            raise RuntimeError(f"the cameras did not start: {pathlib.Path(self.log.name).read_text()[-2000:]}")
        ready = json.loads(line)
        self.control, self.about = ready["control"], {camera["name"]: camera for camera in ready["cameras"]}
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        end(self.process)
        self.process.stdout.close()
        self.log.close()

    def urls(self):
        return {name: camera["url"] for name, camera in self.about.items()}

    def drop(self, name):
        ask(f"{self.control}/v1/cameras/{name}/fault", {"kind": "drop"})

    def recorder_fault(self, kind, for_s):
        ask(f"{self.control}/v1/recorders/recorder-1/fault", {"kind": kind, "for_s": for_s})


class Worker:
    """weir-worker on these cameras, printing its events: no control plane takes part. `source` is what the cameras have
    in common. Events are kept as (time of arrival, event)."""

    def __init__(self, build, folder, urls, source, *flags):
        self.cameras = list(urls)
        sources = [{"camera_uuid": name, "tenant_id": "t-01", "site_id": "s-01", "url": url, **source}
                   for name, url in urls.items()]
        config = {"runner_id": "bench", "control_token": TOKEN, "sources": sources}
        (folder / "shard.json").write_text(json.dumps(config))
        self.log = open(folder / "worker.log", "wb")
        self.words = [build / "src/apps/weir-worker", "shard", "--config", folder / "shard.json", "--print",
                      "--state-dir", folder / "state", "--models-dir", MODEL.parent, "--library-dir", LIBRARY.parent,
                      "--prom-worker-port", "0", "--lifeline-fd", "0", *flags]
        self.events = []

    def __enter__(self):
        self.process = subprocess.Popen(self.words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log)
        self.pid = self.process.pid
        self.reader = threading.Thread(target=self.read)
        self.reader.start()
        try:
            wait_until("the worker said where it listens", self.listening)
            wait_until("all cameras streamed", self.streaming)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        end(self.process)
        self.reader.join()
        for each in (self.process.stdin, self.process.stdout, self.log):
            each.close()

    def read(self):
        for line in self.process.stdout:
            self.events.append((time.time(), json.loads(line)))

    def listening(self):
        if self.process.poll() is not None:
            raise RuntimeError(f"the worker ended: {pathlib.Path(self.log.name).read_text()[-2000:]}")
        for line in pathlib.Path(self.log.name).read_text().splitlines():
            if '"worker.started"' in line:
                self.address = "http://" + json.loads(line)["address"]
                return True
        return False

    def engine(self):
        """The library that runs its model; None before a picture was looked at."""
        lines = pathlib.Path(self.log.name).read_text().splitlines()
        return next((json.loads(line)["engine"] for line in lines if '"detector.engine"' in line), None)

    def state(self):
        state = json.loads(ask(f"{self.address}/state", token=TOKEN)[0])
        return {each["camera_uuid"]: each for each in state["cameras"]}

    def streaming(self):
        return all(each["state"] == "STREAMING" and each["received"] > 0 for each in self.state().values())

    def total(self, field):
        return sum(each[field] for each in self.state().values())

    def samples(self):
        """Name with labels → value."""
        lines = ask(f"{self.address}/metrics")[0].decode().splitlines()
        return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines if line[:1] != "#")}

    def snapshot(self, camera):
        """A JPEG and when its picture was taken, as the worker thinks."""
        picture, headers = ask(f"{self.address}/snapshot/{camera}.jpg", token=TOKEN)
        return picture, headers["X-Captured-At"]

    def cpu(self):
        return cpu_seconds(self.pid)

    def memory(self, what="VmRSS"):
        return memory_mb(self.pid, what)

    def descriptors(self):
        return len(list(pathlib.Path(f"/proc/{self.pid}/fd").iterdir()))

    def threads(self):
        return len(list(pathlib.Path(f"/proc/{self.pid}/task").iterdir()))


class Ffmpegs:
    """One ffmpeg a camera that decodes everything and does nothing with it."""

    def __init__(self, urls):
        self.urls = urls

    def __enter__(self):
        words = ["ffmpeg", "-nostdin", "-loglevel", "error", "-rtsp_transport", "tcp", "-threads", "1"]
        self.processes = [subprocess.Popen([*words, "-i", url, "-f", "null", "-"]) for url in self.urls.values()]
        return self

    def __exit__(self, *_):
        for process in self.processes:
            end(process)

    def cpu(self):
        if any(process.poll() is not None for process in self.processes):
            raise RuntimeError("an ffmpeg ended before its time")
        return sum(cpu_seconds(process.pid) for process in self.processes)


class Window:
    """How much some readings grew over some seconds: Window(20, cpu=worker.cpu).cpu"""

    def __init__(self, seconds, **readings):
        first, begun = {name: read() for name, read in readings.items()}, time.monotonic()
        time.sleep(seconds)
        for name, read in readings.items():
            setattr(self, name, read() - first[name])
        self.seconds = time.monotonic() - begun

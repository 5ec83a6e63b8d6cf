"""Benchmark `hooks`: how soon an orchestrator answers MediaMTX's hooks in a burst, and how soon a publisher has its worker.

The hooks go to a real orchestrator with its own store, beside a real MediaMTX; the worker is a program that does nothing,
so that only Weir's own way from the hook to the process is measured."""
import asyncio
import contextlib
import datetime
import json
import os
import pathlib
import signal
import subprocess
import time

from egress_parts import MEDIAMTX
from processes import Folder, check_for, free_port
from worker_parts import wait_until

EVENTS, STREAMS, CONNECTIONS = 1000, 200, 20
SPAWNED, PAUSE_S = 100, 0.1
CONFIG = """api: true
apiAddress: 127.0.0.1:{api}
rtspAddress: 127.0.0.1:{rtsp}
rtspTransports: [tcp]
rtmp: false
hls: false
webrtc: false
srt: false
moq: false
paths:
  all_others:
"""


def quantile(values, share):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


class House:
    """A MediaMTX to which nobody publishes, and an orchestrator whose workers sleep."""

    def __init__(self, build):
        self.build, self.stack = build, contextlib.ExitStack()

    def __enter__(self):
        self.folder = self.stack.enter_context(Folder())
        api, rtsp = free_port(), free_port()
        (self.folder / "mediamtx.yml").write_text(CONFIG.format(api=api, rtsp=rtsp))
        self.hub = subprocess.Popen([MEDIAMTX, self.folder / "mediamtx.yml"], stdout=subprocess.DEVNULL,
                                    stderr=subprocess.DEVNULL)
        self.log = open(self.folder / "weir.log", "wb")
        self.process = subprocess.Popen(
            [self.build / "src/apps/weir", "orchestrator", "--listen", "127.0.0.1:0", "--state-dir", self.folder / "o",
             "--mediamtx-api", f"http://127.0.0.1:{api}", "--mediamtx-rtsp-base", f"rtsp://127.0.0.1:{rtsp}",
             "--worker-command", json.dumps(["/bin/sleep", "600"]), "--look-interval-s", "60"],
            stdout=subprocess.PIPE, stderr=self.log, text=True)
        line = self.process.stdout.readline()
        if "listening on" not in line:
            raise RuntimeError(f"the orchestrator did not start: {self.said()[-2000:]}")
        self.port = int(line.rsplit(":", 1)[1])
        wait_until("the orchestrator follows MediaMTX", lambda: "orchestrator.started" in self.said())
        return self

    def __exit__(self, *_):
        for process in (self.process, self.hub):
            process.kill()
            process.wait()
        for pid in self.children():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.stdout.close()
        self.log.close()
        self.stack.close()

    def said(self):
        return pathlib.Path(self.log.name).read_text(errors="replace")

    def started(self):
        """Stream → when its worker ran, in seconds."""
        found = {}
        for line in self.said().splitlines():
            if '"stream.child_started"' in line:
                said = json.loads(line)
                found[said["streamId"]] = datetime.datetime.fromisoformat(said["ts"].replace("Z", "+00:00")).timestamp()
        return found

    def children(self):
        """Keepers and what they keep."""
        found, mark = [], str(self.folder).encode()
        for entry in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError):
                if mark in pathlib.Path(f"/proc/{entry}/cmdline").read_bytes():
                    found.append(int(entry))
                    found += [int(pid) for pid in pathlib.Path(f"/proc/{entry}/task/{entry}/children").read_text().split()]
        return found


def request(port, what, stream, source):
    body = json.dumps({"path": f"live/{stream}/in", "query": "", "sourceType": "rtspSession", "sourceId": source})
    return (f"POST /v1/mediamtx/events/{what} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n{body}").encode()


async def post(reader, writer, text):
    begun = time.perf_counter()
    writer.write(text)
    head = await reader.readuntil(b"\r\n\r\n")
    length = next(int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length"))
    await reader.readexactly(length)
    if not head.startswith(b"HTTP/1.1 200"):
        raise RuntimeError(f"a hook was answered {head[:40]!r}")
    return time.perf_counter() - begun


async def burst(port):
    """Every stream comes and goes, several times, in no order that MediaMTX would keep."""
    texts = [request(port, "ready" if i // STREAMS % 2 == 0 else "not-ready", f"s{i * 7 % STREAMS}", f"p{i // STREAMS}")
             for i in range(EVENTS)]

    async def send(mine):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        took = [await post(reader, writer, text) for text in mine]
        writer.close()
        return took
    taken = await asyncio.gather(*(send(texts[i::CONNECTIONS]) for i in range(CONNECTIONS)))
    return [each for some in taken for each in some]


def answers(build, quick, results):
    rounds = []
    for _ in range(1 if quick else 3):
        with House(build) as house:
            rounds.append(asyncio.run(burst(house.port)))
    results.add("answers.p99", f"a hook's answer, {EVENTS} at once over {STREAMS} streams by {CONNECTIONS} connections, "
                "99 % are quicker", "ms", [1000 * quantile(each, 0.99) for each in rounds], ("<", 10))
    results.add("answers.median", "the same, half of them", "ms", [1000 * quantile(each, 0.5) for each in rounds])


def spawn(build, quick, results):
    async def one(port, text):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        await post(reader, writer, text)
        writer.close()
    count, sent = SPAWNED // (5 if quick else 1), {}
    with House(build) as house:
        for i in range(count):
            sent[f"s{i}"] = time.time()
            asyncio.run(one(house.port, request(house.port, "ready", f"s{i}", "p")))
            time.sleep(PAUSE_S)
        wait_until("every stream has its worker", lambda: len(house.started()) == count)
        started = house.started()
    took = [1000 * (started[stream] - at) for stream, at in sent.items()]
    results.add("spawn.p95", f"from a ready to its worker's process, {count} streams one after the other, 95 % are quicker",
                "ms", quantile(took, 0.95), ("<", 150))
    results.add("spawn.median", "the same, half of them", "ms", quantile(took, 0.5))


def check(build, results):
    check_for(build / "src/apps/weir", build / "src/apps/weir-keeper", MEDIAMTX)


PARTS = {"answers": answers, "spawn": spawn}

"""Benchmark `hooks`: how soon an orchestrator answers MediaMTX's hooks in a burst, how soon a publisher has its worker,
by how much later a picture comes out of that worker, and what drawing into the pictures costs.

The hooks go to a real orchestrator with its own store, beside a real MediaMTX; the worker is a program there that does
nothing, so that only Weir's own way from the hook to the process is measured. The other two are of a real worker."""
import asyncio
import contextlib
import datetime
import json
import os
import pathlib
import signal
import statistics
import subprocess
import time

from egress_parts import MEDIAMTX, Program, Reader, Rig
from processes import Folder, check_for, cpu_seconds, free_port
from worker_parts import FOOTAGE, LIBRARY, MODEL, Window, ask, wait_until

EVENTS, STREAMS, CONNECTIONS = 1000, 200, 20
SPAWNED, PAUSE_S = 100, 0.1
SETTLE_S = 4  # what connecting costs is not what the stream costs
FFMPEG = "ffmpeg -c copy, from hub to hub"
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


# ---- the worker ----

class Worker(Program):
    """A stream worker that makes live/s1/out of live/s1/in."""

    def __init__(self, rig, mode, *flags):
        super().__init__([rig.build / "src/apps/weir-worker", "stream", "--stream-id", "s1", "--run-id", "bench",
                          "--instance-id", f"bench-{next(rig.numbers)}", "--mediamtx-rtsp-base", rig.hub,
                          "--stream-mode", mode, "--prom-stream-port", "0", "--log-dir", rig.folder / "logs", *flags])

    def metric(self, name):
        control = next((json.loads(line)["control"] for _, line in list(self.lines) if '"control"' in line), None)
        page = ask(control + "/metrics")[0].decode().splitlines() if control else []
        return sum(float(line.rsplit(" ", 1)[1]) for line in page if line.startswith((name + "{", name + " ")))


def later_by(out, direct, since):
    """Of each picture, in ms: by how much later it came out than it went in. The stream repeats itself after twenty
    seconds, so the nearest is meant."""
    came = [(at, mark) for mark, times in out.items() for at in times if at >= since]
    found = [1000 * min((at - there for there in direct[mark]), key=abs) for at, mark in came if mark in direct]
    if len(found) < 0.95 * len(came) or not found:
        raise RuntimeError(f"of {len(came)} pictures only {len(found)} went in")
    return found


def passthrough(build, quick, results):
    seconds, rounds = 10 if quick else 30, 2 if quick else 5
    ours, theirs = [], []
    for _ in range(rounds):
        with Rig(build, path="live/s1/in") as rig, contextlib.ExitStack() as stack:
            worker = stack.enter_context(Worker(rig, "passthrough"))
            peer = f"{rig.hub}/live/s1/peer"
            stack.enter_context(Program(["ffmpeg", "-nostdin", "-loglevel", "error", "-rtsp_transport", "tcp", "-i",
                                         rig.source, "-c", "copy", "-f", "rtsp", "-rtsp_transport", "tcp", peer]))
            wait_until("the worker published", lambda: worker.metric("weir_stream_worker_forwarding") == 1)
            time.sleep(SETTLE_S)
            readers = [stack.enter_context(Reader(url)) for url in (rig.source, f"{rig.hub}/live/s1/out", peer)]
            since = time.monotonic() + 1
            time.sleep(seconds)
            direct, out, other = (each.pictures() for each in readers)
            ours.append(later_by(out, direct, since))
            theirs.append(later_by(other, direct, since))
        results.say(f"passthrough: weir {statistics.median(ours[-1]):.1f} ms,"
                    f" ffmpeg {statistics.median(theirs[-1]):.1f} ms")
    for name, share in (("p50", 0.5), ("p95", 0.95)):
        results.add(f"passthrough.{name}", "by how much later a picture comes out of live/s1/out than of live/s1/in;"
                    f" 1280x720, 25 fps, 4 Mbit/s: {name}", "ms", [quantile(each, share) for each in ours], ("<", 100),
                    peer=FFMPEG, peer_value=[quantile(each, share) for each in theirs])


def annotate(build, quick, results):
    """People who walk, scaled up; every picture is decoded, drawn into and encoded, five a second are looked at."""
    seconds = 20 if quick else 60
    flags = "--max-fps", "5", "--models-dir", MODEL.parent, "--library-dir", LIBRARY.parent
    with Rig(build, kbit_s=3000, path="live/s1/in", footage=FOOTAGE) as rig:
        with Worker(rig, "annotate", *flags) as worker:
            read = lambda name: worker.metric(f"weir_stream_worker_{name}")
            wait_until("the worker looked at pictures", lambda: read("looks_total") >= 5)
            time.sleep(SETTLE_S)
            window = Window(seconds, cpu=lambda: cpu_seconds(worker.pid), looks=lambda: read("looks_total"),
                            pictures=lambda: read("pictures_total"))
            fallbacks, lag = read("fallbacks_total"), read("lag_seconds")
    what = "a worker that draws into 1280x720 at 25 fps and looks at 5 pictures a second"
    results.add("annotate.cpu", f"CPU, of one core, of {what}", "%", 100 * window.cpu / window.seconds, ("<", 100))
    results.add("annotate.looks", f"pictures that it looked at; {what}", "1/s", window.looks / window.seconds,
                (">=", 4.5))
    results.add("annotate.pictures", f"pictures that it drew into; {what}", "1/s", window.pictures / window.seconds,
                (">=", 24))
    results.add("annotate.fallbacks", f"how often it gave way; {what}", "", int(fallbacks), ("=", 0))
    results.add("annotate.lag", f"how far behind its input it was with its last picture; {what}", "ms", 1000 * lag)


def check(build, results):
    check_for(*(build / "src/apps" / name for name in ("weir", "weir-keeper", "weir-worker")), MEDIAMTX, FOOTAGE, MODEL,
              LIBRARY)
    for name, words, place in (("ffmpeg", ["ffmpeg", "-version"], 2), ("MediaMTX", [MEDIAMTX, "--version"], 0)):
        told = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True).stdout
        results.parts.append(f"{name} {told.split()[place].lstrip('v')}")


PARTS = {"answers": answers, "spawn": spawn, "passthrough": passthrough, "annotate": annotate}

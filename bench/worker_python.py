"""The part of benchmark `worker` that measures against Python: how many cameras a core keeps, at which detections."""
import json
import pathlib
import subprocess
import sys
import threading
import time
from datetime import datetime

from processes import Folder, cpu_seconds, memory_mb
from worker_parts import MODEL, ROOT, Cameras, Window, Worker, end, wait_until

FPS, CAMERAS, MIN_SCORE = 10, 2, 0.3
SETTLE_S = 4
VENV = ROOT / "build/bench-venv"
# The second runtime is the last of its name, the first is what it is called today; both load this NumPy. Roboflow's
# newest package takes pip many minutes to resolve; this one has the same pipeline.
PACKAGES = {"litert": ["opencv-python-headless==4.10.0.84", "numpy==1.26.4", "ai-edge-litert"],
            "tflite_runtime": ["opencv-python-headless==4.10.0.84", "numpy==1.26.4", "tflite-runtime==2.14.0"],
            "roboflow": ["onnxruntime", "setuptools<81", "supervision==0.20.0", "ai-edge-litert",
                         "inference-core==0.9.23"]}
NAMES = {"litert": "OpenCV capture threads and LiteRT",
         "tflite_runtime": "OpenCV capture threads and tflite-runtime 2.14",
         "roboflow": "Roboflow's InferencePipeline with LiteRT as its custom logic"}
INSTALL_S = 300


class Skipped(Exception):
    """A peer that cannot be had here; says why."""


def python_with(peer, packages=None):
    """The interpreter of an environment that has the peer's packages; made once."""
    packages, folder = packages or PACKAGES[peer], VENV / peer
    done, python = folder / "complete", folder / "bin/python"
    if done.exists():
        if done.read_text():
            raise Skipped(done.read_text())
        return python
    try:
        subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True, capture_output=True, text=True)
        subprocess.run([python, "-m", "pip", "install", "-q", "--disable-pip-version-check", *packages],
                       check=True, capture_output=True, text=True, timeout=INSTALL_S)
    except subprocess.TimeoutExpired:
        why = f"pip did not finish installing {packages[-1]} within {INSTALL_S} s"
        done.write_text(why)  # it would take as long the next time
        raise Skipped(why)
    except subprocess.CalledProcessError as failed:
        lines = (failed.stderr or failed.stdout).strip().splitlines() or [f"exit code {failed.returncode}"]
        raise Skipped(f"{packages[-1]} cannot be installed: {lines[-1][:200]}")
    done.write_text("")
    return python


class Peer:
    """worker_peer.py on these cameras; its events are kept as it printed them."""

    def __init__(self, folder, python, peer, urls):
        self.log = open(folder / "peer.log", "w+")
        script = pathlib.Path(__file__).with_name("worker_peer.py")
        self.words = [python, script, peer, MODEL, FPS, MIN_SCORE, *(f"{name}={url}" for name, url in urls.items())]
        self.cameras, self.events = set(urls), []

    def __enter__(self):
        self.process = subprocess.Popen([str(word) for word in self.words], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=self.log)
        self.pid = self.process.pid
        self.reader = threading.Thread(target=self.read)
        self.reader.start()
        try:
            wait_until("the peer looked at all cameras", self.looking)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        end(self.process)
        self.reader.join()
        for each in (self.process.stdin, self.process.stdout, self.log):
            each.close()

    def looking(self):
        if self.process.poll() is not None:
            self.log.seek(0)
            raise Skipped(f"it ended: {(self.log.read().splitlines() or ['without a word'])[-1][:200]}")
        return {event["camera_uuid"] for event in self.events} == self.cameras

    def read(self):
        for line in self.process.stdout:
            if line.startswith(b'{"camera_uuid"'):  # Roboflow's libraries talk there as well
                self.events.append(json.loads(line))

    def cpu(self):
        return cpu_seconds(self.pid)


# ---- the same detections? ----

def frame_of(event, cameras):
    """Camera and number of the frame in its loop: as the pixels say, else as the time says."""
    about = cameras.about[event["camera_uuid"]]
    number = event.get("number")
    if number is None:
        at = event["ts"] if isinstance(event["ts"], float) else datetime.fromisoformat(event["ts"]).timestamp()
        number = int((1000 * at + about["phase_ms"]) * about["fps"] // 1000) % about["loop_frames"]
    return event["camera_uuid"], number


def frames_of(events, cameras):
    return {frame_of(event, cameras): event["detections"] for event in events if "detections" in event}


def overlap(a, b):
    width = min(a[2], b[2]) - max(a[0], b[0])
    height = min(a[3], b[3]) - max(a[1], b[1])
    if width <= 0 or height <= 0:
        return 0.0
    area = lambda box: (box[2] - box[0]) * (box[3] - box[1])
    return width * height / (area(a) + area(b) - width * height)


def found_share(wanted, given, slack):
    """Of what one saw for certain, the share that the other reports as well: same class, IoU of a half, in a frame at
    most `slack` away, of those frames that both looked at. With the number of detections that were compared."""
    seen = found = 0
    for (camera, number), detections in wanted.items():
        near = [given[key] for step in range(-slack, slack + 1) if (key := (camera, number + step)) in given]
        if not near:
            continue
        for one in (each for each in detections if each["conf"] >= MIN_SCORE + 0.1):
            seen += 1
            found += any(one["class"] == other["class"] and overlap(one["bbox_xyxy"], other["bbox_xyxy"]) >= 0.5
                         for frame in near for other in frame)
    return (100 * found / seen if seen else 0.0), seen


# ---- cameras a core ----

class Rounds:
    """What one contestant did: cameras a core, resident MB, and what it saw in which frame."""

    def __init__(self):
        self.cameras, self.memory, self.frames = [], [], {}

    def add(self, cameras, memory, frames):
        self.cameras.append(cameras)
        self.memory.append(memory)
        self.frames.update(frames)


def weir_round(build, folder, cameras, source, seconds):
    """A picture that was replaced before anyone looked at it counts against it."""
    with Worker(build, folder, cameras.urls(), source) as worker:
        time.sleep(SETTLE_S)
        window = Window(seconds, cpu=worker.cpu, inferred=lambda: worker.total("inferred"),
                        dropped=lambda: worker.total("dropped"))
        kept = window.inferred / max(1, window.inferred + window.dropped)
        events = [event for _, event in worker.events]
        return CAMERAS * kept * window.seconds / window.cpu, worker.memory(), frames_of(events, cameras)


def peer_round(folder, python, peer, cameras, seconds):
    """A peer should look at every frame; those that it leaves out count against it."""
    with Peer(folder, python, peer, cameras.urls()) as running:
        time.sleep(SETTLE_S)
        window = Window(seconds, cpu=running.cpu, inferred=lambda: len(running.events))
        kept = min(1, window.inferred / (CAMERAS * FPS * window.seconds))
        return CAMERAS * kept * window.seconds / window.cpu, memory_mb(running.pid), frames_of(running.events, cameras)


def add_comparison(report, id, what, ours, theirs, name, bound, slack):
    report.add(id, f"{what}: cameras of 768x576 that one core keeps at {FPS} fps, same model", "cameras", ours.cameras,
               peer=name, peer_value=theirs.cameras, ratio_target=(">=", bound))
    report.add(f"{id}.memory", f"resident size with {CAMERAS} cameras", "MB", ours.memory, peer=name,
               peer_value=theirs.memory)
    share, seen = found_share(theirs.frames, ours.frames, slack)
    report.add(f"{id}.found", f"of {seen:,} detections of the peer, how many Weir has as well", "%", share)
    share, seen = found_share(ours.frames, theirs.frames, slack)
    report.add(f"{id}.peer_found", f"of {seen:,} detections of Weir, how many the peer has as well", "%", share)


def compare(report, build, quick, pythons, id, what, profile, source, bound, slack):
    """Rounds in which Weir and all peers take turns; what they cost is processor time, so they need no equal speed."""
    rounds, seconds = 1 if quick else 3, 20
    ours, theirs = Rounds(), {peer: Rounds() for peer in pythons}
    with Folder() as folder, Cameras(build, folder, [profile] * CAMERAS) as cameras:
        for _ in range(rounds):
            ours.add(*weir_round(build, folder, cameras, source, seconds))
            report.say(f"{id}: {ours.cameras[-1]:.2f} cameras a core")
            for peer in list(theirs):
                try:
                    theirs[peer].add(*peer_round(folder, pythons[peer], peer, cameras, seconds))
                    report.say(f"{id}: {NAMES[peer]} {theirs[peer].cameras[-1]:.2f}")
                except Skipped as why:
                    skip(report, peer, f"{id}.{peer}", why)
                    del theirs[peer]
    for peer, rounds_of_it in theirs.items():
        add_comparison(report, f"{id}.{peer}", what, ours, rounds_of_it, NAMES[peer], bound, slack)


def skip(report, peer, id, why):
    report.say(f"{id}: skipped: {why}")
    report.add(id, "cameras a core", "cameras", None, peer=f"{NAMES[peer]}, skipped: {why}")


def run(build, quick, report):
    pythons = {}
    for peer in PACKAGES:
        try:
            pythons[peer] = python_with(peer)
        except Skipped as why:
            skip(report, peer, f"python.{peer}", why)
    if not pythons:
        return
    profile = f"width=768,height=576,fps={FPS},keyframe_s=1,seconds=20"
    common = {"max_fps": FPS, "min_score": MIN_SCORE}
    compare(report, build, quick, pythons, "python.every_frame", "every frame looked at", profile,
            {**common, "decode": "full", "motion_gating": {"enabled": False}}, 1.2, 1)
    # No number is painted into a scene that must stand still: frames are known by their times, less exactly.
    compare(report, build, quick, pythons, "python.half_still", "still for half of the time, motion gate and adaptive"
            " decoding on", profile + ",scene=halfstill,stamp=false", {**common, "decode": "adaptive"}, 2, 3)

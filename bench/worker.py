"""Benchmark `worker`: what decoding, looking and holding connections cost, beside ffmpeg, a bare runtime and Python."""
import json
import statistics
import subprocess
import time
from datetime import datetime

import worker_python
import worker_stamp
from processes import Folder, check_for
from worker_parts import FOOTAGE, LIBRARY, MODEL, Cameras, Ffmpegs, Window, Worker, wait_until

SMALL = "width=768,height=576,fps=10,keyframe_s=1"
LARGE = "width=1920,height=1080,fps=25,keyframe_s=1,seconds=20"
STILL = ",scene=still,stamp=false,seconds=20"
# Number of cameras, profile, frames a second, words for people.
SIZES = {"small": (8, SMALL, 10, "768x576 at 10 fps"), "large": (2, LARGE, 25, "1080p at 25 fps"),
         "fast": (4, SMALL.replace("fps=10", "fps=25") + ",seconds=20", 25, "768x576 at 25 fps")}
NO_DETECTOR = {"model": {"detector": "none"}, "max_fps": 30}
STARVED_MAX = 4  # rounds in which the cameras' pictures did not arrive in time are not counted
STEADY_S = 10.5  # a camera that streamed for ten seconds is dialled again at once, not after ever longer pauses
SETTLE_S = 4  # what connecting and the first pictures cost is not what running costs


def gate(on):
    return {"motion_gating": {"enabled": on}}


def quantile(values, share):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


# ---- decoding ----

def beside_ffmpeg(report, build, quick, id, what, profile, size, source, bound, in_full=True):
    count, _, fps, words = SIZES[size]
    rounds, seconds = (1, 10) if quick else (3, 20)
    ours, theirs = [], []
    with Folder() as folder, Cameras(build, folder, [profile] * count) as cameras:
        urls = cameras.urls()
        with Worker(build, folder, urls, {**NO_DETECTOR, **source}) as worker, Ffmpegs(urls) as ffmpegs:
            time.sleep(SETTLE_S)
            for _ in range(rounds + STARVED_MAX):
                window = Window(seconds, worker=worker.cpu, ffmpeg=ffmpegs.cpu,
                                received=lambda: worker.total("received"), decoded=lambda: worker.total("decoded"))
                due = count * fps * window.seconds
                if window.received < 0.95 * due or (in_full and window.decoded < 0.95 * due):
                    report.say(f"{id}: a round without worth: {window.received} received, {window.decoded} decoded of"
                               f" {due:.0f}")
                    continue
                ours.append(100 * window.worker / window.seconds / count)
                theirs.append(100 * window.ffmpeg / window.seconds / count)
                report.say(f"{id}: worker {ours[-1]:.2f} %, ffmpeg {theirs[-1]:.2f} % of a core a camera,"
                           f" {window.decoded} of {window.received} pictures decoded")
                if len(ours) == rounds:
                    break
    peer = "ffmpeg -threads 1 -f null -, one process a camera, same streams, same time"
    what = f"{what}: CPU a camera, of one core; {count} cameras, {words}"
    if ours:
        report.add(id, what, "%", ours, peer=peer, peer_value=theirs, ratio_target=("<", bound))
    else:
        report.add(id, what, "%", None, peer=f"{peer}; not measured: this machine was too busy for the cameras' rate")


def decoding(build, quick, report):
    for size, (_, profile, _, _) in SIZES.items():
        full = {"decode": "full"}
        beside_ffmpeg(report, build, quick, f"decode.{size}.gate_off", "every picture decoded, no motion gate, no"
                      " detector", profile, size, {**full, **gate(False)}, 1.10)
        beside_ffmpeg(report, build, quick, f"decode.{size}.gate_on", "every picture decoded and shown to the motion"
                      " gate, no detector", profile, size, {**full, **gate(True)}, 1.4)
        beside_ffmpeg(report, build, quick, f"decode.{size}.adaptive_still", "a still scene, adaptive decoding",
                      profile + STILL, size, {"decode": "adaptive", **gate(True)}, 0.35, in_full=False)


# ---- the detector ----

def prepare_pictures(url, path, side=320):
    """What the model will be given, from the same camera, ready to be copied into its input."""
    subprocess.run(["ffmpeg", "-nostdin", "-loglevel", "error", "-y", "-rtsp_transport", "tcp", "-i", url, "-frames:v",
                    "50", "-vf", f"scale={side}:{side}", "-pix_fmt", "rgb24", "-f", "rawvideo", path], check=True)


def detector(build, quick, report):
    fps, rounds, seconds = 8, 2 if quick else 5, 8 if quick else 15
    ours, theirs = [], []
    with Folder() as folder, Cameras(build, folder, [SMALL]) as cameras:
        urls = cameras.urls()
        prepare_pictures(urls["cam-1"], folder / "pictures.rgb")
        bare = [build / "bench/worker_bare_onnx", LIBRARY, MODEL, folder / "pictures.rgb", 1000 // fps, seconds * fps]
        source = {"max_fps": fps, "decode": "full", **gate(False)}
        labels = '{camera_uuid="cam-1"}'
        for _ in range(rounds):
            with Worker(build, folder, urls, source, "--inference-threads", "1") as worker:
                time.sleep(SETTLE_S)
                sample = lambda what: worker.samples()[f"inference_latency_seconds_{what}{labels}"]
                window = Window(seconds, took=lambda: sample("sum"), looks=lambda: sample("count"))
                ours.append(1000 * window.took / window.looks)
                if worker.engine() != "ONNX Runtime":
                    raise RuntimeError(f"the worker's model runs on {worker.engine()}, not on what it is held against")
            done = subprocess.run([str(word) for word in bare], stdout=subprocess.PIPE, check=True)
            theirs.append(json.loads(done.stdout)["mean_ms"])
            report.say(f"detector: Weir {ours[-1]:.2f} ms for a picture, the bare runtime {theirs[-1]:.2f} ms")
    report.add("detector.time", f"EfficientDet-Lite0, one thread, {fps} pictures a second of one camera: from picture"
               " to detections", "ms", ours, peer="ONNX Runtime called bare with the same model, pictures prepared"
               " beforehand", peer_value=theirs, ratio_target=("<", 1.05))


# ---- memory ----

def memory_of_large_cameras(build, quick, report):
    count, seconds = 4, 10 if quick else 30
    with Folder() as folder, Cameras(build, folder, [LARGE] * count) as cameras:
        with Worker(build, folder, cameras.urls(), NO_DETECTOR) as worker:
            sizes = []
            for _ in range(seconds):
                time.sleep(1)
                sizes.append(worker.memory())
            report.say(f"memory: {min(sizes):.0f} to {max(sizes):.0f} MB with {count} cameras")
            report.add("memory.large", f"largest resident size over {seconds} s with {count} cameras of 1080p, no"
                       " detector", "MB", max(sizes), ("<", 60 + 25 * count))


def drop_all(cameras, worker):
    """Every camera loses its connection and is waited for. Returns memory, descriptors and threads from just before."""
    time.sleep(STEADY_S)
    size = worker.memory(), worker.descriptors(), worker.threads()
    before = {name: each["dials"] for name, each in worker.state().items()}
    for name in cameras.about:
        cameras.drop(name)
    dialled = lambda: all(each["dials"] > before[name] for name, each in worker.state().items())
    wait_until("all cameras were dialled again", dialled, 120)
    wait_until("all cameras streamed again", worker.streaming, 120)
    return size


def middle(sizes):
    return [statistics.median(column) for column in zip(*sizes)]


def reconnects(build, quick, report):
    """One look says little, because memory goes up and down by a megabyte from round to round."""
    count, rounds, warm_up, looks = 10, 10 if quick else 100, 5, 5
    with Folder() as folder, Cameras(build, folder, [SMALL + ",seconds=20"] * count) as cameras:
        with Worker(build, folder, cameras.urls(), NO_DETECTOR) as worker:
            for _ in range(warm_up):
                drop_all(cameras, worker)
            sizes = []
            for done in range(rounds + looks):
                sizes.append(drop_all(cameras, worker))
                if done % 10 == looks - 1:
                    memory, descriptors, threads = middle(sizes[-looks:])
                    report.say(f"{(done + 1) * count} reconnects: {memory:.2f} MB, {descriptors:.0f} descriptors,"
                               f" {threads:.0f} threads")
    grown = [last - first for first, last in zip(middle(sizes[:looks]), middle(sizes[-looks:]))]
    what = f"over {rounds * count:,} reconnects of {count} cameras, medians of {looks} looks"
    report.add("reconnects.memory", f"growth of resident memory {what}", "MB", grown[0], ("<", 2))
    report.add("reconnects.descriptors", f"more descriptors {what}", "", max(0, int(grown[1])), ("=", 0))
    report.add("reconnects.threads", f"more threads {what}", "", max(0, int(grown[2])), ("=", 0))


# ---- latency ----

def histogram_quantile(samples, name, share):
    """As Prometheus estimates it: linear within the bucket."""
    buckets = sorted((float(key.split('le="')[1].rstrip('"}')), count) for key, count in samples.items()
                     if key.startswith(name + "_bucket"))
    wanted, low, below = share * buckets[-1][1], 0.0, 0
    for bound, count in buckets:
        if count >= wanted:
            return bound if count == below else low + (bound - low) * (wanted - below) / (count - below)
        low, below = bound, count


def unix_ms(iso):
    return 1000 * datetime.fromisoformat(iso).timestamp()


def true_capture_ms(number, about, near_ms):
    """When the simulated camera showed this frame of its loop, the time nearest to `near_ms`."""
    shown = 1000 * number / about["fps"] - about["phase_ms"]
    return shown + round((near_ms - shown) / about["loop_ms"]) * about["loop_ms"]


def stamped_number(jpeg):
    """The number painted into a picture's corner, by its pixels; None where it cannot be read."""
    convert = ["-vf", "crop=176:16:0:0", "-pix_fmt", "gray", "-f", "rawvideo", "-"]
    luma = subprocess.run(["ffmpeg", "-loglevel", "error", "-i", "-", *convert], input=jpeg,
                          stdout=subprocess.PIPE, check=True).stdout
    middles = [[luma[176 * (8 * row + y) + 8 * column + x] for y in range(2, 6) for x in range(2, 6)]
               for row in range(2) for column in range(22)]
    return worker_stamp.number_of(sum(middle) >= 128 * len(middle) for middle in middles)


def clock_offsets(worker, cameras, looks):
    """By how much the worker's capture times differ from the true ones, which its pictures show, in ms."""
    offsets = []
    for i in range(looks):
        name = worker.cameras[i % len(worker.cameras)]
        jpeg, captured = worker.snapshot(name)
        number = stamped_number(jpeg)
        if number is not None:
            at = unix_ms(captured)
            offsets.append(at - true_capture_ms(number, cameras.about[name], at))
    return offsets


def latency(build, quick, report):
    count, fps, seconds = 2, 5, 10 if quick else 40
    with Folder() as folder, Cameras(build, folder, [SMALL] * count) as cameras:
        with Worker(build, folder, cameras.urls(), {"max_fps": fps, "decode": "full", **gate(False)}) as worker:
            time.sleep(SETTLE_S)
            first, events_before = worker.samples(), len(worker.events)
            time.sleep(seconds)
            last = worker.samples()
            arrived = worker.events[events_before:]
            offsets = clock_offsets(worker, cameras, 20 if quick else 60)
        grown = {name: value - first.get(name, 0) for name, value in last.items()}
    offset = statistics.median(offsets)
    ages = [1000 * at - unix_ms(event["ts"]) + offset for at, event in arrived if "detections" in event]
    what = f"{count} cameras, {fps} pictures a second each"
    report.say(f"latency: {len(ages)} events, {len(offsets)} pictures read, capture times differ by {offset:.1f} ms")
    for share, target in ((0.5, None), (0.95, ("<", 20))):
        took_s = histogram_quantile(grown, "weir_publish_latency_seconds", share)
        report.add(f"latency.publish.p{share * 100:.0f}", f"from a decoded picture to its event handed to the bus,"
                   f" detector left out; {what}", "ms", 1000 * took_s, target)
    report.add("latency.capture_offset", "median of the worker's capture times against the true ones, read from the"
               " pixels", "ms", offset)
    for share in (0.5, 0.95):
        report.add(f"latency.capture_to_event.p{share * 100:.0f}", f"from capture (by the pixels) to the event outside"
                   f" the worker, detector included; {what}", "ms", quantile(ages, share))


def check(build, report):
    check_for(build / "src/apps/weir-worker", build / "src/apps/weir-camsim", build / "bench/worker_bare_onnx", MODEL,
              LIBRARY, FOOTAGE)
    version = subprocess.run(["ffmpeg", "-version"], stdout=subprocess.PIPE, text=True, check=True).stdout.split()[2]
    report.parts.append(f"ffmpeg {version}")


PARTS = {"decoding": decoding, "detector": detector, "latency": latency, "python": worker_python.run,
         "memory": memory_of_large_cameras, "reconnects": reconnects}

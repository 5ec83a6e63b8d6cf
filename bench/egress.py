"""Benchmark `egress`: what forwarding a stream to an RTMP destination costs, how much later it arrives, how soon a dead
destination is noticed and where a stream key shows, beside ffmpeg -c copy, MediaMTX's own forward and GStreamer.

All of them read the same looped stream of one hub (MediaMTX) and publish to one nginx, each under a key of its own."""
import contextlib
import json
import pathlib
import secrets
import statistics
import subprocess
import time

from egress_parts import GSTREAMER, MEDIAMTX, NGINX, NGINX_RTMP, Proxy, Reader, Rig, private_mb
from processes import check_for, cpu_seconds, free_port, memory_mb
from worker_parts import Window, ask, wait_until

FFMPEG = "ffmpeg -c copy, one process a destination"
STREAM = "1280x720, 25 fps, 4 Mbit/s"
SETTLE_S = 4  # what connecting and probing cost is not what forwarding costs
FLOWING_BYTES = 100_000  # more than a handshake and a description
MANY, MANY_S, LOOK_S = 50, 20, 2
PATIENCE_S = 30  # for noticing, and for coming back
SMALL_BUFFER = 65536  # of the destination that stops reading, in bytes


def quantile(values, share):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def wait_for_flow(rig, keys):
    """Until the destination has received a good part of each."""
    wait_until("all streams arrived at the destination",
               lambda: all(rig.destination.taken().get(key, 0) > FLOWING_BYTES for key in keys))
    time.sleep(SETTLE_S)


# ---- cost ----

def sum_of(look, programs):
    """None where the kernel does not tell of one."""
    values = [look(each.pid) for each in programs]
    return None if None in values else sum(values)


def cost_of_round(rig, kinds, count, seconds, label):
    """CPU, resident and private memory of a forwarder of each kind, all at the same time; the first kind starts
    first."""
    with contextlib.ExitStack() as stack:
        programs, keys = {kind: [] for kind in kinds}, []
        for i in range(count):
            for kind in kinds:
                keys.append(f"{kind}-{label}-{i}")
                programs[kind].append(stack.enter_context(getattr(rig, kind)(keys[-1])))
        wait_for_flow(rig, keys)
        window = Window(seconds, **{kind: lambda kind=kind: sum_of(cpu_seconds, programs[kind]) for kind in kinds})
        found = {}
        for kind, each in programs.items():
            private = sum_of(private_mb, each)
            found[kind] = (100 * getattr(window, kind) / window.seconds / count, sum_of(memory_mb, each) / count,
                           None if private is None else private / count)
    return found


def cost(build, quick, report):
    """Rounds with fresh processes; who starts first alternates."""
    count, rounds, seconds = 5, 2 if quick else 5, 10 if quick else 30
    ours, theirs = [], []
    with Rig(build) as rig:
        for n in range(rounds):
            found = cost_of_round(rig, ("weir", "ffmpeg") if n % 2 else ("ffmpeg", "weir"), count, seconds, n)
            ours.append(found["weir"])
            theirs.append(found["ffmpeg"])
            report.say("cost: " + ", ".join(f"{kind} {cpu:.2f} % of a core, {resident:.1f} MB resident,"
                                            f" {'unknown' if private is None else f'{private:.1f}'} MB private"
                                            for kind, (cpu, resident, private) in found.items()))
    each = f"a forwarder, of {count} of each kind at the same time; {STREAM}"
    measures = (("cpu", "CPU, of one core, of", "%", 1.0), ("resident", "resident memory of", "MB", 0.75),
                ("private", "memory that is shared with nobody, of", "MB", 0.7))
    for i, (id, what, unit, bound) in enumerate(measures):
        values = [found[i] for found in ours]
        if None in values:
            report.add(f"cost.{id}", f"{what} {each}; not measured: Weir's processes are not dumpable, and of such the"
                       " kernel tells root alone", unit, None)
        else:
            report.add(f"cost.{id}", f"{what} {each}", unit, values, peer=FFMPEG,
                       peer_value=[found[i] for found in theirs], ratio_target=("<", bound))


# ---- many ----

def growing_over(rig, keys):
    """How many of them brought new bytes to the destination in every look."""
    before, still = rig.destination.taken(), set(keys)
    for _ in range(MANY_S // LOOK_S):
        time.sleep(LOOK_S)
        now = rig.destination.taken()
        still = {key for key in still if now.get(key, 0) > before.get(key, 0)}
        before = now
    return len(still)


def metrics(weir):
    """The lines that a forwarder serves where its first word says."""
    line = next(line for _, line in list(weir.lines) if '"control"' in line)
    return ask(json.loads(line)["control"] + "/metrics")[0].decode().splitlines()


def forwarding(weir):
    return any(line.startswith("egress_forwarder_forwarding{") and line.endswith(" 1") for line in metrics(weir))


def many_at_once(rig, kind, label):
    """How many of them forward and keep forwarding, and what all together cost."""
    keys = [f"{kind}-{label}-{i}" for i in range(MANY)]
    with contextlib.ExitStack() as stack:
        programs = [stack.enter_context(getattr(rig, kind)(key)) for key in keys]
        wait_for_flow(rig, keys)
        ready = sum(map(forwarding, programs)) if kind == "weir" else None
        spent, begun = sum_of(cpu_seconds, programs), time.monotonic()
        growing = growing_over(rig, keys)
        cpu = 100 * (sum_of(cpu_seconds, programs) - spent) / (time.monotonic() - begun)
        return ready, growing, cpu, sum_of(memory_mb, programs), sum_of(private_mb, programs)


def many(build, quick, report):
    """In turns with ffmpeg: both at once would be a hundred."""
    rounds, ours, theirs = 1 if quick else 3, [], []
    with Rig(build, "640x360", 1000) as rig:
        for n in range(rounds):
            for kind, found in (("weir", ours), ("ffmpeg", theirs)):
                found.append(many_at_once(rig, kind, n))
                report.say(f"many: {kind}: {found[-1][1]} keep growing, {found[-1][2]:.0f} % of a core,"
                           f" {found[-1][3]:.0f} MB resident")
    ready, growing, cpu, resident, private = zip(*ours)
    _, _, peer_cpu, peer_resident, peer_private = map(list, zip(*theirs))
    what = f"{MANY} forwarders of a stream of 1 Mbit/s"
    report.add("many.forwarding", f"{what}: how many say that they forward, fewest of {rounds} rounds", "", min(ready),
               ("=", MANY))
    report.add("many.growing", f"{what}: from how many the destination received more in every look, one every"
               f" {LOOK_S} s for {MANY_S} s, fewest of {rounds} rounds", "", min(growing), ("=", MANY))
    peer = f"{FFMPEG}, as many, in turns"
    report.add("many.cpu", f"{what}: CPU of all, of one core", "%", list(cpu), peer=peer, peer_value=peer_cpu)
    report.add("many.resident", f"{what}: resident memory of all, what they share counted for each", "MB",
               list(resident), peer=peer, peer_value=peer_resident)
    if None not in private:
        report.add("many.private", f"{what}: memory of all that is shared with nobody", "MB", list(private), peer=peer,
                   peer_value=peer_private)


# ---- latency ----

def delays(proxy, direct, since):
    """Of each picture, in ms: by how much later its last byte came through the forwarder than to the direct reader. The
    stream repeats itself after twenty seconds, so the nearest is meant."""
    arrived = [(at, mark) for _, at, mark in proxy.pictures() if at >= since]
    found = [1000 * min((at - there for there in direct[mark]), key=abs) for at, mark in arrived if mark in direct]
    if len(found) < 0.95 * len(arrived) or not found:
        raise RuntimeError(f"of {len(arrived)} pictures only {len(found)} came to the direct reader")
    return found


def latency_at(fps, build, quick, report):
    """Kind → each round's delays."""
    rounds, seconds = 2 if quick else 5, 10 if quick else 30
    times = {kind: [] for kind in ("weir", "ffmpeg", "mediamtx")}
    with Rig(build, fps=fps) as rig:
        for n in range(rounds):
            with contextlib.ExitStack() as stack:
                reader = stack.enter_context(Reader(rig.source))
                proxies = {kind: stack.enter_context(Proxy(rig.destination.port)) for kind in times}
                for kind, proxy in proxies.items():
                    stack.enter_context(getattr(rig, kind)(f"{kind}-{n}", proxy.port))
                wait_for_flow(rig, [f"{kind}-{n}" for kind in times])
                since = time.monotonic()
                time.sleep(seconds)
                direct = reader.pictures()
                for kind, proxy in proxies.items():
                    times[kind].append(delays(proxy, direct, since))
            report.say(f"latency: {fps} fps: " + ", ".join(f"{kind} {statistics.median(found[-1]):.1f} ms"
                                                           for kind, found in times.items()))
    return times


def latency(build, quick, report):
    """No reader or server has a buffer of its own here: the direct reader is a bare socket that talks RTSP, and a
    forwarder's pictures are timed in a proxy before nginx. A picture is known by its coded bytes. The slow stream tells
    a forwarder that waits for the next picture from one that does not."""
    for fps, bound in ((25, ("<", 50)), (10, None)):
        times = latency_at(fps, build, quick, report)
        what = (f"how much later a picture arrives at the destination than at a direct reader of the hub; 1280x720,"
                f" 4 Mbit/s, {fps} fps, so a picture lasts {1000 // fps} ms")
        for name, share, target in (("p50", 0.5, bound), ("p95", 0.95, None)):
            ours, ffmpeg, mediamtx = ([quantile(each, share) for each in found] for found in times.values())
            id = f"latency.{fps}fps.{name}"
            report.add(id, f"{what}: {name}", "ms", ours, target, peer=FFMPEG, peer_value=ffmpeg)
            report.add(f"{id}.mediamtx", f"the same of MediaMTX's own forward: {name}", "ms", mediamtx)


# ---- a dead destination ----

# What the proxy does, and for how many seconds at least: up to SPREAD_S more, evenly over the rounds, so that no
# forwarder's own pause decides how soon it is back.
FAULTS = {"black_hole": ("hole", PATIENCE_S, "neither reads nor answers nor closes"),
          "reset": ("cut", 3, "resets the connection and refuses others")}
SPREAD_S = 4


def came_back(proxy, since, until):
    """Seconds until pictures came to the destination again by a connection that still brings them, if there is one."""
    pictures = [(number, at) for number, at, _ in proxy.pictures() if at >= since]
    flowing = {number for number, at in pictures if at > until - 1}
    return min((at - since for number, at in pictures if number in flowing), default=None)


def break_destination(rig, state, seconds):
    """Each kind through a proxy of its own, all at once. Kind → (seconds until noticed, seconds until back, whether the
    process has ended); None for what did not happen in time."""
    with contextlib.ExitStack() as stack:
        proxies = {kind: stack.enter_context(Proxy(rig.destination.port, SMALL_BUFFER)) for kind in rig.kinds()}
        programs = {kind: stack.enter_context(make(f"{kind}-{state}-{seconds}", proxies[kind].port))
                    for kind, (make, _) in rig.kinds().items()}
        wait_for_flow(rig, [f"{kind}-{state}-{seconds}" for kind in programs])
        if gone := [kind for kind, program in programs.items() if program.ended_at]:
            raise RuntimeError(f"{gone[0]} ended by itself: {programs[gone[0]].said()[-2000:]}")
        broken = time.monotonic()
        for proxy in proxies.values():
            proxy.state = state
        time.sleep(seconds)
        mended = time.monotonic()
        for proxy in proxies.values():
            proxy.state = "passing"
        time.sleep(PATIENCE_S)
        until, found = time.monotonic(), {}
        for kind, program in programs.items():
            noticed = program.noticed(broken)
            found[kind] = (noticed - broken if noticed and noticed - broken < PATIENCE_S else None,
                           came_back(proxies[kind], mended, until), program.ended_at is not None)
    return found


def dead(build, quick, report):
    with Rig(build) as rig:
        for fault, (state, shortest, words) in FAULTS.items():
            rounds = (1 if fault == "black_hole" else 2) if quick else 5
            found = []
            for n in range(rounds):
                found.append(break_destination(rig, state, shortest + SPREAD_S * (n + 0.5) / rounds))
                text = lambda value: "never" if value is None else f"{value:.2f} s"
                report.say(f"dead: {fault}: " + ", ".join(
                    f"{kind} noticed {text(noticed)}, back {text(back)}{', ended' if ended else ''}"
                    for kind, (noticed, back, ended) in found[-1].items()))
            for kind, (_, name) in rig.kinds().items():
                tell_dead(report, f"dead.{fault}", kind, f"{name}; the destination {words} for {shortest} to"
                          f" {shortest + SPREAD_S} s", [each[kind] for each in found])


def tell_dead(report, id, kind, what, found):
    """What did not happen within the patience counts as that, and is said."""
    def add(name, words, values, more):
        late = sum(value is None for value in values)
        said = f"; not within {PATIENCE_S} s in {late} of {len(values)} rounds{more}" if late else ""
        report.add(f"{id}.{name}.{kind}", f"{words}: {what}{said}", "s",
                   [float(PATIENCE_S) if value is None else value for value in values])

    noticed, back, ended = zip(*found)
    add("noticed", "until a dead destination is given up, by a log line or by the process's end", noticed, "")
    add("back", "from when the destination works again until pictures arrive there", back,
        f"; the process had ended in {sum(ended)}, and somebody else must start it again" if any(ended) else "")


# ---- keys ----

def key_places(rig, make):
    """Where a stream key can be read, of a forwarder that was given it in the way that hides it best. What it says is
    its output, and of Weir its log folder and its metrics, too."""
    places = set()
    for case, port in (("refused", free_port()), ("working", None)):
        key = f"canary{secrets.token_hex(8)}"
        with make(key, port) as program:
            until = time.monotonic() + SETTLE_S
            while time.monotonic() < until and program.ended_at is None:
                for name in ("cmdline", "environ"):
                    with contextlib.suppress(OSError):  # it has ended, or this is not root
                        if key.encode() in pathlib.Path(f"/proc/{program.pid}/{name}").read_bytes():
                            places.add(name)
                time.sleep(0.1)
            shown = str(metrics(program)) if program.folder else ""
            happened = {"refused": lambda: program.noticed(0), "working": lambda: key in rig.destination.taken()}[case]
            wait_until(f"{program.words[0]} was {case}", happened)
        files = [path.read_text() for path in program.folder.rglob("*") if path.is_file()] if program.folder else []
        if any(key in text for text in (program.said(), shown, *files)):
            places.add(f"log while {case}")
    return sorted(places)


def keys(build, quick, report):
    with Rig(build, "640x360", 1000) as rig:
        for kind, (make, name) in rig.kinds().items():
            places = key_places(rig, make)
            report.say(f"keys: {kind}: {', '.join(places) or 'nowhere'}")
            report.add(f"keys.{kind}", f"{name}: places where a stream key can be read, of command line, environment,"
                       f" log while a connection is refused, log while it works: {', '.join(places) or 'none'}",
                       "places", len(places), ("=", 0) if kind == "weir" else None)


def check(build, report):
    check_for(build / "src/apps/weir-egress", MEDIAMTX, NGINX, NGINX_RTMP)
    asked = {"ffmpeg": (["ffmpeg", "-version"], 2), "MediaMTX": ([MEDIAMTX, "--version"], 0),
             "nginx": ([NGINX, "-v"], -1), "GStreamer": ([GSTREAMER, "--version"], 2)}
    for name, (words, place) in asked.items():
        if words[0] == GSTREAMER and not GSTREAMER.exists():
            report.say("GStreamer's gst-launch-1.0 could not be had: without it")
            continue
        told = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=True).stdout
        report.parts.append(f"{name} {told.split(chr(10))[0].split()[place].split('/')[-1].lstrip('v')}")


PARTS = {"cost": cost, "many": many, "latency": latency, "dead": dead, "keys": keys}

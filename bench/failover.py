"""Benchmark `failover`: how long cameras are dark after kills, changes and drains, and what an outage or a bad network
costs. Everything is measured from outside, with real processes.

A camera streams again when a subscriber of the event feed has received its `stream.status` STREAMING under a later
lease version: that counts the dial and the way of the event. A worker says so with the first packet, which need not be
one that can be decoded: `first_event` is the time until an event tells of a picture."""
import collections
import contextlib
import os
import random
import signal
import time
from datetime import datetime

from failover_parts import TINY, WATCHED_FPS, Busy, Feed, Fleet, Jitter, Plane, Server
from processes import Folder, check_for
from worker_parts import FOOTAGE, LIBRARY, MODEL, wait_until

RENEW_S = 2
# The defaults, written down because the targets depend on them.
TTL = ("--lease-ttl-s", 6, "--lease-renew-interval-s", RENEW_S)
NEWS_ONLY = ("--lease-retry-interval-s", 60)  # no poll helps: the feed alone must bring the takeover
DARK_MAX_S = 30
STORES = ("sqlite", "postgres")


def quantile(values, share):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def seconds_of(text):
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def distribution(report, id, what, times, p95, most=None):
    report.add(f"{id}.p50", f"{what}, median", "s", times)
    report.add(f"{id}.p95", f"{what}, P95 of {len(times)}", "s", quantile(times, 0.95), ("<", p95))
    report.add(f"{id}.max", f"{what}, longest", "s", max(times), ("<", most) if most else None)


# ---- kills ----

def dark(fleet, cameras, kill):
    """Seconds from the kill until the last of these cameras streams again, and until an event told of a picture of each
    one that is looked at."""
    versions = {camera: version for camera, version in fleet.plane.versions().items() if camera in cameras}
    watched = {camera: version for camera, version in versions.items() if camera in fleet.watched}
    begun = time.monotonic()
    kill()
    took = []
    for kind, awaited in (("stream.status", versions), ("detections", watched)):
        try:
            wait_until(f"{kind} came again", lambda: len(fleet.feed.above(kind, awaited, begun)) == len(awaited),
                       DARK_MAX_S)
        except RuntimeError as vain:
            raise RuntimeError(f"{vain}; {fleet.tails()}") from None
        took.append(max(arrived for arrived, _ in fleet.feed.above(kind, awaited, begun).values()) - begun)
    return took


def signal_worker(fleet, number):
    runner = fleet.owner()
    shard = runner.camera(fleet.watched[0])["shard_id"]
    cameras = [each["camera_uuid"] for each in runner.state()["cameras"] if each.get("shard_id") == shard]
    pid = runner.worker_of(cameras[0])
    return dark(fleet, cameras, lambda: os.kill(pid, number))


def kill_worker(fleet):
    return signal_worker(fleet, signal.SIGKILL)


def freeze_worker(fleet):
    return signal_worker(fleet, signal.SIGSTOP)


def kill_manager(fleet):
    runner = fleet.owner()
    manager = runner.manager()
    took = dark(fleet, fleet.cameras_of(runner), lambda: os.kill(manager, signal.SIGKILL))
    runner.wait()
    return took


def kill_runner(fleet):
    runner = fleet.owner()
    return dark(fleet, fleet.cameras_of(runner), runner.kill)


KILLS = {"worker_kill": (kill_worker, "kill -9 of a worker until all its cameras stream again", 3, None),
         "manager_kill": (kill_manager, "kill -9 of a manager alone until all its cameras stream elsewhere", 3, None),
         "worker_freeze": (freeze_worker, "SIGSTOP of a worker until all its cameras stream again", 8, None),
         "runner_kill": (kill_runner, "kill -9 of a whole runner, TTL 6 s, until all its cameras stream elsewhere", 8.5,
                         10)}


def explain(fleet, begun, said):
    """What the control plane did and said meanwhile: when each kind of lease event came first, and its new warnings."""
    first = {}
    for arrived, key, _ in list(fleet.feed.events):
        if arrived >= begun and key.startswith("lease."):
            first.setdefault(key.split(".")[1], arrived - begun)
    leases = [f"{kind} after {after:.2f} s" for kind, after in first.items()]
    return "; ".join(leases + fleet.plane.warnings()[said:])


def kills(report, store, fleet, rounds):
    """In turns: so every worker that is killed is the first that its manager loses, and no backoff is measured."""
    times = {name: [] for name in KILLS}
    for n in range(rounds):
        for name, (kill, _, p95, _) in KILLS.items():
            fleet.settle()
            time.sleep(random.uniform(0, RENEW_S))  # at any moment between two renewals
            begun, said = time.monotonic(), len(fleet.plane.warnings())
            times[name].append(kill(fleet))
            if times[name][-1][0] > p95:
                report.say(f"{store}: {name} took {times[name][-1][0]:.2f} s: {explain(fleet, begun, said)}")
        report.say(f"{store}: kills {n + 1}/{rounds}: " + ", ".join(f"{name} {took[-1][0]:.2f} s"
                                                                   for name, took in times.items()))
    for name, (_, what, p95, most) in KILLS.items():
        distribution(report, f"{store}.{name}", what, [streams for streams, _ in times[name]], p95, most)
        report.add(f"{store}.{name}.first_event", "the same until events told of pictures of both cameras that are"
                   " looked at, one of which begins with its next keyframe; median", "s",
                   [event for _, event in times[name]])
    held = sum('"store.hold"' in line for line in fleet.plane.warnings())
    report.add(f"{store}.holds", "times that the control plane found its store to have stood still for more than 2 s"
               " and let nobody take over for 4 s", "times", held)


# ---- drains ----

def drain(fleet):
    """Each camera's gap: from the last picture that its old owner spoke of to the new owner's STREAMING."""
    runner = fleet.owner()
    cameras, before = fleet.cameras_of(runner), fleet.plane.versions()
    versions, begun = {camera: before[camera] for camera in cameras}, time.monotonic()
    os.kill(runner.process.pid, signal.SIGTERM)
    code = runner.wait()
    if code != 0:
        raise RuntimeError(f"the drained runner ended with {code}; {fleet.tails()}")
    wait_until("they streamed elsewhere", lambda: len(fleet.feed.streaming_above(versions, begun)) == len(cameras))
    gaps = []
    for camera, (_, first) in fleet.feed.streaming_above(versions, begun).items():
        last = max(seconds_of(payload["last_frame_ts"]) for _, payload in fleet.feed.of("stream.status", camera)
                   if payload["runner_id"] == runner.name and "last_frame_ts" in payload)
        gaps.append(seconds_of(first["ts"]) - last)
    return gaps


def drains(report, store, fleet, rounds):
    gaps = []
    for _ in range(rounds):
        fleet.settle()
        gaps += drain(fleet)
        report.say(f"{store}: drain: longest gap so far {max(gaps):.2f} s")
    distribution(report, f"{store}.drain", f"gap of each of the {len(fleet.cameras)} cameras of a runner that got SIGTERM,"
                 f" {rounds} times", gaps, 3)


# ---- changes ----

def largest_gap(fleet, since, until):
    """Between two pictures that events of an untouched camera speak of."""
    largest = 0
    for camera in fleet.watched:
        taken = sorted(seconds_of(payload["ts"]) for _, payload in fleet.feed.of("detections", camera))
        taken = [moment for moment in taken if since <= moment <= until]
        largest = max([largest, *(after - before for before, after in zip(taken, taken[1:]))])
    return largest


def add_and_remove(fleet, names, more):
    """Seconds from the first request until the last of these cameras streamed; then they are taken away again."""
    known = fleet.plane.versions()
    versions = {name: known.get(name, 0) for name in names}
    added = time.monotonic()
    for name in names:
        fleet.add(name, more)
    wait_until("the new cameras streamed", lambda: len(fleet.feed.streaming_above(versions, added)) == len(names),
               DARK_MAX_S)
    took = max(arrived for arrived, _ in fleet.feed.streaming_above(versions, added).values()) - added
    for name in names:
        fleet.remove(name)
    wait_until("they were let go", lambda: all(fleet.about()[name]["sessions"] == 0 for name in names))
    return took


def reconfigure(report, build, store, mode, rounds):
    """One camera in most rounds, ten in every fourth, and in every other round such as allow one session."""
    flags = (*TTL, "--rollout", mode)
    with over(store, build, report, looked_at=2, more=10, flags=flags, runners=("r1",)) as (fleet, _):
        runner, spare = fleet.runners["r1"], fleet.spare
        usual_from = time.time()
        time.sleep(10)  # what gaps there are when nothing changes
        usual = largest_gap(fleet, usual_from, time.time())
        dials, begun, times = fleet.dials(fleet.cameras), time.time(), []
        for n in range(rounds):
            names = spare if n % 4 == 3 else spare[:1]
            times.append(add_and_remove(fleet, names, {"max_sessions": 1} if n % 2 else {}))
            wait_until("nothing moved any more", lambda: len(runner.state()["workers"]) == 2 and runner.ready())
            report.say(f"{store}: {mode}: {n + 1}/{rounds}: {len(names)} new cameras streamed after {times[-1]:.2f} s")
        gap, redialled = largest_gap(fleet, begun, time.time()), fleet.dials(fleet.cameras) - dials
    id = f"{store}.reconfigure_{mode}"
    distribution(report, id, f"a camera is added, or ten in every fourth round ({mode}): from the first request until the"
                 " last of them streams", times, 5)
    untouched = f"cameras that were there before, over {rounds} additions and removals"
    if mode == "live":
        report.add(f"{id}.redialled", f"new connections to {untouched}", "dials", redialled, ("=", 0))
    report.add(f"{id}.gap", f"longest time between two pictures told of, of {untouched}; {usual:.2f} s while nothing"
               " changed", "s", gap, ("<", 1 / WATCHED_FPS + 0.2))


# ---- dials ----

def first_dials(report, store, fleet, capacity, per_s):
    """How far first connects came above what the site's bucket had by then, and when the last was."""
    moments = sorted(each["at_us"] / 1e6 - fleet.begun for each in fleet.all_dials()["dials"] if each["first"])
    above = max(n + 1 - (capacity + per_s * moment) for n, moment in enumerate(moments))
    report.add(f"{store}.dials.connected", "cameras of one site that three runners dialled", "cameras", len(moments),
               ("=", len(fleet.cameras)))
    report.add(f"{store}.dials.above_budget", f"first connects above {capacity} + {per_s} a second, at the worst moment",
               "dials", max(0.0, above), ("=", 0))
    report.add(f"{store}.dials.last", f"the last first connect; the budget allows"
               f" {(len(moments) - capacity) / per_s:.0f} s at best", "s", moments[-1])


def reboot(report, store, fleet, limit):
    """A recorder that is away for two seconds and then accepts connections for five before it answers."""
    fleet.forget_dials()
    fleet.camsim.recorder_fault("reboot", 60)
    time.sleep(2)
    fleet.camsim.recorder_fault("black_hole", 5)
    begun = time.monotonic()

    def played():
        return sum(each["outcome"] == "playing" for each in fleet.all_dials()["dials"])

    wait_until("all cameras played again", lambda: played() >= len(fleet.cameras))
    peak = max(fleet.all_dials()["peak_concurrent_connects"].values())
    report.add(f"{store}.reboot.peak", f"a recorder of {len(fleet.cameras)} cameras reboots: most dials at once", "dials",
               peak, ("<", limit + 1))
    report.add(f"{store}.reboot.back", "from its first accepted connection until it played all of them again, 5 s of"
               " silence included", "s", time.monotonic() - begun)


# ---- an outage ----

class Account:
    """What the runners say of cameras, workers and events, and which pictures the feed told of, at one moment."""

    def __init__(self, fleet):
        states = {name: runner.state() for name, runner in fleet.runners.items()}
        self.cameras = {each["camera_uuid"]: each for state in states.values() for each in state["cameras"]
                        if each["phase"] == "running"}
        # What would be another one after a camera had been stopped.
        pids = {(name, each["shard_id"]): each["pid"] for name, state in states.items() for each in state["workers"]}
        self.standing = {camera: (name, pids.get((name, each.get("shard_id"))), each.get("dials"), each.get("state"))
                         for name, state in states.items() for each in state["cameras"]
                         for camera in [each["camera_uuid"]] if each["phase"] == "running"}
        self.told = {camera: [(payload["frame_id"], payload["ts"])
                              for _, payload in fleet.feed.of("detections", camera)] for camera in fleet.watched}
        counts = sum((runner.worker_metrics() for runner in fleet.runners.values()), collections.Counter())
        self.spooled = int(counts["weir_events_spooled_total"])
        # A summary of the moment is worth nothing later, and is not kept.
        self.given_up = int(sum(count for name, count in counts.items() if name.startswith("weir_events_dropped_total")
                                and "summary" not in name))

    def unseen(self, camera):
        """Pictures that the machine was too slow to look at."""
        return self.cameras.get(camera, {}).get("dropped", 0)


def missing_since(before, after):
    """Pictures that were looked at and that no event speaks of, and how many were told of."""
    missing = told = 0
    for camera, pictures in after.told.items():
        first = max(number for number, _ in before.told[camera])
        later = {number for number, _ in pictures if number > first}
        skipped = max(later) - first - len(later)
        missing += max(0, skipped - (after.unseen(camera) - before.unseen(camera)))
        told += len(later)
    return missing, told


def outage(report, id, what, fleet, broken, seconds):
    def told_since(moment):
        return all(any(seconds_of(payload["ts"]) > moment for _, payload in fleet.feed.of("detections", camera))
                   for camera in fleet.watched)

    begun = time.time()
    wait_until("pictures were told of", lambda: told_since(begun))
    before = Account(fleet)
    broken.kill()
    time.sleep(seconds)
    during = Account(fleet)
    broken.again()
    back = time.time()
    wait_until("pictures were told of after the outage", lambda: told_since(back))
    caught_up = time.time() - back
    time.sleep(2)  # the runners' accounts are up to a second old
    after = Account(fleet)
    stopped = [camera for camera, standing in before.standing.items()
               if standing != during.standing.get(camera) or standing != after.standing.get(camera)]
    ids = [payload["event_id"] for _, _, payload in list(fleet.feed.events) if "event_id" in payload]
    repeated = len(ids) - len(set(ids)) + sum(len(told) - len(set(told)) for told in after.told.values())
    missing, told = missing_since(before, after)
    given_up = after.given_up - before.given_up
    unseen = sum(after.unseen(camera) - before.unseen(camera) for camera in fleet.watched)
    report.say(f"{id}: {told} pictures told of, {unseen} not looked at, {missing} missing, {given_up} given up")
    what = f"{what} for {seconds} s"
    report.add(f"{id}.stopped", f"{what}: cameras that were stopped, moved, dialled again or given another worker, of"
               f" {len(fleet.cameras)}", "cameras", len(stopped) + len(fleet.cameras) - len(before.standing), ("=", 0))
    report.add(f"{id}.lost", f"{what}: pictures looked at that no event speaks of, or events that a worker gave up, of"
               f" {told:,}", "events", int(max(missing, given_up)), ("=", 0))
    report.add(f"{id}.doubled", f"{what}: events that came twice", "events", repeated, ("=", 0))
    report.add(f"{id}.spooled", f"{what}: events that took the way over the disk", "events",
               after.spooled - before.spooled, (">=", WATCHED_FPS * len(fleet.watched) * (seconds - 8) // 2))
    report.add(f"{id}.caught_up", f"{what}: from its return until live events of every camera came", "s", caught_up)


# ---- false takeovers ----

def calls(fleet):
    """How many questions about leases were answered to all runners, and the seconds that took."""
    all_of = [runner.metrics() for runner in fleet.runners.values()]
    return [sum(each.get(f"weir_runner_lease_seconds_{what}", 0) for each in all_of) for what in ("count", "sum")]


def false_takeovers(build, quick, report):
    """A fleet over each store, both at once: that is more for the machine to do, and half the time."""
    seconds = 60 if quick else 900
    with contextlib.ExitStack() as stack:
        fleets = {store: stack.enter_context(over(store, build, report, late=True, flags=TTL))[0] for store in STORES}

        def look(fleet):
            return (fleet.plane.metric("owner_changes_total"), fleet.feed.count("lease.stolen"),
                    fleet.feed.count("lease.expired"), fleet.dials(fleet.cameras), *calls(fleet),
                    sum(runner.metrics().get('weir_runner_events_total{event="worker.frozen"}', 0)
                        for runner in fleet.runners.values()))

        with Busy():
            time.sleep(5)  # in full swing before anything is counted
            before = {store: look(fleet) for store, fleet in fleets.items()}
            time.sleep(seconds)
            after = {store: look(fleet) for store, fleet in fleets.items()}
        for store, fleet in fleets.items():
            tell_false_takeovers(report, store, fleet, seconds, before[store], after[store])


def tell_false_takeovers(report, store, fleet, seconds, before, after):
    changes, stolen, expired, dials, count, took, frozen = (now - then for now, then in zip(after, before))
    if changes or expired:
        report.say(f"{store}: false takeovers: {fleet.tails()}")
    id = f"{store}.false_takeovers"
    under = f"over {seconds} s with up to 500 ms added to every chunk from and to the control plane and all cores busy"
    report.add(id, f"leases that changed their owner {under}", "leases", int(max(changes, stolen)), ("=", 0))
    report.add(f"{id}.expired", f"leases that ran out {under}", "leases", expired)
    report.add(f"{id}.dials", f"cameras that were dialled again {under}", "dials", dials)
    report.add(f"{id}.replaced", f"workers that were replaced as frozen {under}", "workers", int(frozen), ("=", 0))
    report.add(f"{id}.call", f"mean time of {count:.0f} questions about leases then", "s", took / max(1, count))


# ---- everything ----

@contextlib.contextmanager
def over(store, build, report, late=False, **fleet):
    """A control plane over this store, with a fleet; and what an outage of the store's kind takes away. With `late` the
    fleet's calls go through a network that delays them."""
    with Folder() as data, Folder() as folder, contextlib.ExitStack() as stack:
        server = stack.enter_context(Server(data)) if store == "postgres" else None
        if server:
            report.parts.append(f"PostgreSQL {server.version()}")
        plane = stack.enter_context(Plane(build, folder, server.url() if server else f"sqlite:{folder / 'weir.db'}"))
        feed = stack.enter_context(Feed(plane))
        if late:
            fleet["url"] = stack.enter_context(Jitter(plane.port)).url
        yield stack.enter_context(Fleet(build, folder, plane, feed, **fleet)), server or plane


def all_kills(build, quick, report):
    for store in STORES:
        with over(store, build, report, looked_at=2, flags=(*TTL, *NEWS_ONLY)) as (fleet, _):
            kills(report, store, fleet, 8 if quick else 50)


def all_drains(build, quick, report):
    flags = (*TTL, *NEWS_ONLY, "--status-summary-interval-s", 0.2)
    for store in STORES:
        with over(store, build, report, flags=flags) as (fleet, _):
            drains(report, store, fleet, 3 if quick else 10)


def all_changes(build, quick, report):
    for store in STORES:
        for mode in ("live", "bluegreen"):
            reconfigure(report, build, store, mode, 5 if quick else 20)


def all_dials(build, quick, report):
    tiny = {"plain": TINY, "flags": ("--capacity-streams", 40)}
    for store in STORES:
        with over(store, build, report, cameras=100, runners=("r1", "r2", "r3"), capacity=10, refill_per_min=120,
                  **tiny) as (fleet, _):
            first_dials(report, store, fleet, 10, 2)
        with over(store, build, report, cameras=40, runners=("r1",), **tiny) as (fleet, _):
            reboot(report, store, fleet, 8)


def all_outages(build, quick, report):
    for store, what in (("sqlite", "the control plane killed"),
                        ("postgres", "PostgreSQL away, the control plane alive")):
        with over(store, build, report, looked_at=2, flags=TTL) as (fleet, broken):
            outage(report, f"{store}.outage", what, fleet, broken, 15 if quick else 300)


def check(build, report):
    check_for(build / "src/apps/weir", build / "src/apps/weir-worker", build / "src/apps/weir-camsim", MODEL, LIBRARY,
              FOOTAGE)


PARTS = {"kills": all_kills, "drains": all_drains, "changes": all_changes, "dials": all_dials,
         "outages": all_outages, "jitter": false_takeovers}

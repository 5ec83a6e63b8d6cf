"""Benchmark `cluster`: what the detector cluster's decisions cost, what a master of 200 workers costs and how soon it
answers, how soon a change of rows is told to a worker, and how long a detection takes from its worker to a listener,
beside the same way written with asyncio.

Control plane, Redis and the processes of the cluster are real; the workers look at no camera."""
import contextlib
import itertools
import json
import subprocess
import time

from cluster_parts import PACKAGES, SERVERS, PeerProcess, Process, Redis, Workers
from processes import ControlPlane, Folder, check_for, cpu_seconds, memory_mb
from worker_parts import Window, wait_until
from worker_python import Skipped, python_with

WORKERS, EACH = 200, 100
CHANGED_WORKERS, CHANGED_DISPLAYS = 10, 300
RATE, WAY_WORKERS, WAY_DISPLAYS = 2000, 20, 200
CAMERAS = 100
PEER = "asyncio, websockets and redis-py"


class House:
    """A control plane, a Redis, simulated workers, and processes of a cluster; the first one is the master."""

    def __init__(self, build, workers, displays, processes, results):
        self.build, self.workers_wanted, self.displays, self.processes_wanted = build, workers, displays, processes
        self.results, self.stack = results, contextlib.ExitStack()

    def __enter__(self):
        with self.stack:
            enter = self.stack.enter_context
            self.folder = enter(Folder())
            self.plane = enter(ControlPlane(self.build, self.folder, f"sqlite:{self.folder / 'weir.db'}"))
            self.redis = enter(Redis(self.folder))
            self.workers = enter(Workers(self.build, self.plane, self.workers_wanted))
            done = self.workers.ask("furnish", self.displays, CAMERAS)
            if done["failed"]:
                raise RuntimeError(f"{done['failed']} rows could not be added")
            self.results.say(f"{self.displays:,} displays added in {done['seconds']:.1f} s")
            self.cluster, self.processes, self.names = contextlib.ExitStack(), [], itertools.count(1)
            self.stack.callback(self.end_cluster)
            self.begin_cluster()
            self.stack = self.stack.pop_all()
        return self

    def __exit__(self, *_):
        self.stack.close()

    def begin_cluster(self):
        self.workers.ask("forget")
        for number in range(self.processes_wanted):
            process = Process(self.build, self.folder, self.plane, self.redis, self.workers.urls(),
                              f"process-{next(self.names)}")
            self.processes.append(self.cluster.enter_context(process))
            if number == 0:
                wait_until("the first process is the master", lambda: '"master-acquired"' in process.said())
        self.workers.wait_for(self.displays)

    def end_cluster(self):
        self.cluster.close()
        self.cluster, self.processes = contextlib.ExitStack(), []


def decisions(build, quick, results):
    done = subprocess.run([build / "bench/cluster_bench", "--json"], stdout=subprocess.PIPE, text=True, check=True)
    found = json.loads(done.stdout)
    results.say(f"decisions: {found}")
    where = f"{found['placement_subscriptions']:,} subscriptions on {found['placement_workers']} workers"
    results.add("decisions.placement", f"one plan that places {where}, from nothing; processor time", "ms",
                found["placement_from_nothing_ms"], ("<", 100))
    results.add("decisions.placement_changed", f"the next plan for {where} after ten changes; processor time", "ms",
                found["placement_ten_changes_ms"], ("<", 20))
    results.add("decisions.placement_unchanged", f"the next plan for {where} where nothing changed; processor time", "ms",
                found["placement_unchanged_ms"])


def master(build, quick, results):
    """200 workers with 100 subscriptions each on one master; another process is there."""
    seconds, questions = (15, 100) if quick else (60, 500)
    with House(build, WORKERS, WORKERS * EACH, 2, results) as house:
        first, second = house.processes
        time.sleep(5)  # every worker has reported all of it
        window = Window(seconds, master=lambda: cpu_seconds(first.pid), other=lambda: cpu_seconds(second.pid),
                        redis=lambda: cpu_seconds(house.redis.pid), plane=lambda: cpu_seconds(house.plane.pid),
                        load=lambda: cpu_seconds(house.workers.pid))
        what = f"{WORKERS} workers with {EACH} subscriptions each, reporting every 2 s"
        for name, who, target in (("master", "the master", ("<", 50)), ("other", "another process", None),
                                  ("redis", "Redis", None), ("plane", "the control plane", None),
                                  ("load", "the simulated workers", None)):
            results.add(f"master.cpu_{name}", f"CPU of {who}, of one core; {what}", "%",
                        100 * getattr(window, name) / window.seconds, target)
        results.add("master.memory", f"resident memory of the master; {what}", "MB", memory_mb(first.pid), ("<", 150))
        results.add("master.memory_largest", f"the same, at its largest, while it placed them", "MB",
                    memory_mb(first.pid, "VmHWM"))
        for process, where in ((first, "master"), (second, "other")):
            told = house.workers.ask("state", process.port, questions)
            if told["failed"]:
                raise RuntimeError(f"the state could not be read: {told}")
            results.say(f"state at {where}: {told}")
            whom = "the master" if where == "master" else "a process that is not the master"
            results.add(f"state.{where}.p95", f"the cluster's state from {whom}, over HTTP, {told['bytes'] / 1e6:.1f} MB; "
                        "95 % are quicker", "ms", told["took"]["p95_ms"], ("<", 10))
            results.add(f"state.{where}.median", "the same, half of them", "ms", told["took"]["p50_ms"])
        if house.workers.ask("counts") != {"connected": WORKERS, "subscriptions": WORKERS * EACH}:
            raise RuntimeError("workers or subscriptions were lost meanwhile")


def change(build, quick, results):
    count = 50 if quick else 300
    with House(build, CHANGED_WORKERS, CHANGED_DISPLAYS, 2, results) as house:
        read = sorted(house.plane.answer_ms("/v1/clusters/default/desired") for _ in range(count))
        what = f"what a cluster with {CHANGED_DISPLAYS} displays shall do, made anew from the rows, over HTTP"
        results.add("desired.median", what, "ms", read[len(read) // 2], ("<", 10))
        results.add("desired.p95", "the same, 95 % are quicker", "ms", read[int(0.95 * len(read))])
        told = house.workers.ask("changes", count)
        results.say(f"change: {told}")
        what = f"{count} displays added one after the other to {CHANGED_DISPLAYS}, on {CHANGED_WORKERS} workers"
        results.add("change.lost", f"displays that no worker was told of within 10 s; {what}", "", told["lost"], ("=", 0))
        results.add("change.p95", f"from sending the row to the control plane until a worker read `subscribe`; {what}; 95 % "
                    "are quicker", "ms", told["sent"]["p95_ms"], ("<", 100))
        results.add("change.median", "the same, half of them", "ms", told["sent"]["p50_ms"])
        results.add("change.from_answer_p95", "the same from the control plane's answer, 95 % are quicker", "ms",
                    told["answered"]["p95_ms"])


def detect(house, listener, seconds):
    told = house.workers.ask("detections", RATE, seconds, listener)
    if not told["sent"]:
        raise RuntimeError(f"nobody could listen at {listener}")
    return told


def weir_round(house, seconds):
    """The outcome, the shares of a core, and where it was listened to."""
    first, second = house.processes
    wait_until("the routes are told", lambda: house.redis.ask("hlen", "worker:assignments") == str(WAY_WORKERS))
    listener = second.listener()
    readings = {each: (lambda pid=pid: cpu_seconds(pid)) for each, pid in (
        ("master", first.pid), ("slave", second.pid), ("redis", house.redis.pid), ("plane", house.plane.pid),
        ("load", house.workers.pid))}
    outcome, shares = measured(house, listener or f"redis:{house.redis.port}", seconds, readings)
    return outcome, shares, listener is not None


def measured(house, listener, seconds, readings):
    before, begun = {name: read() for name, read in readings.items()}, time.monotonic()
    outcome = detect(house, listener, seconds)
    passed = time.monotonic() - begun
    return outcome, {name: 100 * (read() - before[name]) / passed for name, read in readings.items()}


def peer_round(house, python, by_product, seconds):
    house.workers.ask("forget")
    subscriptions = [f"display-{n:05};cam-{n % CAMERAS}" for n in range(WAY_DISPLAYS)]
    spread = [",".join(subscriptions[number::WAY_WORKERS]) for number in range(WAY_WORKERS)]
    with PeerProcess(python, "slave", house.redis.port) as slave:
        port = int(slave.process.stdout.readline())
        with PeerProcess(python, "master", house.redis.port, house.workers.address, *spread) as chief:
            wait_until("the peer is connected", lambda: house.workers.ask("counts")["connected"] == WAY_WORKERS)
            listener = f"ws://127.0.0.1:{port}/" if by_product else f"redis:{house.redis.port}"
            readings = {"master": chief.cpu, "slave": slave.cpu}
            return measured(house, listener, seconds, readings)


def way(build, quick, results):
    seconds, rounds = (10, 1) if quick else (30, 3)
    ours, theirs, why = [], [], ""
    with House(build, WAY_WORKERS, WAY_DISPLAYS, 2, results) as house:
        results.parts.append(f"Redis {house.redis.version()}")
        try:
            python = python_with("cluster", PACKAGES)
        except Skipped as missing:
            python, why = None, str(missing)
            results.say(f"the peer is missing: {why}")
        for _ in range(rounds):
            if not house.processes:
                house.begin_cluster()
            ours.append(weir_round(house, seconds))
            house.end_cluster()
            results.say(f"way: Weir {ours[-1]}")
            if python:
                theirs.append(peer_round(house, python, ours[-1][2], seconds))
                results.say(f"way: peer {theirs[-1]}")
    at = "a listener at another process than the master" if ours[-1][2] else "Redis's channel of its process"
    what = f"{RATE:,} detections a second of {WAY_WORKERS} workers, from when each was due until {at} had it"
    peer = PEER if theirs else f"{PEER}: missing, {why}"
    took = lambda all, name: [each[0]["took"][name] for each in all] or None
    share = lambda all, *names: [sum(each[1][name] for name in names) for each in all] or None
    lost = lambda all: [each[0]["sent"] - each[0]["received"] for each in all] or None
    results.add("way.lost", f"detections of {ours[-1][0]['sent']:,} that did not come; {what}", "", max(lost(ours)), ("=", 0))
    results.add("way.peer_lost", "the same with the peer", "", max(lost(theirs)) if theirs else None)
    results.add("way.p99", f"{what}; 99 % are quicker", "ms", took(ours, "p99_ms"), ("<", 20))
    results.add("way.peer_p99", "the same with the peer", "ms", took(theirs, "p99_ms"), peer=peer)
    results.add("way.median", f"the same, half of them", "ms", took(ours, "p50_ms"))
    results.add("way.peer_median", "the same with the peer", "ms", took(theirs, "p50_ms"), peer=peer)
    results.add("way.cpu", "CPU of master and slave meanwhile, of one core; Weir's master also publishes each to the control "
                "plane", "%", share(ours, "master", "slave"), peer=peer, peer_value=share(theirs, "master", "slave"))
    for name in ("master", "slave", "redis", "plane", "load"):
        results.add(f"way.cpu_{name}", f"CPU of {name} meanwhile, of one core", "%", share(ours, name), peer=peer,
                    peer_value=share(theirs, name) if name in ("master", "slave") else None)


def check(build, results):
    check_for(build / "src/apps/weir", build / "bench/cluster_bench", build / "bench/cluster_load")
    if not any(path.exists() for path in SERVERS):
        raise RuntimeError("Redis's server is missing: ./dev bench installs it")


PARTS = {"decisions": decisions, "master": master, "change": change, "way": way}

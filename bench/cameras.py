"""Benchmark `cameras`: a thousand simulated cameras, real in all but their pictures' size, on one machine. Four runners
keep them on PostgreSQL; nobody looks at the pictures, so that what is measured is the platform and not a model."""
import collections
import json
import re
import threading
import time

from failover_parts import NOT_LOOKED_AT, Plane, Runner, Server, call, processes_with, samples
from processes import Folder, check_for, cpu_seconds, family_cpu_seconds
from worker import histogram_quantile, quantile
from worker_parts import FOOTAGE, Cameras, wait_until

RUNNERS, WORKERS_EACH, CAMERAS_EACH = 4, 5, 50
TINY = "width=192,height=96,fps=1,keyframe_s=1,seconds=10"
SCRAPE_S = 5
BEGIN_MAX_S = 180
# Frequent questions of people and of the page, each about everything or about one thing.
QUESTIONS = ("/v1/cameras?limit=100", "/v1/leases?limit=1000", "/v1/runners", "/v1/sites/s-1/budget",
             "/v1/cameras/cam-1", "/v1/leases/camera/cam-1")


class Recorders(Cameras):
    """A thousand cameras behind 50 listeners, a site each."""

    def __init__(self, build, folder, sites, each):
        super().__init__(build, folder, [])
        self.site_of = {f"cam-{n + 1}": f"s-{n % sites + 1}" for n in range(sites * each)}
        config = json.loads((folder / "camsim.json").read_text())
        config["recorders"] = [
            {"name": f"recorder-{site + 1}", "cameras": [{"name": name, "profile": TINY} for name, of in
                                                         self.site_of.items() if of == f"s-{site + 1}"]}
            for site in range(sites)]
        (folder / "camsim.json").write_text(json.dumps(config))


def furnish(plane, cameras):
    """Returns how long each POST of a camera took, in seconds."""
    plane.call("POST", "/v1/tenants", {"tenant_id": "t-01"})
    for site in dict.fromkeys(cameras.site_of.values()):
        plane.call("POST", "/v1/sites", {"site_id": site, "tenant_id": "t-01"})
    took, urls = [], cameras.urls()
    for name, site in cameras.site_of.items():
        begun = time.monotonic()
        plane.call("POST", "/v1/cameras", {"camera_uuid": name, "tenant_id": "t-01", "site_id": site,
                                           "rtsp_url": urls[name], **NOT_LOOKED_AT})
        took.append(time.monotonic() - begun)
    return took


def streaming(runners):
    return sum(each["phase"] == "running" and each.get("state") == "STREAMING"
               for runner in runners for each in runner.state()["cameras"])


def pss_mb(pids):
    """Memory of these processes, what they share with others counted in equal parts."""
    total = 0
    for pid in pids:
        for line in open(f"/proc/{pid}/smaps_rollup"):
            if line.startswith("Pss:"):
                total += int(line.split()[1])
    return total / 1024


def family(runner):
    return [runner.process.pid, *processes_with(str(runner.folder))]


def p99_ms(texts, name):
    """Of all histograms of this name together, whatever their labels say and whose page they stand on."""
    total = collections.Counter()
    for text in texts:
        for key, value in samples(text).items():
            if key.startswith(name + "_bucket{"):
                total[f'{name}_bucket{{{re.search(r"le=.[^,}]*", key)[0]}}}'] += value
    return 1000 * histogram_quantile(total, name, 0.99)


class Watcher:
    """Scrapes every metrics page as Prometheus would, and asks the control plane what people ask, until it is ended."""

    def __init__(self, plane, runners):
        self.plane, self.runners = plane, runners
        self.scrapes_s, self.series, self.answers_s, self.failures = [], [], [], []
        self.over = threading.Event()
        self.threads = [threading.Thread(target=work) for work in (self.scrape, self.ask)]

    def __enter__(self):
        for page in self.pages():  # a server counts who asks it from the first time on
            call("GET", page)
        for question in QUESTIONS:
            self.plane.call("GET", question)
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        for thread in self.threads:
            thread.join()

    def timed(self, times, work):
        begun = time.monotonic()
        try:
            return work()
        except Exception as failure:  # whatever it is, it is counted and named
            self.failures.append(str(failure))
        finally:
            times.append(time.monotonic() - begun)

    def pages(self):
        targets = [self.plane.url + "/metrics"]
        for runner in self.runners:
            for group in json.loads(call("GET", runner.url + "/sd/prometheus")):
                path = group.get("labels", {}).get("__metrics_path__", "/metrics")
                targets += [f"http://{target}{path}" for target in group["targets"]]
        return targets

    def scrape(self):
        while not self.over.wait(SCRAPE_S):
            texts = [self.timed(self.scrapes_s, lambda url=url: call("GET", url)) for url in self.pages()]
            self.series.append(sum(len(samples(text)) for text in texts if text))

    def ask(self):
        while not self.over.is_set():
            for question in QUESTIONS:
                self.timed(self.answers_s, lambda: self.plane.call("GET", question))
                self.over.wait(0.05)


def costs(plane, server, runners, cameras):
    return {"plane": cpu_seconds(plane.pid), "server": family_cpu_seconds(server.pid),
            "runners": sum(cpu_seconds(pid) for runner in runners for pid in family(runner)),
            "cameras": cpu_seconds(cameras.process.pid)}


def measure(report, plane, server, runners, cameras, seconds):
    count = len(cameras.site_of)
    versions, first, begun = plane.versions(), costs(plane, server, runners, cameras), time.monotonic()
    lowest = count
    with Watcher(plane, runners) as watcher:
        while time.monotonic() < begun + seconds:
            lowest = min(lowest, streaming(runners))
            time.sleep(1)
    passed = time.monotonic() - begun
    share = {name: 100 * (now - first[name]) / passed for name, now in costs(plane, server, runners, cameras).items()}
    moved = sum(versions[camera] != version for camera, version in plane.versions().items())
    for failure in watcher.failures[:3]:
        report.say(f"a question failed: {failure}")
    report.say(f"of one core: {', '.join(f'{name} {value:.0f} %' for name, value in share.items())}")
    over = f"over {seconds} s"
    report.add("thousand.streaming", f"of {count:,} cameras, the fewest that streamed at any look, {over}", "cameras",
               lowest, ("=", count))
    report.add("thousand.moved", f"leases that changed hands or version {over}", "leases", moved, ("=", 0))
    report.add("thousand.unanswered", f"scrapes and questions without a good answer, of {len(watcher.scrapes_s)} and"
               f" {len(watcher.answers_s)}", "", len(watcher.failures), ("=", 0))
    report.add("thousand.scrape.p99", "a scrape of one metrics page, P99", "ms",
               1000 * quantile(watcher.scrapes_s, 0.99))
    report.add("thousand.series", "series of all metrics pages: the most and the fewest at a scrape differ by", "series",
               max(watcher.series) - min(watcher.series), ("=", 0))
    report.add("thousand.series.count", "series of all metrics pages", "series", watcher.series[-1])
    report.add("thousand.api.p99", "an answer of the control plane to people's questions, lists among them, P99", "ms",
               1000 * quantile(watcher.answers_s, 0.99), ("<", 1000))
    for name, what in (("runners", "runners and workers"), ("plane", "control plane"), ("server", "PostgreSQL")):
        report.add(f"thousand.cpu.{name}", f"CPU of {what} a camera of one picture a second, of one core", "%",
                   share[name] / count)
    report.add("thousand.memory.runners", "memory of runners and workers a camera", "MB",
               pss_mb([pid for runner in runners for pid in family(runner)]) / count)
    report.add("thousand.memory.plane", "memory of the control plane", "MB", pss_mb([plane.pid]))


def thousand(build, quick, report):
    sites, each, seconds = (10, 20, 15) if quick else (50, 20, 120)
    runners_of = 1 if quick else RUNNERS
    flags = ("--capacity-streams", WORKERS_EACH * CAMERAS_EACH, "--target-streams-per-shard", CAMERAS_EACH)
    with Folder() as folder, Recorders(build, folder, sites, each) as cameras, Folder() as data, \
            Server(data) as server, Plane(build, folder, server.url()) as plane:
        added = furnish(plane, cameras)
        report.say(f"{len(added):,} cameras added in {sum(added):.1f} s")
        runners = [Runner(build, folder, f"r{n + 1}", plane.url, plane.secret, flags) for n in range(runners_of)]
        try:
            begun = time.monotonic()
            for runner in runners:
                runner.start()
            wait_until("all cameras streamed", lambda: streaming(runners) == len(added), BEGIN_MAX_S)
            report.add("thousand.begin", f"from the start of {runners_of} runners until {len(added):,} cameras over"
                       f" {sites} sites stream, each site within its default budget", "s", time.monotonic() - begun)
            measure(report, plane, server, runners, cameras, seconds)
            report.add("thousand.lease.p99", "a batch of lease questions, acquisitions among them, asked by a runner, from"
                       " its start on, P99", "ms",
                       p99_ms([call("GET", runner.url + "/metrics") for runner in runners],
                              "weir_runner_lease_seconds"), ("<", 2000))
            report.add("thousand.store.p99", "a step of the store, from the start on, P99", "ms",
                       p99_ms([call("GET", plane.url + "/metrics")], "weir_store_seconds"), ("<", 100))
        finally:
            for runner in runners:
                if runner.process:
                    runner.kill()


def check(build, report):
    check_for(build / "src/apps/weir", build / "src/apps/weir-worker", build / "src/apps/weir-camsim", FOOTAGE)


PARTS = {"thousand": thousand}

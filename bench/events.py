"""Benchmark `events`: what the control plane's own bus carries, how late a subscriber hears, and what it costs."""
import json
import subprocess

from leases import Watch
from processes import ControlPlane, Folder, Load, Postgres, check_for, memory_mb

RATE, RUNNERS, CAMERAS_EACH, BATCH = 5000, 20, 10, 10


class EventLoad(Load):
    """event_load: one line in, one JSON line out."""

    def __init__(self, build, plane):
        self.words = [str(word) for word in (build / "bench/event_load", plane.port, plane.secret, RUNNERS,
                                             CAMERAS_EACH)]


def measure(report, store, build, state, database, seconds, server=None):
    with ControlPlane(build, state, database) as plane, EventLoad(build, plane) as load:
        granted = load.ask("furnish")["granted"]
        if granted != RUNNERS * CAMERAS_EACH:
            raise RuntimeError(f"only {granted} leases were granted")
        load.ask("run", 500, 2, BATCH)  # everything that is made when first used is made now
        watch = Watch(plane, load, server)
        outcome = load.ask("run", RATE, seconds, BATCH)
        shares = watch.shares()
        report.say(f"{store}: {outcome}")
        report.add(f"{store}.missing", f"of {outcome['sent']:,} events at {RATE:,}/s for {seconds} s, how many one"
                   " subscriber did not get", "events", outcome["sent"] - outcome["received"], ("=", 0))
        report.add(f"{store}.refused", "events that were not answered `accepted`", "events",
                   outcome["sent"] - outcome["accepted"], ("=", 0))
        report.add(f"{store}.cpu_plane", "CPU of the control plane meanwhile, of one core", "%", shares["plane"],
                   ("<", 100))
        for name in sorted(shares.keys() - {"plane"}):
            report.add(f"{store}.cpu_{name}", f"CPU of {name} meanwhile, of one core", "%", shares[name])
        for quantile in ("p50", "p90", "p99", "max"):
            report.add(f"{store}.delivered.{quantile}", f"{quantile} from when an event was due until the subscriber had"
                       " it", "ms", outcome["delivered"][f"{quantile}_ms"])
            report.add(f"{store}.confirmed.{quantile}", f"{quantile} from when a batch of {BATCH} was due until it was"
                       " confirmed", "ms", outcome["confirmed"][f"{quantile}_ms"])
        report.add(f"{store}.memory", "largest resident size of the control plane", "MB", memory_mb(plane.pid, "VmHWM"))


def spool(build, quick, report):
    done = subprocess.run([build / "bench/spool_bench", "--json", *(["--quick"] if quick else [])],
                          stdout=subprocess.PIPE, text=True, check=True)
    report.say(f"spool: {done.stdout.strip()}")
    targets = {"append_events_per_s": (">=", 20000), "append_40_cameras_events_per_s": (">=", 20000),
               "drain_rss_growth_mb": ("<", 10), "handed_p95_ms": ("<", 20)}
    for name, value in json.loads(done.stdout).items():
        if isinstance(value, (int, float)):
            report.add(f"spool.{name}", name.replace("_", " "), "", value, targets.get(name))


def over_sqlite(build, quick, report):
    with Folder() as state:
        measure(report, "sqlite", build, state, f"sqlite:{state / 'weir.db'}", 10 if quick else 60)


def over_postgres(build, quick, report):
    with Folder() as data, Folder() as state, Postgres(data) as server:
        report.parts.append(f"PostgreSQL {server.version()}")
        measure(report, "postgres", build, state, server.url(), 10 if quick else 60, server)


def check(build, report):
    check_for(build / "src/apps/weir", build / "bench/event_load", build / "bench/spool_bench")


PARTS = {"sqlite": over_sqlite, "postgres": over_postgres, "spool": spool}

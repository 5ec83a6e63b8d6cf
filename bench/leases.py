"""Benchmark `leases`: how many leases one control plane carries, and what it costs when it has nothing to do."""
import os
import re
import sqlite3
import statistics
import subprocess
import time

from processes import ControlPlane, Folder, Load, Postgres, cpu_seconds, family_cpu_seconds, memory_mb

LEASES_EACH = 40
WIRES = 32
PGBENCH_CLIENTS = (4, 8, 16)
# What Weir's own sessions ask for; the peer gets the same.
SESSION = "-c plan_cache_mode=force_generic_plan -c jit=off -c enable_seqscan=off"


class Watch:
    """CPU seconds of some processes since the beginning, as shares of one core."""

    def __init__(self, **readers):
        self.readers = readers
        self.begun, self.first = time.monotonic(), {name: read() for name, read in readers.items()}

    def shares(self):
        passed = time.monotonic() - self.begun
        return {name: 100 * (read() - self.first[name]) / passed for name, read in self.readers.items()}


def lost_leases(outcome, leases):
    """Leases that were answered anything but `renewed`, and those of batches that got no answer."""
    return outcome["lost"] + outcome["other"] + LEASES_EACH * (outcome["failed"] + outcome["unanswered"])


def furnish(load, cameras, report):
    done = load.ask("furnish", cameras)
    if done["failed"]:
        raise RuntimeError(f"{done['failed']} cameras could not be added")
    report.say(f"{done['added']:,} cameras added in {done['seconds']:.1f} s")


def acquire(load, runners, report):
    done = load.ask("acquire")
    if done["expected"] != runners * LEASES_EACH:
        raise RuntimeError(f"not all leases were granted: {done}")
    report.say(f"{done['expected']:,} leases granted in {done['seconds']:.1f} s")


def hold(load, plane, seconds, singles, report, store, store_cpu=None):
    """Adds what every store is measured by while its leases are held; returns the raw outcome."""
    readers = {"control plane": lambda: cpu_seconds(plane.pid), "load generator": lambda: cpu_seconds(load.pid)}
    if store_cpu:
        readers["PostgreSQL"] = store_cpu
    watch = Watch(**readers)
    outcome = load.ask("hold", seconds, singles)
    shares = watch.shares()
    report.say(f"held for {seconds} s: {outcome}; CPU " + ", ".join(f"{n} {s:.0f} %" for n, s in shares.items()))
    return outcome, shares


# ---- PostgreSQL ----

def pgbench_script(build, folder, runners):
    """The statement of a renew-batch with its parameters in pgbench's way. pgbench cannot send an array, so a batch's
    two arrays are read from a table, by key: a look-up in place of parsing a parameter."""
    statement = subprocess.run([build / "bench/lease_load", "--print-renew-statement"], stdout=subprocess.PIPE, text=True,
                               check=True).stdout.strip()
    read = "(SELECT {} FROM bench_batches WHERE n = :n)"
    values = {"1": read.format("cameras"), "2": read.format("versions"), "3": read.format("runner"), "4": ":boot",
              "5": ":ttl", "6": ":tenant"}
    path = folder / "renew.sql"
    path.write_text(f"\\set n random(0, {runners - 1})\n" + re.sub(r"\$(\d)", lambda m: values[m[1]], statement) + ";\n")
    path.chmod(0o644)
    return path


# The first camera came through the API; a hundred thousand more like it would take most of a minute there.
CLONE = """
INSERT INTO cameras SELECT r.* FROM cameras c, generate_series(1, {last}) i, LATERAL jsonb_populate_record(c,
  jsonb_build_object('camera_uuid', 'cam-' || i, 'config', replace(c.config, '"cam-0"', '"cam-' || i || '"'))) r;
INSERT INTO leases SELECT r.* FROM leases l, generate_series(1, {last}) i, LATERAL jsonb_populate_record(l,
  jsonb_build_object('camera_uuid', 'cam-' || i)) r;
VACUUM ANALYZE;
"""

MAKE_BATCHES = """
CREATE TABLE bench_batches(n int PRIMARY KEY, runner text NOT NULL, cameras text[] NOT NULL, versions bigint[] NOT NULL);
INSERT INTO bench_batches
SELECT substr(owner_id, 8)::int, owner_id, array_agg(camera_uuid::text), array_agg(version)
FROM (SELECT * FROM leases WHERE owner_id <> '' ORDER BY substr(camera_uuid, 5)::int) l GROUP BY owner_id;
ANALYZE bench_batches;
"""


def pgbench(server, script, clients, seconds):
    """Statements a second."""
    output = server.call("pgbench", *server.where(), "-n", "-M", "prepared", "-f", script, "-c", clients, "-j", 2, "-T",
                         seconds, "-D", "boot=boot-1", "-D", "ttl=6000000", "-D", "tenant=t-01", "weir",
                         env=dict(os.environ, PGOPTIONS=SESSION))
    if "number of failed transactions: 0 " not in output:
        raise RuntimeError(f"pgbench had failures: {output[-1000:]}")
    return float(re.search(r"^tps = ([\d.]+)", output, re.M)[1]), int(re.search(r"processed: (\d+)", output)[1])


def rows_renewed(server):
    return int(server.sql("SELECT pg_stat_force_next_flush(); SELECT n_tup_upd FROM pg_stat_user_tables"
                          " WHERE relname = 'leases'").split()[-1])


def saturation(build, folder, server, plane, load, runners, quick, report):
    server.sql(MAKE_BATCHES)
    script = pgbench_script(build, folder, runners)
    seconds = 5 if quick else 20
    before = rows_renewed(server)
    tries, statements = {}, 0
    for clients in PGBENCH_CLIENTS:
        tries[clients], done = pgbench(server, script, clients, 3 if quick else 6)
        statements += done
    if rows_renewed(server) - before < statements * LEASES_EACH:
        raise RuntimeError("the peer's statement did not renew what it should")
    best = max(tries, key=tries.get)
    report.say("pgbench: " + ", ".join(f"{rate:,.0f}/s with {clients}" for clients, rate in tries.items()))
    weir, raw, latencies, shares = [], [], [], []
    for round in range(3):
        watch = Watch(plane=lambda: cpu_seconds(plane.pid), postgres=lambda: family_cpu_seconds(server.pid),
                      load=lambda: cpu_seconds(load.pid))
        outcome = load.ask("saturate", seconds, WIRES)
        if outcome["expected"] != outcome["batches"] * LEASES_EACH:
            raise RuntimeError(f"a renewal failed at saturation: {outcome}")
        weir.append(outcome["rate"])
        latencies.append(outcome["took"]["p99_ms"])
        shares.append(watch.shares())
        raw.append(pgbench(server, script, best, seconds)[0])
        report.say(f"round {round + 1}: Weir {weir[-1]:,.0f}/s, pgbench {raw[-1]:,.0f}/s; CPU {shares[-1]}")
    report.add("postgres.saturation", f"renew-batches of {LEASES_EACH} a second over HTTP, {WIRES} connections", "1/s",
               weir, peer=f"pgbench -M prepared, the same statement, {best} clients", peer_value=raw,
               ratio_target=(">=", 0.5))
    report.add("postgres.saturation.p99", "p99 of a batch at saturation", "ms", latencies)
    for name, words in (("plane", "the control plane"), ("postgres", "PostgreSQL"), ("load", "the load generator")):
        report.add(f"postgres.saturation.cpu_{name}", f"CPU of {words} at saturation, of one core", "%",
                   [share[name] for share in shares])


def over_postgres(build, quick, report):
    runners, seconds = 2500, 10 if quick else 60
    with Folder() as data, Folder() as state, Postgres(data) as server:
        report.say(f"PostgreSQL {server.version()}, {runners * LEASES_EACH:,} leases")
        with ControlPlane(build, state, server.url()) as plane:
            idle(plane, quick, report, "postgres")
            with Load(build, plane, runners, LEASES_EACH) as load:
                furnish(load, 1, report)
                server.sql(CLONE.format(last=runners * LEASES_EACH - 1))
                acquire(load, runners, report)
                held = "SELECT count(*), sum(version) FROM leases WHERE NOT released AND owner_id <> ''"
                before = server.sql(held)
                outcome, shares = hold(load, plane, seconds, 0, report, "postgres",
                                       lambda: family_cpu_seconds(server.pid))
                moved = 0 if server.sql(held) == before else runners * LEASES_EACH
                add_hold(report, "postgres", runners, seconds, outcome, shares, moved)
                report.add("postgres.hold.memory", "largest resident size of the control plane", "MB",
                           memory_mb(plane.pid, "VmHWM"), ("<", 200))
                saturation(build, data, server, plane, load, runners, quick, report)


def add_hold(report, store, runners, seconds, outcome, shares, moved=0):
    count = runners * LEASES_EACH
    what = f"of {count:,} held by {runners:,} runners for {seconds} s"
    report.add(f"{store}.hold.lost", f"leases lost or not renewed, {what}", "leases",
               lost_leases(outcome, count) + moved, ("=", 0))
    report.add(f"{store}.hold.rate", "renew-batches answered a second, each of 40", "1/s", outcome["batches"] / seconds)
    for quantile in ("p50", "p90", "p99", "max"):
        target = ("<", 500) if quantile == "p99" else None
        report.add(f"{store}.hold.{quantile}", f"{quantile} of a batch, from when it was due", "ms",
                   outcome["took"][f"{quantile}_ms"], target)
    for name, share in shares.items():
        report.add(f"{store}.hold.cpu_{name.split()[0].lower()}", f"CPU of the {name}, of one core", "%", share)


# ---- SQLite ----

def raw_commits(folder, seconds):
    """Commits a second of a bare loop: one row, WAL, synchronous=FULL."""
    with sqlite3.connect(folder / "raw.db", isolation_level=None) as db:
        db.execute("PRAGMA journal_mode=WAL")
        db.execute("PRAGMA synchronous=FULL")
        db.execute("CREATE TABLE t(id INTEGER PRIMARY KEY, n INTEGER NOT NULL)")
        db.execute("INSERT INTO t VALUES (1, 0)")
        done, begun = 0, time.monotonic()
        while time.monotonic() - begun < seconds:
            db.execute("UPDATE t SET n = n + 1")
            done += 1
        rate = done / (time.monotonic() - begun)
    db.close()
    return rate


def over_sqlite(build, quick, report):
    runners, seconds, spares, singles = 250, 10 if quick else 60, 400, 20
    with Folder() as state:
        report.say(f"SQLite, {runners * LEASES_EACH:,} leases")
        with ControlPlane(build, state, f"sqlite:{state}/weir.db") as plane:
            idle(plane, quick, report, "sqlite")
            with Load(build, plane, runners, LEASES_EACH, spares) as load:
                furnish(load, runners * LEASES_EACH + spares, report)
                acquire(load, runners, report)
                outcome, shares = hold(load, plane, seconds, singles, report, "sqlite")
                add_hold(report, "sqlite", runners, seconds, outcome, shares)
                asked = outcome["singles"]
                report.add("sqlite.acquire.refused", f"single acquires that failed, of {asked['took']['count']}",
                           "acquires", asked["refused"], ("=", 0))
                for quantile in ("p50", "p99", "max"):
                    report.add(f"sqlite.acquire.{quantile}", f"{quantile} of a single acquire meanwhile, {singles} a second",
                               "ms", asked["took"][f"{quantile}_ms"], ("<", 100) if quantile == "p99" else None)
                report.add("sqlite.hold.memory", "largest resident size of the control plane", "MB",
                           memory_mb(plane.pid, "VmHWM"))
                rates, raw = [], []
                for _ in range(3):
                    done = load.ask("saturate", 3 if quick else 10, WIRES)
                    if done["expected"] != done["batches"] * LEASES_EACH:
                        raise RuntimeError(f"a renewal failed at saturation: {done}")
                    rates.append(done["rate"])
                    with Folder() as scratch:
                        raw.append(raw_commits(scratch, 2 if quick else 5))
                report.add("sqlite.saturation", f"renew-batches of {LEASES_EACH} a second over HTTP, {WIRES} connections",
                           "1/s", rates, peer="commits a second of a bare loop, one row each, synchronous=FULL",
                           peer_value=raw)


# ---- idle ----

def idle(plane, quick, report, store):
    """Right after the start, before anybody has asked anything."""
    seconds = 10 if quick else 20
    time.sleep(1)  # what starting costs is not idling
    watch = Watch(plane=lambda: cpu_seconds(plane.pid))
    time.sleep(seconds)
    report.add(f"{store}.idle.cpu", f"CPU of an idle control plane over {seconds} s, of one core", "%",
               watch.shares()["plane"], ("<", 0.5))
    report.add(f"{store}.idle.memory", "resident size of an idle control plane", "MB", memory_mb(plane.pid), ("<", 40))


def run(build, quick, report):
    for program in ("src/apps/weir", "bench/lease_load"):
        if not (build / program).exists():
            raise RuntimeError(f"{build / program} is missing: ./dev build release")
    over_sqlite(build, quick, report)
    over_postgres(build, quick, report)

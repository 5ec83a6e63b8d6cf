"""Benchmark `leases`: how many leases one control plane carries, and what it costs when it has nothing to do."""
import os
import re
import sqlite3
import subprocess
import time

from processes import (ControlPlane, Folder, Load, Postgres, check_for, children_of, cpu_seconds, family_cpu_seconds,
                       machine_cpu_seconds, memory_mb)

LEASES_EACH = 40
WIRES = 32
PGBENCH_CLIENTS = (4, 8, 16, 32)
# What Weir's own sessions ask for; the peer gets the same.
SESSION = "-c plan_cache_mode=force_generic_plan -c jit=off -c enable_seqscan=off"
NAMES = {"plane": "the control plane", "postgres": "PostgreSQL", "load": "the load generator",
         "others": "everything else on the machine"}


class Watch:
    """What some processes use of one core, in per cent, from the beginning of this object's life."""

    def __init__(self, plane, load, server=None):
        self.readers = {"plane": lambda: cpu_seconds(plane.pid), "load": lambda: cpu_seconds(load.pid)}
        if server:
            self.readers["postgres"] = lambda: family_cpu_seconds(server.pid)
        self.begun, self.first = time.monotonic(), self.read()

    def read(self):
        seconds = {name: read() for name, read in self.readers.items()}
        return {**seconds, "others": machine_cpu_seconds() - sum(seconds.values())}

    def shares(self):
        passed = time.monotonic() - self.begun
        return {name: max(0.0, 100 * (now - self.first[name]) / passed) for name, now in self.read().items()}


def furnish(load, cameras, report):
    done = load.ask("furnish", cameras)
    if done["failed"]:
        raise RuntimeError(f"{done['failed']} cameras could not be added")
    report.say(f"{done['added']:,} cameras added through the API in {done['seconds']:.1f} s")


def acquire(load, runners, report):
    done = load.ask("acquire")
    if done["expected"] != runners * LEASES_EACH:
        raise RuntimeError(f"not all leases were granted: {done}")
    report.say(f"{done['expected']:,} leases granted in {done['seconds']:.1f} s")


# The leases that their first owner still has under the version it was granted.
STILL_HELD = f"""SELECT count(*) FROM leases WHERE NOT released AND version = grant_version
  AND owner_id = 'runner-' || (CAST(substr(camera_uuid, 5) AS integer) / {LEASES_EACH})"""


def hold(report, store, load, plane, runners, seconds, singles, still_held, server=None):
    """Every runner renews every 2 s; adds what that cost and returns what the single acquires beside it saw."""
    watch = Watch(plane, load, server)
    outcome = load.ask("hold", seconds, singles)
    shares = watch.shares()
    report.say(f"held for {seconds} s: {outcome}")
    if outcome["trouble"]:
        report.say(f"the first answer that was not as expected: {outcome['trouble']}")
    leases = runners * LEASES_EACH
    missing = leases - still_held()
    unanswered = LEASES_EACH * (outcome["failed"] + outcome["unanswered"])
    report.add(f"{store}.hold.lost", f"of {leases:,} leases held by {runners:,} runners for {seconds} s, how many were"
               " answered lost or are not their first owner's at the end", "leases", max(outcome["lost"], missing),
               ("=", 0))
    report.add(f"{store}.hold.unrenewed", "renewals that were not answered `renewed`, each of one lease, of"
               f" {outcome['batches'] * LEASES_EACH:,}", "renewals", outcome["lost"] + outcome["other"] + unanswered,
               ("=", 0))
    report.add(f"{store}.hold.rate", f"batches of {LEASES_EACH} renewals a second", "1/s", outcome["batches"] / seconds)
    for quantile in ("p50", "p90", "p99", "max"):
        report.add(f"{store}.hold.{quantile}", f"{quantile} of a batch, from when it was due", "ms",
                   outcome["took"][f"{quantile}_ms"], ("<", 500) if quantile == "p99" else None)
    report.add(f"{store}.hold.memory", "largest resident size of the control plane", "MB",
               memory_mb(plane.pid, "VmHWM"), ("<", 200))
    for name, share in shares.items():
        report.add(f"{store}.hold.cpu_{name}", f"CPU of {NAMES[name]} meanwhile, of one core", "%", share)
    return outcome["singles"]


class Saturation:
    """Rounds in which Weir and a peer take turns at full speed."""

    def __init__(self, plane, load, server=None):
        self.plane, self.load, self.server = plane, load, server
        self.rates, self.peer_rates, self.latencies, self.shares = [], [], [], []

    def round(self, report, seconds, peer_rate):
        watch = Watch(self.plane, self.load, self.server)
        outcome = self.load.ask("saturate", seconds, WIRES)
        self.shares.append(watch.shares())
        if outcome["expected"] != outcome["batches"] * LEASES_EACH:
            raise RuntimeError(f"a renewal failed at saturation: {outcome}")
        self.rates.append(outcome["rate"])
        self.latencies.append(outcome["took"]["p99_ms"])
        self.peer_rates.append(peer_rate())
        report.say(f"at saturation: Weir {self.rates[-1]:,.0f}/s, peer {self.peer_rates[-1]:,.0f}/s; CPU in %: "
                   + ", ".join(f"{name} {share:.0f}" for name, share in self.shares[-1].items()))

    def add_to(self, report, store, peer, ratio_target=None):
        report.add(f"{store}.saturation", f"batches of {LEASES_EACH} renewals a second over HTTP, {WIRES} connections",
                   "1/s", self.rates, peer=peer, peer_value=self.peer_rates, ratio_target=ratio_target)
        report.add(f"{store}.saturation.p99", "p99 of a batch then", "ms", self.latencies)
        for name in self.shares[0]:
            report.add(f"{store}.saturation.cpu_{name}", f"CPU of {NAMES[name]} then, of one core", "%",
                       [shares[name] for shares in self.shares])


def idle(report, store, plane, quick):
    """Right after the start, before anybody has asked anything."""
    seconds = 10 if quick else 20
    time.sleep(1)  # what starting costs is not idling
    first, begun = cpu_seconds(plane.pid), time.monotonic()
    time.sleep(seconds)
    share = 100 * (cpu_seconds(plane.pid) - first) / (time.monotonic() - begun)
    report.add(f"{store}.idle.cpu", f"CPU of an idle control plane over {seconds} s, of one core", "%", share,
               ("<", 0.5))
    report.add(f"{store}.idle.memory", "resident size of an idle control plane", "MB", memory_mb(plane.pid), ("<", 40))


# ---- PostgreSQL ----

# The first camera came through the API; a hundred thousand more like it would take most of a minute there.
CLONE = """
INSERT INTO cameras SELECT r.* FROM cameras c, generate_series(1, {last}) i, LATERAL jsonb_populate_record(c,
  jsonb_build_object('camera_uuid', 'cam-' || i, 'config', replace(c.config, '"cam-0"', '"cam-' || i || '"'))) r;
INSERT INTO leases SELECT r.* FROM leases l, generate_series(1, {last}) i, LATERAL jsonb_populate_record(l,
  jsonb_build_object('camera_uuid', 'cam-' || i)) r;
VACUUM ANALYZE;
"""

MAKE_BATCHES = """
CREATE TABLE bench_batches(
  n int PRIMARY KEY, runner text NOT NULL, cameras text[] NOT NULL, versions bigint[] NOT NULL);
INSERT INTO bench_batches
SELECT substr(owner_id, 8)::int, owner_id, array_agg(camera_uuid::text), array_agg(version)
FROM (SELECT * FROM leases WHERE owner_id <> '' ORDER BY substr(camera_uuid, 5)::int) l GROUP BY owner_id;
ANALYZE bench_batches;
"""


def pgbench_script(build, folder, runners):
    """The statement of a renew-batch with its parameters in pgbench's way. pgbench cannot send an array, so a batch's
    two arrays are read from a table, by key: a look-up in place of parsing a parameter. The rest of the plan is the
    same."""
    asked = subprocess.run([build / "bench/lease_load", "--print-renew-statement"], stdout=subprocess.PIPE, text=True,
                           check=True)
    read = "(SELECT {} FROM bench_batches WHERE n = :n)"
    values = {"1": read.format("cameras"), "2": read.format("versions"), "3": read.format("runner"), "4": ":boot",
              "5": ":ttl", "6": ":tenant"}
    path = folder / "renew.sql"
    statement = re.sub(r"\$(\d)", lambda match: values[match[1]], asked.stdout.strip())
    path.write_text(f"\\set n random(0, {runners - 1})\n{statement};\n")
    path.chmod(0o644)
    return path


def pgbench(server, script, clients, seconds):
    """Statements a second, and how many there were."""
    processes = len(children_of(server.pid))
    output = server.call("pgbench", *server.where(), "-n", "-M", "prepared", "-f", script, "-c", clients, "-j", 2, "-T",
                         seconds, "-D", "boot=boot-1", "-D", "ttl=6000000", "-D", "tenant=t-01", "weir",
                         env=dict(os.environ, PGOPTIONS=SESSION))
    server.settle(processes)
    if "number of failed transactions: 0 " not in output:
        raise RuntimeError(f"pgbench had failures: {output[-1000:]}")
    return float(re.search(r"^tps = ([\d.]+)", output, re.M)[1]), int(re.search(r"processed: (\d+)", output)[1])


def rows_updated(server):
    return int(server.sql("SELECT pg_stat_force_next_flush(); SELECT n_tup_upd FROM pg_stat_user_tables"
                          " WHERE relname = 'leases'").split()[-1])


def best_clients(server, script, seconds, report):
    """The number of clients with which pgbench is fastest here; checks that its statement renews what Weir's does."""
    before, statements, rates = rows_updated(server), 0, {}
    for clients in PGBENCH_CLIENTS:
        rates[clients], done = pgbench(server, script, clients, seconds)
        statements += done
    if rows_updated(server) - before < statements * LEASES_EACH:
        raise RuntimeError("the peer's statement did not renew what it should")
    report.say("pgbench: " + ", ".join(f"{rate:,.0f}/s with {clients}" for clients, rate in rates.items()))
    return max(rates, key=rates.get)


def beside_pgbench(report, build, folder, server, plane, load, runners, quick):
    server.sql(MAKE_BATCHES)
    script = pgbench_script(build, folder, runners)
    clients = best_clients(server, script, 3 if quick else 6, report)
    seconds = 5 if quick else 20
    saturation = Saturation(plane, load, server)
    for _ in range(3):
        saturation.round(report, seconds, lambda: pgbench(server, script, clients, seconds)[0])
    saturation.add_to(report, "postgres", f"pgbench -M prepared, the same statement, {clients} clients", (">=", 0.5))


def over_postgres(build, quick, report):
    runners, seconds = 2500, 10 if quick else 60
    with Folder() as data, Folder() as state, Postgres(data) as server:
        report.parts.append(f"PostgreSQL {server.version()}")
        report.say(f"{report.parts[-1]}, {runners * LEASES_EACH:,} leases")
        with ControlPlane(build, state, server.url()) as plane:
            idle(report, "postgres", plane, quick)
            with Load(build, plane, runners, LEASES_EACH) as load:
                furnish(load, 1, report)
                server.sql(CLONE.format(last=runners * LEASES_EACH - 1))
                acquire(load, runners, report)
                hold(report, "postgres", load, plane, runners, seconds, 0, lambda: int(server.sql(STILL_HELD)), server)
                beside_pgbench(report, build, data, server, plane, load, runners, quick)


# ---- SQLite ----

def raw_commits(seconds):
    """Commits a second of a bare loop: one row, WAL, synchronous=FULL."""
    with Folder() as folder:
        db = sqlite3.connect(folder / "raw.db", isolation_level=None)
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


def still_held_in(path):
    db = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    try:
        return db.execute(STILL_HELD).fetchone()[0]
    finally:
        db.close()


def over_sqlite(build, quick, report):
    runners, seconds, spares, singles = 250, 10 if quick else 60, 400, 20
    with Folder() as state:
        path = state / "weir.db"
        report.say(f"SQLite, {runners * LEASES_EACH:,} leases")
        with ControlPlane(build, state, f"sqlite:{path}") as plane:
            idle(report, "sqlite", plane, quick)
            with Load(build, plane, runners, LEASES_EACH, spares) as load:
                furnish(load, runners * LEASES_EACH + spares, report)
                acquire(load, runners, report)
                asked = hold(report, "sqlite", load, plane, runners, seconds, singles, lambda: still_held_in(path))
                report.add("sqlite.acquire.refused", f"single acquires that failed, of {asked['took']['count']:,}",
                           "acquires", asked["refused"], ("=", 0))
                for quantile in ("p50", "p99", "max"):
                    report.add(f"sqlite.acquire.{quantile}", f"{quantile} of a single acquire, {singles} a second",
                               "ms", asked["took"][f"{quantile}_ms"], ("<", 100) if quantile == "p99" else None)
                saturation = Saturation(plane, load)
                for _ in range(3):
                    saturation.round(report, 3 if quick else 10, lambda: raw_commits(2 if quick else 5))
                saturation.add_to(report, "sqlite",
                                  "commits a second of a bare loop, one row each, WAL, synchronous=FULL")


def check(build, report):
    check_for(build / "src/apps/weir", build / "bench/lease_load")


PARTS = {"sqlite": over_sqlite, "postgres": over_postgres}

"""Measures, and the two forms they are reported in: a table for people, JSON for programs. Who ran only a part of a
benchmark keeps the file's other measures: each says which commit it is of."""
import json
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import time


def machine(parts):
    model = next((line.split(":", 1)[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")),
                 platform.machine())
    memory = next(int(line.split()[1]) for line in open("/proc/meminfo") if line.startswith("MemTotal"))
    system = next((line.split("=", 1)[1].strip().strip('"') for line in open("/etc/os-release")
                   if line.startswith("PRETTY_NAME")), platform.system())
    cores = len(os.sched_getaffinity(0))
    return ", ".join([f"{cores} cores {model}", f"{memory / 2**20:.0f} GiB", system, *parts])


def commit(root):
    command = ["git", "-c", "safe.directory=*", "-C", str(root), "describe", "--always", "--dirty", "--abbrev=12"]
    asked = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    return asked.stdout.strip() or "unknown"


def rounded(value):
    return None if value is None else float(f"{value:.4g}") if isinstance(value, float) else value


class Report:
    """Collects measures; on leaving without an exception prints the table and writes the file."""

    def __init__(self, name, root, quick, partial):
        self.name, self.root, self.quick, self.partial = name, root, quick, partial
        self.measures, self.started = [], time.monotonic()
        self.parts = []  # versions of what else took part
        self.commit = commit(root)

    def __enter__(self):
        return self

    def say(self, text):
        print(f"[{time.monotonic() - self.started:4.0f}s] {text}", file=sys.stderr, flush=True)

    def add(self, id, what, unit, value, target=None, peer=None, peer_value=None, ratio_target=None):
        """`value` and `peer_value` may be lists of rounds: their median counts, and their spread is kept. `target` is
        ("<", 500) and judges the value, `ratio_target` the ratio."""
        measure = {"id": id, "what": what, "unit": unit, "commit": self.commit, "quick": self.quick}
        middle = statistics.median(value) if isinstance(value, list) else value
        measure["value"] = rounded(middle)
        measure.update(peer=peer, peer_value=None, ratio=None, target=None, holds=None)
        if isinstance(value, list):
            measure["spread"] = [rounded(min(value)), rounded(max(value))]
        judged = (target, middle)
        if peer_value is not None:
            peer_middle = statistics.median(peer_value) if isinstance(peer_value, list) else peer_value
            measure["peer_value"] = rounded(peer_middle)
            measure["ratio"] = rounded(middle / peer_middle)
            if isinstance(peer_value, list):
                measure["peer_spread"] = [rounded(min(peer_value)), rounded(max(peer_value))]
            if ratio_target:
                judged = (ratio_target, middle / peer_middle)
        if judged[0]:
            sign, bound = judged[0]
            measure["target"] = f"{'ratio ' if ratio_target else ''}{sign} {bound}"
            measure["holds"] = {"<": judged[1] < bound, ">=": judged[1] >= bound, "=": judged[1] == bound}[sign]
        self.measures.append(measure)

    def table(self):
        rows = [("measure", "value", "unit", "peer", "ratio", "target", "")]
        for m in self.measures:
            text = lambda value: "" if value is None else f"{value:,}" if isinstance(value, int) else f"{value:,.4g}"
            rows.append((m["id"], text(m["value"]), m["unit"], text(m["peer_value"]), text(m["ratio"]),
                         m["target"] or "", {True: "holds", False: "MISSED", None: ""}[m["holds"]]))
        widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
        right = (1, 3, 4)
        return "\n".join("  ".join(cell.rjust(w) if i in right else cell.ljust(w)
                                   for i, (cell, w) in enumerate(zip(row, widths))).rstrip() for row in rows)

    def others(self, path):
        """What the file says of measures that were not taken now."""
        if not self.partial or not path.exists():
            return []
        taken = {measure["id"] for measure in self.measures}
        return [measure for measure in json.loads(path.read_text())["measures"] if measure["id"] not in taken]

    def __exit__(self, kind, failure, trace):
        if kind:
            return
        folder = pathlib.Path(self.root, "bench", "results")
        folder.mkdir(exist_ok=True)
        path = folder / f"{self.name}.json"
        whole = {"name": self.name, "machine": machine(dict.fromkeys(self.parts)), "commit": self.commit,
                 "measures": self.measures + self.others(path)}
        draft = path.with_suffix(".tmp")
        draft.write_text(json.dumps(whole, indent=1, ensure_ascii=False) + "\n")
        draft.replace(path)
        title = f"{self.name}{' (quick)' if self.quick else ''} on {whole['machine']}"
        print(f"{title}\n{self.table()}\n{path}", flush=True)

"""The metrics that Weir's programs expose, with their labels, read from where the code makes them; and what PromQL asks for.

Every instrument is made by a call of net::Metrics (counter, gauge, histogram) or of the reporter's `follow`, whose first
argument is its name and whose labels stand in the call, or in the value that the call names. tests/integration holds the pages of
running programs against `declared` (tools/dashboards --page), so that this reading cannot go astray unseen.
"""
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parent.parent
CALL = re.compile(r'\b(counter|gauge|histogram|follow)\(\s*(?:std::string\()?(metric\()?("(\w+)"|voice\.dropped_metric)')
PAIR = re.compile(r'\{"(\w+)", ')
# What Prometheus adds to every series of a target (deploy/prometheus and what /sd/prometheus answers), by the folder that makes it.
TARGET = {"runner": {"runner_id"}, "worker": {"runner_id", "shard_id"}, "orchestrator": {"orchestrator_id"},
          "egress": {"orchestrator_id", "stream_id"}, "stream_worker": {"orchestrator_id", "stream_id"}}
FOREIGN = re.compile(r"\b(?:up|prometheus_\w+)\b")  # Prometheus' own
GROUPING = "by|on|ignoring"
WORDS = set("absent and avg by count histogram_quantile increase max min offset on or rate sum time topk unless vector".split())


def closing(text, at):
    """Where the bracket at `at` is closed."""
    depth = 0
    for end in range(at, len(text)):
        depth += (text[end] in "({") - (text[end] in ")}")
        if depth == 0:
            return end
    raise ValueError("a bracket without its end")


def labels_of(name, text, seen=()):
    """The labels of the value `name` of this file: those in its initialiser, and those given to it later."""
    found = set(re.findall(rf'\b{name}\["(\w+)"\]', text))
    for start in re.finditer(rf"\b{name}(?=[{{(])", text):
        words = text[start.end():closing(text, start.end()) + 1]
        found |= labels_in(words, text, (*seen, name))
    return found


def labels_in(words, text, seen=()):
    found = set(PAIR.findall(words))
    for value, extra in re.findall(r'\bwith\((\w+), "(\w+)"', words):
        found |= {extra} | labels_of(value, text, seen)
    for value in re.findall(r"\b(labels|own|run_|instance_)\b(?!\.)", words):
        if value not in seen:
            found |= labels_of(value, text, seen)
    return found


def declared():
    """{metric: [(its own labels, its target's) for each place where it is made]}, a histogram by its three series."""
    voices = dict(re.findall(
        r'metrics = "(\w+)".*?dropped_metric = "(\w+)"',
        "".join((ROOT / "src" / name).read_text() for name in
                ("services/egress/include/weir/egress/report.hpp", "apps/worker/stream.cpp")), re.S))
    out = {f"process_{name}": [(set(), set().union(*TARGET.values()))] for name in
           ("cpu_seconds_total", "resident_memory_bytes", "open_fds", "start_time_seconds")}
    for path in sorted((ROOT / "src").rglob("*.[ch]pp")):
        if path.name.endswith("_test.cpp") or path.is_relative_to(ROOT / "src" / "net"):
            continue
        text = path.read_text()
        target = TARGET.get({"shard.cpp": "worker", "stream.cpp": "stream_worker"}.get(path.name, path.parts[-2]), set())
        for call in CALL.finditer(text):
            words = text[call.start():closing(text, text.index("(", call.start())) + 1]
            labels = labels_in(words, text)
            if call[1] == "follow" and text[:call.start()].endswith("->"):
                labels |= labels_of("labels", text)
            names = list(voices.values()) if call[3].startswith("voice") else \
                [prefix + call[4] for prefix in voices] if call[2] else [call[4]]
            for name in names:
                if call[1] != "histogram":
                    out.setdefault(name, []).append((labels, target))
                    continue
                for part, more in (("bucket", {"le"}), ("sum", set()), ("count", set())):
                    out.setdefault(f"{name}_{part}", []).append((labels | more, target))
    return out


def asked(query):
    """{metric: the labels that its matchers name} of a query, but for Prometheus' own metrics."""
    found = {}
    bare = re.sub(rf"\[[^]]*\]|\b({GROUPING}) \([^)]*\)", "", query)
    for name, matchers in re.findall(r'(?<![\w$.])([a-zA-Z_]\w*)(\{[^}]*\})?', re.sub(r'"[^"]*"', '""', bare)):
        if name not in WORDS and not FOREIGN.fullmatch(name):
            found.setdefault(name, set()).update(re.findall(r"(\w+)[=!]", matchers))
    return found


def problems(query, known, shown=frozenset()):
    """What the query asks for that no program exposes; `shown`: the labels that the legend of its result names."""
    names = asked(query)
    everything = {"job", "instance"}.union(*TARGET.values()) if FOREIGN.search(query) else {"job", "instance"}
    for name, labels in names.items():
        if name not in known:
            yield f"asks for {name}, which nothing in src/ makes"
            continue
        own = {"job", "instance"}.union(*(part for made in known[name] for part in made))
        everything |= own
        if missing := labels - own:
            yield f"asks {name} for {', '.join(sorted(missing))}, which is none of its labels"
    grouped = {label for _, group in re.findall(rf"\b({GROUPING}) \(([^)]*)\)", query) for label in re.findall(r"\w+", group)}
    if (missing := grouped - everything) and names:
        yield f"groups by {', '.join(sorted(missing))}, which none of its metrics has"
    kept = grouped if re.search(r"\b(sum|max|min|count|avg) ?(by|\()", query) else everything
    if missing := shown - kept:
        yield f"its legend names {', '.join(sorted(missing))}, which its result does not have"

#!/usr/bin/env python3
"""Runs the benchmarks: ./dev bench [--quick] [NAME…]

    bench/run.py [--quick] [--build DIR] [NAME…]

NAME is a benchmark, or one part of it: failover.kills

Each benchmark measures Weir and, where there is one, a raw peer in the same run, prints a table and writes
bench/results/NAME.json. A measure that misses its target is reported, not judged: the exit code is 0 unless a benchmark
could not run.
"""
import argparse
import os
import pathlib
import signal
import sys
import traceback

sys.dont_write_bytecode = True  # the checkout stays as it was
os.environ["ORT_DISABLE_TELEMETRY"] = "1"  # as Weir's own worker does

import cameras  # noqa: E402
import cluster  # noqa: E402
import egress  # noqa: E402
import events  # noqa: E402
import failover  # noqa: E402
import hooks  # noqa: E402
import leases  # noqa: E402
import report  # noqa: E402
import worker  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent
BENCHMARKS = {"leases": leases, "events": events, "worker": worker, "failover": failover, "egress": egress,
              "hooks": hooks, "cluster": cluster, "cameras": cameras}


def run(benchmark, only, build, quick, results):
    benchmark.check(build, results)
    for name, measure in benchmark.PARTS.items():
        if only in ("", name):
            load = os.getloadavg()[0]
            results.say(f"{name}; load of the machine before: {load:.1f}")
            measure(build, quick, results)
            results.add(f"{name}.load_before", f"load of the machine before {name}, over one minute", "", load)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="the same measures in shorter runs")
    parser.add_argument("--build", default="build/release", type=pathlib.Path, help="where the binaries are")
    parts = [f"{name}.{part}" for name, module in BENCHMARKS.items() for part in module.PARTS]
    parser.add_argument("name", nargs="*", help=", ".join([*BENCHMARKS, *parts]))
    options = parser.parse_args()
    unknown = [name for name in options.name if name not in [*BENCHMARKS, *parts]]
    if unknown:
        parser.error(f"there is no benchmark {unknown[0]}, but {', '.join([*BENCHMARKS, *parts])}")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # what was started ends on the way out
    broken = 0
    for name in options.name or BENCHMARKS:
        name, _, part = name.partition(".")
        try:
            with report.Report(name, ROOT, options.quick, bool(part)) as results:
                run(BENCHMARKS[name], part, (ROOT / options.build).resolve(), options.quick, results)
        except Exception as failure:  # the next benchmark can still run
            traceback.print_exc()
            print(f"bench {name}: {failure}", file=sys.stderr)
            broken += 1
    return 1 if broken else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)

#!/usr/bin/env python3
"""Says what the tests found: reads ctest's JUnit files and ends with `N passed, N failed, N skipped`.

    tools/test_report.py PRESET…      reads build/reports/PRESET.xml, which `ctest --output-junit` wrote

A program that runs many GoogleTest cases counts as that many tests. A test may find that the machine itself stood still
for too long to judge anything: it then fails with a line that starts with `INCONCLUSIVE:`. If all that failed in its
program say so, it runs once more, here, and the second run counts; the report says so.

Programs of `integration.` start real servers and run beside each other on few processors. Where at most three of them
failed, each of those runs once more, alone, and the second run counts; one that passes then is reported as UNSTEADY with
what it said when it failed, because it, or the product, has a fault that shows under load. Where more failed, something
is broken, and none runs again. All other tests have one run.

A line that starts with `NOTE:` in a test's output (a rate, a seed count) is repeated in the report. Exit code 0 only if
something passed and nothing failed.

Where WEIR_EVERY_PART is set, as in CI, a skipped test has failed, unless it says that this kind of machine or build
cannot run it, or build/logs/parts.log says that a server, a model or a library could not be had.
"""
import os
import pathlib
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass, replace

BUILD = pathlib.Path(__file__).resolve().parent.parent / "build"
OUTPUT_LINES = 25  # of a failed test
UNSTEADY_MAX = 3   # programs that are run once more, alone
CASE_BEGIN = re.compile(r"\[ RUN      \] (\S+)")
CASE_END = re.compile(r"\[ *(OK|FAILED|SKIPPED) *\] ([^\s,]+).* \((\d+) ms\)$")
CASES_END = "[  PASSED  ]"  # GoogleTest's count of them, which stands there after failures too
# Why a test may be skipped where all parts can be had.
MACHINE = re.compile(r"IPv6|thread sanitizer|mounted here|another user cannot|on Debian only")
OUTCOMES = {"OK": "passed", "FAILED": "failed", "SKIPPED": "skipped"}


@dataclass
class Test:
    preset: str
    name: str
    outcome: str  # passed, failed, skipped
    seconds: float
    output: list

    def lines(self, prefix):
        return [line for line in self.output if line.startswith(prefix)]

    def skip_reason(self):
        # GoogleTest prints "file:line: Skipped" and the reason in the line below.
        for line, below in zip(self.output, self.output[1:] + [""]):
            if line.endswith(": Skipped"):
                return below.strip() or "no reason given"
        return next((line.strip() for line in self.output if line.strip()), "no reason given")


def read(path, preset):
    try:
        return [one(case, preset) for case in ElementTree.parse(path).getroot().iter("testcase")]
    except (OSError, ElementTree.ParseError):
        return []


def ctest_words(preset, name):
    """Why ctest failed a test ("Timeout", "Exception: SegFault"): only its log says so, not the report file."""
    try:
        log = (BUILD / "logs" / f"test-{preset}.log").read_text(errors="replace")
    except OSError:
        return []
    found = re.search(rf": {re.escape(name)} \.*(.*?)\*\*\*(.*?) +[\d.]+ sec", log)
    return [f"ctest says: {found[1]} {found[2]}".replace("  ", " ").rstrip(": ")] if found else []


def one(case, preset):
    skipped = case.find("skipped")
    outcome = "passed" if case.get("status") == "run" else "failed"
    # Only what a test said itself is a skip. ctest also writes `skipped` for a program that it cannot find or start.
    if case.get("status") == "disabled" or (skipped is not None and skipped.get("message", "").startswith("SKIP_")):
        outcome = "skipped"
    output = (case.findtext("system-out") or "").splitlines() or ["it printed nothing"]
    if outcome == "failed":
        output += ctest_words(preset, case.get("name"))
    return Test(preset, case.get("name"), outcome, float(case.get("time") or 0), output)


def of_preset(preset):
    """The programs that ctest ran."""
    nothing = Test(preset, "ctest", "failed", 0, [f"nothing ran: no test has such a name, or ctest itself stopped "
                                                  f"(build/logs/test-{preset}.log)"])
    return read(BUILD / "reports" / f"{preset}.xml", preset) or [nothing]


def cases(program):
    """The GoogleTest cases in a program's output; the program itself where there are none."""
    found, begun, running = [], 0, None
    for index, line in enumerate(program.output):
        if match := CASE_BEGIN.search(line):
            begun, running = index, match[1]
        elif match := CASE_END.search(line):
            output = program.output[begun + 1:index]
            found.append(Test(program.preset, match[2], OUTCOMES[match[1]], int(match[3]) / 1000, output))
            running = None
    if any("Running 0 tests" in line for line in program.output):
        return [Test(program.preset, program.name, "failed", 0, ["no test case has such a name"])]
    # Whoever ends before its last word has not tested what it was asked to, whatever its exit code.
    if program.outcome == "passed" and (running or found and not any(CASES_END in line for line in program.output)):
        program = replace(program, outcome="failed", output=program.output + ["it ended in the middle, with exit code 0"])
    if not found or not running and len(found) == 1 and found[0].outcome == program.outcome:
        return [program]
    # It crashed, timed out, or leaked: no case says so itself.
    if program.outcome == "failed" and running:
        found.append(replace(program, name=running, output=program.output[begun + 1:]))
    elif program.outcome == "failed" and all(case.outcome != "failed" for case in found):
        found.append(program)
    return found


def without_excuse(test):
    """A skip for want of a part is a failure where ./dev got every part that it asked for."""
    if test.outcome != "skipped" or not os.environ.get("WEIR_EVERY_PART") or MACHINE.search(test.skip_reason()):
        return test
    log = BUILD / "logs/parts.log"
    if log.exists() and "could not be had" in log.read_text():
        return test
    why = f"skipped, though ./dev got every part that it asked for (build/logs/parts.log): {test.skip_reason()}"
    return replace(test, outcome="failed", output=test.output + [why])


def inconclusive(program):
    """What the failed cases said, if each of them says that it could not judge."""
    failed = [case for case in cases(program) if case.outcome == "failed"]
    said = [case.lines("INCONCLUSIVE:") for case in failed]
    return [f"{case.name}: {lines[0]}" for case, lines in zip(failed, said)] if all(said) else []


def unsteady(programs):
    """The programs that run once more, alone, although they judged: few of them failed, and they run in real time."""
    failed = [each for each in programs if each.outcome == "failed" and each.name.startswith("integration.")]
    return [each.name for each in failed if not inconclusive(each)] if len(failed) <= UNSTEADY_MAX else []


def second_run(program, shared):
    """The program as it counts: as it ran, or as it ran the second time."""
    if reasons := inconclusive(program):
        return again(program, reasons)
    if program.name not in shared:
        return program
    second = again(program, ["it failed beside others, and runs alone now"])
    if second.outcome == "passed":
        print(f"\nUNSTEADY: {program.name} ({program.preset}) passed alone; beside others its last lines were:")
        show_output(program)
    return second


def again(test, reasons):
    """Runs a test once more; the second run counts. The reasons are lines for the report."""
    report = BUILD / "reports" / f"{test.preset}-again.xml"
    report.unlink(missing_ok=True)
    for reason in reasons:
        print(f"again: {test.name} ({test.preset}): {reason}", flush=True)
    # As ./dev runs it: the thread sanitizer of GCC 12 cannot live with random addresses.
    fixed = ["setarch", "-R"]
    if test.preset != "tsan" or subprocess.run([*fixed, "true"], stderr=subprocess.DEVNULL, check=False).returncode != 0:
        fixed = []
    command = [*fixed, "ctest", "--test-dir", str(BUILD / test.preset), "-R", f"^{re.escape(test.name)}$",
               "--output-on-failure", "--output-junit", str(report),
               "--test-output-size-passed", "4000000", "--test-output-size-failed", "4000000"]
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT, check=False)
    second = next((found for found in read(report, test.preset) if found.name == test.name), test)
    print(f"again: {test.name} ({test.preset}): the second run {second.outcome}", flush=True)
    return second


def show_output(test):
    for line in test.output[-OUTPUT_LINES:]:
        print("  | " + line[:300])


def show(tests):
    for test in tests:
        for line in test.lines("NOTE:"):
            print(f"{test.name} ({test.preset}): {line[5:].strip()}")
    for test in tests:
        if test.outcome == "skipped":
            print(f"skipped: {test.name} ({test.preset}): {test.skip_reason()}")
    slowest = sorted(tests, key=lambda test: -test.seconds)[:5]
    print("slowest: " + ", ".join(f"{test.name} ({test.preset}) {test.seconds:.1f} s" for test in slowest))
    for test in tests:
        if test.outcome == "failed":
            print(f"\nFAILED: {test.name} ({test.preset}), {test.seconds:.1f} s; its last lines:")
            show_output(test)
    if any(test.outcome == "failed" for test in tests):
        print(f"\nall output: {BUILD.name}/logs/test-PRESET.log; one test again: ./dev test NAME")


def main(presets):
    programs = [program for preset in presets for program in of_preset(preset)]
    shared = unsteady(programs)
    programs = [second_run(each, shared) for each in programs]
    took = sum(program.seconds for program in programs)
    tests = [without_excuse(case) for program in programs for case in cases(program)]
    show(tests)
    print(f"tests took {took:.0f} s, counted one after the other")
    count = {outcome: sum(test.outcome == outcome for test in tests) for outcome in ("passed", "failed", "skipped")}
    print("{passed} passed, {failed} failed, {skipped} skipped".format(**count), flush=True)
    return 0 if count["passed"] and not count["failed"] else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

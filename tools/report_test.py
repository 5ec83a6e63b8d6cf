"""What tools/test_report.py makes of what tests print."""
import contextlib
import io
import pathlib
import sys
import tempfile
import unittest
from unittest import mock
from xml.sax.saxutils import escape

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import test_report

RUN, OK, FAILED = "[ RUN      ] {}", "[       OK ] {} (3 ms)", "[  FAILED  ] {} (3 ms)"
END = "[  PASSED  ] 1 test."


def passed(name):
    return [RUN.format(name), OK.format(name)]


def failed(name, *words):
    return [RUN.format(name), *words, FAILED.format(name)]


class Report(unittest.TestCase):
    """Each test has a build folder with the reports of one preset in it."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.build = pathlib.Path(folder.name)
        (self.build / "reports").mkdir()
        for patch in (mock.patch.object(test_report, "BUILD", self.build),
                      mock.patch.object(test_report.subprocess, "run", self.run_again)):
            patch.start()
            self.addCleanup(patch.stop)
        self.second, self.commands = None, []

    def write(self, name, *programs):
        cases = "".join(f'<testcase name="{program}" status="{status}" time="1"><system-out>{escape(chr(10).join(lines))}'
                        "</system-out></testcase>" for program, status, lines in programs)
        (self.build / "reports" / name).write_text(f"<testsuite>{cases}</testsuite>")

    def run_again(self, command, **_):
        self.commands.append(command)
        self.write("release-again.xml", self.second)

    def judged(self, *programs):
        """The exit code, and the last line."""
        self.write("release.xml", *programs)
        with contextlib.redirect_stdout(io.StringIO()) as said:
            code = test_report.main(["release"])
        return code, said.getvalue().splitlines()[-1]

    def test_each_case_counts(self):
        self.assertEqual(self.judged(("unit", "run", passed("A.a") + passed("A.b") + [END])),
                         (0, "2 passed, 0 failed, 0 skipped"))
        self.assertEqual(self.judged(("unit", "fail", passed("A.a") + failed("A.b") + [END])),
                         (1, "1 passed, 1 failed, 0 skipped"))

    def test_a_crash_is_a_failure_of_the_case_that_ran(self):
        self.assertEqual(self.judged(("unit", "fail", passed("A.a") + [RUN.format("A.b")])),
                         (1, "1 passed, 1 failed, 0 skipped"))

    def test_an_end_in_the_middle_is_a_failure_even_with_exit_code_0(self):
        self.assertEqual(self.judged(("unit", "run", passed("A.a") + [RUN.format("A.b")]))[0], 1)
        self.assertEqual(self.judged(("unit", "run", [RUN.format("A.a")]))[0], 1)
        self.assertEqual(self.judged(("unit", "run", passed("A.a") + passed("A.b")))[0], 1)

    def test_what_could_not_judge_runs_once_more_and_that_counts(self):
        self.second = ("unit", "run", passed("A.a") + passed("A.b") + [END])
        first = ("unit", "fail", passed("A.a") + failed("A.b", "INCONCLUSIVE: the machine stood still") + [END])
        self.assertEqual(self.judged(first), (0, "2 passed, 0 failed, 0 skipped"))
        self.assertIn("--test-output-size-passed", self.commands[0])
        self.second = first
        self.assertEqual(self.judged(first), (1, "1 passed, 1 failed, 0 skipped"))

    def test_a_failure_beside_one_that_could_not_judge_stays_one(self):
        self.second = ("unit", "run", passed("A.a") + passed("A.b") + [END])
        for also in (failed("A.a") + failed("A.b", "INCONCLUSIVE: the machine stood still"),
                     failed("A.a") + [RUN.format("A.b"), "INCONCLUSIVE: the machine stood still", OK.format("A.b")]):
            self.assertEqual(self.judged(("unit", "fail", also + [END]))[0], 1)
        crash = failed("A.a", "INCONCLUSIVE: the machine stood still") + [RUN.format("A.b"), "killed"]
        self.assertEqual(self.judged(("unit", "fail", crash)), (1, "0 passed, 2 failed, 0 skipped"))
        self.assertEqual(self.commands, [])

    def test_few_programs_of_real_servers_that_failed_beside_others_run_once_more_alone(self):
        def ran(name, outcome="fail"):
            return name, outcome, (passed("A.a") if outcome == "run" else failed("A.a", "too late")) + [END]
        self.second = ran("integration.a", "run")
        self.assertEqual(self.judged(ran("integration.a"), ran("unit", "run")), (0, "2 passed, 0 failed, 0 skipped"))
        self.second = ran("integration.a")
        self.assertEqual(self.judged(ran("integration.a")), (1, "0 passed, 1 failed, 0 skipped"))
        self.assertEqual(len(self.commands), 2)
        self.assertEqual(self.judged(ran("sim.seeds"))[0], 1)
        self.assertEqual(self.judged(*(ran(f"integration.{n}") for n in range(4)))[0], 1)
        self.assertEqual(len(self.commands), 2, "what always runs alike, and what broke as a whole, has one run")

    def test_what_was_unsteady_is_said_with_its_output(self):
        self.second = ("integration.a", "run", passed("A.a") + [END])
        self.write("release.xml", ("integration.a", "fail", failed("A.a", "too late") + [END]))
        with contextlib.redirect_stdout(io.StringIO()) as said:
            self.assertEqual(test_report.main(["release"]), 0)
        self.assertIn("UNSTEADY: integration.a (release)", said.getvalue())
        self.assertIn("| too late", said.getvalue())

    def test_a_skip_for_want_of_a_part_is_a_failure_where_every_part_can_be_had(self):
        def skipped(name, why):
            return [RUN.format(name), "x_test.cpp:3: Skipped", why, f"[  SKIPPED ] {name} (3 ms)"]
        one = ("unit", "run", passed("A.a") + skipped("A.b", "the model was not fetched") + [END])
        other = ("unit", "run", passed("A.a") + skipped("A.b", "this machine has no IPv6") + [END])
        with mock.patch.dict(test_report.os.environ):
            test_report.os.environ.pop("WEIR_EVERY_PART", None)
            self.assertEqual(self.judged(one), (0, "1 passed, 0 failed, 1 skipped"))
            test_report.os.environ["WEIR_EVERY_PART"] = "1"
            self.assertEqual(self.judged(one), (1, "1 passed, 1 failed, 0 skipped"))
            self.assertEqual(self.judged(other), (0, "1 passed, 0 failed, 1 skipped"))
            (self.build / "logs").mkdir(exist_ok=True)
            (self.build / "logs/parts.log").write_text("could not be had: go:server: no such host\n")
            self.assertEqual(self.judged(one), (0, "1 passed, 0 failed, 1 skipped"))

    def test_nothing_that_ran_is_a_failure(self):
        self.assertEqual(self.judged(), (1, "0 passed, 1 failed, 0 skipped"))
        (self.build / "reports/release.xml").write_text("<testsuite")
        with contextlib.redirect_stdout(io.StringIO()):
            self.assertEqual(test_report.main(["release"]), 1)


if __name__ == "__main__":
    unittest.main()

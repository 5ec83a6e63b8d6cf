"""What ./dev does on machines that are not as they should be: played with programs of other names on its path."""
import os
import pathlib
import shutil
import stat
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent
CMAKE = """
echo configured >>"$PLAYED"
mkdir -p build/release
echo "CMAKE_CACHEFILE_DIR:INTERNAL=$PWD/build/release" >build/release/CMakeCache.txt
echo >build/release/build.ninja
"""
# Root's commands do nothing here but for apt-get, which is a program of the test.
SUDO = """
[ "$1" != -n ] || exit "${SUDO_ASKS:-0}"
echo "$@" >>"$PLAYED"
case "$*" in *apt-get*) shift; while [ "$1" != apt-get ]; do shift; done; "$@" ;; esac
"""


class Dev(unittest.TestCase):
    """Each test has a checkout with nothing but ./dev in it, and a path on which all packages are installed."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="weir dev ")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name).resolve()
        self.checkout, self.path = self.folder / "checkout", self.folder / "bin"
        for each in (self.checkout / "tools", self.path):
            each.mkdir(parents=True)
        shutil.copy(ROOT / "dev", self.checkout)
        (self.checkout / "CMakePresets.json").touch()
        self.script(self.checkout / "tools/parts", '[ "$1" != --any-deb-missing ]')
        self.play("id", '[ "$1" = -un ] && echo somebody || echo 1000')
        self.play("sudo", SUDO)
        self.play("npm", "")
        self.play("dpkg-query", 'for word; do echo "install ok installed $word"; done')
        self.play("cmake", CMAKE)
        self.play("ninja", 'echo "[1/1] built"')
        self.env = dict(os.environ, PATH=f"{self.path}:{os.environ['PATH']}", PLAYED=str(self.folder / "played"))

    def script(self, path, text):
        path.write_text("#!/bin/sh\n" + text + "\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)

    def play(self, name, text):
        self.script(self.path / name, text)

    def dev(self, *words, program=None, **env):
        return subprocess.run([program or self.checkout / "dev", *(words or ["build"])], env=dict(self.env, **env), text=True,
                              cwd=self.folder, stdin=subprocess.DEVNULL, capture_output=True, timeout=60)

    def built(self, *words, **more):
        done = self.dev(*words, **more)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def played(self, word):
        there = pathlib.Path(self.env["PLAYED"])
        return sum(word in line for line in there.read_text().splitlines()) if there.exists() else 0

    def nothing_is_installed(self):
        if "ID=debian\n" not in pathlib.Path("/etc/os-release").read_text():
            self.skipTest("packages are installed on Debian only")
        self.play("dpkg-query", "exit 1")

    def test_what_was_configured_is_not_configured_again(self):
        self.built()
        self.built()
        self.assertEqual(self.played("configured"), 1)

    def test_other_presets_and_parts_that_arrive_later_are_noticed(self):
        self.built()
        later = (self.checkout / "build/release/build.ninja").stat().st_mtime + 5
        os.utime(self.checkout / "CMakePresets.json", (later, later))
        self.play("cmake", CMAKE + f'touch -d "@{later + 5}" build/release/build.ninja')
        self.built()
        self.assertEqual(self.played("configured"), 2)
        self.built()
        self.assertEqual(self.played("configured"), 2)
        (self.checkout / "build/parts/include/tensorflow").mkdir(parents=True)
        os.utime(self.checkout / "build/parts/include", (later + 10, later + 10))
        self.built()
        self.assertEqual(self.played("configured"), 3)

    def test_a_copy_of_a_checkout_builds_its_own_sources(self):
        self.built()
        copy = self.folder / "copy"
        shutil.copytree(self.checkout, copy)
        done = self.built(program=copy / "dev")
        self.assertIn("was made for another folder", done.stderr)
        self.assertEqual(self.played("configured"), 2)

    def test_it_may_be_called_by_another_name(self):
        (self.folder / "link").symlink_to(self.checkout / "dev")
        self.built(program=self.folder / "link")
        self.assertTrue((self.checkout / "build/release/build.ninja").exists())
        self.assertFalse((self.folder / "build").exists())

    def test_a_compilers_words_are_shown(self):
        self.play("ninja", 'echo "[1/2] x"; echo "FAILED: x.cpp.o"; echo "x.cpp:3: no such thing"; exit 1')
        done = self.dev()
        self.assertEqual(done.returncode, 1)
        self.assertIn("x.cpp:3: no such thing", done.stderr)

    def test_who_cannot_be_root_is_told_what_to_type_and_nothing_is_changed(self):
        self.nothing_is_installed()
        done = self.dev(SUDO_ASKS="1")
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stderr.count("apt-get install --no-install-recommends g++ cmake"), 1, done.stderr)
        self.assertEqual(self.played(""), 0)

    def test_another_apt_get_is_waited_for(self):
        self.nothing_is_installed()
        self.play("find", "")  # no lists
        self.play("sleep", "echo slept >>\"$PLAYED\"")
        self.play("apt-get", 'case "$*" in *update*) [ "$(grep -c slept "$PLAYED")" -ge 2 ] ||'
                             ' { echo "E: Could not get lock /var/lib/apt/lists/lock"; exit 100; } ;; esac')
        done = self.built()
        self.assertEqual(done.stderr.count("waiting for it"), 1)
        self.assertEqual(self.played("slept"), 2)

    def test_why_packages_cannot_be_had_is_said(self):
        self.nothing_is_installed()
        self.play("apt-get", 'echo "E: Unable to locate package g++"; exit 100')
        done = self.dev()
        self.assertEqual(done.returncode, 1)
        self.assertIn("E: Unable to locate package g++", done.stderr)

    def test_services_are_let_go_whatever_ends_it(self):
        self.nothing_is_installed()
        for signal in ("HUP", "INT", "TERM"):
            pathlib.Path(self.env["PLAYED"]).unlink(missing_ok=True)
            # The test's sudo is this one's parent, and ./dev that one's.
            self.play("apt-get", f"kill -{signal} $(cut -d ' ' -f 4 /proc/$PPID/stat)")
            self.assertNotEqual(self.dev().returncode, 0)
            self.assertEqual(self.played("create_main_cluster"), 1)
            self.assertEqual(self.played("rm -f"), 1, signal)

    def test_a_part_that_cannot_be_fetched_is_said_and_no_obstacle(self):
        self.script(self.checkout / "tools/parts",
                    '[ "$1" != --any-deb-missing ] || exit 1; echo "could not be had: npm:x: no network" >&2')
        self.assertIn("could not be had: npm:x: no network", self.built().stderr)
        self.script(self.checkout / "tools/parts", "exit 2")
        self.assertEqual(self.dev().returncode, 1)


if __name__ == "__main__":
    unittest.main()

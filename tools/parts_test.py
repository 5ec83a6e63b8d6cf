"""What tools/parts makes of the archives and modules that it is given."""
import contextlib
import importlib.machinery
import importlib.util
import io
import json
import os
import pathlib
import subprocess
import tarfile
import tempfile
import time
import unittest
import unittest.mock
import zipfile

LOADER = importlib.machinery.SourceFileLoader("parts", str(pathlib.Path(__file__).parent / "parts"))
parts = importlib.util.module_from_spec(importlib.util.spec_from_loader("parts", LOADER))
LOADER.exec_module(parts)


class Unpack(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def unpacked(self, *members):
        with tarfile.open(self.folder / "a.tgz", "w:gz") as archive:
            for name, more in members:
                member = tarfile.TarInfo(name)
                for field, value in more.items():
                    setattr(member, field, value)
                member.size = 0 if member.islnk() or member.issym() else 4
                archive.addfile(member, io.BytesIO(b"text"))
        parts.unpack(self.folder / "a.tgz", self.folder / "tree")
        return {str(path.relative_to(self.folder)) for path in self.folder.rglob("*") if not path.is_dir()} - {"a.tgz"}

    def test_files_are_there_with_their_folders_and_can_be_run_where_they_could(self):
        found = self.unpacked(("package/lib/a.so", {"mode": 0o755}), ("package/b.txt", {"mode": 0o4640}))
        self.assertEqual(found, {"tree/package/lib/a.so", "tree/package/b.txt"})
        self.assertEqual((self.folder / "tree/package/lib/a.so").stat().st_mode & 0o7777, 0o755)
        self.assertEqual((self.folder / "tree/package/b.txt").stat().st_mode & 0o7777, 0o644)

    def test_nothing_is_written_outside(self):
        outside = str(self.folder / "absolute")
        found = self.unpacked(("../up", {}), ("package/../../up", {}), (outside, {}), ("package/good", {}))
        self.assertEqual(found, {"tree/package/good"})

    def test_links_are_left_out_so_that_nothing_is_written_through_them(self):
        found = self.unpacked(("package/out", {"type": tarfile.SYMTYPE, "linkname": "../.."}), ("package/out/file", {}),
                              ("package/same", {"type": tarfile.LNKTYPE, "linkname": "/etc/passwd"}))
        self.assertEqual(found, {"tree/package/out/file"})


class Go(unittest.TestCase):
    """One part, of a module whose `go` and `npm` are scripts of this test."""
    NAME = "example.org/some/server@v1.2.3"

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.kept = self.folder / "cache/weir/parts" / self.NAME
        self.placed = self.folder / "parts/bin/server"
        (self.folder / "bin").mkdir()
        other = parts.Part("test", "npm:other@1.0.0", "dist/other.js", "web/other.js", "")
        for patch in (
                unittest.mock.patch.object(parts, "PARTS", self.folder / "parts"),
                unittest.mock.patch.object(parts, "PARTS_LIST",
                                           [parts.Part("test", "go:" + self.NAME, "server", "bin/server", "")]),
                unittest.mock.patch.object(parts, "MODULES",
                                           {"go:" + self.NAME: parts.Module("h1:good=", "core/VERSION", other)}),
                unittest.mock.patch.dict(os.environ, {"XDG_CACHE_HOME": str(self.folder / "cache"),
                                                      "PATH": str(self.folder / "bin")})):
            patch.start()
            self.addCleanup(patch.stop)

    def provide(self, command, script):
        path = self.folder / "bin" / command
        path.write_text(f"#!/bin/sh\nset -e\nPATH=/usr/bin:/bin\n{script}\n")
        path.chmod(0o755)

    def provide_both(self, sum_found):
        with zipfile.ZipFile(self.folder / "module.zip", "w") as module:
            module.writestr(f"{self.NAME}/core/core.go", "")
        (self.folder / "module.json").write_text(json.dumps(
            {"Version": "v1.2.3", "Sum": sum_found, "Zip": str(self.folder / "module.zip")}))
        (self.folder / "package/dist").mkdir(parents=True)
        (self.folder / "package/dist/other.js").write_text("script")
        self.provide("npm", f"tar -czf other-1.0.0.tgz -C {self.folder} package")
        self.provide("go", f"""case "$1 $2" in
            "mod download") cat {self.folder}/module.json ;;
            "build -o") cat core/VERSION web/other.js >"$3/server"; chmod 755 "$3/server" ;;
            esac""")

    def said(self):
        with contextlib.redirect_stderr(io.StringIO()) as said:
            self.assertEqual(parts.main(["test"]), 0)
        return said.getvalue()

    def test_the_program_is_built_with_the_files_that_the_module_lacks_and_kept_for_the_next_clone(self):
        self.provide_both("h1:good=")
        self.assertNotIn("could not be had", self.said())
        for program in (self.placed, self.kept / "server"):
            self.assertEqual(program.read_text(), "v1.2.3script")
            self.assertTrue(os.access(program, os.X_OK))
        self.assertEqual(list(self.kept.parent.iterdir()), [self.kept])

    def test_a_kept_program_is_taken_without_go(self):
        self.kept.mkdir(parents=True)
        (self.kept / "server").write_text("kept")
        self.assertNotIn("could not be had", self.said())
        self.assertEqual(self.placed.read_text(), "kept")

    def test_a_program_that_cannot_be_kept_is_taken_all_the_same(self):
        (self.folder / "cache").write_text("not a folder")
        self.provide_both("h1:good=")
        self.assertNotIn("could not be had", self.said())
        self.assertTrue(self.placed.exists())

    def test_a_module_with_another_sum_is_reported_and_neither_built_nor_kept(self):
        self.provide_both("h1:bad=")
        self.assertIn(f"could not be had: go:{self.NAME}: the module has sum h1:bad=, expected h1:good=", self.said())
        self.assertFalse(self.placed.exists() or self.kept.exists())

    def test_a_missing_go_is_reported(self):
        self.assertRegex(self.said(), f"could not be had: go:{self.NAME}: .*No such file or directory: 'go'")

    def test_the_reason_that_go_gives_is_reported(self):
        self.provide("go", """printf '{\n\t"Error": "no such host"\n}\n'; exit 1""")
        self.assertRegex(self.said(), f'could not be had: go:{self.NAME}: "Error": "no such host"')
        self.provide_both("h1:good=")
        self.provide("go", f"""[ "$1" = build ] || exec cat {self.folder}/module.json
            for i in 1 2 3 4 5 6; do echo "go: downloading some/quite/long/name v1.0.$i" >&2; done
            echo "go: too old" >&2; exit 1""")
        self.assertRegex(self.said(), f"could not be had: go:{self.NAME}: go: too old")


class Run(unittest.TestCase):
    def test_what_takes_too_long_ends_with_all_that_it_has_started(self):
        with tempfile.TemporaryDirectory() as folder, unittest.mock.patch.object(parts, "PATIENCE_S", 0.5):
            os.mkfifo(f"{folder}/held")
            held = os.open(f"{folder}/held", os.O_RDONLY | os.O_NONBLOCK)
            self.addCleanup(os.close, held)
            with self.assertRaises(subprocess.TimeoutExpired):
                parts.run(["sh", "-c", "exec 3>held; sleep 60 & wait"], folder)
            for _ in range(500):
                with contextlib.suppress(BlockingIOError):
                    self.assertEqual(os.read(held, 1), b"")
                    return
                time.sleep(0.01)
            self.fail("something that the command has started still runs")


if __name__ == "__main__":
    unittest.main()

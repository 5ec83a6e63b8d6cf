"""What tools/parts makes of the archives that it is given."""
import importlib.machinery
import importlib.util
import io
import pathlib
import tarfile
import tempfile
import unittest

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


if __name__ == "__main__":
    unittest.main()

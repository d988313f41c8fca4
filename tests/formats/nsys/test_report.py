"""Reports of Nsight Systems, exported by a stand-in of the tool."""

import io
import shutil
import sys
import time
from pathlib import Path

import pytest

from profsvc import formats
from profsvc.errors import BrokenInputError, InputError
from profsvc.workers import process

FIXTURES = Path(__file__).parents[3] / "fixtures"
DATABASE = min(p for p in (FIXTURES / "nsys_sqlite").glob("*.sqlite") if not p.name.startswith("bad_"))
REPORT = b"\0\1 a report"
EXPORTS = f"""
import shutil, sys
from pathlib import Path
assert sys.argv[1:5] == ["export", "--type", "sqlite", "--output"]
assert Path(sys.argv[6]).read_bytes() == {REPORT!r}
shutil.copy({str(DATABASE)!r}, sys.argv[5])
"""


@pytest.fixture
def nsys(tmp_path, monkeypatch):
    """Puts a script of this name on the path."""

    def put(code: str) -> None:
        file = tmp_path / "nsys"
        file.write_text(f"#!{sys.executable} -IS\n{code}", encoding="utf-8")
        file.chmod(0o755)
        monkeypatch.setenv("PATH", str(tmp_path))

    return put


def read(name: str = "my run.nsys-rep", data: bytes = REPORT, form: str | None = None):
    reader, batches = formats.read(io.BytesIO(data), form, name)
    return reader, list(batches)


@pytest.mark.parametrize("name", ["my run.nsys-rep", "OLD.QDREP"])
def test_where_the_tool_is_a_report_is_read_as_its_database(nsys, name):
    nsys(EXPORTS)
    (exported, batches), (reader, expected) = read(name), read(data=DATABASE.read_bytes(), form="nsys-sqlite")
    assert exported is reader
    assert sum(b.lines_stored for b in batches) == sum(b.lines_stored for b in expected) > 0
    assert sum(len(b.tables.get("launches", ())) for b in batches) > 0


def test_without_the_tool_the_command_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InputError, match=r"nsys export --type sqlite -o 'my run'.sqlite 'my run'.nsys-rep"):
        read()


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("import sys; print('bad\\nmagic'); sys.exit(3)", r"exit status 3: bad magic\); export it where it opens"),
        ("", r"nsys cannot export the report \(exit status 0\)"),
        ("import sys; open(sys.argv[5], 'wb').write(b'SQLite format 3\\0' + bytes(99))", "the database ends inside a"),
        ("import sys; open(sys.argv[5], 'wb').truncate(1 << 50)", "exit status"),
        ("bytearray(1 << 50)", "MemoryError"),
    ],
)
def test_an_export_that_fails_ends_as_a_sentence(nsys, code, words):
    nsys(code)
    with pytest.raises(BrokenInputError, match=words):
        read()


def test_an_export_that_hangs_is_ended_with_its_children(nsys, monkeypatch, tmp_path):
    mark = tmp_path / "mark"
    sleeper = shutil.which("sleep")
    nsys(f"import subprocess, pathlib\np = subprocess.Popen(['{sleeper}', '600'])\n"
         f"pathlib.Path({str(mark)!r}).write_text(str(p.pid))\np.wait()")  # fmt: skip
    monkeypatch.setattr(process, "WAIT_FACTOR", 0.03)
    began = time.monotonic()
    with pytest.raises(BrokenInputError, match="the Nsight Systems report needs more memory or time than a valid one"):
        read()
    assert time.monotonic() - began < 20
    child = Path("/proc", mark.read_text())
    while child.exists() and "sleep" in (child / "cmdline").read_text() and time.monotonic() - began < 20:
        time.sleep(0.05)
    assert not child.exists() or "sleep" not in (child / "cmdline").read_text()


def test_a_text_of_that_name_is_read_as_what_it_is(nsys):
    nsys("raise SystemExit(1)")
    reader, _ = read(data=(FIXTURES / "ncu_raw" / "plain.csv").read_bytes())
    assert reader.NAME == "ncu-raw"

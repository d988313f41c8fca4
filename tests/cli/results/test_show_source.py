"""``show --source``: text, JSON, rows, a folder with the source files, and paths that lead out of it."""

import json
from pathlib import Path

import pytest

from profsvc.cli.results.source_files import add_source_texts
from profsvc.errors import NotFoundError
from tests.cli.conftest import Call

PAGE = (
    '"File Path","{file}"\n"Function Name","saxpy(float *)"\n"Line No","Source","# Samples","stall_lg"\n'
    '"2","-","90","80"\n"7","-","10","0"\n'
)


@pytest.fixture
def page(cli: Call, tmp_path: Path) -> Path:
    """A page that names its lines without their text, in the run ``r``."""
    path = tmp_path / "source.csv"
    path.write_text(PAGE.format(file="/build/src/saxpy.cu"))
    assert cli("upload", path, "--run", "r").code == 0
    return path


def test_text_names_the_top_lines_first(cli: Call, page: Path) -> None:
    result = cli("show", "r", "--kernel", "saxpy", "--source")
    assert (result.code, result.err) == (0, "")
    lines = result.out.splitlines()
    assert lines[2:4] == [
        "   saxpy.cu line 2: 90.0 % of the samples, LG Throttle",
        "   saxpy.cu line 7: 10.0 % of the samples",
    ]
    assert "(no source text)" in result.out


def test_texts_are_read_from_a_folder(cli: Call, page: Path, tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "saxpy.cu").write_text("\n    y += a * x;\n")
    result = cli("show", "r", "--source", "--source-folder", tmp_path)
    assert "y += a * x;" in result.out
    shown = json.loads(cli("show", "r", "--source", "--source-folder", tmp_path, "-o", "json").out)
    assert [(line["source_line"], line["source_text"]) for line in shown["lines"]] == [(2, "y += a * x;"), (7, None)]
    rows = cli("show", "r", "--source", "-o", "csv").out.splitlines()
    assert rows[0].startswith("file,source_line,source_text,samples,")
    assert rows[1].startswith("/build/src/saxpy.cu,2,,90,0.9,LG Throttle,")


def test_files_of_the_same_name_are_told_apart(cli: Call, tmp_path: Path) -> None:
    one = PAGE.format(file="/build/mesh/step.cu").replace('"2","-"', '"2","\ty = \u00e9[x];"')
    other = PAGE.format(file=r"C:\build\flow\step.cu").split("\n", 2)
    (tmp_path / "two.csv").write_text(one + other[0] + "\n" + other[1] + "\n" + other[2], encoding="utf-8")
    assert cli("upload", tmp_path / "two.csv", "--run", "two").code == 0
    shown = cli("show", "two", "--kernel", "saxpy", "--source").out
    assert "mesh/step.cu line 2: " in shown
    assert "flow/step.cu line 2: " in shown
    assert "y = \u00e9[x];" in shown


def test_only_line_feeds_end_the_lines_of_a_source_file(cli: Call, page: Path, tmp_path: Path) -> None:
    text = "\ufeff\f// section\u2028 one\r\n\tgr\u00fc\u00dfe = 1;\r\n"
    (tmp_path / "saxpy.cu").write_bytes(text.encode())
    assert "gr\u00fc\u00dfe = 1;" in cli("show", "r", "--source", "--source-folder", tmp_path).out
    # Bytes that are no UTF-8 are shown as such, and move no line.
    (tmp_path / "saxpy.cu").write_bytes("\n\tgr\u00fc\u00dfe = 1;\n".encode("latin-1"))
    assert "gr\ufffd\ufffde = 1;" in cli("show", "r", "--source", "--source-folder", tmp_path).out


def test_what_is_not_there_is_said(cli: Call, page: Path, tmp_path: Path) -> None:
    result = cli("show", "r", "--source", "--source-folder", tmp_path)
    assert (result.code, result.err) == (0, f"{tmp_path} has no file /build/src/saxpy.cu\n")
    assert cli("show", "r", "--source", "--source-folder", tmp_path / "no").code == 3
    assert cli("show", "r", "--source-folder", tmp_path).code == 2
    assert cli("show", "r", "--kernel", "sgemm", "--source").code == 3


@pytest.mark.parametrize(
    "name",
    [
        "../secret.cu",
        "/../../secret.cu",
        "..\\secret.cu",
        "C:\\..\\secret.cu",
        "link/secret.cu",
        "a" * 5000,
        "\x00",
        ".",
    ],
)
def test_no_file_outside_the_folder_is_read(tmp_path: Path, name: str) -> None:
    (tmp_path / "secret.cu").write_text("secret")
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "link").symlink_to(tmp_path)
    line = {"file": name, "source_line": 1, "source_text": None}
    assert add_source_texts({"lines": [line]}, folder) == [name]
    assert line["source_text"] is None


def test_a_folder_must_be_one(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="is not a folder"):
        add_source_texts({"lines": []}, tmp_path / "no")


AFTER = PAGE.replace('"2","-","90","80"', '"3","-","30","20"').replace('"7","-","10","0"', '"7","-","70","60"')


def test_lines_are_compared_with_those_of_an_earlier_run(cli: Call, page: Path, tmp_path: Path) -> None:
    later = tmp_path / "later.csv"
    later.write_text(AFTER.format(file="/build/src/saxpy.cu"))
    assert cli("upload", later, "--run", "s").code == 0
    asked = ("show", "s", "--kernel", "saxpy", "--source", "--before", "r")
    rows = json.loads(cli(*asked, "-o", "json").out)["lines"]
    assert [(row["source_line_before"], row["source_line"]) for row in rows] == [(2, None), (7, 7), (None, 3)]
    assert [row["change_ns"] for row in rows] == [None] * 3, "no profile with durations was uploaded"
    out = cli(*asked).out.splitlines()
    assert out[0] == "before: #0 saxpy(float *) of r"
    assert [line.split()[:4] for line in out[4:7]] == [
        ["90.0", "%", "-", "LG"],
        ["10.0", "%", "70.0", "%"],
        ["-", "30.0", "%", "LG"],
    ]
    assert "saxpy.cu:7" in out[5]
    csv = cli(*asked, "-o", "csv").out.splitlines()
    assert csv[0].startswith("file,source_line_before,source_line,source_text,time_ns_before")
    assert len(csv) == 4


def test_a_comparison_by_line_needs_source(cli: Call, page: Path) -> None:
    result = cli("show", "r", "--kernel", "saxpy", "--before", "r")
    assert (result.code, result.out) == (2, "")
    assert "--before needs --source" in result.err

"""``upload`` of several files and of folders: into one run, beside bad ones, and stopped half way."""

import io
import os
import re
import shutil
import sys
from pathlib import Path

import pytest

from profsvc import pipeline, store
from profsvc.cli.console import verbosity
from profsvc.cli.load import upload
from profsvc.errors import InputError, ServiceError
from profsvc.pipeline import analysis
from tests.cli.load.test_upload import BAD, PLAIN, select


def test_a_folder_is_walked_into_one_run(cli, fixtures, store_file, tmp_path):
    folder = tmp_path / "results" / "deeper"
    folder.mkdir(parents=True)
    shutil.copy(fixtures / PLAIN, folder.parent / "first.csv")
    shutil.copy(fixtures / "ncu_details" / "columns_16.csv", folder)
    assert cli("upload", folder.parent).code == 0
    assert [run["name"] for run in select(store_file, "v1_runs")] == ["columns_16"]
    assert {upload["file_name"] for upload in select(store_file, "v1_uploads")} == {"first.csv", "columns_16.csv"}


def test_an_empty_folder_is_not_found(cli, tmp_path):
    (tmp_path / "empty").mkdir()
    assert cli("upload", tmp_path / "empty").code == 3


def test_good_files_are_stored_beside_bad_ones(cli, fixtures, store_file):
    result = cli("upload", fixtures / BAD, fixtures / PLAIN)
    assert result.code == 7
    assert result.err.endswith("Error: 1 of 2 files was refused\n")
    result = cli("upload", fixtures / BAD, fixtures / BAD, fixtures / PLAIN)
    assert result.err.endswith("Error: 2 of 3 files were refused\n")
    assert [u["file_name"] for u in select(store_file, "v1_uploads")] == ["plain.csv"]


def test_hidden_files_of_a_folder_are_left_alone(cli, fixtures, store_file, tmp_path):
    (tmp_path / ".cache").mkdir()
    for place in (".cache/seen.csv", ".hidden.csv", "seen.csv"):
        shutil.copy(fixtures / PLAIN, tmp_path / place)
    result = cli("upload", tmp_path)
    assert result.code == 0
    assert result.err.count("stored as upload") == 1
    assert "seen.csv" in result.err
    assert cli("upload", tmp_path / ".hidden.csv").code == 0


def test_what_a_folder_holds_and_is_not_read_is_told(cli, fixtures, store_file, tmp_path, monkeypatch):
    for name in ("locked", "elsewhere"):
        (tmp_path / "given" / name).mkdir(parents=True)
    folder = tmp_path / "given"
    shutil.copy(fixtures / PLAIN, folder / "plain.csv")
    (folder / "link.csv").symlink_to("nowhere")
    (folder / "elsewhere" / "circle").symlink_to(folder)
    (folder / "empty.csv").touch()
    os.mkfifo(folder / "pipe.csv")
    listed = os.scandir

    def scandir(place: Path) -> object:
        if Path(place).name == "locked":
            raise PermissionError(13, "Permission denied", str(place))
        return listed(place)

    monkeypatch.setattr(os, "scandir", scandir)
    result = cli("upload", folder)
    assert result.code == 7
    refusals = {
        "link.csv": "it is a link to 'nowhere', which is not there; remove or mend the link",
        "elsewhere/circle": "it is a link to a folder, which is not followed; give that folder itself",
        "empty.csv": "empty.csv is empty; re-run the export",
        "pipe.csv": "it is a pipe, a socket or a device, not a file; to read a pipe, give its name to profsvc upload",
        "locked": "its files cannot be listed; give yourself the right to read and enter this folder",
    }
    for name, reason in refusals.items():
        assert f"{folder / name}: refused: {reason}" in result.err
    assert result.err.count("refused:") == len(refusals)
    assert result.err.endswith("Error: 5 of 6 files were refused\n")
    (folder / "plain.csv").unlink()
    assert cli("upload", folder).code == 6


def test_a_run_of_several_files_is_analyzed_once(cli, fixtures, store_file, monkeypatch):
    files = [fixtures / "ncu_raw" / name for name in ("plain.csv", "swiss.csv", "french.csv")]
    analyzed = []
    analyze = analysis.analyze
    monkeypatch.setattr(
        analysis, "analyze", lambda *given, **how: (analyzed.append(given[1]), analyze(*given, **how))[1]
    )
    assert cli("upload", *files, fixtures / BAD, "--run", "r").code == 7
    assert analyzed == [1]
    together = [row | {"run_id": 1} for row in select(store_file, "v1_criteria")]
    store_file.unlink()
    for file in files:
        assert cli("upload", file, "--run", "r").code == 0
    assert analyzed == [1] * 4
    assert select(store_file, "v1_criteria") == together


@pytest.mark.parametrize("error", [KeyboardInterrupt(), ServiceError("the disk is full")], ids=["Ctrl-C", "disk"])
def test_an_upload_that_stops_says_what_is_not_computed_yet(cli, fixtures, store_file, monkeypatch, error):
    def ingest(engine, stream, name, *given, **how):
        if name == "swiss.csv":
            raise error
        return stored(engine, stream, name, *given, **how)

    stored = pipeline.ingest
    monkeypatch.setattr(pipeline, "ingest", ingest)
    files = fixtures / PLAIN, fixtures / "ncu_raw" / "swiss.csv", fixtures / "ncu_raw" / "french.csv"
    said = cli("upload", *files, "--run", "r")
    assert said.code in (5, 130)
    assert "stopped after 1 of 3 files; the same command goes on" in said.err
    assert "profsvc analyze id:1" in said.err
    monkeypatch.undo()
    monkeypatch.setenv("PROFSVC_STORE", str(store_file))
    assert not select(store_file, "v1_criteria")
    waits = "the results of this run are not computed yet, or were cut short; run: profsvc analyze id:1"
    launch = ("--kernel", "0")
    for asked in (("show", "r"), ("show", "r", *launch), ("explain", "divergence", "--run", "r", *launch)):
        assert waits in " ".join(cli(*asked).out.split())
    assert cli("upload", *files, "--run", "r").code == 0
    assert len(select(store_file, "v1_uploads")) == 3
    assert select(store_file, "v1_criteria")


def terminal(monkeypatch):
    """Make stderr a terminal; return a function that returns what it shows."""

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    shown = Terminal()
    monkeypatch.setattr(sys, "stderr", shown)
    monkeypatch.setenv("TERM", "dumb")
    return lambda: re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown.getvalue())


def stored(count, folder):
    """Store so many files of which the third is refused, the second known, and the fourth has a note."""
    names = [folder / f"{number}.csv" for number in range(count)]
    for name in names:
        name.touch()

    def take(_stream, name, _progress, _info, _more):
        if name == "2.csv":
            raise InputError("it has no rows")
        message = "a note" if name == "3.csv" else ""
        return pipeline.ImportResult(name, known=name == "1.csv", run_id=7, run="ci", upload_id=1, message=message)

    return upload.store_files(list(map(str, names)), upload.Taking(take), store.RunInfo(name="ci"))


def test_many_files_on_a_terminal_have_a_summary_that_lists_the_refused(tmp_path, monkeypatch):
    shown = terminal(monkeypatch)
    verdicts, refused = stored(12, tmp_path)
    assert (len(verdicts), refused) == (11, 1)
    told = shown()
    assert re.search(r"12 files in [\d.]+ s: 10 stored, 1 already stored, 1 refused; run 'ci' \(id 7\)\n", told)
    assert f"{tmp_path / '2.csv'}: refused: it has no rows\n" in told
    assert "1 file has notes or warnings; --verbose prints each, -o json has all\n" in told
    assert "stored as upload" not in told


def test_few_files_on_a_terminal_and_many_with_verbose_have_a_line_each(tmp_path, monkeypatch):
    shown = terminal(monkeypatch)
    stored(10, tmp_path)
    assert shown().count("stored as upload") == 9
    monkeypatch.setattr(verbosity, "level", verbosity.VERBOSE)
    stored(12, tmp_path)
    assert shown().count("stored as upload") == 20
    assert "files in" not in shown()


def test_what_was_refused_of_many_files_is_told_where_the_upload_stops(tmp_path, monkeypatch):
    shown = terminal(monkeypatch)

    def take(_stream, name, _progress, _info, _more):
        raise InputError("it has no rows") if name == "2.csv" else ServiceError("the disk is full")

    for number in range(2, 14):
        (tmp_path / f"{number}.csv").touch()
    with pytest.raises(ServiceError):
        upload.store_files([str(tmp_path / f"{n}.csv") for n in range(2, 14)], upload.Taking(take), store.RunInfo())
    assert "2.csv: refused: it has no rows" in shown()


def test_a_folder_without_a_run_says_that_its_files_share_one(cli, fixtures, tmp_path):
    for name in ("plain.csv", "swiss.csv"):
        (tmp_path / name).write_bytes((fixtures / "ncu_raw" / name).read_bytes())
    said = "the 2 files are stored in one run, as given without --run; for a run of each: profsvc ingest\n"
    assert cli("upload", tmp_path, "--check").err.startswith(said)
    assert said not in cli("upload", tmp_path, "--run", "mine", "--check").err
    assert said not in cli("upload", *tmp_path.iterdir(), "--check").err

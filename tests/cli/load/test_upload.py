"""``upload`` and ``analyze``."""

import gzip
import io
import json
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from profsvc import store

PLAIN = "ncu_raw/plain.csv"
BAD = "ncu_raw/bad_contradicting_numbers.csv"


def select(file: Path, view: str, **only: object) -> list[dict]:
    engine = store.open_store(str(file), pooled=True)
    try:
        return store.select(engine, view, **only)
    finally:
        engine.dispose()


def test_a_file_is_stored_and_every_line_accounted_for(cli, fixtures, store_file):
    result = cli("upload", fixtures / PLAIN)
    assert result.code == 0
    assert result.out == ""
    assert "stored as upload 1 of run 'plain' (id 1); 2 launches; of 4 lines 2 stored, 2 skipped, 0 rej" in result.err
    assert [run["launches"] for run in select(store_file, "v1_runs")] == [2]
    assert len(select(store_file, "v1_criteria")) > 0


def test_a_source_page_of_kernels_without_lines_says_what_to_export(cli, tmp_path):
    file = tmp_path / "source.csv"
    file.write_text("==WARNING== No lineinfo available to show CUDA-C source related to 'vote_local'.\n" * 2)
    result = cli("upload", file)
    assert result.code != 0
    assert "2 launches without line information, of which the page shows nothing" in result.err
    assert "--print-source sass" in result.err
    assert "cuda,sass" not in result.err


def test_what_is_given_is_kept_with_the_run(cli, fixtures, store_file):
    given = ("--run", "nightly", "--project", "lab", "--tag", "branch=main", "--tag", "note=a=b", "--commit", "c0ffee")
    assert cli("upload", fixtures / PLAIN, *given).code == 0
    (run,) = select(store_file, "v1_runs")
    assert (run["project"], run["name"], run["commit_id"]) == ("lab", "nightly", "c0ffee")
    assert json.loads(run["tags"]) == {"branch": "main", "note": "a=b"}


def test_a_device_is_given_where_the_file_names_none(cli, fixtures, store_file, tmp_path):
    lines = (fixtures / PLAIN).read_text().replace("NVIDIA H200", "")
    (tmp_path / "nameless.csv").write_text(lines)
    assert cli("upload", tmp_path / "nameless.csv", "--device", "NVIDIA A100-SXM4-40GB").code == 0
    assert select(store_file, "v1_runs")[0]["device"] == "NVIDIA A100-SXM4-40GB"


@pytest.mark.parametrize("packed", [False, True])
def test_stdin_and_compressed_bytes_are_read(cli, fixtures, store_file, packed):
    content = (fixtures / PLAIN).read_bytes()
    result = cli("upload", "-", "--run", "piped", stdin=gzip.compress(content) if packed else content)
    assert result.code == 0
    assert [u["file_name"] for u in select(store_file, "v1_uploads")] == ["stdin"]


def test_the_same_bytes_twice_change_nothing(cli, fixtures, rows_sha: Callable[[], str]):
    assert cli("upload", fixtures / PLAIN).code == 0
    before = rows_sha()
    again = cli("upload", fixtures / PLAIN, "--run", "plain")
    assert again.code == 0
    assert "already stored as upload 1 of run 'plain'" in again.err
    assert "2 launches; of 4 lines 2 stored, 2 skipped, 0 rejected" in again.err
    assert rows_sha() == before


def test_check_stores_nothing_and_makes_no_store(cli, fixtures, store_file):
    result = cli("upload", "--check", fixtures / PLAIN)
    assert result.code == 0
    assert "ncu-raw, would store 2 launches; of 4 lines 2 stored, 2 skipped, 0 rejected" in result.err
    assert not store_file.exists()
    assert cli("upload", "--check", fixtures / BAD).code == 6
    assert not store_file.exists()


def test_verdicts_are_data_when_asked_for(cli, fixtures):
    result = cli("upload", fixtures / PLAIN, "-o", "json")
    (row,) = json.loads(result.out)["rows"]
    assert (row["run_id"], row["launches"], row["lines"], row["known"]) == (1, 2, 4, False)


@pytest.mark.parametrize("tag", ["main", "=main", ""])
def test_a_tag_without_a_key_is_a_wrong_question(cli, fixtures, store_file, tag):
    result = cli("upload", fixtures / PLAIN, "--tag", tag)
    assert result.code == 2
    assert result.err == f"Error: --tag {tag!r} must look like KEY=VALUE, such as branch=main\n"
    assert not store_file.exists()


def test_an_unknown_form_is_refused_before_anything_is_stored(cli, fixtures, store_file):
    result = cli("upload", fixtures / PLAIN, "-o", "xml")
    assert result.code == 2
    assert "choose one of table, csv, json, ndjson, md, parquet" in result.err
    assert not store_file.exists()


def test_a_missing_file_is_not_found_and_stops_the_others(cli, fixtures, store_file):
    result = cli("upload", fixtures / PLAIN, "nowhere.csv")
    assert result.code == 3
    assert result.err == "Error: no file 'nowhere.csv'; give an existing file, a folder, or - for stdin\n"
    assert not store_file.exists()


def test_a_file_that_cannot_be_opened_is_refused(cli, fixtures, monkeypatch):
    denied, open_any = fixtures / PLAIN, Path.open

    def opened(path: Path, *arguments: object, **options: object) -> object:
        if path == denied:
            raise PermissionError(13, "Permission denied")
        return open_any(path, *arguments, **options)

    monkeypatch.setattr(Path, "open", opened)
    result = cli("upload", denied)
    assert result.code == 6
    assert "refused: it cannot be read: Permission denied" in result.err


def test_a_quiet_upload_still_says_why_a_file_is_refused(cli, fixtures):
    result = cli("-q", "upload", fixtures / "ncu_raw" / "bad_cut_gzip.csv.gz")
    assert result.code == 6
    assert "bad_cut_gzip.csv.gz: refused: " in result.err


@pytest.mark.parametrize(
    "name", ["bad_contradicting_numbers.csv", "bad_cut_gzip.csv.gz", "bad_undecidable_numbers.csv"]
)
def test_a_refused_file_is_one_sentence_and_leaves_nothing(cli, fixtures, store_file, name):
    result = cli("upload", fixtures / "ncu_raw" / name)
    assert result.code == 6
    first, last = result.err.splitlines()
    assert ": refused: " in first
    assert last == "Error: nothing was stored"
    assert select(store_file, "v1_runs") == []


def test_an_unknown_format_name_lists_the_known(cli, fixtures):
    result = cli("upload", fixtures / PLAIN, "--format", "ncu-rwa")
    assert result.code == 3
    assert "did you mean 'ncu-raw'" in result.err


def test_a_file_name_that_is_not_text_is_stored(cli, fixtures, store_file, tmp_path):
    file = Path(tmp_path, b"caf\xe9\x1b[2J.csv".decode("utf-8", "surrogateescape"))
    try:
        shutil.copy(fixtures / PLAIN, file)
    except OSError:
        pytest.skip("this file system takes only names in UTF-8")
    result = cli("upload", file)
    assert result.code == 0
    assert "\x1b" not in result.err
    assert select(store_file, "v1_uploads")[0]["file_name"] == "caf\\xe9\x1b[2J.csv"
    assert "\x1b" not in cli("show", "1").out


def test_a_terminal_gets_a_bar_and_no_bytes_of_a_name(cli, fixtures, store_file, tmp_path, monkeypatch):
    from profsvc.cli.load import upload

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    file, terminal = tmp_path / "[red]\x1b]0;a.csv", Terminal()
    shutil.copy(fixtures / PLAIN, file)
    monkeypatch.setattr(sys, "stderr", terminal)
    seen = []
    upload.one(str(file), lambda stream, name, progress: seen.append((name, progress(len(stream.read())))))
    assert seen == [(file.name, None)]
    assert "[red]\\x1b]0;a.csv" in terminal.getvalue()
    assert "100%" in terminal.getvalue()


@pytest.mark.usefixtures("computed")
def test_analyze_recomputes_the_same(cli, fixtures, rows_sha):
    cli("upload", fixtures / PLAIN)
    before = rows_sha()
    for asked in (["plain"], ["1"], ["--all"]):
        result = cli("analyze", *asked)
        assert (result.code, result.out, result.err) == (0, "", "run 1: 2 launches recomputed\n")
    assert rows_sha() == before
    assert cli("analyze").code == 2
    assert cli("analyze", "plian").code == 3


def test_a_zone_that_does_not_exist_is_refused_before_any_file(cli, fixtures):
    cli("upload", fixtures / PLAIN)
    result = cli("upload", fixtures / PLAIN, "--timezone", "Mars/One")
    assert (result.code, result.out) == (2, "")
    assert "no time zone is named 'Mars/One'; give an IANA name" in result.err


def test_a_log_that_is_stored_already_is_not_said_to_hold_no_launches(cli, fixtures):
    assert "33 samples" in cli("upload", fixtures / "nvidia_smi" / "units.csv").err
    assert "nothing changed; of 4 lines 3 stored" in cli("upload", fixtures / "nvidia_smi" / "units.csv").err


def test_an_upload_without_launches_says_what_it_holds(cli, fixtures):
    said = cli("upload", fixtures / "nvprof" / "summary_without_types.csv").err
    assert "; 2 summaries and no launches; of 11 lines 2 stored" in said
    said = cli("upload", "--check", fixtures / "rocprof" / "memory_copy_trace.csv").err
    assert "would store 2 transfers and no launches; of 3 lines 2 stored" in said


def test_a_source_page_is_told_by_its_lines(cli, fixtures):
    for path in ("ncu_raw_base.csv.gz", "ncu_source.csv.gz"):
        said = cli("upload", "--run", "r", fixtures / "h200_report" / path).err
    assert "; 187 source lines; of 384 lines 187 stored" in said
    assert "no launches" not in said


def test_marks_are_told_by_their_phases(cli, fixtures, tmp_path):
    checked = cli("upload", "--check", fixtures / "marks" / "h200.csv")
    stored = cli("upload", fixtures / "marks" / "h200.csv")
    count = stored.err.partition("; ")[2].partition(" phases; of ")[0]
    assert int(count) == (fixtures / "marks" / "h200.csv").read_text(encoding="utf-8").count(",begin,")
    assert f"would store {count} phases; of " in checked.err
    assert "no launches" not in checked.err + stored.err
    (tmp_path / "one.csv").write_text("name,begin,end\nmix,1795180576,1795180586\n", encoding="utf-8")
    assert "; 1 phase; of 2 lines" in cli("upload", tmp_path / "one.csv").err


def test_a_pair_that_is_none_is_refused_in_the_words_of_its_option(cli):
    assert "--tag 'x' must look like KEY=VALUE, such as branch=main" in cli("upload", "x.csv", "--tag", "x").err
    assert "--map 'x' must look like OLD=NEW" in cli("compare", "a", "b", "--map", "x").err


def test_rejected_lines_come_with_the_question_why(cli, fixtures):
    said = cli("upload", fixtures / "characterization" / "rejects.csv").err
    command = said.partition("why lines were rejected: profsvc ")[2].splitlines()[0]
    head, *rows = cli(*shlex.split(command)).out.splitlines()
    assert head.split() == ["line", "reason", "text"]
    assert rows
    assert "why lines" not in cli("upload", fixtures / PLAIN).err


def test_a_run_that_is_named_is_made_although_the_bytes_are_known_elsewhere(cli, fixtures):
    file = fixtures / "ncu_raw" / "plain.csv"
    assert cli("upload", file, "--run", "old").code == 0
    made = cli("upload", file, "--run", "new", "--tag", "a=b")
    assert (made.code, "stored as upload 2 of run 'new' (id 2)" in made.err) == (0, True)
    assert cli("show", "new").code == 0
    again = cli("upload", file, "--run", "new", "--tag", "a=c", "--commit", "c0ffee")
    assert "already stored as upload 2 of run 'new' (id 2), commit_id, tag a of the run changed" in again.err


NOTHING = {
    "no row below the header": ("timestamp, power.draw [W]\n", "no readings"),
    "rows that are none": ("Time (s),Power (W)\nx,1\ny,2\n", "line 2: time 'x' cannot be read"),
    "readings without a value": (
        "Timestamp,Power (W)\n2026-01-01 00:00:00,OL\n2026-01-01 00:00:01,OL\n",
        "has a value",
    ),
    "a profile of no kernel": ('"ID","Process ID","Process Name","Kernel Name"\n"","","",""\n', "no launches"),
}


@pytest.mark.parametrize("name", NOTHING)
def test_a_file_with_nothing_in_it_is_no_success_and_is_tried_again(cli, store_file, tmp_path, name):
    text, why = NOTHING[name]
    reader = "timeseries" if text.startswith("T") else "nvidia-smi" if text.startswith("t") else "ncu-raw"
    (tmp_path / "a.csv").write_text(text, encoding="utf-8")
    for _ in range(2):
        said = cli("upload", tmp_path / "a.csv", "--format", reader)
        assert (said.code, why in said.err, "already stored" in said.err) == (6, True, False), said.err
        assert said.err.endswith("Error: nothing was stored\n")
    assert cli("upload", "--check", tmp_path / "a.csv", "--format", reader).code == 6
    assert select(store_file, "v1_uploads") == []


def test_one_file_with_nothing_in_it_beside_another_is_partly_stored(cli, fixtures, tmp_path):
    (tmp_path / "a.csv").write_text(NOTHING["a profile of no kernel"][0], encoding="utf-8")
    said = cli("upload", fixtures / PLAIN, tmp_path / "a.csv")
    assert (said.code, "1 of 2 files was refused" in said.err) == (7, True)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no full device")
@pytest.mark.parametrize("command", [("runs",), ("sql", "select 1 as a", "-o", "csv"), ("formats", "-o", "json")])
def test_a_full_disk_under_the_output_is_said_as_that(cli, fixtures, store_file, command):
    assert cli("upload", fixtures / PLAIN).code == 0
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "profsvc", "--store", store_file, *command],
            stdout=full, stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
    assert done.returncode == 5
    assert (
        done.stderr == "Error: the output cannot be written: no space is left on the disk; free some space and repeat\n"
    )

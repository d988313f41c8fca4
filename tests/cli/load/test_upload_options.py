"""Options that say how a log is read: kept with the upload, told when the same bytes come again; ``delete``."""

import json

import pytest

from tests.cli.load.test_upload import select

COLUMNS = ("--column", "t0=time:ms", "--column", "P=power:mW", "--column", "Die temp=temperature:degC")


@pytest.fixture
def log(tmp_path):
    file = tmp_path / "mine.csv"
    file.write_text("t0;P;Die temp\n0,5;12,5;20,5\n1,5;13,5;OPEN\n", encoding="utf-8")
    return file


def test_what_the_user_says_is_stored_and_kept(cli, log, store_file):
    result = cli("upload", log, *COLUMNS, "--position", "Die temp=3.5,-0.25")
    assert result.code == 0
    assert "timeseries stored as upload 1 of run 'mine' (id 1); 4 samples" in result.err
    sensors = {row["name"]: row for row in select(store_file, "v1_sensors")}
    assert (sensors["P"]["quantity"], sensors["P"]["unit"], sensors["P"]["x_mm"]) == ("power", "W", None)
    assert (sensors["Die temp"]["x_mm"], sensors["Die temp"]["y_mm"]) == (3.5, -0.25)
    assert [row["value"] for row in select(store_file, "v1_samples", quantity="power")] == [0.0125, 0.0135]
    facts = json.loads(select(store_file, "v1_uploads")[0]["facts"])
    assert facts["columns"] == "t0=time:ms P=power:mW 'Die temp=temperature:degC'"
    assert facts["positions"] == "'Die temp=3.5,-0.25'"


def test_places_are_shown_only_where_there_are_any(cli, log):
    cli("upload", log, *COLUMNS, "--run", "plain")
    assert "x_mm" not in cli("show", "plain", "--all").out
    cli("delete", "plain", "--all", "--yes")
    cli("upload", log, *COLUMNS, "--position", "Die temp=3.5,-0.25", "--run", "placed")
    (line,) = [line for line in cli("show", "placed", "--all").out.splitlines() if line.startswith("temperature ")]
    assert line.split()[3:5] == ["3.5", "-0.25"]


def test_checking_and_storing_warn_of_the_same(cli, log):
    for options in (("--check",), ()):
        result = cli("upload", log, *COLUMNS, *options)
        assert "\n  warning: Die temp: 1 of 2 readings have no value\n" in result.err


def test_only_the_first_warnings_are_told(cli, tmp_path):
    names = [f"T{n} (C)" for n in range(8)]
    rows = [",".join(["Time (s)", *names]), ",".join(["0", *["OPEN"] * 8]), ",".join(["1", *["20"] * 8])]
    (tmp_path / "many.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    result = cli("upload", tmp_path / "many.csv", "--check")
    assert result.err.count("warning: T") == 5
    assert result.err.endswith("warning: and 3 more channels: profsvc show\n")


def test_a_column_without_a_unit_is_told_how_to_give_it(cli, tmp_path):
    log = tmp_path / "meter.csv"
    log.write_text("Date,Total Power\n2025-02-14 14:30:00,7.45\n2025-02-14 14:30:01,8.45\n", encoding="utf-8")
    told = "\n  to give a column its unit: --column 'NAME=power:W'"
    assert cli("upload", log, "--check").err.endswith(f"{told}\n")
    assert cli("upload", log, "--run", "m").err.endswith(f"{told}, after: profsvc delete id:1 --upload 1\n")
    told = cli("power", "m").err
    assert "profsvc delete id:1 --upload 1, and upload the file with --column 'Total Power=power:W'" in told
    cli("delete", "1", "--upload", "1", "--yes")
    assert "to give" not in cli("upload", log, "--run", "m", "--column", "Total Power=power:W").err
    assert "2 readings of Total Power" in cli("power", "m").out


@pytest.mark.parametrize(
    ("again", "words"),
    [
        (COLUMNS, ""),
        ((), "it was read with --column t0=time:ms P=power:mW 'Die temp=temperature:degC' and stays as it was"),
        ((*COLUMNS[:4],), "it was read with --column t0=time:ms P=power:mW"),
        ((*COLUMNS, "--timezone", "UTC"), "it was read with no --timezone and stays as it was read"),
        ((*COLUMNS, "--clock-offset", "2"), "it was read with no --clock-offset and stays"),
        ((*COLUMNS, "--position", "P=1,2"), "it was read with no --position and stays"),
        (("--format", "hioki"), "--format timeseries and stays as it was read; to read it differently, delete it"),
    ],
)
def test_the_same_bytes_with_other_options_are_not_silent(cli, log, rows_sha, again, words):
    cli("upload", log, *COLUMNS)
    before = rows_sha()
    result = cli("upload", log, *again)
    assert result.code == 0
    assert "already stored as upload 1 of run 'mine' (id 1), nothing changed" in result.err
    assert rows_sha() == before
    assert ("it was read with" in result.err) == bool(words)
    assert words in result.err
    assert ("profsvc delete id:1 --upload 1, and upload it again" in result.err) == bool(words)


def test_the_zone_of_a_stored_log_is_changed_by_deleting_it(cli, fixtures, store_file):
    meter = fixtures / "hioki" / "pw3335.csv"
    cli("upload", meter, "--timezone", "Europe/Berlin", "--run", "r")
    first = [row["time_ns"] for row in select(store_file, "v1_samples")]
    told = cli("upload", meter, "--timezone", "UTC", "--run", "r").err
    assert "it was read with --timezone Europe/Berlin and stays as it was read" in told
    assert [row["time_ns"] for row in select(store_file, "v1_samples")] == first
    assert "\nupload 1 (pw3335.csv) of run 'r' (id 1) deleted;" in cli("delete", "r", "--upload", "1", "--yes").err
    assert select(store_file, "v1_samples") == []
    cli("upload", meter, "--timezone", "UTC", "--run", "r")
    assert [row["time_ns"] - 3600 * 10**9 for row in select(store_file, "v1_samples")] == first


def test_options_that_act_on_no_samples_are_not_missed(cli, fixtures):
    cli("upload", fixtures / "ncu_raw" / "plain.csv")
    assert "it was read" not in cli("upload", fixtures / "ncu_raw" / "plain.csv", "--timezone", "UTC").err


def test_a_place_of_no_channel_is_refused(cli, log, store_file):
    result = cli("upload", log, *COLUMNS, "--position", "Die tmp=1,2")
    assert result.code == 6
    assert "refused: --position: no channel named 'Die tmp'; did you mean 'Die temp'?" in result.err
    assert select(store_file, "v1_uploads") == []


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--column", "P"), "--column 'P' must look like NAME=QUANTITY"),
        (("--position", "P"), "--position 'P' must look like CHANNEL=X,Y in mm"),
        ((*COLUMNS, "--format", "hioki"), "--column names the columns of a log, but hioki defines its own"),
    ],
)
def test_odd_options_are_refused_before_any_file(cli, log, store_file, options, words):
    result = cli("upload", log, *options)
    assert result.code == 2
    assert words in result.err


def test_delete_asks_for_one_thing_that_is_there(cli, fixtures, store_file):
    cli("upload", fixtures / "ncu_raw" / "plain.csv", fixtures / "hioki" / "pw3335.csv", "--run", "r")
    assert cli("delete", "r").code == 2
    assert cli("delete", "r", "--upload", "1", "--all", "--yes").code == 2
    assert cli("delete", "q", "--all", "--yes").code == 3
    result = cli("delete", "r", "--upload", "7", "--yes")
    assert (result.code, result.err) == (3, "Error: run 'r' has no upload 7; it has 1, 2\n")
    assert len(select(store_file, "v1_criteria")) > 0
    assert cli("delete", "r", "--upload", "2", "--yes").code == 0
    # What the other file says is computed again, and still there.
    assert len(select(store_file, "v1_criteria")) > 0
    assert [row["upload_id"] for row in select(store_file, "v1_uploads")] == [1]
    assert "\nrun 'r' (id 1) deleted with 1 upload;" in cli("delete", "r", "--all", "--yes").err
    assert select(store_file, "v1_runs") == []


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--run", ""), "the name of the run is '', which cannot be seen"),
        (("--run", "  "), "the name of the run is '  ', which cannot be seen"),
        (("--run", "\u200b\n\t"), "which cannot be seen"),
        (("--run", "x" * 10_000), "has 10000 characters; names and tags may have 500"),
        (("--run", "a", "--project", " "), "the name of the project is ' '"),
        (("--run", "a", "--device", "\u202e"), "the name of the device"),
        (("--run", "a", "--tag", " =b"), "a tag has the key ' '"),
    ],
)
def test_a_name_that_nobody_could_read_is_refused(cli, log, store_file, options, said):
    for way in ("upload", "watch"):
        refused = cli(way, log.parent if way == "watch" else log, *options)
        assert (refused.code, refused.out) == (2, ""), refused.err
        assert said in refused.err
    assert not store_file.exists()


def test_a_run_of_a_file_with_an_invisible_name_has_one_that_is_seen(cli, log, store_file):
    spaces = log.rename(log.with_name("  .csv"))
    assert cli("upload", spaces, *COLUMNS).code == 0
    assert [row["name"] for row in select(store_file, "v1_runs")] == ["run"]


def test_a_name_with_control_characters_is_shown_with_escapes_and_found_again(cli, log, store_file):
    name = "a\n\u202eb\x1b[2J"
    assert cli("upload", log, *COLUMNS, "--run", name).code == 0
    assert [row["name"] for row in select(store_file, "v1_runs")] == [name]
    listed, opened = cli("runs", "-o", "md"), cli("show", name)
    assert r"a\\n\\u202eb\\x1b\[2J" in listed.out  # Markdown takes one of two backslashes away
    assert opened.code == 0
    assert not {"\u202e", "\x1b"} & {*listed.out, *opened.out}

"""``history``: what it prints, writes and refuses."""

import csv
import io
import json

import pytest

from profsvc import store
from tests.views import histories


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    file = tmp_path_factory.mktemp("history") / "store.sqlite"
    engine = store.open_store(str(file), pooled=True)
    histories.fill(engine, histories.steady(6) + histories.steady(5, 110.0, 2))
    engine.dispose()
    return file


@pytest.fixture
def on_nights(cli, file):
    """The command line on a store with eleven nights, which no test changes."""
    return lambda *words: cli("--store", file, "history", *words)


def test_the_page_shows_each_run_and_the_step(on_nights):
    page = on_nights("saxpy").out
    assert page.startswith("Duration of void saxpy<float>(int, float *)  (kernel #")
    row = next(line for line in page.splitlines() if line.startswith("night 7"))
    assert row.split()[2] == "0000003"
    assert row.endswith("% worse")
    assert "duration (\u00b5s)" in page
    assert "  at run night 7 (commit 0000003): 100" in page
    steady = on_nights("other").out
    assert "no change detected" in steady


def test_every_form_holds_every_run(on_nights):
    rows = list(csv.DictReader(io.StringIO(on_nights("saxpy", "-o", "csv").out)))
    assert [row["run"] for row in rows] == [f"night {n}" for n in range(1, 12)]
    assert {row["unit"] for row in rows} == {"ns"}
    answer = json.loads(on_nights("saxpy", "-o", "json").out)
    assert answer["ok"]
    assert [step["run"] for step in answer["steps"]] == ["night 7"]
    cut = on_nights("saxpy", "--points", "3", "-o", "csv")
    assert len(cut.out.splitlines()) == 4
    assert "note: showing the newest 3 runs; for older ones use before 9" in cut.err


def test_a_picture_is_written_whole_or_not_at_all(on_nights, tmp_path):
    result = on_nights("saxpy", "--plot", tmp_path / "a.svg")
    assert result.err == f"written: {tmp_path / 'a.svg'}\n"
    assert b"<svg" in (tmp_path / "a.svg").read_bytes()
    assert (tmp_path / "a.png").exists() is False
    wrong = on_nights("saxpy", "--plot", tmp_path / "a.pdf")
    assert (wrong.code, "end it with .svg or .png" in wrong.err) == (2, True)


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["saxpi"], 3, "did you mean 'saxpy'"),
        (["saxpy", "--quantity", "speed"], 3, "no quantity named 'speed'"),
        (["saxpy", "--points", "0"], 2, "1 to 10000 points"),
        (["saxpy", "--project", "x"], 3, "no kernel named 'saxpy'"),
    ],
)
def test_what_is_not_there_is_refused(on_nights, words, code, said):
    result = on_nights(*words)
    assert (result.code, said in result.err, result.out) == (code, True, "")

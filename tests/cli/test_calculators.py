"""Commands made from declarations: values, files, examples, plots, and the service."""

import json
import shlex

import pytest

from profsvc.views.calculators.catalog import CALCULATORS
from profsvc.views.calculators.declaration import FILES, SUFFIXES, example_command
from tests.web import conftest

looked_at = conftest.looked_at


@pytest.mark.parametrize("one", CALCULATORS.values(), ids=list(CALCULATORS))
def test_its_example_is_answered_by_its_command(cli, one, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for number, example in enumerate(one.examples):
        for i in one.inputs:
            if i.kind in FILES and i.name in example.values:
                (tmp_path / f"{i.name}.{SUFFIXES[i.kind]}").write_text(example.values[i.name], encoding="utf-8")
        words = shlex.split(example_command(one, example))[1:]
        found = cli(*words, "-o", "json")
        assert found.code == 0, found.err
        assert json.loads(found.out)["rows"]
        if number == 0:
            assert cli(*one.name.split(), "--example", "-o", "json").out == found.out


def test_work_depth_as_text_rows_and_picture(cli, tmp_path):
    words = ["work-depth", "--work", "31", "--depth", "5", "--processors", "1,6"]
    assert "9.333" in cli(*words).out
    rows = cli(*words, "-o", "csv", "--plot", tmp_path / "a.svg")
    assert rows.out.splitlines()[0] == "processors,steps,speedup,efficiency,most_speedup"
    assert (tmp_path / "a.svg").read_bytes().startswith(b"<?xml")
    assert "note: 6.2 operations" in rows.err
    wrong = cli("work-depth", "--work", "x", "--depth", "-1")
    assert (wrong.code, "work: 'x' is not a finite number" in wrong.err, "depth: -1" in wrong.err) == (2, True, True)


def test_the_service_gives_the_same_answer(cli, looked_at, monkeypatch, tmp_path):
    table = tmp_path / "versions.csv"
    table.write_text(CALCULATORS["fit-barriers"].examples[0].values["versions"])
    asked = (["work-depth", "--tree", "16", "-o", "json"], ["fit", "barriers", table, "-o", "json"])
    own = [cli(*words).out for words in asked]
    monkeypatch.setenv("PROFSVC_URL", looked_at.url)
    assert [cli(*words).out for words in asked] == own
    assert cli("work-depth", "--tree", "x").code == 2
    for wrong, code in ((tmp_path / "missing.csv", 6), (tmp_path, 6)):
        assert cli("fit", "barriers", wrong).code == code
    table.write_bytes(b"cycles\xff")
    assert "is not UTF-8: byte 6 is 0xff" in cli("fit", "barriers", table).err


def test_the_command_page_and_api_agree(on_demo, looked_at):
    shown = looked_at.get("/models", run="h200")
    assert (shown.status_code, "needs a trace: Nsight Systems" in shown.text) == (200, True)
    listed = on_demo("models", "h200", "-o", "json").out
    assert looked_at.ok("/v1/models/list", run="h200")["rows"][0]["why"] in listed
    assert "work-depth" in looked_at.get("/models").text
    assert on_demo("models", "xyzzy").code == looked_at.get("/models", run="xyzzy").status_code // 134 == 3

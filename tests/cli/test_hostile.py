"""Kernel names that attack what shows them go through the whole house and come out harmless."""

import csv
import io
import json
import re

import pytest

from profsvc import store, views
from profsvc.reports import page

SCRIPT = '<script>alert(1)</script>,"=cmd|x"&\u202e'
FORMULA = "=cmd|' /C calc'!A0"
TERMINAL = "-2+3\x1b]0;owned\x07\x1b[2J| [a](javascript:alert(1)) `b`"
NAMES = [SCRIPT, FORMULA, TERMINAL]


@pytest.fixture
def hostile(cli, fixtures, tmp_path):
    """The command line on a store whose run, file and kernels have hostile names."""
    rows = list(csv.reader(io.StringIO((fixtures / "ncu_raw" / "plain.csv").read_text())))
    header, units, launch = rows[:3]
    lines = [header, units]
    for number, name in enumerate(NAMES):
        lines.append([str(number), *launch[1:]])
        lines[-1][header.index("Kernel Name")] = name
    out = io.StringIO()
    csv.writer(out, quoting=csv.QUOTE_ALL).writerows(lines)
    file = tmp_path / "<b>&.csv"
    file.write_bytes(out.getvalue().encode())
    result = cli("upload", file, "--run", "=1+1<i>", "--project", "@p", "--tag", "=a=<script>")
    assert result.code == 2, "a tag without a key"
    assert cli("upload", file, "--run", "=1+1<i>", "--project", "@p", "--tag", "t=<script>").code == 0
    return cli


def test_data_forms_hold_every_name_as_it_came(hostile):
    answer = json.loads(hostile("sql", "select kernel from v1_launches order by launch_index", "-o", "json").out)
    assert [row["kernel"] for row in answer["rows"]] == NAMES
    lines = hostile("sql", "select kernel from v1_launches order by launch_index", "-o", "ndjson").out.split("\n")
    assert [json.loads(line)["kernel"] for line in lines if line] == NAMES
    opened = [json.loads(hostile("show", "1", "--kernel", n, "-o", "json").out) for n in range(3)]
    assert [view["launches"][0]["launch"]["kernel"] for view in opened] == NAMES


def test_csv_round_trips_and_holds_no_formula(hostile):
    text = hostile("sql", 'select kernel as "=head", -1.5 as n from v1_launches order by launch_index', "-o", "csv").out
    rows = list(csv.reader(io.StringIO(text, newline=""), strict=True))
    assert rows == [["'=head", "n"], [SCRIPT, "-1.5"], [f"'{FORMULA}", "-1.5"], [f"'{TERMINAL}", "-1.5"]]
    for command in (["runs"], ["show", "1"], ["show", "1", "--kernel", "1"]):
        for row in csv.reader(io.StringIO(hostile(*command, "-o", "csv").out, newline=""), strict=True):
            assert not [field for field in row if re.match(r"[=+@\t\r]|-[^\d]", field)]


@pytest.mark.parametrize("command", [["runs"], ["show", "1"], ["show", "1", "--kernel", "0"], ["show", "1", "-k", "2"]])
@pytest.mark.parametrize("form", ["table", "md"])
def test_what_a_person_reads_cannot_act_on_the_terminal(hostile, command, form):
    out = hostile(*[{"-k": "--kernel"}.get(word, word) for word in command], "-o", form).out
    assert all(c.isprintable() or c == "\n" for c in out)
    if form == "md":
        assert "<" not in out
        assert not re.search(r"(?<!\\)[`\[\]*]", out)
        assert len({len(re.findall(r"(?<!\\)\|", line)) for line in out.splitlines()}) == 1


def test_explain_and_words_cannot_act_either(hostile, tmp_path):
    explained = hostile("explain", "duration_ns", "--run", "1")
    assert "<b>&.csv line 3" in explained.out
    missing = hostile("show", "\x1b[2J")
    assert missing.code == 3
    for text in (explained.out, missing.err, hostile("upload", tmp_path / "<b>&.csv").err):
        assert all(c.isprintable() or c == "\n" for c in text)


def test_the_html_report_shows_names_as_text(hostile, store_file):
    engine = store.open_store(str(store_file))
    view = views.run(engine, "1")
    html = page.run(view, [views.launch(engine, "1", str(n))["launches"][0] for n in range(3)])
    engine.dispose()
    assert "<script" not in html
    assert "<i>" not in html.replace("<i>x", "").split("<h1>")[1].split("</h1>")[0]
    assert "&lt;script&gt;alert(1)&lt;/script&gt;,&quot;=cmd|x&quot;&amp;\\u202e" in html
    assert "\u202e" not in html
    assert "\x1b" not in html

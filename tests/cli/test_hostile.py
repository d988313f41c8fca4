"""Names that attack what shows them go through every command and come out harmless."""

import json
import re
from contextlib import nullcontext, suppress

import pyarrow.parquet
import pytest

from profsvc import store, views
from profsvc.reports import run_page
from tests.inputs.uploads import without_analysis
from tests.robustness import hostile

# Files whose launches are analysed as well; of the others, which differ in their names alone, nothing else is said.
ANALYZED = 2
KERNELS = list(hostile.NAMES.values())
ORDERED = "select kernel from v1_launches where upload_id = 1 order by launch_index"
READS = [
    ["runs"], ["show"], ["show", "1"], ["show", "1", "--all"], ["show", "1", "--kernel", "0"],
    ["show", "1", "--kernel", "5"], ["show", "2", "--kernel", "10"], ["show", hostile.RUN],
    ["compare", "1", "2"], ["compare", "1", "2", "--power"], ["power", "1"], ["components", "--kernels"],
    ["explain", "divergence", "--run", "1", "--kernel", "0"], ["explain", "duration_ns", "--run", "1"], ["devices"],
    ["formats"], ["sql", ORDERED + " limit 20"],
    ["sql", "select u.file_name, r.tags, r.host, r.commit_id from v1_uploads u join v1_runs r on r.run_id = u.run_id"],
    ["sql", "select window, load, kernel from v1_power"], ["sql", "select rule, message from v1_rules"],
    ["sql", "select metric, unit, raw_text from v1_metrics where metric not like '%\\_\\_%' escape '\\' limit 500"],
    ["sql", "select process_name, host from v1_launches"],
]  # fmt: skip
WORDS = [
    ["delete", "1"], ["doctor"], ["analyze", "1"], ["token", "list"], ["db", "prune", "--older-than", "1"],
    ["show", "{}"], ["show", "1", "--kernel", "{}"], ["compare", "1", "{}"], ["power", "{}"], ["explain", "{}"],
    ["power", "1", "--sensor", "{}"], ["sql", "{}"], ["sql", "select '{}' from nowhere"], ["formats", "{}"],
    ["components", "--device", "{}"], ["upload", "{}"], ["runs", "-o", "{}"], ["compare", "1", "2", "--map", "{}=x"],
]  # fmt: skip


@pytest.fixture
def on_hostile(cli, hostile_store):
    """The command line on a store whose every name is hostile; only for what reads."""
    return lambda *words: cli("--store", hostile_store, *words)


@pytest.mark.parametrize("command", READS, ids=lambda words: " ".join(words)[:40])
def test_every_form_of_every_answer_is_harmless(on_hostile, command):
    for form in ("table", "md", "csv", "json", "ndjson"):
        result = on_hostile(*command, "-o", form)
        assert result.code == 0, result.err
        hostile.terminal(result.err)
        if form == "table":
            hostile.terminal(result.out)
        elif form == "md":
            hostile.markdown(result.out)
        elif form == "csv":
            hostile.csv_text(result.out)
        else:
            lines = filter(None, result.out.split("\n")) if form == "ndjson" else [result.out]
            assert all(isinstance(json.loads(line), dict) for line in lines)


@pytest.mark.parametrize("command", WORDS, ids=" ".join)
def test_what_is_said_of_them_is_harmless(on_hostile, command):
    names = list(hostile.SHORT.values()) if any("{}" in word for word in command) else [""]
    for name in names[:: 4 if command[0] == "compare" else 1]:
        result = on_hostile(*(word.replace("{}", name) for word in command))
        assert result.code != 1
        hostile.terminal(result.err)
        hostile.terminal(result.out)


def test_data_forms_hold_every_name_as_it_came(on_hostile, tmp_path):
    answer = json.loads(on_hostile("show", "1", "--all", "-o", "json").out)
    assert {row["kernel"] for row in answer["launches"]} >= {str(one) for one in shorts(hostile.SHORT.values())}
    for form in ("ndjson", "parquet", "csv"):
        file = tmp_path / f"a.{form}"
        assert on_hostile("sql", ORDERED.replace(" order", " and launch_index < 20 order"), "--out", file).code == 0
        if form == "parquet":
            found = pyarrow.parquet.read_table(file)["kernel"].to_pylist()
        elif form == "ndjson":
            found = [json.loads(line)["kernel"] for line in file.read_text(encoding="utf-8").split("\n") if line]
        else:
            found = [row[0] for row in hostile.csv_text(file.read_bytes().decode())[1:]]
            found = [name.removeprefix("'") if name not in KERNELS else name for name in found]
        assert found == KERNELS[:20]


def shorts(names):
    """What is left of each name without its types and parameters."""
    from profsvc.store.ingest.inserts.dictionaries import DERIVED_COLUMNS

    return [DERIVED_COLUMNS["kernels"][1]((name,))[0] for name in names]


def test_files_are_named_and_refused_as_text(cli, fixtures, tmp_path):
    data = (fixtures / "ncu_raw" / "plain.csv").read_bytes()
    for number, name in enumerate([*hostile.SHORT.values(), "a\udcff\udc80b.csv"]):
        file = tmp_path / name.replace("/", "_")
        with suppress(OSError, ValueError):
            file.write_bytes(data.replace(b"saxpy", b"k%d" % number))
            for words in (("upload", file), ("upload", file), ("upload", "--check", file)):
                with nullcontext() if number < ANALYZED else without_analysis():
                    result = cli(*words)
                assert result.code == 0, result.err
                hostile.terminal(result.err)
                hostile.terminal(result.out)
    for name in hostile.NO_TEXT.values():
        result = cli("upload", fixtures / "ncu_raw" / "plain.csv", "--run", name, "--project", "other")
        assert result.code in {0, 2, 6}, result.err
        hostile.terminal(result.err)
    broken = cli("upload", "-", stdin=hostile.NAMES["terminal"].encode("utf-8", "surrogatepass"))
    assert broken.code == 6
    hostile.terminal(broken.err)
    assert cli("runs").code == 0


def test_pages_and_pictures_show_names_as_text(on_hostile, hostile_store, tmp_path):
    engine = store.open_store(str(hostile_store), pooled=True)
    view = views.run(engine, 1, None)
    html = run_page.run(view, [views.launch(engine, 1, str(n))["launches"][0] for n in range(20)])
    engine.dispose()
    hostile.html(html)
    assert "&lt;script&gt;alert(1)&lt;/script&gt;,&quot;=cmd|x&quot;&amp;\\u202e" in html
    for form in ("html", "svg"):
        assert on_hostile("power", "1", "--plot", tmp_path / f"a.{form}").code == 0
        hostile.html(re.sub(r"^<\?xml.*?\?>", "", (tmp_path / f"a.{form}").read_text(encoding="utf-8")))

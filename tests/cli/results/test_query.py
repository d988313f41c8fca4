"""``sql`` and ``db``."""

import json
import signal
import subprocess
import sys
import time

import pyarrow.parquet
import pytest
from sqlalchemy import Engine

from profsvc import store


def test_rows_come_back_as_data(on_demo):
    result = on_demo("sql", "select launch_index, kernel_short from v1_launches order by 1 limit 1", "-o", "csv")
    assert (result.code, result.out, result.err) == (0, "launch_index,kernel_short\n0,reduce_v1_divergent\n", "")


def test_the_query_is_read_from_stdin(on_demo):
    result = on_demo("sql", "-", "-o", "json", stdin="select count(*) as n from v1_launches")
    assert json.loads(result.out)["rows"] == [{"n": 34}]


def test_parameters_are_values_never_sql(on_demo):
    query = "select count(*) as n from v1_launches where kernel_short = :k"
    for value, count in (("saxpy", 1), ("' or 1=1 --", 0), ("a=b", 0)):
        answer = on_demo("sql", query, "--param", f"k={value}", "-o", "json")
        assert json.loads(answer.out)["rows"] == [{"n": count}]
    assert on_demo("sql", query, "--param", "k").code == 2
    assert "no value for :k; add --param k=VALUE" in on_demo("sql", query).err
    spare = on_demo("sql", query, "--param", "k=saxpy", "--param", "kernel=saxpy")
    assert (spare.code, spare.err) == (2, "Error: --param kernel is given, but the query has no :kernel; it has :k\n")


def test_an_example_says_what_it_lacks_and_which_run_it_is_of(on_demo):
    lacking = on_demo("sql", "--example", "kernel_ratio", "--param", "before=h200")
    assert (lacking.code, lacking.err) == (2, "Error: the example 'kernel_ratio' needs a value: --param after=...\n")
    newest = on_demo("sql", "--example", "top_kernels", "-o", "csv")
    named = on_demo("sql", "--example", "top_kernels", "--param", "run=h200", "-o", "csv")
    assert (newest.out, newest.err) == (named.out, "using the newest run; choose another with --param run=NAME\n")
    assert (len(newest.out.splitlines()), named.err) == (19, "")


@pytest.mark.parametrize(
    "query",
    [
        "delete from v1_runs",
        "insert into runs (name) values ('x')",
        "update v1_runs set name = 'x'",
        "drop view v1_runs",
        "create table t (x)",
        "attach 'other.sqlite' as o",
        "pragma journal_mode = delete",
        "vacuum into 'copy.sqlite'",
        "select * from runs",
        "select load_extension('x')",
        "select 1; delete from v1_runs",
        "begin",
        "",
    ],
)
def test_nothing_but_a_select_over_the_views_is_answered(on_demo, demo: Engine, query):
    result = on_demo("sql", query)
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith("Error: ")
    assert len(store.select(demo, "v1_runs")) == 1


def test_a_cut_result_says_so(on_demo, monkeypatch):
    query = "select launch_id from v1_launches"
    cut = on_demo("sql", query, "--limit", "5", "-o", "json")
    assert (len(json.loads(cut.out)["rows"]), json.loads(cut.out)["truncated"]) == (5, True)
    rest = "or write all with --all or --out FILE\n"
    assert cut.err == f"truncated: only the first 5 rows are shown; raise --limit, {rest}"
    exact = on_demo("sql", query, "--limit", "34", "-o", "json")
    assert (json.loads(exact.out)["truncated"], exact.err) == (False, "")
    assert on_demo("sql", query, "--limit", "-1").code == 2
    monkeypatch.setenv("PROFSVC_SQL_ROWS", "3")
    cut = on_demo("sql", query, "-o", "ndjson")
    assert len(cut.out.splitlines()) == 3
    said = "raise PROFSVC_SQL_ROWS, which limits the rows of a query"
    assert cut.err == f"truncated: only the first 3 rows are shown; {said}, {rest}"


def test_a_query_that_takes_too_long_is_stopped(on_demo, monkeypatch):
    monkeypatch.setenv("PROFSVC_SQL_SECONDS", "0.1")
    endless = "with recursive n(i) as (select 1 union all select i + 1 from n) select count(*) from n"
    result = on_demo("sql", endless)
    assert result.code == 2
    assert "longer than 0.1 s" in result.err


def test_columns_of_one_name_do_not_hide_each_other(on_demo):
    result = on_demo("sql", "select 1 as a, 2 as a, 3 as a_2", "-o", "csv")
    assert result.out == "a,a_3,a_2\n1,2,3\n"


@pytest.mark.parametrize("form", ["json", "csv", "md", "table", "parquet"])
def test_bytes_and_mixed_types_have_a_form(on_demo, form):
    assert on_demo("sql", "select x'00ff' as a union all select 1 union all select 'b'", "-o", form).code == 0


def test_current_changes_nothing_and_upgrade_makes_the_schema(cli, store_file):
    assert cli("db", "current").out == f"store empty, program {store.latest_revision()}\n"
    assert not store_file.exists() or store_file.stat().st_size == 0
    upgraded = cli("db", "upgrade")
    assert (upgraded.code, upgraded.out) == (0, "")
    assert upgraded.err == f"sqlite:///{store_file}: schema {store.latest_revision()}\n"
    assert cli("db", "current").out == f"store {store.latest_revision()}, program {store.latest_revision()}\n"
    revisions = {"store": store.latest_revision(), "program": store.latest_revision()}
    assert json.loads(cli("db", "current", "--json").out) == {"ok": True, **revisions}


def test_upgrade_reaches_a_server_whose_schema_is_old(cli, monkeypatch):
    monkeypatch.setattr(store, "open_store", lambda *_: pytest.fail("a server's schema is refused here"))
    assert cli("db", "upgrade").code == 0
    assert cli("db", "current").code == 0


def test_a_file_of_another_kind_is_not_taken_for_a_store(cli, store_file):
    store_file.write_text("not a database, but long enough to look at " * 20)
    result = cli("runs")
    assert result.code == 5
    assert "not a SQLite database" in result.err


def test_examples_are_listed_and_run(on_demo):
    listed = json.loads(on_demo("sql", "--examples", "-o", "json").out)["rows"]
    assert {
        "name": "top_kernels",
        "title": "Kernels with the largest share of a run's time",
        "params": "run=",
    } in listed
    result = on_demo("sql", "--example", "top_kernels", "-o", "csv")
    assert (result.code, result.out.splitlines()[0]) == (0, "kernel_short,launches,total_ms,percent")
    assert len(result.out.splitlines()) > 5
    assert on_demo("sql", "--example", "top_kernels", "--param", "run=h200", "-o", "csv").out == result.out
    assert on_demo("sql", "--example", "top_kernels", "--param", "run=none", "-o", "csv").out.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["--example", "top_kernel"], 3, "did you mean 'top_kernels'"),
        (["--example", "top_kernels", "--param", "x=1"], 2, "has no parameter 'x'; it has: run"),
        (["--example", "top_kernels", "select 1"], 2, "one query, or the name of one example"),
        ([], 2, "--examples lists them"),
        (["select 1", "--formula", "no"], 2, "it can be safe or raw"),
        (["select 1", "--all", "--limit", "5"], 2, "give one of them"),
        (["select 1", "--all", "-o", "table"], 2, "choose a format with -o: csv, ndjson, parquet"),
        (["select 1", "--out", "x.xlsx"], 2, "choose a format with -o: csv, ndjson, parquet"),
        (["select 1", "--out", "nowhere/x.csv"], 5, "cannot be written: No such file"),
        (["select * from runs", "--out", "x.csv"], 2, "only the views can"),
    ],
)
def test_a_question_that_cannot_be_is_explained(on_demo, monkeypatch, tmp_path, arguments, code, words):
    monkeypatch.chdir(tmp_path)
    result = on_demo("sql", *arguments)
    assert (result.code, result.out) == (code, "")
    assert words in result.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("form", ["csv", "ndjson", "parquet"])
def test_a_whole_result_is_written_to_a_file(on_demo, monkeypatch, tmp_path, form):
    monkeypatch.setenv("PROFSVC_SQL_ROWS", "3")
    out = tmp_path / f"metrics.{form}"
    result = on_demo("sql", "select launch_id, metric, value from v1_metrics", "--out", out)
    (count,) = json.loads(on_demo("sql", "select count(*) as n from v1_metrics", "-o", "json").out)["rows"]
    assert (result.code, result.out, result.err) == (0, "", f"{count['n']} rows written to {out}\n")
    if form == "parquet":
        table = pyarrow.parquet.read_table(out)
        assert table.num_rows == count["n"]
        assert [str(field.type) for field in table.schema] == ["int64", "string", "double"]
    else:
        assert len(out.read_text(encoding="utf-8").splitlines()) == count["n"] + (form == "csv")


def test_a_whole_result_goes_to_stdout(on_demo, monkeypatch):
    monkeypatch.setenv("PROFSVC_SQL_ROWS", "3")
    query = "select launch_index from v1_launches order by 1"
    assert on_demo("sql", query, "--all").out.split() == ["launch_index", *map(str, range(34))]
    assert len(on_demo("sql", query, "--all", "-o", "ndjson").out.splitlines()) == 34


def test_an_export_that_is_stopped_leaves_no_file(on_demo, tmp_path):
    endless = "with recursive n(i) as (select 1 union all select i + 1 from n) select i from n"
    result = on_demo("sql", endless, "--out", tmp_path / "n.csv", "--seconds", "0.3")
    assert result.code == 2
    assert "longer than 0.3 s" in result.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("interruptible")
def test_ctrl_c_leaves_no_file_and_no_process(demo, tmp_path):
    endless = "with recursive n(i) as (select 1 union all select i + 1 from n) select i from n"
    command = [sys.executable, "-m", "profsvc", "--store", demo.url.database, "sql", endless]
    with subprocess.Popen([*command, "--out", tmp_path / "n.csv"], stderr=subprocess.PIPE) as process:
        try:
            while not list(tmp_path.glob(".n.csv.*.part")):
                assert process.poll() is None
                time.sleep(0.02)
            process.send_signal(signal.SIGINT)
            assert b"Traceback" not in process.communicate(timeout=20)[1]
            assert process.returncode != 0
        finally:
            process.kill()
    assert list(tmp_path.iterdir()) == []


def test_formulas_are_raw_when_asked(on_demo):
    query = "select '=1+1' as a, -1.5 as b, '-x' as c"
    assert on_demo("sql", query, "-o", "csv").out == "a,b,c\n'=1+1,-1.5,'-x\n"
    assert on_demo("sql", query, "-o", "csv", "--formula", "raw").out == "a,b,c\n=1+1,-1.5,-x\n"
    assert on_demo("sql", query, "--all").out == "a,b,c\n'=1+1,-1.5,'-x\n"
    assert on_demo("sql", query, "--all", "--formula", "raw").out == "a,b,c\n=1+1,-1.5,-x\n"


def test_a_server_is_asked_as_it_is(cli, postgres_url):
    answer = cli("--store", postgres_url, "sql", "select count(*) as n from v1_runs", "-o", "csv")
    assert (answer.code, answer.out, answer.err) == (0, "n\n0\n", "")
    refused = cli("--store", postgres_url, "sql", "select lo_create(1)")
    assert (refused.code, refused.err) == (2, "Error: the function 'lo_create' is not allowed (line 1, column 8)\n")

"""The command line with PROFSVC_URL set says what it says of a store; ``serve`` and ``token``."""

import gzip
import json
import os
import re
import signal
import subprocess
import sys

import httpx
import pytest

from profsvc import pipeline, store
from profsvc.formats.ncu import report as ncu_report
from tests.web import conftest
from tests.web.conftest import ROOT, SMI

DEMO_NAME = "ncu_raw.csv.gz"
looked_at, service, site = (getattr(conftest, name) for name in ("looked_at", "service", "site"))
READS = [
    ["runs"], ["runs", "--project", "none", "-o", "json"], ["show", "--all"], ["show", "h200", "-o", "json"],
    ["show", "h200", "--limit", "2", "-o", "csv"], ["show", "1", "--kernel", "gemm", "-o", "json"],
    ["compare", "h200", "1", "--fail-on", "duration=5%"], ["compare", "h200", "1", "-o", "json"],
    ["explain", "divergence", "--run", "h200", "--kernel", "0"], ["explain", "divergence"], ["devices", "-o", "md"],
    ["sql", "select launch_id, kernel_short, duration_ns from v1_launches order by 3 desc", "-o", "csv"],
    ["sql", "select :a as a, 1 as b, 2 as b", "--param", "a==x", "-o", "csv"],
    ["sql", "select * from v1_launches", "--limit", "2"], ["sql", "select kernel from v1_launches", "--all"],
    ["sql", "--example", "top_kernels", "--param", "run=h200"], ["sql", "--examples"],
]  # fmt: skip
REFUSED = [
    ["show", "h20"],
    ["sql", "select * from runs"],
    ["sql", "selec"],
    ["compare", "h200", "nope"],
    ["explain", "x", "--run", "1"],
]


@pytest.mark.parametrize("command", READS, ids=" ".join)
def test_a_service_says_what_its_store_says(cli, on_demo, demo, looked_at, monkeypatch, command):
    local = on_demo(*command)
    assert local.code == 0, local.err
    monkeypatch.setenv("PROFSVC_URL", looked_at.url)
    remote = cli(*command)
    assert (remote.code, remote.err) == (0, local.err), remote.err
    # Commands to copy repeat the store that was given; a service is named by its variable. Long ones have own lines.
    shown, expected = (" ".join(result.out.split()) for result in (remote, local))
    assert shown == expected.replace(f" --store {demo.url.database}", "")


def test_a_service_refuses_as_its_store_does(cli, on_demo, looked_at, monkeypatch):
    for command in REFUSED:
        local = on_demo(*command)
        monkeypatch.setenv("PROFSVC_URL", looked_at.url)
        remote = cli(*command)
        monkeypatch.delenv("PROFSVC_URL")
        assert (remote.code, remote.err) == (local.code, local.err)
        assert local.code in {2, 3}


def test_a_whole_result_comes_as_a_file(cli, looked_at, monkeypatch, tmp_path):
    monkeypatch.setenv("PROFSVC_URL", looked_at.url)
    out = tmp_path / "a.ndjson"
    assert cli("sql", "select kernel from v1_launches", "--out", out).code == 0
    assert len(out.read_text().splitlines()) == 34
    refused = cli("sql", "select 1", "--out", tmp_path / "a.parquet")
    assert (refused.code, "csv or ndjson" in refused.err) == (2, True)
    assert not (tmp_path / "a.parquet").exists()


@pytest.mark.skipif(not ncu_report.package_folder(), reason="the package ncu-report is not installed")
def test_a_report_is_read_where_the_package_is_and_its_lines_are_sent(cli, service, monkeypatch, fixtures, tmp_path):
    monkeypatch.setenv("PROFSVC_URL", service.url)
    file, packed = fixtures / "ncu_rep" / "two_launches.ncu-rep", tmp_path / "packed.gz"
    packed.write_bytes(gzip.compress(file.read_bytes()))
    sent = cli("upload", file, "--format", "ncu-report")
    assert "two_launches.ncu-rep: ncu-report-lines stored as upload 1" in sent.err, sent.err
    assert "2 launches" in sent.err
    for arguments, content in (((packed,), None), (("-",), file.read_bytes())):
        assert "already stored as upload 1" in cli("upload", *arguments, stdin=content).err
    rules = cli("sql", "select focus_metrics from v1_rules where rule = 'MemoryCacheAccessPattern'", "-o", "json")
    (first, *_) = json.loads(rules.out)["rows"]
    assert json.loads(first["focus_metrics"])[0]["info"] == "Decrease"
    cut = cli("upload", "-", stdin=file.read_bytes()[:-9])
    assert (cut.code, "the report is damaged (it ends inside block 1" in cut.err) == (6, True)


def test_a_trace_report_is_exported_where_the_tool_is(cli, service, monkeypatch, fixtures, tmp_path):
    database = min((fixtures / "nsys_sqlite").glob("[!b]*.sqlite"))
    file, tool = tmp_path / "a.nsys-rep", tmp_path / "nsys"
    file.write_bytes(b"\0\1 a report")
    tool.write_text(f"#!{sys.executable} -IS\nimport shutil, sys; shutil.copy({str(database)!r}, sys.argv[5])")
    tool.chmod(0o755)
    monkeypatch.setenv("PROFSVC_URL", service.url)
    monkeypatch.setenv("PATH", str(tmp_path))
    sent = cli("upload", file)
    assert "a.nsys-rep.sqlite: nsys-sqlite stored as upload 1" in sent.err, sent.err


def test_a_report_without_the_package_is_refused_with_what_is_needed(cli, service, monkeypatch, fixtures):
    monkeypatch.setattr(ncu_report, "package_folder", lambda: None)
    local = cli("upload", fixtures / "ncu_rep" / "two_launches.ncu-rep")
    monkeypatch.setenv("PROFSVC_URL", service.url)
    remote = cli("upload", fixtures / "ncu_rep" / "two_launches.ncu-rep")
    for said in (local, remote):
        assert (said.code, "pip install 'profsvc[ncu]'" in said.err) == (6, True), said.err
        assert "ncu --csv --page raw" in said.err


def test_files_go_to_the_service(cli, service, monkeypatch, fixtures):
    monkeypatch.setenv("PROFSVC_URL", service.url)
    file = fixtures / "demo" / DEMO_NAME
    first = cli("upload", file, fixtures / "nvidia_smi" / "units.csv", "--timezone", "Europe/Berlin", "--tag", "a=b")
    assert first.code == 0, first.err
    assert "ncu-raw stored as upload 1 of run 'ncu_raw' (id 1); 34 launches" in first.err
    assert "stored as upload 2 of run 'ncu_raw' (id 1)" in first.err
    again = cli("upload", file, "-o", "json")
    assert "already stored as upload 1" in again.err
    assert json.loads(again.out)["rows"][0]["known"] is True
    checked = cli("upload", "--check", file)
    assert (checked.code, "would store" in checked.err) == (0, True)
    assert cli("upload", "-", stdin=b"nothing").code == 6
    assert len(service.ok("/v1/uploads")["rows"]) == 2
    assert service.ok("/v1/runs")["rows"][0]["tags"] == {"a": "b"}


def test_a_file_whose_answer_was_lost_is_not_stored_again_when_it_waited(cli, service, monkeypatch, fixtures, tmp_path):
    monkeypatch.setattr("profsvc.client.connection.RETRY_DELAYS_S", ())
    monkeypatch.setenv("PROFSVC_SPOOL", str(tmp_path / "spool"))
    file = fixtures / "demo" / DEMO_NAME
    assert service.upload(file.read_bytes(), file_name=DEMO_NAME).status_code == 201
    monkeypatch.setenv("PROFSVC_URL", "http://127.0.0.1:9")
    assert cli("upload", file).code == 0
    for path in (tmp_path / "spool").glob("*.json"):
        path.write_text(path.read_text().replace("http://127.0.0.1:9", service.url))
    monkeypatch.setenv("PROFSVC_URL", service.url)
    assert "already stored as upload 1" in cli("sync").err
    assert len(service.ok("/v1/uploads")["rows"]) == 1


def test_a_service_that_is_away_is_waited_for(cli, service, monkeypatch, fixtures, tmp_path):
    monkeypatch.setattr("profsvc.client.connection.RETRY_DELAYS_S", ())
    monkeypatch.setenv("PROFSVC_SPOOL", str(tmp_path / "spool"))
    monkeypatch.setenv("PROFSVC_URL", "http://127.0.0.1:9")
    files = [fixtures / "demo" / DEMO_NAME, SMI]
    waits = cli("upload", *files)
    assert waits.code == 0, waits.err
    assert waits.err.count("the service cannot take it now; queued in") == 2
    assert cli("sync").code == 5
    assert cli("runs").code == 5
    for path in (tmp_path / "spool").glob("*.json"):
        path.write_text(path.read_text().replace("http://127.0.0.1:9", service.url))
    monkeypatch.setenv("PROFSVC_URL", service.url)
    sent = cli("sync")
    assert sent.code == 0, sent.err
    assert sent.err.count("stored as upload") == 2
    (run,) = service.ok("/v1/runs")["rows"]  # files of one command stay together
    assert run["uploads"] == 2
    assert "nothing is queued" in cli("sync").err
    monkeypatch.delenv("PROFSVC_URL")
    assert cli("sync").code == 2


def test_what_works_on_a_store_alone_is_not_done_elsewhere(cli, service, monkeypatch, tmp_path):
    store_file = tmp_path / "another.sqlite"
    monkeypatch.setenv("PROFSVC_STORE", str(store_file))
    monkeypatch.setenv("PROFSVC_URL", service.url)
    commands = ("analyze --all", "delete 1 --all", "db current", "token list", "undelete", "doctor", "serve",
                "schedule list", "schedule rest 1", "reparse --all")  # fmt: skip
    for command in map(str.split, commands):
        refused = cli(*command)
        assert refused.code == 2
        assert "needs a store; give one with --store" in refused.err
    assert not store_file.exists()
    assert cli("--store", store_file, "runs").code == 0


def test_tokens_are_made_listed_and_revoked(cli, store_file):
    made = cli("token", "create", "ci", "--project", "lab", "--days", "30")
    assert made.code == 0
    assert re.fullmatch(r"psvc_[0-9a-f]{64}\n", made.out)
    assert "It is shown only now" in made.err
    listed = cli("token", "list", "-o", "json")
    (row,) = json.loads(listed.out)["rows"]
    assert (row["name"], row["scopes"], row["project"], row["active"]) == ("ci", "upload read", "lab", 1)
    assert made.out.strip()[5:] not in listed.out
    assert cli("token", "revoke", "ci").code == 0
    assert json.loads(cli("token", "list", "-o", "json").out)["rows"][0]["active"] == 0
    assert cli("token", "revoke", "ci").code == 3
    assert cli("token", "create", "x", "--scope", "all").code == 2
    row = json.loads(cli("token", "create", "y", "--json").out)
    assert (row["ok"], row["name"], row["token"][:5]) == (True, "y", "psvc_")


def test_a_public_service_is_not_started_without_a_token(cli):
    refused = cli("serve", "--host", "0.0.0.0", "--port", "0")
    assert refused.code == 4
    assert "token create NAME --scope upload" in refused.err
    assert cli("serve", "--root-path", "x").code == 2


def test_serve_says_where_it_is_and_ends_when_it_is_told(store_file, tmp_path):
    command = [sys.executable, "-m", "profsvc", "--store", str(store_file), "serve", "--port", "0"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PROFSVC_")}
    with subprocess.Popen(command, cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr
        said = [process.stderr.readline() for _ in range(4)]
        try:
            url = re.search(r"export PROFSVC_URL=(\S+)", "".join(said))
            assert url, said
            assert "no token needed" in said[1]
            assert httpx.get(f"{url[1]}/readyz", timeout=20).json()["ok"] is True
            line = json.loads(process.stderr.readline())
            assert (line["event"], line["path"], line["status"]) == ("request", "/readyz", 200)
        finally:
            process.send_signal(signal.SIGINT)
        assert process.wait(20) in {0, 1, 130, -signal.SIGINT}
        assert "Traceback" not in process.stderr.read()
    assert store.schema_revision(store.connect(str(store_file))) == store.latest_revision()


def test_several_files_for_a_service_are_analyzed_once(cli, service, fixtures, monkeypatch):
    analyzed, analyze = [], pipeline.analysis.analyze
    monkeypatch.setattr(
        pipeline.analysis, "analyze", lambda *given, **how: (analyzed.append(given[1]), analyze(*given, **how))[1]
    )
    monkeypatch.setenv("PROFSVC_URL", service.url)
    files = [fixtures / "ncu_raw" / name for name in ("plain.csv", "swiss.csv", "french.csv")]
    for options in (("--run", "named"), ("--project", "of unnamed runs")):
        sent = cli("upload", *files, *options)
        assert sent.code == 0, sent.err
    assert analyzed == [1, 2]
    assert store.unfinished(service.site.engine) == {}

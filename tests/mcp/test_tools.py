"""The tools for assistants: a tuning loop on the captured reductions, scopes and tokens, stdio, HTTP, and errors."""

import gzip
import json
import os
import re
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
import uvicorn
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from sqlalchemy import Engine

from profsvc import pipeline, store
from profsvc.api import LocalStore
from profsvc.client import Client as Service
from profsvc.errors import AccessError
from profsvc.mcp.access import Access
from profsvc.mcp.server import check_listening, http_app, make_server
from profsvc.web.http.state import AppState
from tests.environment.event_loop import run_async
from tests.web.conftest import running

ROOT = Path(__file__).parents[2]
LINES = gzip.decompress((ROOT / "fixtures" / "demo" / "ncu_raw.csv.gz").read_bytes()).splitlines(keepends=True)
TRANSCRIPT = Path(__file__).with_name("tuning_loop.txt")
NAMES = {1: "reduce_v1_divergent", 3: "reduce_v3_sequential", 4: "reduce_v4_firstadd", 7: "reduce_v7_multielement"}
READING = {"list_runs", "show_run", "what_to_change", "did_it_help", "explain_number", "ask_sql", "read_docs"}


def export(folder: Path, version: int) -> Path:
    """Write the export of one version of the reduction."""
    path = folder / f"v{version}.csv"
    path.write_bytes(b"".join([*LINES[:2], LINES[version + 1]]))
    return path


async def call(client: Client, name: str, arguments: dict[str, Any]) -> Any:
    result = await client.call_tool(name, arguments)
    text = result.content[0].text
    if result.is_error:
        return text.removeprefix(f"Error executing tool {name}: ")
    assert len(text) < 9_000
    return json.loads(text)


def talk(server: Any, *calls: tuple[str, dict[str, Any]]) -> list[Any]:
    """Return the answers of some calls, in order; the names of the tools come first."""

    async def run() -> list[Any]:
        async with Client(server) as client:
            names = {tool.name for tool in (await client.list_tools()).tools}
            return [names, *[await call(client, name, arguments) for name, arguments in calls]]

    return run_async(run)


def test_a_tuning_loop_reads_like_this(engine: Engine, tmp_path: Path) -> None:
    server = make_server(Access(LocalStore(engine, store.blob_store_of(engine))), write=True)
    calls: list[tuple[str, dict[str, Any]]] = []
    before = 0
    for version, name in NAMES.items():
        calls.append(("upload_profile", {"path": str(export(tmp_path, version)), "run": f"v{version}"}))
        if before:
            renamed = {NAMES[before]: name}
            calls.append(("did_it_help", {"before": f"v{before}", "after": f"v{version}", "renamed": renamed}))
        calls.append(("what_to_change", {"run": f"v{version}"}))
        before = version
    names, *found = talk(server, *calls)
    assert names == READING | {"upload_profile"}
    parts = []
    for (name, arguments), answer in zip(calls, found, strict=True):
        asked = {key: Path(value).name if key == "path" else value for key, value in arguments.items()}
        parts.append(f"> {name} {json.dumps(asked)}\n{json.dumps(answer, indent=1, ensure_ascii=False)}\n")
    text = "\n".join(parts)
    if os.environ.get("PROFSVC_WRITE_TRANSCRIPT"):
        TRANSCRIPT.write_text(text, encoding="utf-8")
    assert text == TRANSCRIPT.read_text(encoding="utf-8")
    helped = [answer["kernels"][0] for (name, _), answer in zip(calls, found, strict=True) if name == "did_it_help"]
    assert [(one["helped"], one["speedup"]) for one in helped] == [("yes", 2.45), ("yes", 1.865), ("yes", 2.171)]
    stops = [answer["stop_here"] for (name, _), answer in zip(calls, found, strict=True) if name == "what_to_change"]
    assert stops == [False, False, False, True]


def test_the_other_tools_answer(demo: Engine) -> None:
    names, runs, run, number, rows, topics, page, rest = talk(
        make_server(Access(LocalStore(demo))),
        ("list_runs", {}),
        ("show_run", {"run": "h200", "limit": 3}),
        ("explain_number", {"name": "divergence", "run": "h200", "kernel": "0"}),
        ("ask_sql", {"query": "select launch_index, duration_ns from v1_launches where duration_ns > :ns order by 1",
                     "parameters": {"ns": 3e6}, "limit": 2}),
        ("read_docs", {}),
        ("read_docs", {"topic": "views"}),
        ("read_docs", {"topic": "views", "start": 8000}),
    )  # fmt: skip
    assert names == READING  # nothing that writes
    assert runs["runs"][0] | {"at": ""} == {
        "run_id": 1, "project": "demo", "name": "h200", "device": "NVIDIA H200", "commit_id": None, "launches": 34,
        "tags": {}, "gpu_time_us": 17060.0, "at": "", "see": "profsvc show id:1",
    }  # fmt: skip
    assert [one["kernel"] for one in run["causes"]] == ["shared_conflict<32>", "gemm_naive", "shared_conflict<16>"]
    assert run["potential_speedup"] == 2.613
    assert len(run["longest_launches"]) == 3
    assert number["name"] == "divergence"
    assert any({"file", "line", "metric"} <= set(row) for row in number["trace"])
    assert rows["columns"] == ["launch_index", "duration_ns"]
    assert rows["rows"]
    assert "howto/ci" in topics["topics"]
    assert (page["topic"], page["next_start"], len(page["text"])) == ("reference/views", 8000, 8000)
    assert rest["text"] != page["text"]


def test_a_run_is_given_by_the_number_of_an_answer_and_a_launch_by_its_own(engine: Engine) -> None:
    for name in ("first", "1"):
        with (ROOT / "fixtures" / "ncu_raw" / "h200_three_launches.csv.gz").open("rb") as stream:
            pipeline.ingest(engine, stream, "raw.csv", store.RunInfo(name=name))
    _, by_number, by_name, change, number = talk(
        make_server(Access(LocalStore(engine))),
        ("show_run", {"run": 1}),
        ("show_run", {"run": "1"}),
        ("what_to_change", {"run": 1, "kernel": 0}),
        ("explain_number", {"name": "divergence", "run": 1, "kernel": 0}),
    )
    assert (by_number["run_id"], by_name["run_id"]) == (1, 2)
    assert (change["run_id"], change["launch"]) == (1, 0)
    assert number["trace"]


def test_a_launch_without_counted_work_has_no_potential_of_any_kind(engine: Engine) -> None:
    with (ROOT / "fixtures" / "ncu_raw" / "plain.csv").open("rb") as stream:
        pipeline.ingest(engine, stream, "raw.csv", store.RunInfo(name="bare"))
    _, change = talk(make_server(Access(LocalStore(engine))), ("what_to_change", {"run": "bare"}))
    assert (change["potential_speedup"], change["potential_is"]) == (None, None)
    assert change["limited_by"] == "DRAM"


@pytest.mark.parametrize(
    ("name", "arguments", "words"),
    [
        ("show_run", {"run": "none"}, "not_found: no run named 'none'"),
        ("what_to_change", {"run": "h200", "kernel": "none"}, "not_found: "),
        ("ask_sql", {"query": "delete from runs"}, "usage: "),
        ("ask_sql", {"query": "select 1", "limit": 1000}, "limit"),
        ("read_docs", {"topic": "none"}, "not_found: no topic named 'none'"),
        ("read_docs", {"page": "views"}, "page\n  Extra inputs are not permitted"),
        ("upload_profile", {"path": "/etc/hostname", "run": "x"}, "Unknown tool"),
    ],
)
def test_errors_are_text_for_the_assistant(demo: Engine, name: str, arguments: dict[str, Any], words: str) -> None:
    _, answer = talk(make_server(Access(LocalStore(demo))), (name, arguments))
    assert isinstance(answer, str)
    assert words in answer
    assert "Traceback" not in answer


def test_repeated_launches_tell_the_noise(engine: Engine, tmp_path: Path) -> None:
    target = LocalStore(engine)
    for run, version in (("a", 1), ("b", 3)):
        rows = [re.sub(rb'^"\d+"', b'"%d"' % n, LINES[version + 1]) for n in range(4)]
        path = tmp_path / f"{run}.csv"
        path.write_bytes(b"".join([*LINES[:2], *rows]))
        target.submit(path, run=run)
    _, answer = talk(
        make_server(Access(target)), ("did_it_help", {"before": "a", "after": "b", "renamed": {NAMES[1]: NAMES[3]}})
    )
    assert answer["kernels"][0]["noise_percent"] == 0.0
    assert answer["kernels"][0]["because"] == "-59.2 % of time, beyond 1.0 %"
    assert answer["ledger"] == "not recorded: only with --write, over stdio"
    assert store.select(engine, "v1_predictions") == []


def test_over_stdio_it_is_a_program(tmp_path: Path) -> None:
    environment = {"PYTHONPATH": str(ROOT), "PROFSVC_STORE": str(tmp_path / "store.sqlite"), "PATH": os.defpath}
    program = StdioServerParameters(command=sys.executable, args=["-m", "profsvc", "mcp", "--write"], env=environment)
    path = str(export(tmp_path, 1))
    names, stored, change = talk(
        program, ("upload_profile", {"path": path, "run": "v1"}), ("what_to_change", {"run": "v1"})
    )
    assert "upload_profile" in names
    assert stored["see"] == "profsvc show id:1"
    assert change["causes"][0]["cause"] == "Integer division"


@contextmanager
def listening(access: Access, **options: Any) -> Iterator[str]:
    """Serve the tools on a port of this machine."""
    with socket.socket() as line:
        line.bind(("127.0.0.1", 0))
        port = line.getsockname()[1]
        server = uvicorn.Server(uvicorn.Config(http_app(access, "127.0.0.1", port, **options), log_level="error"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [line]})
        thread.start()
        try:
            while not server.started:
                time.sleep(0.01)
            yield f"http://127.0.0.1:{port}/mcp"
        finally:
            server.should_exit = True
            thread.join(10)


def talk_over_http(url: str, token: str, *calls: tuple[str, dict[str, Any]]) -> list[Any]:
    """Return the answers of some calls with a token."""

    async def run() -> list[Any]:
        headers = {"authorization": f"Bearer {token}"} if token else {}
        async with (
            httpx2.AsyncClient(headers=headers, timeout=30) as http,
            Client(streamable_http_client(url, http_client=http)) as client,
        ):
            return [await call(client, name, arguments) for name, arguments in calls]

    return run_async(run)


def test_over_http_scopes_are_those_of_the_service(engine: Engine, tmp_path: Path) -> None:
    target = LocalStore(engine, store.blob_store_of(engine))
    target.submit(export(tmp_path, 1), run="v1", project="a")
    target.submit(export(tmp_path, 3), run="v3", project="b")
    tokens = {
        "read": store.create_token(engine, "reader", ["read"]),
        "a": store.create_token(engine, "one project", ["read", "upload"], "a"),
        "sql": store.create_token(engine, "sql", ["read", "sql"]),
    }
    query = ("ask_sql", {"query": "select count(*) as n from v1_runs"})
    with listening(Access(target, over_http=True), write=True) as url:
        runs, refused = talk_over_http(url, tokens["read"], ("list_runs", {}), query)
        assert [row["name"] for row in runs["runs"]] == ["v3", "v1"]
        assert refused == "access: this needs a token with the scope 'sql'; yours has: read"
        assert talk_over_http(url, tokens["sql"], query)[0]["rows"] == [[2]]
        content = export(tmp_path, 4).read_text()
        own, other, stored, elsewhere, path = talk_over_http(
            url, tokens["a"], ("list_runs", {}), ("show_run", {"run": "v3"}),
            ("upload_profile", {"content": content, "run": "v4"}),
            ("upload_profile", {"content": content, "run": "v4", "project": "b"}),
            ("upload_profile", {"path": "/etc/hostname", "run": "v4"}),
        )  # fmt: skip
        assert [row["name"] for row in own["runs"]] == ["v1"]
        assert other.startswith("not_found: no run named 'v3'")
        assert stored["launches"] == 1
        assert elsewhere.startswith("access: your token is limited to the project 'a'")
        assert "content" in path  # no file of the server's machine is read
        for headers in ({}, {"authorization": "Bearer psvc_wrong"}):
            answer = httpx2.post(url, json={}, headers=headers)
            assert (answer.status_code, answer.json()["error"]["code"]) == (401, "token")
        rebound = httpx2.post(url, json={}, headers={"host": "evil", "authorization": f"Bearer {tokens['read']}"})
        assert rebound.status_code == 421
    assert [row["project"] for row in store.select(engine, "v1_runs", name="v4")] == ["a"]


def test_without_tokens_only_this_machine_is_served(engine: Engine) -> None:
    access = Access(LocalStore(engine), over_http=True)
    with listening(access) as url:
        assert talk_over_http(url, "", ("list_runs", {})) == [{"runs": []}]
    check_listening(access, "127.0.0.1")
    with pytest.raises(AccessError, match=r"refusing to listen on 0.0.0.0 without authentication"):
        check_listening(access, "0.0.0.0")


def test_a_service_behind_the_tools_decides_what_a_token_may_do(engine: Engine, tmp_path: Path) -> None:
    LocalStore(engine).submit(export(tmp_path, 1), run="v1")
    token = store.create_token(engine, "reader", ["read"])
    with (
        running(AppState(engine, store.blob_store_of(engine))) as service,
        listening(Access(Service(service.url, "psvc_own", retry_delays_s=()), over_http=True)) as url,
    ):
        change, refused = talk_over_http(
            url, token, ("what_to_change", {"run": "v1"}), ("ask_sql", {"query": "select 1 as n"})
        )
        nothing = talk_over_http(url, "", ("list_runs", {}))[0]
    launch = store.select(engine, "v1_launches")[0]["launch_id"]
    assert change["see"] == f"{service.url}/runs/1/launches/{launch}"
    assert refused.startswith("access: ")
    assert nothing.startswith("token: ")

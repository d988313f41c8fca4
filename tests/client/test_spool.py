"""The client's spool: several processes, kills, damaged entries and answers that are errors; nothing is lost."""

import io
import json
import os
import random
import signal
import time
from pathlib import Path

import httpx
import pytest

from profsvc import store
from profsvc.client import Client
from profsvc.client.spool import Spool
from profsvc.errors import ProfsvcError, ServerAwayError, TokenError
from profsvc.store.ingest.blob_store import BlobStore
from profsvc.web.http.state import AppState
from tests.robustness.durability import FORK
from tests.web.conftest import PLAIN, Endpoint, listening_socket, server_for

PROCESSES, EACH = 3, int(os.environ.get("PROFSVC_TEST_SPOOLED", "27")) // 3


def body(number: int) -> bytes:
    return PLAIN.read_bytes().replace(b"saxpy", b"k%d" % number)


def said(request: httpx.Request, status: int, code: str) -> httpx.Response:
    error = {"code": code, "message": "words", "request_id": "7"}
    return httpx.Response(status, json={"ok": False, "error": error}, request=request)


def answering(answers: dict[str, httpx.Response | tuple[int, str]]):
    """A service that answers by the name of the file; 201 for others."""
    asked: list[str] = []

    def handle(request: httpx.Request) -> httpx.Response:
        if request.url.path == "/livez":
            return httpx.Response(200)
        name = request.url.params["file_name"]
        asked.append(name)
        request.read()
        answer = answers.get(name, httpx.Response(201, json={"ok": True, "file_name": name}))
        return said(request, *answer) if isinstance(answer, tuple) else answer

    return httpx.MockTransport(handle), asked


@pytest.fixture
def filled(tmp_path: Path) -> Path:
    """A spool with the uploads a, b and c for http://a."""
    with Client("http://a", spool=tmp_path, retry_delays_s=(), transport=answering({})[0]) as client:
        for name in "abc":
            content = io.BytesIO(name.encode())
            client._spool_upload(content, {"file_name": name, "sha256": _sha(name.encode())})
    return tmp_path


def _sha(data: bytes) -> str:
    import hashlib

    return hashlib.sha256(data).hexdigest()


@pytest.mark.parametrize(
    "answer",
    [(500, "profsvc"), (409, "conflict"), (507, "no_space"), (403, "access"), httpx.Response(409, text="nginx")],
)
def test_an_error_for_one_upload_does_not_block_those_behind(filled: Path, answer) -> None:
    transport, asked = answering({"a": answer})
    with Client("http://a", spool=filled, retry_delays_s=(), transport=transport) as client:
        first, *rest = client.sync()
        assert (first["ok"], first["file_name"], "waits" in first) == (False, "a", True)
        assert [one["ok"] for one in rest] == [True, True]
        assert asked == ["a", "b", "c"]
        assert len(client.waiting()) == 1
    transport, asked = answering({})
    with Client("http://a", spool=filled, retry_delays_s=(), transport=transport) as client:
        assert [one["ok"] for one in client.sync()] == [True]
    assert [path.name for path in filled.iterdir()] == []


@pytest.mark.parametrize("answer", [(401, "token"), (503, "overloaded"), httpx.Response(502, text="proxy")])
def test_what_all_would_be_answered_ends_the_sending_and_keeps_all(filled: Path, answer, monkeypatch) -> None:
    monkeypatch.setattr(Client, "_is_alive", lambda self: False)
    transport, asked = answering(dict.fromkeys("abc", answer))
    with Client("http://a", spool=filled, retry_delays_s=(), transport=transport) as client:
        with pytest.raises(TokenError if answer == (401, "token") else ProfsvcError):
            client.sync()
        assert (asked, len(client.waiting())) == (["a"], 3)


@pytest.mark.parametrize("how", ["empty", "no json", "other shape", "no bytes", "cut bytes"])
def test_a_damaged_entry_is_set_aside_and_blocks_nothing(filled: Path, how: str) -> None:
    entry = sorted(filled.glob("*.json"))[0]
    texts = {"empty": "", "no json": "{", "other shape": "[1]"}
    if how in texts:
        entry.write_text(texts[how])
    elif how == "no bytes":
        entry.with_suffix(".data").unlink()
    else:
        entry.with_suffix(".data").write_bytes(b"")
    transport, asked = answering({})
    with Client("http://a", spool=filled, retry_delays_s=(), transport=transport) as client:
        client.waiting()
        first, *rest = client.sync()
        assert (first["ok"], [one["ok"] for one in rest], asked) == (False, [True, True], ["b", "c"])
        assert client.sync() == []
    kept = filled / "damaged" / entry.name
    assert "damaged" in json.loads(kept.read_text())
    assert (filled / "damaged" / entry.with_suffix(".data").name).exists() is (how != "no bytes")


def test_an_entry_reaches_the_disk_before_it_is_said_to_wait(tmp_path: Path, monkeypatch) -> None:
    order, real = [], os.fsync

    def syncing(number: int) -> None:
        order.append(Path(f"/proc/self/fd/{number}").readlink().suffix)
        real(number)

    monkeypatch.setattr(os, "fsync", syncing)
    Spool(tmp_path / "spool").keep(io.BytesIO(b"x"), "http://a", {})
    assert order == [".data", ".part", "", ""]  # bytes, entry, their folder, and the folder of that


def test_who_has_no_room_or_time_now_is_tried_later(tmp_path: Path) -> None:
    transport, _ = answering({"a": (507, "no_space")})
    with Client("http://a", spool=tmp_path, retry_delays_s=(), transport=transport) as client:
        found = client.submit(io.BytesIO(b"x"), file_name="a", spool=True)
        assert ("words" in found["because"], len(client.waiting())) == (True, 1)


def test_an_entry_that_another_process_sends_is_left_to_it(filled: Path) -> None:
    spool = Spool(filled)
    entry = spool.entries()[0]
    transport, asked = answering({})
    with (
        spool.claimed(entry) as ours,
        Client("http://a", spool=filled, retry_delays_s=(), transport=transport) as client,
    ):
        assert ours
        assert len(client.sync()) == 2
    assert asked == ["b", "c"]
    with Client("http://a", spool=filled, retry_delays_s=(), transport=transport) as client:  # it was killed
        assert len(client.sync()) == 1


def test_what_was_sent_by_one_that_was_killed_then_is_not_sent_again(filled: Path) -> None:
    entry = Spool(filled).entries()[0]
    entry.replace(entry.with_suffix(".sent"))
    transport, asked = answering({})
    with Client("http://a", spool=filled, retry_delays_s=(), transport=transport) as client:
        client.sync()
    assert asked == ["b", "c"]
    assert list(filled.iterdir()) == []


def _serve(store_file: str, port: int) -> None:
    engine = store.open_store(store_file)
    site = AppState(engine, BlobStore(Path(f"{store_file}.files"), free_bytes=1))
    with listening_socket("127.0.0.1", port) as line:
        server_for(site, Endpoint(), 100).run(sockets=[line])


def _submit(url: str, folder: str, process: int) -> None:
    draw = random.Random(process)
    with Client(url, spool=folder, retry_delays_s=()) as client:
        for number in range(EACH):
            data = io.BytesIO(body(process * EACH + number))
            client.submit(data, file_name=f"{process}-{number}.csv", run=f"r{process}-{number}", spool=True)
            if draw.random() < 0.5:
                try:
                    client.sync()
                except ServerAwayError:
                    client.waiting()
            time.sleep(draw.uniform(0, 0.1))
    os._exit(0)


def test_uploads_of_several_processes_to_a_service_that_comes_and_goes_are_each_there_once(tmp_path: Path) -> None:
    """``PROFSVC_TEST_SPOOLED=500`` for many."""
    store_file, folder, draw = str(tmp_path / "store.sqlite"), str(tmp_path / "spool"), random.Random(7)
    store.open_store(store_file).dispose()
    with listening_socket("127.0.0.1", 0) as line:
        port = line.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    senders = [FORK.Process(target=_submit, args=(url, folder, process)) for process in range(PROCESSES)]
    for sender in senders:
        sender.start()
    while any(sender.is_alive() for sender in senders):
        server = FORK.Process(target=_serve, args=(store_file, port))
        server.start()
        ends = time.monotonic() + draw.uniform(0.5, 2.0)
        for sender in senders:
            sender.join(max(0.0, ends - time.monotonic()))
        (server.kill if draw.random() < 0.5 else server.terminate)()
        server.join()
        assert server.exitcode in (0, -signal.SIGKILL, -signal.SIGTERM)
        time.sleep(draw.uniform(0, 0.5))
    assert [sender.exitcode for sender in senders] == [0] * PROCESSES
    server = FORK.Process(target=_serve, args=(store_file, port))
    server.start()
    try:
        with Client(url, spool=folder, retry_delays_s=(0.5,) * 20) as client:
            assert all(one["ok"] for one in client.sync())
            runs = [row["name"] for row in client.rows("runs")]
            assert (len(runs), len(set(runs))) == (PROCESSES * EACH,) * 2
            assert len(client.rows("uploads")) == PROCESSES * EACH
            assert client.waiting() == []
    finally:
        server.kill()
        server.join()
    assert [path.name for path in Path(folder).rglob("*") if path.is_file()] == []

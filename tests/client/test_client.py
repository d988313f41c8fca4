"""The client against a real service: everything once, nothing lost, errors as their kinds."""

import io
import json
import ssl

import httpx
import pandas as pd
import pytest

from profsvc import errors, store
from profsvc.client import Client, uploads
from profsvc.client.connection import Connection
from profsvc.client.protocol import ERRORS_BY_CODE
from profsvc.errors import (
    AccessError,
    InputError,
    NotFoundError,
    OverloadedError,
    ServerAwayError,
    ServiceError,
    TokenError,
    UsageError,
)  # fmt: skip
from profsvc.formats.parsing.json_stream import BrokenValueError
from profsvc.views.comparison import two_runs as compare
from tests.web import conftest
from tests.web.conftest import PLAIN, running

AWAY = "http://127.0.0.1:9"
looked_at, profile, service, site = (getattr(conftest, name) for name in ("looked_at", "profile", "service", "site"))


@pytest.fixture
def client(service, tmp_path):
    with Client(service.url, spool=tmp_path / "spool", retry_delays_s=(0.01,)) as client:
        yield client


@pytest.fixture(scope="module")
def reader(looked_at):
    with Client(looked_at.url + "/") as client:
        yield client


def test_files_are_sent_from_paths_streams_and_pipes(client, tmp_path, profile):
    class Pipe(io.RawIOBase):
        source = io.BytesIO(profile.replace(b"saxpy", b"other"))

        def readable(self):
            return True

        def readinto(self, buffer):
            return self.source.readinto(buffer)

    first = client.submit(PLAIN, run="today", project="lab", tag=["a=b"])
    assert (first["known"], first["run"], first["file_name"]) == (False, "today", "plain.csv")
    again = client.submit(io.BytesIO(profile), file_name="b.csv", project="lab")
    assert (again["known"], again["upload_id"]) == (True, first["upload_id"])
    seen: list[int] = []
    piped = client.submit(Pipe(), run_id=first["run_id"], progress=seen.append)
    assert (piped["known"], piped["run_id"], sum(seen)) == (False, first["run_id"], len(profile))
    assert client.submit(str(PLAIN), check=True)["upload_id"] is None


def test_questions_are_answered_as_by_the_store(reader, demo):
    query = "select kernel_short, duration_ns from v1_launches where duration_ns > cast(:least as real) order by 2"
    frame = reader.sql(query, {"least": 5000})
    want = store.query(demo, query, {"least": 5000})
    assert list(map(tuple, frame.itertuples(index=False))) == want.rows
    assert list(frame.columns) == want.columns
    with pytest.raises(UsageError, match="more than 2 rows"):
        reader.sql(query, {"least": 0}, limit=2)
    assert reader.ask(query, {"least": 0}, limit=2)["truncated"] is True
    with reader.export(query, {"least": 0}) as pieces:
        assert len(b"".join(pieces).splitlines()) == 35
    table = reader.table("v1_launches", kernel_short="saxpy", order="-launch_id")
    assert isinstance(table, pd.DataFrame)
    assert reader.rows("runs", host=None) == []
    assert [row["run_id"] for row in reader.rows("launches", limit=2)] == [1, 1]
    assert reader.run("h200", limit=1)["run"]["name"] == "h200"
    assert reader.launch("demo/h200", "0")["launches"]
    found = reader.compare("h200", 1, {"gemm_naive": "gemm_naive"}, ["duration=5%"])
    assert found["failures"] == []
    assert len(found["kernels"]) == len(compare.compare(demo, 1, 1)["kernels"])
    assert reader.explain("divergence", "h200", "0")["trace"]


def test_a_view_comes_whole_over_its_pages(reader, demo, monkeypatch):
    monkeypatch.setattr("profsvc.client.client.PAGE_ROWS", 7)
    assert len(reader.table("launches")) == 34
    assert reader.rows("launches", order="-duration_ns")[0]["duration_ns"] == max(
        row["duration_ns"] for row in store.select(demo, "v1_launches"))  # fmt: skip


def test_errors_come_back_as_their_kinds(reader, client):
    with pytest.raises(NotFoundError, match="did you mean 'h200'"):
        reader.run("h20")
    with pytest.raises(UsageError, match="'runs' cannot be read"):
        reader.sql("select * from runs")
    with pytest.raises(UsageError, match="invalid query"), reader.export("selec") as _:
        pass
    with pytest.raises(InputError):
        client.submit(io.BytesIO(b"nothing"))
    with pytest.raises(InputError, match="cannot be read"):
        client.submit("no such file")
    with pytest.raises(TokenError), Client(client.url, "psvc_" + "0" * 64) as other:
        other.rows("runs")
    for address in ("lab:80", "ftp://lab"):
        with pytest.raises(UsageError, match="begins with http"):
            Client(address)
    with pytest.raises(UsageError, match="check PROFSVC_TOKEN"):
        Client(client.url, "a\nb")
    assert set(ERRORS_BY_CODE) == {kind.code() for kind in errors.error_kinds()}
    assert len(ERRORS_BY_CODE) == len(list(errors.error_kinds()))
    assert ERRORS_BY_CODE[BrokenValueError.code()] is errors.BrokenInputError


def answering(*answers):
    """A service that gives these answers, one after the other; an error is raised."""
    left = list(answers)
    asked = []

    def handle(request):
        asked.append(request)
        answer = left.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    return httpx.MockTransport(handle), asked


def failing(status, code, **headers):
    said = {"ok": False, "error": {"code": code, "message": "words", "request_id": "7"}}
    return httpx.Response(status, json=said, headers=headers)


@pytest.mark.parametrize("name", ["a/b", "a\nb", "a\n", "\n!", "..", ".", "../b", "q?#%2F", " ä;:@&=+$,"])
def test_a_run_is_found_by_whatever_name_it_has(client, profile, name):
    for number, one in enumerate(("a", "b", name)):
        client.submit(io.BytesIO(profile.replace(b"saxpy", b"saxp%d" % number)), file_name="a.csv", run=one)
    assert client.run(name)["run"]["name"] == name
    assert client.run(f"default/{name}")["run"]["name"] == name


def test_what_passes_by_itself_is_tried_again():
    good = httpx.Response(200, json={"ok": True, "run": {}})
    transport, asked = answering(
        httpx.ConnectError("refused"), failing(503, "overloaded", **{"retry-after": "0"}), good
    )
    assert Client("http://a", transport=transport, retry_delays_s=(0, 0)).run(1)["run"] == {}
    assert len(asked) == 3
    for status, code, kind in ((503, "overloaded", OverloadedError), (507, "no_space", errors.NoSpaceError),
                               (404, "not_found", NotFoundError), (500, "profsvc", errors.ProfsvcError),
                               (403, "access", AccessError), (599, "made_up", ServiceError)):  # fmt: skip
        transport, _ = answering(*[failing(status, code)] * 2)
        with pytest.raises(kind, match="words"):
            Client("http://a", transport=transport, retry_delays_s=(0,)).run(1)
    for other in (httpx.Response(200, text="<html>"), httpx.Response(302), httpx.Response(404, text="nginx"),
                  httpx.Response(200, json=[1])):  # fmt: skip
        transport, _ = answering(other)
        with pytest.raises(ServerAwayError):
            Client("http://a", transport=transport, retry_delays_s=()).run(1)


def test_an_upload_waits_for_its_turn_however_often_it_is_put_off(profile, monkeypatch):
    busy = failing(503, "overloaded", **{"retry-after": "0"})
    good = httpx.Response(200, json={"ok": True})
    transport, asked = answering(*[busy] * 20, good)
    assert Client("http://a", transport=transport, retry_delays_s=(0, 0)).submit(io.BytesIO(profile))["ok"]
    assert len(asked) == 21
    other = failing(503, "service", **{"retry-after": "0"})
    transport, asked = answering(*[busy] * 5, *[other] * 3)
    with pytest.raises(ServiceError, match="words"):
        Client("http://a", transport=transport, retry_delays_s=(0, 0)).submit(io.BytesIO(profile))
    assert len(asked) == 8, "a service that is in trouble is not asked for minutes"
    monkeypatch.setattr(uploads, "MAX_TURN_S", 0.0)
    transport, asked = answering(*[busy] * 3)
    with pytest.raises(OverloadedError, match="words"):
        Client("http://a", transport=transport, retry_delays_s=(0, 0)).submit(io.BytesIO(profile))
    assert len(asked) == 3


def test_an_upload_that_broke_off_is_sent_whole_again(profile):
    seen = []

    def handle(request):
        seen.append(request.read())
        if len(seen) == 1:
            raise httpx.ReadError("reset")
        return httpx.Response(201, json={"ok": True})

    Client("http://a", transport=httpx.MockTransport(handle), retry_delays_s=(0,)).submit(io.BytesIO(profile))
    assert seen == [profile, profile]


def test_a_service_that_does_not_know_that_more_files_follow_gets_them_all(profile):
    refusal = {"error": {"code": "usage", "message": "no parameter named 'more'; there is 'run'"}}
    transport, asked = answering(httpx.Response(400, json=refusal), httpx.Response(201, json={"ok": True}))
    client = Client("http://a", transport=transport, retry_delays_s=())
    assert client.submit(io.BytesIO(profile), run="a", more=True) == {"ok": True}
    assert ["more" in request.url.params for request in asked] == [True, False]
    transport, asked = answering(httpx.Response(201, json={"ok": True}))
    Client("http://a", transport=transport).submit(io.BytesIO(profile), run="a", more=False)
    assert "more" not in asked[0].url.params


def test_a_service_that_is_away_loses_nothing(service, tmp_path, profile, monkeypatch):
    spool = tmp_path / "spool"
    with Client(AWAY, "psvc_secret", spool=spool, retry_delays_s=()) as away:
        with pytest.raises(ServerAwayError, match="does not answer"):
            away.submit(PLAIN, run="night")
        assert not spool.exists()
        for number in range(3):
            body = profile.replace(b"saxpy", b"kernel%d" % number)
            said = away.submit(io.BytesIO(body), file_name=f"{number}.csv", run="night", spool=True)
            assert (tmp_path / said["spooled"]).read_bytes() == body
        away.submit(io.BytesIO(b"poison"), file_name="poison.csv", spool={"run": "other"})
        assert len(away.waiting()) == 4
        with pytest.raises(ServerAwayError):
            away.sync()
        assert len(away.waiting()) == 4
    assert not [path for path in spool.iterdir() if b"psvc_" in path.read_bytes()]
    with Client(service.url, spool=spool, retry_delays_s=()) as back:
        assert back.waiting() == []  # they wait for another service
        for path in spool.glob("*.json"):
            path.write_text(json.dumps(json.loads(path.read_text()) | {"url": service.url}))
        verdicts = back.sync()
        assert [v["ok"] for v in verdicts] == [True, True, True, False]
        assert {v.get("run") for v in verdicts[:3]} == {"night"}
        assert verdicts[3]["file_name"] == "poison.csv"
        assert back.sync() == back.waiting() == []
        assert len(service.ok("/v1/uploads")["rows"]) == 3
    left = sorted(path.name for path in spool.rglob("*") if path.is_file())
    assert [name.partition(".")[2] for name in left] == ["data", "json"]


def test_a_service_that_is_away_is_waited_for_once_not_for_every_file(tmp_path):
    gone = httpx.ConnectError("refused")
    good = httpx.Response(201, json={"ok": True})
    transport, asked = answering(gone, gone, gone, gone, good, gone, gone, gone)
    with Client("http://a", transport=transport, spool=tmp_path, retry_delays_s=(0, 0)) as client:
        counts = []
        for number in range(4):
            client.submit(io.BytesIO(b"%d" % number), file_name="a.csv", spool=True)
            counts.append(len(asked))
        assert counts == [3, 4, 5, 8]  # three tries, one, one that is answered, and all three again
        assert len(client.waiting()) == 3
    transport, asked = answering(gone, gone, gone, gone)
    with Client("http://a", transport=transport, spool=tmp_path, retry_delays_s=(0, 0)) as client:
        with pytest.raises(ServerAwayError):
            client.sync()
        client.submit(io.BytesIO(b"x"), file_name="a.csv", spool=True)
        assert len(asked) == 4


def test_what_was_sent_before_it_was_noticed_does_no_harm(service, client, profile):
    client.submit(io.BytesIO(profile), run="a")
    with Client(service.url, spool=client.spool) as other:
        other._spool_upload(io.BytesIO(profile), {"sha256": "0" * 64, "file_name": "a.csv"})
        assert [v["ok"] for v in other.sync()] == [False]  # the sum is not that of the bytes
    assert len(service.ok("/v1/uploads")["rows"]) == 1


def test_a_closed_service_says_that_a_token_is_needed(site):
    with (
        running(site(is_public=True)) as closed,
        Client(closed.url, retry_delays_s=()) as client,
        pytest.raises(TokenError),
    ):
        client.rows("runs")


def test_certificates_are_loaded_only_for_a_service_that_has_one(monkeypatch):
    given = []
    monkeypatch.setattr(httpx, "Client", lambda **options: given.append(options["verify"]))
    for url in ("https://profsvc.example", AWAY):
        Connection(url)
    assert given[0] is True
    # Whatever is reached over http by mistake is still held to a certificate, and none is known.
    assert (given[1].verify_mode, given[1].check_hostname, given[1].get_ca_certs()) == (ssl.CERT_REQUIRED, True, [])

"""Bytes in, verdict out: once, whole, within limits."""

import hashlib
import os
import shutil
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from profsvc import pipeline, store
from profsvc.web.api import uploads
from profsvc.web.http.state import AppState, Limits
from tests.environment.mounts import mounted
from tests.store.queries.told import One, raw
from tests.web.conftest import SMI, error_of, running


def test_an_upload_is_stored_and_found(service, profile, engine):
    answer = service.upload(profile, run="today", project="lab", file_name="a.csv", tag=["branch=main", "n=1"],
                            commit="abc", device="NVIDIA H200")  # fmt: skip
    assert answer.status_code == 201
    body = answer.json()
    assert body["ok"] is True
    assert (body["known"], body["run"], body["file_name"], body["format"]) == (False, "today", "a.csv", "ncu-raw")
    assert body["sha256"] == hashlib.sha256(profile).hexdigest()
    assert body["lines"] == body["lines_stored"] + body["lines_skipped"] + body["lines_rejected"]
    assert answer.headers["location"] == body["url"] == f"/v1/runs/{body['run_id']}"
    assert service.ok(body["url"])["run"]["name"] == "today"
    (row,) = store.select(engine, "v1_runs")
    assert (row["project"], row["commit_id"], row["device"], row["tags"]) == (
        "lab", "abc", "NVIDIA H200", '{"branch":"main","n":"1"}')  # fmt: skip
    assert row["analysis_version"] is not None
    with store.open_blob(service.site.files, body["sha256"], "a.csv") as kept:
        assert kept.read() == profile


def test_the_same_bytes_are_known_however_they_come(service, profile, packed):
    first = service.upload(profile, run="a")
    again = service.upload(profile, run="a")
    assert (first.status_code, again.status_code) == (201, 200)
    assert again.json()["known"] is True
    assert again.json()["upload_id"] == first.json()["upload_id"]
    chunked = service.http.post(f"{service.url}/v1/uploads", content=iter([profile[:100], b"", profile[100:]]))
    assert (chunked.status_code, chunked.json()["upload_id"]) == (200, first.json()["upload_id"])
    other = service.upload(packed, run="packed")
    assert (other.status_code, other.json()["launches"]) == (201, first.json()["launches"])
    elsewhere = [service.upload(profile, run="b"), service.upload(profile, run="b", project="p")]
    assert [(answer.status_code, answer.json()["run"]) for answer in elsewhere] == [(201, "b"), (201, "b")]
    found = service.upload(profile, run="c", anywhere=1)
    assert (found.status_code, found.json()["run"]) == (200, "a")
    assert len(service.ok("/v1/uploads")["rows"]) == 4
    assert list(service.site.files.spool.iterdir()) == []


def test_uploads_at_once_of_the_same_bytes_are_one(service, profile):
    with ThreadPoolExecutor(12) as pool:
        answers = list(pool.map(lambda _: service.upload(profile, run="one"), range(12)))
    assert sorted(a.status_code for a in answers) == [200] * 11 + [201]
    assert len({a.json()["upload_id"] for a in answers}) == 1


def test_options_are_those_of_the_reader(service):
    answer = service.upload(SMI.read_bytes(), run="log", timezone="Europe/Berlin", clock_offset="1.5")
    assert answer.status_code == 201
    (stored,) = service.ok("/v1/uploads")["rows"]
    facts = stored["facts"]
    assert (facts["timezone"], facts["clock_offset_s"]) == ("Europe/Berlin", "1.5")
    run_id = answer.json()["run_id"]
    more = service.upload(b"t,p\n" + b"".join(b"%d,%d\n" % (i, 100 + i) for i in range(20)), run_id=run_id,
                          column=["t=time:s", "p=power:W"], position="p=3.5,12")  # fmt: skip
    assert more.status_code == 201, more.text
    assert more.json()["run_id"] == run_id
    named = service.ok("/v1/sensors", upload_id=more.json()["upload_id"])["rows"]
    assert [(r["quantity"], r["x_mm"], r["y_mm"]) for r in named] == [("power", 3.5, 12.0)]


def test_a_check_stores_nothing(service, profile, engine):
    answer = service.upload(profile, check=1)
    assert answer.status_code == 200
    assert (answer.json()["upload_id"], answer.json()["url"], answer.json()["launches"] > 0) == (None, None, True)
    assert store.select(engine, "v1_uploads") == []


@pytest.mark.parametrize(
    ("params", "status", "words"),
    [
        ({"runn": "a"}, 400, "did you mean 'run'"),
        ({"run": ["a", "b"]}, 400, "given 2 times"),
        ({"run": "a", "run_id": 1}, 400, "not both"),
        ({"run_id": "1_0"}, 400, "whole number"),
        ({"run_id": "7"}, 404, "no run named '7'"),
        ({"tag": "novalue"}, 400, "branch=main"),
        ({"timezone": "Mars/Base"}, 400, "Mars/Base"),
        ({"format": "nope"}, 404, "nope"),
        ({"check": "yes"}, 400, "0 or 1"),
        ({"clock_offset": "soon"}, 400, "seconds"),
        ({"file_name": "a\0b"}, 400, "no NUL"),
        ({"run": "x" * 501}, 400, "501 characters"),
        ({"run": " \u3000"}, 400, "cannot be seen"),
        ({"tag": "\u200b=a"}, 400, "cannot be seen"),
        ({"sha256": "0" * 64}, 422, "send them again"),
        ({"column": "a"}, 400, "NAME=QUANTITY:UNIT"),
    ],
)
def test_a_wrong_question_is_refused_and_nothing_is_stored(service, profile, engine, params, status, words):
    answer = service.upload(profile, **params)
    assert answer.status_code == status, answer.text
    assert words in error_of(answer)["message"]
    assert store.select(engine, "v1_uploads") == store.select(engine, "v1_runs") == []


@pytest.mark.parametrize("content", [b"", b"\0\1\2\3" * 100, b"just words\n", b"\x1f\x8b\x08cut"])
def test_a_file_that_cannot_be_read_is_refused(service, engine, content):
    answer = service.upload(content, run="r", file_name="<b>.csv")
    assert answer.status_code == 422, answer.text
    assert error_of(answer)["code"] in {"unknown_format", "input", "broken_input"}
    assert store.select(engine, "v1_runs") == []


def test_a_body_that_is_too_large_is_refused(site, profile, engine):
    most = len(profile) - 1
    with running(site(limits=Limits(upload_bytes=most))) as service:
        said = service.upload(profile)
        chunked = service.http.post(f"{service.url}/v1/uploads", content=iter([profile[:600], profile[600:]]))
        for answer in (said, chunked):
            assert answer.status_code == 413
            assert error_of(answer)["code"] == "too_large"
        assert store.select(engine, "v1_uploads") == []
        assert service.upload(profile[:most]).status_code == 201


def test_a_file_that_unpacks_to_too_much_is_refused(site, packed, profile):
    with running(site(limits=Limits(unpacked_bytes=len(profile) - 1))) as service:
        answer = service.upload(packed)
        assert (answer.status_code, error_of(answer)["code"]) == (413, "too_large")


def test_a_full_disk_is_507_and_reading_goes_on(service, profile, monkeypatch):
    real = shutil.disk_usage
    monkeypatch.setattr(shutil, "disk_usage", lambda path: real(path)._replace(free=0))
    answer = service.upload(profile)
    assert (answer.status_code, error_of(answer)["code"]) == (507, "no_space")
    assert service.get("/readyz").json()["checks"] == {
        "store": "ok",
        "schema": "ok",
        "disk": "no_space",
        "uploads": "ok",
    }
    assert service.get("/readyz").status_code == 503
    assert service.ok("/v1/runs")["rows"] == []


def test_no_room_for_more_is_503_and_says_when_to_come_again(site, profile, monkeypatch):
    go = threading.Event()
    slow = pipeline.ingest
    monkeypatch.setattr(pipeline, "ingest", lambda *a, **k: (go.wait(10), slow(*a, **k))[1])
    with running(site(limits=Limits(receiving_at_once=1))) as service, ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(service.upload, profile)
        until = time.monotonic() + 5
        while not service.site.receiving_limit.in_use and time.monotonic() < until:
            time.sleep(0.01)
        answer = service.upload(profile)
        assert (answer.status_code, error_of(answer)["code"]) == (503, "overloaded")
        assert answer.headers["retry-after"] == "5"
        assert service.get("/readyz").json()["checks"]["uploads"] == "overloaded"
        assert service.get("/livez").status_code == 200
        go.set()
        assert waiting.result().status_code == 201


def test_an_end_of_the_service_waits_for_uploads(site, profile, monkeypatch, engine):
    begun = threading.Event()
    slow = pipeline.ingest

    def ingest(*a, **k):
        begun.set()
        time.sleep(0.5)
        return slow(*a, **k)

    monkeypatch.setattr(pipeline, "ingest", ingest)
    with ThreadPoolExecutor(1) as pool, running(site()) as service:
        waiting = pool.submit(lambda: service.upload(profile, run="last"))
        assert begun.wait(5)
        # The block ends here: the service is told to stop while the file is read.
    assert waiting.exception(10) is not None or waiting.result().status_code == 201
    assert [row["name"] for row in store.select(engine, "v1_runs")] == ["last"]


def test_what_became_of_uploads_is_counted(service, profile):
    service.upload(profile)
    service.upload(profile)
    service.upload(b"nothing")
    service.upload(profile, nothing=1)
    text = service.get("/metrics").text
    for result in ("stored", "known", "refused", "failed"):
        assert f'profsvc_uploads_total{{result="{result}"}} 1.0' in text
    assert "profsvc_db_up 1.0" in text
    assert "profsvc_schema_behind 0.0" in text


def test_the_file_of_a_form_is_stored_and_not_its_envelope(service, profile):
    url, digest = f"{service.url}/v1/uploads", hashlib.sha256(profile).hexdigest()
    sent = service.http.post(url, files={"file": ("a.csv", profile)}, data={"run": "form", "sha256": digest})
    assert (sent.status_code, sent.json()["sha256"]) == (201, digest), sent.text
    assert (sent.json()["run"], sent.json()["file_name"], sent.json()["format"]) == ("form", "a.csv", "ncu-raw")
    again = service.http.post(url, files={"anything": ("b.csv", profile)}, params={"run": "form"})
    assert (again.status_code, again.json()["upload_id"]) == (200, sent.json()["upload_id"])
    assert list(service.site.files.spool.iterdir()) == []


@pytest.mark.parametrize(
    ("form", "words"),
    [
        ({"files": [("a", ("a.csv", b"1")), ("b", ("b.csv", b"2"))]}, "the form has 2 files, but must have one"),
        ({"files": {"a": ("a.csv", b"1")}, "data": {"sha256": "0" * 64}}, "send it again"),
        ({"files": {"a": ("a.csv", b"1")}, "data": {"nobody": "x"}}, "nobody"),
    ],
)
def test_a_form_that_is_not_one_file_is_refused_with_the_line_to_use(service, form, words):
    answer = service.http.post(f"{service.url}/v1/uploads", **form)
    assert answer.status_code in (400, 422)
    assert words in error_of(answer)["message"]


def test_a_file_is_stored_as_of_when_it_was_measured(service, profile):
    assert service.upload(profile, run="old", at="2026-10-24T05:00:00+02:00").status_code == 201
    (run,), (row,) = service.ok("/v1/runs")["rows"], service.ok("/v1/uploads")["rows"]
    assert run["started_at"] == row["received_at"] == "2026-10-24T03:00:00Z"
    wrong = service.upload(profile, run="new", at="2999-01-01")
    assert (wrong.status_code, "between 1970 and now" in wrong.text) == (400, True)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root mounts a disk")
def test_a_store_that_can_only_be_read_answers_and_says_that_it_takes_nothing(engine, profile, tmp_path):
    place = Path(str(engine.url.database)).parent
    with running(AppState(engine, store.blob_store_of(engine, free_bytes=1))) as service:
        assert service.upload(profile, run="a").status_code == 201
        with mounted(place, ["mount", "--bind", str(place)], ["mount", "-o", "remount,ro,bind"]):
            ready = service.get("/readyz")
            assert (ready.status_code, ready.json()["checks"]["disk"]) == (503, "service")
            assert len(service.ok("/v1/runs")["rows"]) == 1
            refused = service.upload(profile, run="b")
            assert (refused.status_code, "Read-only" in refused.text) == (503, True)
            assert str(place) not in refused.text
        assert service.get("/readyz").status_code == 200


def test_a_burst_into_one_run_has_its_results_computed_once(site, engine, monkeypatch):
    analyzed, slots, at_work, stored = [], [], threading.Event(), threading.Event()
    analyze, ingest = pipeline.analysis.analyze, pipeline.ingest

    def noted(engine, run_id, *given, **options):
        analyzed.append(run_id)
        slots.append(service.site.parsing_limit.in_use)
        return analyze(engine, run_id, *given, **options)

    def waits(*given, **options):
        at_work.set()
        assert stored.wait(20)
        return ingest(*given, **options)

    monkeypatch.setattr(pipeline.analysis, "analyze", noted)
    monkeypatch.setattr(pipeline, "ingest", waits)
    files = [raw([One(f"kernel_{n}(float *)", process=600 + n)]).encode() for n in range(5)]
    with running(site(limits=Limits(uploads_at_once=1))) as service, ThreadPoolExecutor(8) as pool:
        answers = [pool.submit(service.upload, files[0], run="other")]
        assert at_work.wait(20)  # else the first of the burst may be at work before the second comes
        for file in (*files, b"nothing"):  # what is refused comes last
            answers.append(pool.submit(service.upload, file, run="burst"))
            while sum(service.site.bursts._waiting.values()) < len(answers):
                time.sleep(0.01)
        stored.set()
        assert sorted(answer.result().status_code for answer in answers) == [201] * 6 + [422]
    assert len(analyzed) == 2
    assert min(slots) > 0
    assert store.unfinished(engine) == {}
    launches = store.query(engine, "select count(*) from v1_potential where launch_id is not null").rows
    assert launches == [(6,)]


def test_files_of_which_more_follow_have_their_results_computed_with_the_last(service, engine, monkeypatch):
    analyzed, analyze = [], pipeline.analysis.analyze

    def noted(engine, run_id, *given, **options):
        analyzed.append(run_id)
        return analyze(engine, run_id, *given, **options)

    monkeypatch.setattr(pipeline.analysis, "analyze", noted)
    files = [raw([One(f"kernel_{n}(float *)", process=600 + n)]).encode() for n in range(4)]
    for file in files[:2]:
        assert service.upload(file, run="one", more=1).status_code == 201
    assert (analyzed, list(store.unfinished(engine))) == ([], [1])
    assert service.upload(b"nothing", run="one").status_code == 422  # the last one is refused
    assert (analyzed, store.unfinished(engine)) == ([1], {})
    assert service.upload(files[2], run="one", more=1).status_code == 201
    assert service.upload(files[3], run="one").status_code == 201
    assert (analyzed, store.unfinished(engine)) == ([1, 1], {})
    assert store.query(engine, "select count(*) from v1_potential where launch_id is not null").rows == [(4,)]


def test_the_results_of_files_without_the_last_that_was_announced_are_computed_soon(service, engine, monkeypatch):
    monkeypatch.setattr(uploads, "MORE_WITHIN_SECONDS", 0.3)
    files = [raw([One(f"kernel_{n}(float *)", process=700 + n)]).encode() for n in range(3)]
    for file in files[:2]:
        assert service.upload(file, run="one", more=1).status_code == 201
    assert list(store.unfinished(engine)) == [1]
    until = time.monotonic() + 20
    while store.unfinished(engine) and time.monotonic() < until:
        time.sleep(0.05)
    assert store.query(engine, "select count(*) from v1_potential where launch_id is not null").rows == [(2,)]
    assert service.upload(files[2], run="one").status_code == 201  # it came late
    assert store.query(engine, "select count(*) from v1_potential where launch_id is not null").rows == [(3,)]

"""Reading from a standby server of Postgres that really follows another."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import psycopg
import pytest
from click.testing import CliRunner
from sqlalchemy import make_url

from profsvc import pipeline, store
from profsvc.api import LocalStore
from profsvc.cli.application import app
from profsvc.errors import StoreLostError, StoreVersionError, UsageError
from profsvc.store.connection import replica as replicas
from profsvc.web.http.state import AppState
from profsvc.web.server import Endpoint, Limits, app_state_for
from tests.environment import postgres
from tests.web.conftest import PLAIN, running


class Pair(NamedTuple):
    """A store, its replica, and the servers of both."""

    url: str
    read_url: str
    server: postgres.Server
    primary: postgres.Cluster
    standby: postgres.Cluster

    @property
    def settings(self) -> dict[str, str]:
        """The environment of a command that uses both."""
        return {"PROFSVC_STORE": self.url, "PROFSVC_READ_STORE": self.read_url}

    def replay(self, *, paused: bool) -> None:
        """Let the standby stop or go on to apply what it receives."""
        with psycopg.connect(self.standby.url, autocommit=True) as session:
            session.execute("SELECT pg_wal_replay_pause()" if paused else "SELECT pg_wal_replay_resume()")


@pytest.fixture(scope="module")
def servers() -> Iterator[tuple[postgres.Server, postgres.Cluster, postgres.Cluster]]:
    with postgres.replicated() as found:
        yield found


@pytest.fixture
def pair(servers: tuple[postgres.Server, postgres.Cluster, postgres.Cluster]) -> Iterator[Pair]:
    server, primary, standby = servers
    name = postgres.migrated(server)
    url = server.url(name)
    arrived(url.set(drivername="postgresql", port=standby.port).render_as_string(hide_password=False))
    yield Pair(
        url.render_as_string(hide_password=False),
        url.set(port=standby.port).render_as_string(hide_password=False),
        server, primary, standby,
    )  # fmt: skip
    server.disconnect()
    server.drop(name)


def arrived(url: str) -> None:
    """Wait until a standby has a new database."""
    end = time.monotonic() + 30
    while True:
        try:
            with psycopg.connect(url) as session:
                assert session.execute("SELECT count(*) FROM facts").fetchone() != (0,)
                return
        except psycopg.Error:
            assert time.monotonic() < end
            time.sleep(0.05)


def upload(url: str, run: str) -> None:
    engine = store.open_store(url)
    with PLAIN.open("rb") as stream:
        pipeline.ingest(engine, stream, PLAIN.name, store.RunInfo(name=run))
    engine.dispose()


def one_run(engine: Any, name: str) -> None:
    """Store a run without anything, which takes no time."""
    with engine.begin() as connection:
        values = {"name": name}
        connection.exec_driver_sql(
            "INSERT INTO runs (project, name, created_at) VALUES ('lab', %(name)s, '2026-01-01T00:00:00Z')", values
        )


def names(engine: Any) -> set[str]:
    return {row["name"] for row in store.select(engine, "v1_runs")}


class Told(NamedTuple):
    """What a command ended with and printed."""

    code: int
    out: str
    err: str


def asked(*words: str, **environment: str) -> Told:
    """Run a command with settings in the environment."""
    result = CliRunner().invoke(app, list(words), prog_name="profsvc", env=environment)
    assert "Traceback" not in result.output
    return Told(result.exit_code, result.stdout, result.stderr)


def test_whoever_wrote_sees_it_and_the_replica_answers(pair: Pair) -> None:
    engine = store.open_store(pair.url)
    replica = store.Replica(engine, pair.read_url)
    for number in range(20):
        one_run(engine, f"run{number}")
        place = replica.place(strict=True)
        assert (place.state, place.engine.url.port, place.warning) == ("ok", pair.standby.port, "")
        assert f"run{number}" in names(place.engine)
    replica.dispose()
    engine.dispose()


def test_a_replica_that_is_behind_is_not_asked_until_it_has_caught_up(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    both = pair.settings
    monkeypatch.setattr(replicas, "CATCH_UP_SECONDS", 0.1)
    monkeypatch.setitem(replicas.PAUSE_SECONDS, "behind", 600.0)
    engine = store.open_store(pair.url)
    replica = store.Replica(engine, pair.read_url)
    one_run(engine, "old")
    assert replica.place().state == "ok"
    pair.replay(paused=True)
    try:
        one_run(engine, "new")
        time.sleep(1.1)
        place = replica.place()
        assert (place.state, place.engine) == ("behind", engine)
        assert "its newest change is " in place.warning
        assert place.age_s is not None
        assert place.age_s > 1
        assert "receives nothing" not in place.warning
        code, out, err = asked("runs", "-o", "csv", **both)
        assert (code, "new" in out) == (0, True)
        assert "warning: the replica postgresql://" in err
        assert "is behind" in err
        assert str(make_url(pair.url).password) not in err
    finally:
        pair.replay(paused=False)
    assert replica.place().state == "behind"  # it is not asked again at once
    replica._paused = place, 0.0  # as if the time were over
    place = replica.place()
    assert place.state == "ok"
    assert names(place.engine) == {"old", "new"}
    replica.dispose()
    engine.dispose()


def test_a_replica_that_is_away_and_a_store_that_is_away(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    both = pair.settings
    monkeypatch.setitem(replicas.PAUSE_SECONDS, "unreachable", 0.0)
    engine = store.open_store(pair.url)
    replica = store.Replica(engine, pair.read_url)
    one_run(engine, "kept")
    assert replica.place().state == "ok"
    pair.standby.stop()
    try:
        place = replica.place()
        assert (place.state, place.engine) == ("unreachable", engine)
        code, out, err = asked("runs", "-o", "csv", **both)
        assert (code, "kept" in out, "the replica cannot answer" in err) == (0, True, True)
        code, out, _ = asked("sql", "select name from v1_runs", **both)
        assert (code, "kept" in out) == (0, True)
    finally:
        pair.standby.start()
    assert replica.place().state == "ok"
    pair.server.disconnect()
    pair.primary.stop()
    try:
        place = replica.place()
        assert place.state == "alone"
        assert place.warning.startswith("the main store is unreachable, so the replica postgresql://")
        assert names(place.engine) == {"kept"}
        code, out, err = asked("runs", "-o", "csv", **both)
        assert (code, "kept" in out, "its newest change is " in err) == (0, True, True)
        # A query is checked where a view can be made; without that place it is not run.
        code, _, err = asked("sql", "select name from v1_runs", **both)
        assert (code, "connection" in err) == (5, True)
        pair.standby.stop()
        try:
            with pytest.raises(StoreLostError, match="connection lost or server unreachable"):
                replica.place()
        finally:
            pair.standby.start()
    finally:
        pair.primary.start()
    replica.dispose()
    engine.dispose()


def test_what_is_no_replica_is_refused(
    pair: Pair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    engine = store.open_store(pair.url)
    other = pair.server.url(postgres.migrated(pair.server)).render_as_string(hide_password=False)
    for url, why in (
        (pair.url, "no standby server; a promoted one no longer follows the store"),
        (other, "not a replica of postgresql://"),
    ):
        with pytest.raises(UsageError, match=why):
            store.Replica(engine, url).place(strict=True)
        place = store.Replica(engine, url).place()  # a service that runs goes on
        assert (place.state, place.engine) == ("unreachable", engine)
        with pytest.raises(UsageError, match=why):
            app_state_for(engine, store.blob_store_of(engine, str(tmp_path)), Endpoint(), Limits(), url)
    with pytest.raises(UsageError, match="SQLite store is read where it is written"):
        store.Replica(engine, str(tmp_path / "a.sqlite"))
    mixed = {"PROFSVC_STORE": str(tmp_path / "a.sqlite"), "PROFSVC_READ_STORE": pair.read_url}
    told = asked("runs", **mixed)
    assert (told.code, "SQLite store is read where it is written" in told.err) == (UsageError.exit_code, True)
    told = asked("runs", PROFSVC_STORE=pair.url, PROFSVC_READ_STORE="postgresql://host:x/db")
    assert (told.code, "is not a database URL" in told.err) == (UsageError.exit_code, True)
    # Its replica is none of a store that the command names.
    assert asked("--store", str(tmp_path / "a.sqlite"), "runs", **mixed).code == 0
    engine.dispose()


def test_a_store_that_must_be_upgraded_first_is_named_and_not_its_replica(pair: Pair) -> None:
    engine = store.connect(pair.url)
    with engine.begin() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '0001'")
    engine.dispose()
    told = asked("runs", **pair.settings)
    assert (told.code, f":{pair.primary.port}/" in told.err) == (StoreVersionError.exit_code, True), told.err
    assert "lacks the schema" in told.err


def test_every_page_and_question_is_answered_by_the_replica(
    pair: Pair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = store.open_store(pair.url)
    site = AppState(engine, store.blob_store_of(engine, str(tmp_path), free_bytes=1), read_url=pair.read_url)
    assert site.replica is not None
    ports: list[int | None] = []
    placed = site.replica.place

    def noted(**how: Any) -> store.Place:
        place = placed(**how)
        ports.append(place.engine.url.port)
        return place

    monkeypatch.setattr(site.replica, "place", noted)
    with running(site) as service:
        assert service.upload(PLAIN.read_bytes(), run="today", project="lab").status_code == 201
        assert ports == []
        report = service.http.post(f"{service.url}/v1/reports", json={"project": "lab"})
        assert report.status_code in (200, 201), report.text
        launch = service.ok("/v1/launches")["rows"][0]["launch_id"]
        kernel = service.ok("/v1/launches")["rows"][0]["kernel_short"]
        pages = [
            "/", "/runs/today", "/runs/today/launches", f"/runs/today/launches/{launch}", "/devices", "/findings",
            "/reports", f"/history?kernel={kernel}", "/compare?before=today&after=today", "/models",
            "/settings", "/v1/runs", "/v1/runs.csv", "/v1/runs/today", "/v1/launches.ndjson",
            f"/v1/history?kernel={kernel}",
            "/v1/compare?before=today&after=today", "/v1/sql?q=select count(*) from v1_launches", "/v1/findings",
            "/v1/sql.csv?q=select * from v1_criteria", "/v1/reports", "/v1/groups", "/v1/uploads",
        ]  # fmt: skip
        for page in pages:
            before = len(ports)
            answer = service.http.get(service.url + page, follow_redirects=True)
            if answer.status_code == 404:
                continue
            assert answer.status_code == 200, (page, answer.text)
            assert ports[before:], page
            assert set(ports[before:]) == {pair.standby.port}, page
            assert "profsvc-notice" not in answer.headers
        assert service.get("/readyz").json()["checks"]["replica"] == "ok"
        assert "profsvc_replica_used 1.0" in service.get("/metrics").text
        monkeypatch.setattr(site.replica, "place", placed)
        pair.standby.stop()
        try:
            answer = service.get("/v1/runs/today")
            assert answer.status_code == 200
            assert answer.headers["profsvc-notice"].startswith("the replica cannot answer, so the main store did")
            assert service.get("/v1/sql", q="select 1 as one").json()["rows"] == [{"one": 1}]
            ready = service.get("/readyz")
            assert (ready.status_code, ready.json()["checks"]["replica"]) == (200, "unreachable")
            assert "profsvc_replica_used 0.0" in service.get("/metrics").text
        finally:
            pair.standby.start()
    site.close()


def test_a_program_reads_from_the_replica(pair: Pair, tmp_path: Path) -> None:
    engine = store.open_store(pair.url)
    upload(pair.url, "today")
    replica = store.Replica(engine, pair.read_url)
    target = LocalStore(engine, replica=replica)
    assert target._reader.url.port == pair.standby.port
    assert [row["name"] for row in target.rows("runs")] == ["today"]
    assert target.ask("select count(*) as n from v1_runs")["rows"] == [{"n": 1}]
    with pytest.raises(UsageError, match="tokens"):
        target.ask("select * from tokens")
    assert not target.submit(PLAIN, run="again")["known"]
    assert {row["name"] for row in target.rows("runs")} == {"today", "again"}
    target.close()
    replica.dispose()

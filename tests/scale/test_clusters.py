"""Workers of a cluster: a worker that dies, rows equal to those of one process, TLS, and Ctrl-C."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import Engine

from profsvc import pipeline, scale, store
from profsvc.errors import ServiceError, UsageError
from profsvc.scale.work import Opened, Target, _open_own
from tests.benchmarks.cluster import different, exports, hashes_of_rows, process_id, rows_of_run, rows_of_views
from tests.conftest import ROOT

KINDS = (("smi", 2), ("nvprof", 9), ("nsys", 9))
INFO, HOW = store.RunInfo(), pipeline.ReadOptions(zone="UTC")


def test_one_worker_killed_on_the_way_and_everything_there_once(
    loader: str, engine: Engine, opening: Callable[[str], Opened], tmp_path: Path, empty: Path
) -> None:
    """Twelve files and a bad one, loaded as the role that may only load; rows as one process stores them."""
    folder = tmp_path / "exports"
    exports(folder, 12, rows=12, kinds=KINDS)
    (folder / "bad.csv").write_text("nothing that anybody reads")
    groups, told, done = scale.group_files([str(folder)]), list[str](), list[scale.Outcome]()
    place = opening(loader)
    with scale.workers("local", place, 2, told.append) as mapped:
        pids = sorted({pid for _, pid in mapped(process_id, range(20))})
        assert len(pids) == 2
        for outcome in scale.ingest(place, mapped, groups, INFO, HOW):
            if len(done) == 5:
                os.kill(pids[0], signal.SIGKILL)
            done.append(outcome)
        runs = [row["run_id"] for row in store.select(engine, "v1_runs")][::4]
        assert {run for run, _ in scale.analyze(place, mapped, runs)} == set(runs)
    assert told == ["warning: a worker died; what it worked on is done again"]
    bad = [outcome for outcome in done if outcome.exit_code]
    assert [(Path(outcome.file).name, outcome.status) for outcome in bad] == [("bad.csv", "refused")]
    assert len(done) == 13
    assert len(store.select(engine, "v1_uploads")) == len(store.select(engine, "v1_runs")) == 12
    (tmp_path / "alone.sqlite").write_bytes(empty.read_bytes())
    alone = opening(str(tmp_path / "alone.sqlite"))
    list(scale.ingest(alone, scale.one_process(alone), groups, INFO, HOW))
    assert different(rows_of_views(engine), rows_of_views(alone.engine)) == {}
    kept = [path.name for path in place.files.folder.glob("blobs/*/*.zst")]
    assert len(kept) == 12, "the workers kept the bytes elsewhere"


# A kind of row, its table and a change of one cell.
CHANGES = (
    ("wide_constants", "wide_constants", "value = value * (1 + 1e-15)"),
    ("wide_cells", "wide_lists", "texts = texts || '0'"),
    ("metrics", "metrics", "raw_text = raw_text || '0'"),
    ("v1_counter_values", "counters", "value = value * (1 + 1e-15)"),
)


def test_the_benchmark_sees_one_cell_that_differs(
    engine: Engine, opening: Callable[[str], Opened], tmp_path: Path
) -> None:
    exports(tmp_path / "exports", 2, kinds=(("raw", 20),))
    place = opening(engine.url.render_as_string(hide_password=False))
    list(scale.ingest(place, scale.one_process(place), scale.group_files([str(tmp_path / "exports")]), INFO, HOW))
    before = hashes_of_rows(engine)
    assert before == hashes_of_rows(engine)
    for kind, table, change in CHANGES:
        rows = {run: rows_of_run(engine, kind, run) for of, run in before if of == kind}
        with engine.begin() as connection:
            some = " WHERE value > 1" * ("value" in change)
            one = f"(SELECT ctid FROM {table}{some} LIMIT 1)"
            connection.exec_driver_sql(f"UPDATE {table} SET {change} WHERE ctid = {one}")
        after = hashes_of_rows(engine)
        (changed,) = (run for of, run in before if of == kind and before[of, run] != after[of, run])
        assert sum((rows[changed] - rows_of_run(engine, kind, changed)).values()) == 1, kind
        before = after


@pytest.mark.usefixtures("interruptible")
def test_ctrl_c_is_answered_and_a_worker_whose_new_start_fails_comes_back(
    place: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Dask tries one start after a death; on a busy machine that takes longer than its limit."""
    from distributed import Nanny

    monkeypatch.setattr("profsvc.scale.clusters.REVIVE_SECONDS", 0.5)
    starting, failures = Nanny.instantiate, [OSError("timed out"), OSError("timed out")]

    async def failing(nanny: Nanny) -> object:
        if killed and failures:
            raise failures.pop()
        return await starting(nanny)

    monkeypatch.setattr(Nanny, "instantiate", failing)
    killed, told = list[int](), list[str]()
    with scale.workers("local", place, 2, told.append) as mapped:
        some = mapped(process_id, range(20))
        next(some)
        signal.raise_signal(signal.SIGINT)  # wherever Python is, perhaps in a finalizer
        with pytest.raises(KeyboardInterrupt):
            next(some)
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        first = {pid for _, pid in mapped(process_id, range(20))}
        killed.append(min(first))
        os.kill(killed[0], signal.SIGKILL)
        end = time.monotonic() + 60
        while len(now := {pid for _, pid in mapped(process_id, range(20))}) < 2:
            assert time.monotonic() < end
    assert now & first == first - set(killed)
    assert failures == []
    assert told[1:] == ["warning: a worker did not start again (timed out); another try in 0.5 s"]


@pytest.mark.parametrize("address", ["tcp://dask.lab:8786", "tcp://192.0.2.7:8786"])
def test_beyond_this_machine_there_is_tls(place: Opened, address: str) -> None:
    with (
        pytest.raises(UsageError, match=r"not encrypted, and who reaches a Dask scheduler.*use tls://host:port"),
        scale.workers(address, place),
    ):
        pass


@pytest.mark.parametrize("address", ["remote", "http://dask.lab:8786", "tls://dask.lab", "tls://:x", "tcp://h:999999"])
def test_what_is_no_address_is_refused(place: Opened, address: str) -> None:
    refused = pytest.raises(UsageError, match="must be local or the address of a scheduler")
    with refused, scale.workers(address, place):
        pass


def test_a_file_of_this_machine_is_not_shared_with_others(place: Opened) -> None:
    with (
        pytest.raises(UsageError, match="a SQLite store is a file of this machine"),
        scale.workers("tls://dask.lab:8786", place),
    ):
        pass


def test_workers_are_counted_only_where_they_are_started(place: Opened) -> None:
    with (
        pytest.raises(UsageError, match="--workers is for --cluster local"),
        scale.workers("tls://dask.lab:8786", place, 3),
    ):
        pass


def test_no_scheduler_at_the_address(
    engine: Engine, opening: Callable[[str], Opened], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("profsvc.scale.clusters.CONNECT_SECONDS", 0.2)
    place = opening(engine.url.render_as_string(hide_password=False))
    with (
        pytest.raises(ServiceError, match=r"no Dask scheduler answers at tcp://127\.0\.0\.1:9: "),
        scale.workers("tcp://127.0.0.1:9", place),
    ):
        pass


def test_a_worker_with_another_store_or_program_does_nothing(place: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROFSVC_STORE", str(place.engine.url.database))
    own = store.store_id(place.engine)
    with pytest.raises(ServiceError, match=r"a worker runs profsvc .*, but this is 0\.0\.1"):
        _open_own(Target(own, "0.0.1"))
    with pytest.raises(ServiceError, match="which is another than this; set PROFSVC_STORE of the workers"):
        _open_own(Target("another", scale.work.target_of(place).version))


def test_a_scheduler_elsewhere_is_reached_by_tls_with_its_certificate(
    engine: Engine, opening: Callable[[str], Opened], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    import dask
    from distributed import LocalCluster
    from distributed.security import Security

    url = engine.url.render_as_string(hide_password=False)
    place = opening(url)
    temporary = Security.temporary()
    files = {}
    for name in ("tls_ca_file", "tls_client_key", "tls_client_cert"):
        files[name] = tmp_path / f"{name}.pem"
        files[name].write_text(getattr(temporary, name))
    exports(tmp_path / "exports", 2, rows=5, kinds=(("nsys", 20),))
    groups = scale.group_files([str(tmp_path / "exports")])
    env = {"PROFSVC_STORE": url, "PROFSVC_FILES": str(tmp_path / "kept")}
    with LocalCluster(
        n_workers=1, threads_per_worker=1, host="127.0.0.1", dashboard_address="127.0.0.1:0", memory_limit=0,
        silence_logs=50, security=temporary, env=env,
    ) as cluster:  # fmt: skip
        assert cluster.scheduler_address.startswith("tls://")
        certificates = {
            "distributed.comm.tls.ca-file": str(files["tls_ca_file"]),
            "distributed.comm.tls.client.key": str(files["tls_client_key"]),
            "distributed.comm.tls.client.cert": str(files["tls_client_cert"]),
        }
        with dask.config.set(certificates), scale.workers(cluster.scheduler_address, place) as mapped:
            done = list(scale.ingest(place, mapped, groups, INFO, HOW))
        assert [outcome.status for outcome in done] == ["stored", "stored"]
        refused = pytest.raises(ServiceError, match="no Dask scheduler answers at tls://")
        with refused, scale.workers(cluster.scheduler_address, place):
            pass


def test_ctrl_c_leaves_whole_files_and_the_same_command_goes_on(
    tmp_path: Path, interruptible: None, empty: Path, opening: Callable[[str], Opened]
) -> None:
    exports(tmp_path / "exports", 16, rows=12, kinds=(("nvprof", 20),))
    file = tmp_path / "store.sqlite"
    file.write_bytes(empty.read_bytes())
    command = [
        sys.executable, "-m", "profsvc", "-v", "--store", str(file), "ingest", str(tmp_path / "exports"),
        "--timezone", "UTC",
    ]  # fmt: skip
    started = subprocess.Popen(
        [*command, "--cluster", "local", "--workers", "2"], cwd=ROOT, stderr=subprocess.PIPE, text=True,
        start_new_session=True,
    )  # fmt: skip
    assert started.stderr
    said = []
    for line in started.stderr:
        said.append(line)
        if ": stored in run" in line:
            os.killpg(started.pid, signal.SIGINT)  # as a terminal does: every process of the command gets it
            break
    with started.stderr:
        said += started.stderr.readlines()
    assert started.wait(30) == 130, said
    assert said[0].startswith("a SQLite store has one writer at a time")
    assert not any("Traceback" in line for line in said), said
    assert _processes_of(started.pid) == []
    place = opening(str(file))
    some = len(store.select(place.engine, "v1_uploads"))
    assert 0 < some < 16
    assert said[-1].startswith(f"interrupted: {some} of 16 files stored, each whole; ")
    # A worker that was stopped half way leaves its spooled bytes and no analysis, which are warnings.
    assert "fail" not in {check.state for check in store.run_checks(place.engine, lambda: place.files)}
    done = list(
        scale.ingest(place, scale.one_process(place), scale.group_files([str(tmp_path / "exports")]), INFO, HOW)
    )
    assert sum(outcome.status == "known" for outcome in done) == some
    assert len(store.select(place.engine, "v1_uploads")) == 16


def _processes_of(session: int, seconds: float = 5.0) -> list[str]:
    """Return the processes of a session that are still there after some time."""
    end = time.monotonic() + seconds
    while True:
        listed = subprocess.run(["ps", "-o", "args=", "-s", str(session)], capture_output=True, text=True, check=False)
        left = listed.stdout.split("\n")[:-1]
        if not left or time.monotonic() > end:
            return left
        time.sleep(0.05)

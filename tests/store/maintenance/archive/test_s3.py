"""An archive in S3, as a server of this machine speaks it."""

import logging
import os
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from sqlalchemy import Engine

from profsvc import store
from profsvc.errors import ServiceError, UsageError
from profsvc.store.maintenance.archive import archiving
from profsvc.store.maintenance.archive.place import open_place
from tests.store.conftest import only_on
from tests.store.maintenance.archive.stores import base_rows

moto_server = pytest.importorskip("moto.server")
pytest.importorskip("s3fs")
ADDRESS = "s3://bucket/profsvc"
only_sqlite = only_on("sqlite", "the place is the same for both engines")


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A server without a bucket, and the settings with which clients reach it."""
    import s3fs

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    running = moto_server.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    running.start()
    host, port = running.get_host_and_port()
    httpx.post(f"http://{host}:{port}/moto-api/reset").raise_for_status()  # the servers of a process share their state
    for name, value in {
        "AWS_ENDPOINT_URL": f"http://{host}:{port}", "AWS_DEFAULT_REGION": "us-east-1", "AWS_MAX_ATTEMPTS": "1",
        "AWS_EC2_METADATA_DISABLED": "true", "AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_CONFIG_FILE": os.devnull, "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
    }.items():  # fmt: skip
        monkeypatch.setenv(name, value)
    s3fs.S3FileSystem.clear_instance_cache()
    yield running
    running.stop()
    s3fs.S3FileSystem.clear_instance_cache()


@pytest.fixture
def bucket(server: Any) -> Any:
    """The file system of a bucket of that server."""
    remote = open_place(ADDRESS).remote
    remote.mkdir("bucket")
    return remote


@only_sqlite
def test_a_month_goes_to_s3_is_read_there_and_comes_back(year: Engine, march: store.Month, bucket: Any) -> None:
    import duckdb

    before = base_rows(year)
    launches = sorted(row["launch_id"] for row in store.select(year, "v1_launches") if row["run_id"] in {1, 2})
    done = store.archive_month(year, march, ADDRESS)
    assert done.size_bytes == sum(
        bucket.size(path) for path in bucket.find("bucket/profsvc") if path.endswith(".parquet")
    )
    with duckdb.connect() as session:
        session.register_filesystem(bucket)
        session.execute(bucket.cat_file("bucket/profsvc/views.sql").decode())
        found = session.execute("SELECT launch_id FROM v1_launches WHERE month = '2025-03' ORDER BY 1").fetchall()
    assert [number for (number,) in found] == launches
    (back,) = store.restore_month(year, "2025-03")
    assert (back.uploads, back.deleted) == (6, 0)
    assert base_rows(year) == before


@only_sqlite
def test_no_bucket_is_made_where_its_name_is_wrong(year: Engine, march: store.Month, bucket: Any) -> None:
    before = base_rows(year)
    with pytest.raises(ServiceError, match=r"s3://buckett/profsvc/.*; nothing was lost; create the bucket"):
        store.archive_month(year, march, "s3://buckett/profsvc")
    assert base_rows(year) == before
    bucket.invalidate_cache()
    assert bucket.ls("") == ["bucket"]


@only_sqlite
def test_credentials_are_asked_for(
    year: Engine, march: store.Month, bucket: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    bucket.clear_instance_cache()
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    with pytest.raises(ServiceError, match=r"redentials; nothing was lost; set AWS_ACCESS_KEY_ID and"):
        store.archive_month(year, march, ADDRESS)


@only_sqlite
@pytest.mark.parametrize(("step", "at"), [("_write", 7), ("require_whole", 3), ("_put", 1)])
def test_a_server_that_goes_half_way_costs_no_row(
    year: Engine, march: store.Month, server: Any, bucket: Any, monkeypatch: pytest.MonkeyPatch, step: str, at: int
) -> None:
    before, work, calls = base_rows(year), getattr(archiving, step), []

    def going(*arguments: Any, **options: Any) -> Any:
        calls.append(step)
        if len(calls) == at:
            server.stop()
        return work(*arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(archiving, step, going)
        with pytest.raises(ServiceError, match=r"nothing was lost; the server does not answer"):
            store.archive_month(year, march, ADDRESS)
    assert base_rows(year) == before
    assert store.archived_runs(year) == set()


@pytest.mark.parametrize("address", ["s3:/bucket", "s3:bucket", "gs:/bucket/x"])
def test_a_url_with_too_few_slashes_is_no_folder(address: str) -> None:
    with pytest.raises(UsageError, match=r"write it as s3://bucket/folder"):
        open_place(address)

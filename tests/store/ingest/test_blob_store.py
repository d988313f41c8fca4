"""Kept bytes: on the disk before the rows, nothing left of what was refused, read again under the same number."""

import io
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import zstandard
from sqlalchemy import Engine

from profsvc import pipeline, store
from profsvc.errors import InputError, NotFoundError, ServiceError
from profsvc.store.ingest import blob_store, incoming_file
from profsvc.store.ingest.blob_store import BlobStore, protecting_blobs, removing_blobs
from profsvc.tables import Batch
from tests.store.conftest import batches, info

FIXTURES = Path(__file__).parents[3] / "fixtures"
RAW, METER = FIXTURES / "ncu_raw" / "plain.csv", FIXTURES / "hioki" / "pw3335.csv"
RUN = store.RunInfo(name="r")


@pytest.fixture
def files(tmp_path: Path) -> BlobStore:
    return BlobStore(tmp_path / "kept", free_bytes=1)


def put(engine: Engine, path: Path, files: BlobStore | None, run: store.RunInfo = RUN, **how) -> pipeline.ImportResult:
    with path.open("rb") as stream:
        return pipeline.ingest(engine, stream, path.name, run, pipeline.ReadOptions(**how), files=files)


def lying(files: BlobStore) -> list[str]:
    return sorted(path.relative_to(files.folder).as_posix() for path in files.folder.rglob("*") if path.is_file())


@store.snapshot
def rows(engine: Engine) -> dict[str, list[dict]]:
    return {view: sorted(store.select(engine, view), key=repr) for view in store.VIEWS}


@pytest.mark.usefixtures("unanalysed")
def test_bytes_are_kept_as_they_were_given(engine: Engine, files: BlobStore) -> None:
    sha256 = put(engine, RAW, files).sha256
    assert lying(files) == [f"blobs/{sha256[:2]}/{sha256}.zst", "lock"]
    assert zstandard.ZstdDecompressor().stream_reader(files.blob(sha256).read_bytes()).read() == RAW.read_bytes()
    with store.open_blob(files, sha256, "") as stream:
        assert stream.read() == RAW.read_bytes()
    assert blob_store.blob_damage(files, sha256) == ""
    assert (files.folder.stat().st_mode | files.spool.stat().st_mode) & 0o077 == 0


@pytest.mark.parametrize("size", [0, 1, 1000, 200_000, 5 << 20])
def test_a_copy_is_packed_in_a_small_window(files: BlobStore, tmp_path: Path, size: int) -> None:
    content = bytes(range(256)) * (size // 256) + bytes(size % 256)
    (tmp_path / "a.csv").write_bytes(content)
    with (tmp_path / "a.csv").open("rb") as source, incoming_file.open_incoming(source) as arrival:
        with blob_store.storing_blob(files, arrival) as place:
            place()
        packed = files.blob(arrival.sha256).read_bytes()
    told = zstandard.get_frame_parameters(packed)
    assert told.content_size == size
    assert told.window_size <= 1 << blob_store.MAX_WINDOW_LOG
    assert zstandard.ZstdDecompressor().decompress(packed, max_output_size=size) == content
    assert blob_store.blob_damage(files, arrival.sha256) == ""


@pytest.mark.usefixtures("unanalysed")
def test_bytes_are_on_the_disk_before_the_rows_are_committed(engine: Engine, files: BlobStore, monkeypatch) -> None:
    order = []
    real_sync, real_finish = os.fsync, store.ingest.upload._Upload.finish
    monkeypatch.setattr(
        os, "fsync", lambda number: (order.append(str(Path(f"/proc/self/fd/{number}").readlink())), real_sync(number))
    )
    monkeypatch.setattr(
        store.ingest.upload._Upload, "finish", lambda *given: (order.append("rows"), real_finish(*given))[1]
    )
    sha256 = put(engine, RAW, files).sha256
    blobs = files.folder / "blobs"
    assert [path for path in order if "kept" in path or path == "rows"] == [
        next(path for path in order if "/spool/" in path),
        str(blobs / sha256[:2]),
        str(files.folder),
        str(blobs),
        "rows",
    ]


def test_what_is_not_stored_leaves_no_bytes(engine: Engine, files: BlobStore) -> None:
    with pytest.raises(InputError):
        put(engine, FIXTURES / "ncu_raw" / "bad_contradicting_numbers.csv", files)

    def failing() -> Iterator:
        yield from batches()
        raise InputError("cut")

    with (
        io.BytesIO(b"abc") as source,
        store.open_incoming(source) as incoming_file,
        pytest.raises(InputError, match="cut"),
        store.storing_blob(files, incoming_file),
    ):
        store.write_upload(engine, info(), RUN, failing())
    assert lying(files) == ["lock"]
    put(engine, RAW, BlobStore(files.folder, 1, keep=False))
    assert lying(files) == ["lock"]
    assert put(engine, RAW, files).known


def test_a_change_under_the_reader_stores_nothing(
    engine: Engine, files: BlobStore, tmp_path: Path, monkeypatch
) -> None:
    path = tmp_path / "log.csv"
    path.write_bytes(RAW.read_bytes())
    real = pipeline.file_batches.read_batches

    def changing(stream, *given):
        stream.read()
        stream.seek(0)
        path.write_bytes(RAW.read_bytes().replace(b"1", b"2"))
        return real(stream, *given)

    monkeypatch.setattr(incoming_file, "BLOCK_BYTES", 100)
    monkeypatch.setattr(pipeline.file_batches, "read_batches", changing)
    with pytest.raises(InputError, match="the file changed during the upload"):
        put(engine, path, files)
    assert lying(files) == ["lock"]
    assert store.select(engine, "v1_uploads") == []


def test_a_file_of_a_new_length_is_hashed_while_it_is_read(engine: Engine, files: BlobStore, monkeypatch) -> None:
    read: list[int] = []
    real = pipeline.file_batches.read_batches

    def reading(stream: Any, *given: Any) -> Iterator[Batch]:
        read.append(len(asked))
        return real(stream, *given)

    asked: list[str] = []
    find = store.find_upload
    monkeypatch.setattr(store, "find_upload", lambda *given: (asked.append(given[1]), find(*given))[1])
    monkeypatch.setattr(pipeline.file_batches, "read_batches", reading)
    first = put(engine, RAW, files)
    assert (read, asked) == ([0], [])  # read before anybody asked for its hash
    again = put(engine, RAW, files)
    assert (again.known, again.upload_id, again.sha256) == (True, first.upload_id, first.sha256)
    assert (read, asked) == ([0], [first.sha256])


def test_too_little_free_disk_is_refused_before_anything(engine: Engine, tmp_path: Path, monkeypatch) -> None:
    usage = blob_store.shutil.disk_usage(tmp_path)
    for total, free, refused in (
        (100 << 30, 900 << 20, True),
        (100 << 30, 2 << 30, False),
        (2 << 30, 200 << 20, False),
    ):
        monkeypatch.setattr(blob_store.shutil, "disk_usage", lambda _, t=total, f=free: usage._replace(total=t, free=f))
        if refused:
            with pytest.raises(
                ServiceError, match=r"only 900 MiB are free on the disk of .* but 1024 MiB must stay free"
            ):
                put(engine, RAW, BlobStore(tmp_path / "kept"))
            assert store.select(engine, "v1_uploads") == []
        else:
            put(engine, RAW, BlobStore(tmp_path / "kept"))


def test_a_folder_that_cannot_be_made_is_said(engine: Engine, tmp_path: Path) -> None:
    (tmp_path / "kept").touch()
    with pytest.raises(
        ServiceError,
        match=r"cannot keep the bytes of the file in .*kept: (File exists|Not a directory); nothing was stored",
    ):
        put(engine, RAW, BlobStore(tmp_path / "kept"))
    assert store.select(engine, "v1_uploads") == []


@pytest.mark.parametrize("damage", ["missing", "cut", "another", "flipped"])
def test_bytes_that_are_not_whole_are_not_read_again(engine: Engine, files: BlobStore, damage: str) -> None:
    sha256 = put(engine, RAW, files).sha256
    before, blob = rows(engine), files.blob(sha256)
    packed = blob.read_bytes()
    if damage == "missing":
        blob.unlink()
    else:
        content = {
            "cut": packed[: len(packed) // 2],
            "another": zstandard.compress(b"other bytes"),
            "flipped": packed[:50] + bytes([packed[50] ^ 255]) + packed[51:],
        }
        blob.write_bytes(content[damage])
    assert blob_store.blob_damage(files, sha256).startswith("missing" if damage == "missing" else "damaged")
    with pytest.raises(ServiceError, match="are not in .* PROFSVC_KEEP=0" if damage == "missing" else "are damaged"):
        pipeline.reparse(engine, files, 1)
    assert rows(engine) == before


@pytest.mark.usefixtures("computed")
def test_reading_again_gives_the_same_rows(engine: Engine, files: BlobStore) -> None:
    put(engine, METER, files, store.RunInfo(name="r", device="H100"), zone="Europe/Berlin", offset_s=1.5)
    put(engine, RAW, files, form="ncu-raw")
    put(engine, FIXTURES / "ncu_raw" / "french.csv", files, store.RunInfo(name="q"))
    before = rows(engine)
    for number in (1, 2, 3):
        then, now = pipeline.reparse(engine, files, number)
        assert {name: getattr(now, name) for name in ("upload_id", "run_id", "samples", "launches", "lines")} == {
            name: getattr(then, name) for name in ("upload_id", "run_id", "samples", "launches", "lines")
        }
    assert rows(engine) == before
    facts = [json.loads(row["facts"]) for row in before["v1_uploads"]]
    assert [row.get("reader") for row in facts] == [None, "ncu-raw", None]
    assert [row.get("given_device") for row in facts] == ["H100", None, None]


def test_a_better_reader_changes_the_rows(engine: Engine, files: BlobStore, monkeypatch) -> None:
    with monkeypatch.context() as old:
        old.setattr(pipeline.file_batches.formats, "read", _half(pipeline.file_batches.formats.read))
        put(engine, METER, files)
    assert len(store.select(engine, "v1_samples")) == 0
    then, now = pipeline.reparse(engine, files, 1)
    assert (then.samples, now.samples) == (0, 8)
    assert len(store.select(engine, "v1_samples")) == 8


def _half(read):
    """A reader that finds no samples."""

    def without(*given):
        reader, found = read(*given)
        return reader, (_bare(batch) for batch in found)

    return without


def _bare(batch):
    from dataclasses import replace

    return replace(batch, tables={name: table for name, table in batch.tables.items() if name == "rejects"})


def test_a_reader_that_fails_now_changes_nothing(engine: Engine, files: BlobStore, monkeypatch) -> None:
    put(engine, RAW, files)
    before = rows(engine)

    def broken(*given):
        reader, found = real(*given)

        def cut():
            yield next(found)
            raise InputError("not any more")

        return reader, cut()

    real = pipeline.file_batches.formats.read
    monkeypatch.setattr(pipeline.file_batches.formats, "read", broken)
    with pytest.raises(InputError, match="not any more"):
        pipeline.reparse(engine, files, 1)
    assert rows(engine) == before


def test_a_reparse_cut_before_the_analysis_leaves_rows_and_results_as_they_were(
    engine: Engine, files: BlobStore, monkeypatch
) -> None:
    put(engine, RAW, files)
    before = rows(engine)
    with monkeypatch.context() as patched:
        patched.setattr(pipeline.reparsing, "analyze", lambda *_: (_ for _ in ()).throw(MemoryError("cut short")))
        with pytest.raises(MemoryError):
            pipeline.reparse(engine, files, 1)
    assert rows(engine) == before
    assert store.unfinished(engine) == {}


def test_no_upload_to_read_again(engine: Engine, files: BlobStore) -> None:
    with pytest.raises(NotFoundError, match="no upload has the number 7"):
        pipeline.reparse(engine, files, 7)


def test_who_removes_waits_for_who_uploads(files: BlobStore) -> None:
    import threading

    found: list[str] = []

    def remove() -> None:
        try:
            with removing_blobs(files, seconds=0.05):
                found.append("removed")
        except ServiceError as error:
            found.append(str(error))

    for holder in (protecting_blobs(files), None):
        thread = threading.Thread(target=remove)
        if holder is not None:
            with holder:
                thread.start()
                thread.join()
        else:
            thread.start()
            thread.join()
    assert found == ["another process has been busy for more than 0.05 s: it uploads a file; retry later", "removed"]


def test_only_what_no_living_process_writes_is_left_over(files: BlobStore) -> None:
    with protecting_blobs(files), blob_store._spool_file(files) as (path, _):
        dead = files.spool / "1-dead.zst"
        dead.write_bytes(b"x")
        assert blob_store.orphaned_spool_files(files) == [dead]
        assert not blob_store.is_unused(files)
    assert not path.exists()
    assert blob_store.is_unused(files)


def test_where_bytes_are_kept(engine: Engine, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    default, asked = store.blob_store_of(engine).folder, store.blob_store_of(engine, str(tmp_path / "mine")).folder
    if engine.dialect.name == "sqlite":
        assert default == asked == Path(f"{engine.url.database}.files")
    else:
        assert default.parent == tmp_path / "data" / "profsvc" / "files"
        assert asked.parent == tmp_path / "mine"
        assert default.name == asked.name
        assert len(default.name) == 32

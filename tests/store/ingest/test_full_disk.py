"""Disks that are full while a file is unpacked, stored or told of, and a store whose server is not there."""

import gzip
import io
import os
import shutil
from collections import namedtuple
from pathlib import Path

import pytest

from profsvc import pipeline, store
from profsvc.errors import NoSpaceError, StoreLostError, TooLargeError
from profsvc.formats.parsing import unpacked_copies
from profsvc.formats.parsing.stream import open_stream
from profsvc.formats.parsing.text import Text
from profsvc.formats.parsing.unpacked_copies import copies_in
from profsvc.store.ingest import blob_store
from profsvc.store.ingest.blob_store import BlobStore

Usage = namedtuple("Usage", "total used free")
RUN = store.RunInfo(name="r")
RAW = Path(__file__).parents[3] / "fixtures" / "ncu_raw" / "plain.csv"
LINE = b"1.5,2,3\n"


@pytest.fixture
def no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unpacked_copies, "SPOOL_BYTES", 1)


def test_what_is_unpacked_goes_to_the_spool_of_the_store(tmp_path: Path, no_memory, monkeypatch) -> None:
    engine = store.open_store(str(tmp_path / "store.sqlite"))
    files, seen = store.blob_store_of(engine, free_bytes=1), []
    real = unpacked_copies.tempfile.SpooledTemporaryFile

    def made(*given: object, **options: object) -> object:
        seen.append(options.get("dir"))
        return real(*given, **options)  # type: ignore[call-overload]

    monkeypatch.setattr(unpacked_copies.tempfile, "SpooledTemporaryFile", made)
    packed = io.BytesIO(gzip.compress(RAW.read_bytes()))
    pipeline.ingest(engine, packed, "a.csv.gz", RUN, files=files)
    assert str(files.spool) in seen
    assert list(files.spool.iterdir()) == []
    engine.dispose()


def test_a_disk_that_fills_while_a_file_is_unpacked_ends_it(monkeypatch, no_memory) -> None:
    """It is looked at again and again, for no file says how much it will be."""
    monkeypatch.setattr(unpacked_copies, "CHECK_EVERY_BYTES", 1 << 20)
    asked: list[int] = []

    def room() -> None:
        asked.append(1)
        if len(asked) > 5:
            raise NoSpaceError("only 3 MiB are free")

    packed = io.BytesIO(gzip.compress(LINE * (64 << 17)))  # 64 MiB
    with copies_in(room), pytest.raises(NoSpaceError, match="3 MiB"):
        Text(open_stream(packed))
    assert packed.tell() < len(packed.getvalue()) or len(asked) == 6


def test_a_full_disk_under_a_copy_is_said_as_that(tmp_path: Path) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("this system has no full device")
    with (
        Path("/dev/full").open("wb", buffering=0) as full,
        pytest.raises(NoSpaceError, match="no space is left on the disk"),
    ):
        unpacked_copies.copy(io.BytesIO(b"x" * 100), full)


def test_too_little_room_is_found_before_a_file_is_unpacked(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(100 << 30, 99 << 30, 3 << 20))
    packed = io.BytesIO(gzip.compress(RAW.read_bytes()))
    for files in (None, BlobStore(tmp_path / "kept"), BlobStore(tmp_path / "kept", keep=False)):
        with pytest.raises(NoSpaceError, match="only 3 MiB are free"):
            pipeline.check_file(packed, "a.csv.gz", files=files)
        packed.seek(0)


def test_a_plain_file_within_its_limit_is_read_where_it_lies() -> None:
    stream = io.BytesIO(LINE * 10)
    assert open_stream(stream, limit=80) is stream
    with pytest.raises(TooLargeError):
        open_stream(io.BytesIO(LINE * 10), limit=79).read()
    with pytest.raises(TooLargeError):
        open_stream(io.BytesIO(gzip.compress(LINE * 10)), limit=79).read()
    how = pipeline.ReadOptions(most_bytes=RAW.stat().st_size)
    with RAW.open("rb") as file:
        assert pipeline.check_file(file, "plain.csv", how).launches == 2


def test_the_room_for_copies_is_that_of_who_asked_last_and_ends_with_it() -> None:
    with copies_in(lambda: "/a"):
        with copies_in(lambda: "/b"):
            assert unpacked_copies.folder() == "/b"
        assert unpacked_copies.folder() == "/a"
    assert unpacked_copies.folder() is None


def test_a_server_that_is_not_there_is_said_as_that() -> None:
    with pytest.raises(StoreLostError, match="server unreachable"):
        store.open_store("postgresql://127.0.0.1:1/profsvc")
    engine = store.connect("postgresql://127.0.0.1:1/profsvc")
    for ask in (store.schema_revision, store.is_current, store.runs):
        with pytest.raises(StoreLostError, match="server unreachable"):
            ask(engine)


def test_room_is_looked_for_where_the_copies_go(tmp_path: Path) -> None:
    files = BlobStore(tmp_path / "kept", free_bytes=1)
    assert store.unpack_folder(files) == str(files.spool)
    off = BlobStore(tmp_path / "off", free_bytes=1, keep=False)
    assert store.unpack_folder(off) == blob_store.tempfile.gettempdir()
    assert not (tmp_path / "off").exists()
    assert os.path.isdir(store.unpack_folder(None))  # noqa: PTH112

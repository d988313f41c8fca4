"""Files on their way in: the hash is that of what is read, and a file that changes meanwhile is refused."""

import gzip
import hashlib
import io
import os
import random
import threading
from pathlib import Path

import pytest

from profsvc.errors import InputError, ServiceError
from profsvc.store.ingest import incoming_file
from profsvc.store.ingest.incoming_file import open_incoming

CONTENT = random.Random(1).randbytes(10_123)


class Pipe(io.RawIOBase):
    """Gives a few bytes at a time and cannot seek."""

    def __init__(self, content: bytes) -> None:
        self.rest = content

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        piece, self.rest = self.rest[: min(size, 7)], self.rest[min(size, 7) :]
        return piece


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(incoming_file, "BLOCK_BYTES", 100)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "a.bin").write_bytes(CONTENT)
    return tmp_path / "a.bin"


@pytest.mark.parametrize("in_memory", [1 << 20, 10])
@pytest.mark.parametrize("kind", ["file", "unbuffered", "bytes", "pipe", "gzip"])
@pytest.mark.parametrize("first", ["hash", "end", "read"])
def test_what_is_read_is_what_is_hashed(file, kind, in_memory, first, monkeypatch):
    monkeypatch.setattr(incoming_file, "MAX_MEMORY_BYTES", in_memory)
    packed = file.with_suffix(".gz")
    packed.write_bytes(gzip.compress(CONTENT))
    source = {
        "file": lambda: file.open("rb"),
        "unbuffered": lambda: file.open("rb", buffering=0),
        "bytes": lambda: io.BytesIO(CONTENT),
        "pipe": lambda: Pipe(CONTENT),
        "gzip": lambda: gzip.GzipFile(packed),  # has a file below it, whose bytes are not those that are read
    }[kind]
    seen: list[int] = []
    with source() as stream, open_incoming(stream, progress=seen.append) as found:
        if first == "hash":
            assert found.sha256 == hashlib.sha256(CONTENT).hexdigest()
        elif first == "end":
            assert found.block(len(CONTENT) // 100) == CONTENT[-(len(CONTENT) % 100) :]
        assert b"".join(found.blocks()) == CONTENT
        assert (found.sha256, found.size) == (hashlib.sha256(CONTENT).hexdigest(), len(CONTENT))
        assert sum(seen) == len(CONTENT)
        again = found.stream()
        assert again.read() == CONTENT
        draw = random.Random(2)
        for _ in range(200):
            place, size = draw.randrange(len(CONTENT) + 50), draw.randrange(500)
            assert again.seek(place) == place
            assert again.read(size) == CONTENT[place : place + size]
        assert again.seek(-5, os.SEEK_END) == len(CONTENT) - 5
        assert again.read() == CONTENT[-5:]


def test_a_file_is_taken_from_where_it_stands(file):
    with file.open("rb") as stream:
        stream.read(33)
        with open_incoming(stream) as found:
            assert found.sha256 == hashlib.sha256(CONTENT[33:]).hexdigest()
            assert found.stream().read() == CONTENT[33:]


def test_nothing_is_a_file_too(tmp_path):
    (tmp_path / "empty").touch()
    with (tmp_path / "empty").open("rb") as stream, open_incoming(stream) as found:
        assert (found.size, found.stream().read()) == (0, b"")


@pytest.mark.parametrize("hashed", [True, False])
@pytest.mark.parametrize("change", ["a byte", "shorter", "gone"])
def test_a_change_is_noticed(file, change, hashed):
    with file.open("rb") as stream, open_incoming(stream) as found:
        reading = found.stream()
        assert reading.read(10) == CONTENT[:10]
        if hashed:
            assert found.sha256 == hashlib.sha256(CONTENT).hexdigest()
        else:
            assert reading.read(6_000) == CONTENT[10:6_010]
            reading.seek(0)
        with file.open("r+b") as other:
            if change == "a byte":
                other.seek(5_000)
                other.write(bytes([CONTENT[5_000] ^ 1]))
            else:
                other.truncate(5_000 if change == "shorter" else 0)
        with pytest.raises(InputError, match=r"the file changed during the upload, near byte \d+; nothing was stored"):
            reading.read()


def test_what_changes_before_it_is_read_is_hashed_as_it_is_read(file):
    with file.open("rb") as stream, open_incoming(stream) as found:
        reading = found.stream()
        assert reading.read(10) == CONTENT[:10]
        with file.open("r+b") as other:
            other.seek(5_000)
            other.write(bytes([CONTENT[5_000] ^ 1]))
        now = file.read_bytes()
        assert reading.read() == now[10:]
        assert found.sha256 == hashlib.sha256(now).hexdigest()
        assert b"".join(found.blocks()) == now


def test_what_is_added_later_is_not_read(file):
    with file.open("rb") as stream, open_incoming(stream) as found:
        with file.open("ab") as other:
            other.write(b"more")
        assert found.stream().read() == CONTENT


def test_two_threads_read_the_same_bytes(file):
    read: list[bytes] = []
    with file.open("rb") as stream, open_incoming(stream) as found:
        threads = [threading.Thread(target=lambda: read.append(found.stream().read())) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert found.sha256 == hashlib.sha256(CONTENT).hexdigest()
    assert read == [CONTENT] * 4


def test_a_source_that_fails_is_refused():
    class Broken(Pipe):
        def read(self, size: int = -1) -> bytes:
            raise OSError(5, "Input/output error")

    with pytest.raises(InputError, match="reading the file failed: Input/output error"), open_incoming(Broken(b"")):
        pass


def test_a_copy_that_has_no_room(monkeypatch):
    monkeypatch.setattr(incoming_file, "MAX_MEMORY_BYTES", 10)

    class Full(io.BytesIO):
        def write(self, _data) -> int:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(incoming_file.tempfile, "SpooledTemporaryFile", lambda **_: Full())
    with (
        pytest.raises(ServiceError, match="cannot write the upload to disk: No space left"),
        open_incoming(Pipe(CONTENT)),
    ):
        pass


def test_a_disk_that_may_not_be_written_is_not_told_to_be_full(monkeypatch):
    def refuse(**_: object) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(incoming_file.tempfile, "TemporaryFile", refuse)
    words = "cannot write the upload to disk: Read-only file system; nothing was stored; check the disk and its perm"
    with pytest.raises(ServiceError, match=words):
        incoming_file.arriving_file(None)


@pytest.mark.parametrize("before", ["nothing", "some", "all"])
@pytest.mark.parametrize("blocks", [1, 4])
def test_who_follows_the_hash_gets_all_bytes_in_their_order(file, before, blocks, monkeypatch):
    monkeypatch.setattr(incoming_file, "BLOCKS_PER_READ", blocks)
    with file.open("rb") as stream, open_incoming(stream) as found:
        reading, taken = found.stream(), bytearray()
        reading.read({"nothing": 0, "some": 1_000, "all": -1}[before])
        with found.following(taken.extend):
            reading.seek(0)
            assert reading.read() == CONTENT
            assert found.sha256 == hashlib.sha256(CONTENT).hexdigest()
            assert taken == CONTENT
        again = bytearray()
        with found.following(again.extend):
            assert again == CONTENT
        assert taken == CONTENT


def test_who_follows_gets_what_nobody_reads_once_the_hash_is_asked_for(file):
    with file.open("rb") as stream, open_incoming(stream) as found:
        taken = bytearray()
        with found.following(taken.extend):
            assert found.sha256 == hashlib.sha256(CONTENT).hexdigest()
            assert taken == CONTENT


def test_who_follows_notices_a_change_of_what_was_hashed_before(file):
    with file.open("rb") as stream, open_incoming(stream) as found:
        found.stream().read(2_000)
        with file.open("r+b") as other:
            other.write(bytes([CONTENT[0] ^ 1]))
        with pytest.raises(InputError, match="the file changed during the upload"), found.following(bytearray().extend):
            pass

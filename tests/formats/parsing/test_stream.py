import gzip
import io

import pytest
import zstandard

from profsvc.errors import InputError
from profsvc.formats.parsing.stream import open_stream, peek

WORDS = b"".join(b"line %d\n" % n for n in range(50_000))


def zstd(data):
    return zstandard.ZstdCompressor().compress(data)


@pytest.mark.parametrize(
    "packed",
    [
        WORDS,
        gzip.compress(WORDS),
        gzip.compress(WORDS[:999]) + gzip.compress(WORDS[999:]),
        zstd(WORDS),
        zstd(WORDS[:999]) + zstd(WORDS[999:]),
        zstandard.ZstdCompressor(write_content_size=False).compress(WORDS),
    ],
    ids=["plain", "gzip", "gzip members", "zstd", "zstd frames", "zstd without size"],
)
def test_decompression(packed):
    assert open_stream(io.BytesIO(packed)).read() == WORDS


@pytest.mark.parametrize("pack", [gzip.compress, zstd], ids=["gzip", "zstd"])
@pytest.mark.parametrize("keep", [0.999, 0.5, 0.01])
def test_cut_compressed_file(pack, keep):
    packed = pack(WORDS)
    with pytest.raises(InputError, match="the file is cut"):
        open_stream(io.BytesIO(packed[: max(5, int(len(packed) * keep))])).read()


@pytest.mark.parametrize("pack", [gzip.compress, zstd], ids=["gzip", "zstd"])
def test_damaged_compressed_file(pack):
    packed = bytearray(pack(WORDS))
    packed[len(packed) // 2 : len(packed) // 2 + 200] = b"\xa5" * 200
    with pytest.raises(InputError, match=r"damaged|cut"):
        open_stream(io.BytesIO(bytes(packed))).read()


@pytest.mark.parametrize("pack", [gzip.compress, zstd, bytes], ids=["gzip", "zstd", "plain"])
def test_limit(pack):
    assert len(open_stream(io.BytesIO(pack(WORDS)), limit=len(WORDS)).read()) == len(WORDS)
    with pytest.raises(InputError, match="more than 1000 bytes"):
        open_stream(io.BytesIO(pack(WORDS)), limit=1000).read()


def test_a_path(tmp_path):
    path = tmp_path / "words.gz"
    path.write_bytes(gzip.compress(WORDS))
    assert open_stream(path).read() == WORDS
    assert open_stream(str(path)).read() == WORDS
    with pytest.raises(InputError, match="cannot be read"):
        open_stream(tmp_path / "nothing")


def test_peek_loses_nothing():
    head, stream = peek(io.BytesIO(b"abcdef"), 4)
    assert head == b"abcd"
    assert stream.read() == b"abcdef"
    assert peek(io.BytesIO(b"ab"), 4)[0] == b"ab"

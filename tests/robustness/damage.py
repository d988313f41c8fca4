"""Ways to damage a file, for the search for bytes that a reader answers wrong; each way is one function."""

import gzip
import random
import re
from collections.abc import Callable

import zstandard

LARGEST_INPUT = 300_000

NUMBERS = b"""
0 -0 1 -1 00 1e5 1E+308 -1e308 1e309 1e-400 9e18 9223372036854775807 9223372036854775808
-9223372036854775809 18446744073709551615 2147483648 4294967296 99999999999999999999999999999999
1.7976931348623157e308 0.1 .5 5. +5 1,234 1.234 1'234 1.234,5 1,234.5 1,5 nan NaN inf -inf Infinity n/a
N/A [N/A] 0x10 0x 1e 1_000 \xd9\xa3 \xc2\xb2 1e99999999999 (1) 12% 0.0000000000000000000000000000000001
253402300800 -62135596801 1970-01-01 9999-12-31 0000-00-00 24:00:00 23:59:60 99999:59:59 31/02/2024
02/30/2024 29.02.2023 2024-13-01T00:00:00Z 2024-01-01T00:00:00+99:99 1PM
""".split()
TOKENS = [
    *NUMBERS,
    b"", b" ", b"\t", b",", b";", b"\"", b"'", b"\"\"", b"\n", b"\r", b"\r\n", b"\0", b"\xff", b"\xfe", b"\xef\xbb\xbf",
    b"\xff\xfe", b"\xfe\xff", b"\xc2\xa0", b"\xe2\x80\xaf", b"\x0c", b"\x1c", b"\x85", b"\xe2\x80\xa8", b"#", b"==1==",
    b"=", b":", b"/", b"-", b"(", b")", b"[", b"]", b"{", b"}", b"\\", b"\\u0000", b"\\ud800", b"null", b"true", b"@",
    b"ns", b"us", b"ms", b"s", b"W", b"mW", b"B", b"KB", b"GB/s", b"Gbyte/s", b"%", b"ID", b"Time", b"Device", b"Total",
    b"=SUM(A1)", b"A" * 70_000, b"9" * 5_000, b"(" * 3_000, b"[" * 3_000, b"{\"a\":" * 2_000,
]  # fmt: skip
_TOKEN = re.compile(rb"[0-9]+(?:[.,][0-9]+)*|[A-Za-z_]+|[^\sA-Za-z0-9]|\s+")
_NUMBER = re.compile(rb"[-+]?[0-9]+(?:[.,][0-9]+)*(?:[eE][-+]?[0-9]+)?")


def _place(rng: random.Random, data: bytes) -> int:
    return rng.randrange(len(data) + 1)


def _span(rng: random.Random, data: bytes, longest: int = 40) -> tuple[int, int]:
    begin = _place(rng, data)
    return begin, min(len(data), begin + rng.randint(1, longest))


def _bytes(rng: random.Random, data: bytes, _: list[bytes]) -> bytes:
    changed = bytearray(data)
    for _unused in range(rng.randint(1, 6)):
        if changed:
            changed[rng.randrange(len(changed))] = rng.choice((rng.randrange(256), 34, 44, 10, 13, 0, 255, 57))
    return bytes(changed)


def _cut(rng: random.Random, data: bytes, _: list[bytes]) -> bytes:
    return data[: _place(rng, data)]


def _erase(rng: random.Random, data: bytes, _: list[bytes]) -> bytes:
    begin, end = _span(rng, data)
    return data[:begin] + data[end:]


def _noise(rng: random.Random, data: bytes, _: list[bytes]) -> bytes:
    noise = rng.randbytes(rng.randint(1, 300))
    begin, end = _span(rng, data)
    return rng.choice((noise, data[:begin] + noise + data[end:]))


def _insert(rng: random.Random, data: bytes, _: list[bytes]) -> bytes:
    begin = _place(rng, data)
    return data[:begin] + rng.choice(TOKENS) + data[begin:]


def _lines(rng: random.Random, data: bytes, _: list[bytes]) -> bytes:
    lines = data.splitlines(keepends=True) or [b""]
    one, other = rng.randrange(len(lines)), rng.randrange(len(lines))
    what = rng.randrange(4)
    if what == 0:
        del lines[one : one + rng.randint(1, 3)]
    elif what == 1:
        lines.insert(one, lines[other])
    elif what == 2:
        lines[one], lines[other] = lines[other], lines[one]
    else:
        lines[one] = lines[one].rstrip(b"\r\n")
    return b"".join(lines)


def _tokens(rng: random.Random, data: bytes, _: list[bytes]) -> bytes:
    found = list(_TOKEN.finditer(data))
    if not found:
        return rng.choice(TOKENS)
    one, other = rng.choice(found), rng.choice(found)
    new = rng.choice((b"", other.group(), rng.choice(TOKENS)))
    return data[: one.start()] + new + data[one.end() :]


def _extremes(rng: random.Random, data: bytes, _: list[bytes]) -> bytes:
    share = rng.choice((0.02, 0.2, 1.0))
    return _NUMBER.sub(lambda match: rng.choice(NUMBERS) if rng.random() < share else match.group(), data)


def _columns(rng: random.Random, data: bytes, _: list[bytes]) -> bytes:
    """Drop, repeat or change a column of every line, as a bad tool would."""
    sign = rng.choice((b",", b"\t", b";", b" "))
    place, what, token = rng.randrange(12), rng.randrange(3), rng.choice(TOKENS)
    lines = [line.split(sign) for line in data.split(b"\n")]
    for cells in lines[rng.choice((0, 1, 5)) :]:
        if len(cells) > place:
            cells[place : place + 1] = ([], [cells[place]] * 2, [token])[what]
    return b"\n".join(sign.join(cells) for cells in lines)


def _separators(rng: random.Random, data: bytes, _: list[bytes]) -> bytes:
    one, other = rng.choice((b",", b";", b"\t", b".", b"\n", b'"', b" ", b":")), rng.choice(TOKENS[-60:-5])
    return data.replace(one, other, rng.choice((1, 5, -1)))


def _quotes(rng: random.Random, data: bytes, _: list[bytes]) -> bytes:
    if rng.random() < 0.5:
        return data.replace(b'"', b"", rng.choice((1, 3, -1)))
    return re.sub(
        rb"(?<=[,;\t\n])[^,;\t\n\"]*(?=[,;\t\n])", lambda m: b'"' + m.group() + b'"', data, count=rng.choice((1, 9, 0))
    )


def _splice(rng: random.Random, data: bytes, pool: list[bytes]) -> bytes:
    other = rng.choice(pool)
    if rng.random() < 0.5:
        return data[: _place(rng, data)] + other[_place(rng, other) :]
    lines, others = data.splitlines(keepends=True), other.splitlines(keepends=True)
    one, begin = rng.randrange(len(lines) + 1), rng.randrange(len(others) + 1)
    return b"".join([*lines[:one], *others[begin : begin + rng.randint(1, 30)], *lines[one:]])


def _repeat(rng: random.Random, data: bytes, _: list[bytes]) -> bytes:
    begin, end = _span(rng, data, rng.choice((4, 200, 5_000)))
    piece = data[begin:end] if rng.random() < 0.7 else rng.choice(TOKENS)
    times = rng.choice((2, 2, 2, 10, 10, 10, 300, 300, LARGEST_INPUT))
    return data[:begin] + piece * min(times, LARGEST_INPUT // max(1, len(piece))) + data[end:]


def _encoding(rng: random.Random, data: bytes, _: list[bytes]) -> bytes:
    if rng.random() < 0.3:
        return rng.choice((b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff", b"\r\n", b"\n\n", b"\0")) + data
    if rng.random() < 0.3:
        return data.replace(b"\n", rng.choice((b"\r\n", b"\r", b"\n\r", b"\x0b\n")))
    text = data.decode(rng.choice(("utf-8", "latin-1", "utf-16", "utf-16-be")), "replace")
    return text.encode(rng.choice(("utf-8", "utf-8-sig", "latin-1", "utf-16", "utf-16-le", "utf-32")), "replace")


def _pack(rng: random.Random, data: bytes, pool: list[bytes]) -> bytes:
    packed = gzip.compress(data, 1, mtime=0) if rng.random() < 0.5 else zstandard.compress(data, 1)
    return rng.choice((_bytes, _cut, _erase, _repeat, lambda _, whole, __: whole + whole))(rng, packed, pool)


Damage = Callable[[random.Random, bytes, list[bytes]], bytes]
DAMAGES: tuple[Damage, ...] = (
    _bytes, _cut, _erase, _noise, _insert, _lines, _lines, _tokens, _tokens, _tokens, _extremes, _columns, _separators,
    _quotes, _splice, _splice, _repeat, _encoding, _pack,
)  # fmt: skip


def damaged(rng: random.Random, data: bytes, pool: list[bytes]) -> bytes:
    """Return ``data`` damaged in one way or several, perhaps with pieces of the files in ``pool``."""
    for _ in range(rng.choice((1, 1, 2, 3, 6))):
        data = rng.choice(DAMAGES)(rng, data, pool)[:LARGEST_INPUT]
    return data

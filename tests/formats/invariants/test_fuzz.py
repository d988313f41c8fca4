"""Damaged files: those that a reader once answered wrong, and a thousand new ones, the same every time."""

import csv
import io
import signal

import pytest

from profsvc import formats
from profsvc.errors import InputError
from tests.robustness.fuzzing import LIST, READ, REFUSED, SEEDS, Inputs, answer

INPUTS = 1_200
LONG, SECONDS = 300_000, 10
# Lines that took the square of their length: the reader, what stands before the piece that is repeated, and behind it.
FLOODS = [
    ("tegrastats", b"RAM 896/7859MB ", b"mW41", b"\n"),
    ("timeseries", b"Time (s),Power", b" ", b"W,T (C)\n0.5,1,2\n"),
    ("nvidia-smi", b"timestamp, power.draw [W]\n2026/11/20 13:16:16.215, ", b"1.", b" W\n"),
    ("nvprof", b"", b"=", b"\n"),
    ("nvprof-text", b"==1== Profiling result:\nTime(%)  Time  Calls  Avg  Min  Max  Name\n  Kernel: a", b" ", b"x\n"),
]
with LIST.open(encoding="utf-8", newline="") as stream:
    ROWS = list(csv.DictReader(stream))


def test_every_seed_is_listed():
    assert {path.name for path in SEEDS.iterdir()} == {LIST.name, *(row["file"] for row in ROWS)}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["file"])
@pytest.mark.parametrize("upload", [False, True])
def test_a_seed_is_answered_as_it_should(row, upload):
    data = (SEEDS / row["file"]).read_bytes()
    assert answer(data, row["format"] or None, upload).kind in row["expected"].split(" or ")


@pytest.mark.parametrize(("name", "before", "piece", "behind"), FLOODS)
def test_a_long_line_takes_no_more_than_its_length(name, before, piece, behind):
    def stop(*_: object) -> None:
        raise TimeoutError(f"more than {SECONDS} s of work")

    signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        seen = answer(before + piece * (LONG // len(piece)) + behind, name)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    assert seen.kind in (READ, REFUSED)


@pytest.mark.parametrize(
    ("name", "header", "row"),
    [
        ("nvidia-smi", b"timestamp" + b", power.draw [W]" * 2001, b"2026/11/20 13:16:16.215" + b", 1.00 W" * 2001),
        ("timeseries", b"Time (s)" + b",P (W)" * 4001, b"0.5" + b",1" * 4001),
        # Each column is sorted by the names of the others, which took hours for so many.
        ("rocm-smi", b"timestamp,gpu" + b",mem,gfx" * 50_000, b"1700000000,0" + b",1,1" * 50_000),
    ],
    ids=["nvidia-smi", "timeseries", "rocm-smi"],
)
def test_more_columns_than_any_log_has_are_refused(name, header, row):
    with pytest.raises(InputError, match=r"[24]000; (?:check the file|keep those you need)"):
        list(formats.read(io.BytesIO(header + b"\n" + row + b"\n"), name)[1])


def test_damaged_fixtures_are_read_or_refused():
    inputs, kinds = Inputs(seed=0), {}
    for _ in range(INPUTS):
        data, _origin, name = inputs.next()
        kinds.setdefault(answer(data, name).kind, (data, name))
    assert kinds.keys() == {READ, REFUSED}, {kind: kinds[kind] for kind in kinds.keys() - {READ, REFUSED}}

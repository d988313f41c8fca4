"""Every file of the readers of traces against the truth beside it: add a file, get a test."""

import io
import json
import math
from pathlib import Path

import pandas as pd
import pytest

from profsvc.errors import InputError
from profsvc.formats import READERS
from profsvc.formats.nsys import (
    database as nsys_database,
)
from profsvc.formats.nsys import (
    stats as nsys_stats,
)
from profsvc.formats.nsys import (
    stats_json as nsys_stats_json,
)
from profsvc.formats.nsys import (
    stats_text as nsys_stats_text,
)
from profsvc.formats.parsing.stream import open_stream, peek
from profsvc.formats.pytorch import trace as pytorch_trace
from profsvc.formats.rocm import rocpd, rocprof, rocprof_v1_database
from profsvc.tables import TABLES, check, frame

FIXTURES = Path(__file__).parents[3] / "fixtures"
MODULES = {
    module.NAME: module
    for module in (
        nsys_stats,
        nsys_stats_text,
        nsys_stats_json,
        nsys_database,
        pytorch_trace,
        rocprof,
        rocprof_v1_database,
        rocpd,
    )
}
EVERY = list({reader.NAME: reader for reader in (*READERS, *MODULES.values())}.values())
EMPTY = {name: frame(name, {}) for name in TABLES}
ENDS = (".expected.json", ".error.txt")
FILES = sorted(
    p for name in MODULES for p in (FIXTURES / name.replace("-", "_")).iterdir() if not p.name.endswith(ENDS)
)


def beside(path: Path, suffix: str) -> Path:
    return path.parent / (path.name.split(".")[0] + suffix)


GOOD = [path for path in FILES if beside(path, ".expected.json").exists()]
BAD = [path for path in FILES if beside(path, ".error.txt").exists()]


def module_of(path: Path):
    return MODULES[path.parent.name.replace("_", "-")]


def content(module, data: bytes):
    """Read a file whole: its tables, counts of lines, facts and message."""
    batches = list(module.read(open_stream(io.BytesIO(data))))
    for batch in batches:
        for name, table in batch.tables.items():
            check(name, table)
    parts = {name: [b.tables[name] for b in batches if name in b.tables] for name in TABLES}
    tables = {n: pd.concat(p, ignore_index=True) if p else EMPTY[n] for n, p in parts.items()}
    counts = [
        sum(b.lines_stored for b in batches),
        sum(b.lines_skipped for b in batches),
        sum(b.lines_rejected for b in batches),
    ]
    facts = {key: value for b in batches for key, value in b.facts.items()}
    return tables, counts, facts, "; ".join(b.message for b in batches if b.message)


def rows_of(table):
    records = table.astype(object).where(table.notna(), None).to_dict("records")
    return [{key: None if value is None or value != value else value for key, value in row.items()} for row in records]


def same(seen, expected) -> bool:
    if isinstance(seen, float) and isinstance(expected, float):
        return math.isclose(seen, expected, rel_tol=1e-12)
    return seen == expected


def assert_rows(tables, truth):
    for name in TABLES:
        rows, expected = rows_of(tables[name]), truth.get(name, [])
        if name == "metrics":
            expected = list(expected)
            found = [any(all(same(row[k], v) for k, v in wanted.items()) for row in rows) for wanted in expected]
            assert all(found), (expected[found.index(False)], rows)
            assert bool(rows) == bool(expected)
            continue
        assert len(rows) == len(expected), (name, rows)
        for row, wanted in zip(rows, expected, strict=True):
            assert all(same(row[key], value) for key, value in wanted.items()), (name, row, wanted)


def test_every_file_has_a_truth():
    assert FILES
    assert set(FILES) == set(GOOD) | set(BAD)
    assert not set(GOOD) & set(BAD)


def lines_of(path: Path) -> int | None:
    data = open_stream(path).read()
    if data.startswith(b"SQLite"):
        return None
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        data = data.decode("utf-16").encode()
    return data.count(b"\n") + (not data.endswith(b"\n"))


@pytest.mark.parametrize("path", GOOD, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_good_file(path):
    truth = json.loads(beside(path, ".expected.json").read_text(encoding="utf-8"))
    module = module_of(path)
    assert truth["format"] == module.NAME
    tables, counts, facts, message = content(module, path.read_bytes())
    assert counts == [truth["stored"], truth["skipped"], truth["rejected"]]
    assert lines_of(path) in (None, sum(counts))
    assert tables["rejects"]["lines"].sum() == counts[2]
    assert facts == truth["facts"]
    assert message == truth["message"]
    assert_rows(tables, truth["tables"])


@pytest.mark.parametrize("path", BAD, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_bad_file(path):
    with pytest.raises(InputError) as caught:
        content(module_of(path), path.read_bytes())
    assert str(caught.value) == beside(path, ".error.txt").read_text(encoding="utf-8").rstrip("\n")


def first_bytes(path: Path) -> bytes:
    try:
        return peek(open_stream(path), 256 << 10)[0]
    except InputError:
        return b""


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_one_reader_alone_knows_a_file(path):
    head = first_bytes(path)
    assert [reader.NAME for reader in EVERY if reader.sniff(head)] == [module_of(path).NAME]


def test_files_of_other_readers_are_not_ours():
    others = [p for p in FIXTURES.glob("*/*") if p.is_file() and p not in FILES and not p.name.endswith(ENDS)]
    others = [path for path in others if path.parent.name != "fuzz"]
    assert others
    for path in others:
        assert not any(module.sniff(first_bytes(path)) for module in MODULES.values()), path

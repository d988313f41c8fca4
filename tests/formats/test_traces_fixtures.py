"""Every file of the readers of traces against the truth beside it: add a file, get a test."""

import csv
import io
import json
import math
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from profsvc.errors import InputError
from profsvc.formats import READERS, kineto, nsys_json, nsys_sqlite, nsys_stats, nsys_text, rocprof
from profsvc.formats.stream import open_stream, peek
from profsvc.tables import TABLES, check, frame

FIXTURES = Path(__file__).parents[2] / "fixtures"
MODULES = {module.NAME: module for module in (nsys_stats, nsys_text, nsys_json, nsys_sqlite, kineto, rocprof)}
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
    assert others
    for path in others:
        assert not any(module.sniff(first_bytes(path)) for module in MODULES.values()), path


SMALL = ["nsys_stats/gpu_trace.csv", "nsys_text/gpu_trace.txt", "nsys_text/boxes.txt", "rocprof/rocprof.csv"]
SMALL += ["kineto/rocm.json", "nsys_json/several_reports.json"]


@pytest.mark.parametrize("name", SMALL)
def test_a_file_cut_anywhere_keeps_only_true_rows(name):
    path = FIXTURES / name
    module, data = module_of(path), path.read_bytes()
    whole = content(module, data)[0]
    for size in range(len(data)):
        tables, counts, _, _ = content(module, data[:size])
        cut = data[:size]
        assert sum(counts) == cut.count(b"\n") + (not cut.endswith(b"\n") and cut != b"")
        for table in ("launches", "transfers", "api_calls", "ranges", "kernel_summaries"):
            kept = tables[table]
            assert kept.equals(whole[table].head(len(kept))), size


def test_a_database_cut_anywhere_is_refused():
    path = FIXTURES / "nsys_sqlite" / "only_kernels.sqlite"
    data = path.read_bytes()
    for size in range(0, len(data), 7):
        with pytest.raises(InputError):
            content(nsys_sqlite, data[:size])


@pytest.mark.parametrize("module", MODULES.values(), ids=MODULES)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_arbitrary_bytes_give_input_errors_only(module, data):
    path = data.draw(st.sampled_from([p for p in GOOD if module_of(p) is module and p.suffix != ".gz"]))
    source = bytearray(path.read_bytes())
    for place, byte in data.draw(
        st.lists(st.tuples(st.integers(0, len(source) - 1), st.integers(0, 255)), min_size=1, max_size=8)
    ):
        source[place] = byte
    noise = data.draw(st.binary(max_size=40))
    at = data.draw(st.integers(0, len(source)))
    try:
        content(module, bytes(source[:at]) + noise + bytes(source[at:]))
        content(module, noise)
    except InputError:
        pass


LOCALES = {"en": (",", "."), "de": (".", ","), "fr": ("\u202f", ","), "ch": ("\u2019", ".")}
NUMBERS = {
    "nsys_stats/gpu_trace.csv": lambda name: name not in ("Name", "Device", "SrcMemKd", "DstMemKd"),
    "rocprof/rocprof.csv": lambda name: name not in ("KernelName", "sig", "obj"),
}


def localized(text: str, is_number, group: str, decimal: str) -> str:
    out = io.StringIO()
    writer = csv.writer(out, quoting=csv.QUOTE_ALL, lineterminator="\n")
    rows = list(csv.reader(io.StringIO(text)))
    writer.writerow(rows[0])
    for row in rows[1:]:
        cells = []
        for name, cell in zip(rows[0], row, strict=True):
            whole, dot, digits = cell.partition(".")
            grouped = f"{int(whole):,}".replace(",", group) if is_number(name) and whole else whole
            cells.append(grouped + (decimal if dot and is_number(name) else dot) + digits)
        writer.writerow(cells)
    return out.getvalue()


@pytest.mark.parametrize("locale", LOCALES)
@pytest.mark.parametrize("name", NUMBERS)
def test_locales_give_the_same_values(name, locale):
    path = FIXTURES / name
    module, text = module_of(path), path.read_text(encoding="utf-8")
    whole = content(module, path.read_bytes())[0]
    try:
        other = content(module, localized(text, NUMBERS[name], *LOCALES[locale]).encode())[0]
    except InputError:
        return
    for table in ("launches", "transfers"):
        assert (
            other[table]
            .drop(columns="correlation_id", errors="ignore")
            .equals(whole[table].drop(columns="correlation_id", errors="ignore"))
        )
    assert other["metrics"]["value"].equals(whole["metrics"]["value"])

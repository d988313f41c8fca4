"""Files that were cut or are no export at all: an `InputError`, or every whole row right and the loss told."""

import io
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from profsvc import formats
from profsvc.errors import InputError

FIXTURES = Path(__file__).parents[2] / "fixtures"
# file: how many bytes from one cut to the next
CUTS = {
    "ncu_raw/output_around_table.csv": 1,
    "ncu_raw/name_with_newline.csv": 1,
    "ncu_raw/unquoted.csv": 1,
    "ncu_raw/utf16.csv": 6,
    "ncu_details/columns_15.csv": 1,
    "ncu_details/columns_20_short.csv": 1,
    "ncu_details/columns_20_ragged.csv": 7,
    "ncu_details/topology_and_strays.csv": 7,
    "ncu_text/kernels_and_ranges.txt": 7,
    "ncu_text/old_tables.txt": 7,
    "ncu_text/summary_per_gpu.txt": 7,
    "ncu_summary/per_gpu.csv": 3,
    "ncu_summary/broken_rows.csv": 7,
    "ncu_session/two_devices.txt": 3,
    "ncu_session/h200.csv": 7,
}
WHOLE = {
    "ncu-raw": "ncu_raw/output_around_table.csv",
    "ncu-details": "ncu_details/columns_20_ragged.csv",
    "ncu-text": "ncu_text/kernels_and_ranges.txt",
    "ncu-summary": "ncu_summary/per_kernel.csv",
    "ncu-session": "ncu_session/h200.csv",
    "ncu-source": "ncu_source/bad_instructions.csv",
    "characterization": "characterization/plain.csv",
}
HEADER = (FIXTURES / "ncu_raw/swiss.csv").read_bytes().split(b"\n")[0]
PIECES = [HEADER, *(FIXTURES / "ncu_details/columns_20_ragged.csv").read_bytes().split(b"\n")[:7]]
PIECES += (FIXTURES / "ncu_summary/per_nvtx_raw.csv").read_bytes().split(b"\n")[:5]
PIECES += (FIXTURES / "ncu_text/details_all.txt").read_bytes().split(b"\n")[:12]
PIECES += (FIXTURES / "ncu_session/two_devices.txt").read_bytes().split(b"\n")[11:18]
PIECES += [
    b'"",' * 14 + b'""',
    b'"',
    b"\n",
    b"==ERROR== x",
    b"0,1,2",
    b"1,234",
    b"\xff\xfe",
    b"\x1f\x8b",
    b"    -- - -",
    *(FIXTURES / "characterization/plain.csv").read_bytes().split(b"\n")[:3],
]


def keys(table, columns, lines):
    rows = table[columns].astype(object).where(table[columns].notna(), None)
    return {tuple(row) for row in rows.itertuples(index=False) if row[0] <= lines}


@pytest.mark.parametrize(("name", "step"), CUTS.items())
def test_cut_at_every_byte(name, step, read_all, count_lines):
    data = (FIXTURES / name).read_bytes()
    whole = read_all(data)
    tables = {
        "launches": ["line", "launch_index", "kernel", "grid_x"],
        "metrics": ["line", "launch_index", "metric", "raw_text", "value"],
        "rules": ["line", "launch_index", "rule", "estimated_saving_fraction"],
    }
    all_rows = {table: keys(whole.tables[table], columns, 1 << 30) for table, columns in tables.items()}
    encoding = "utf-16" if "utf16" in name else "utf-8"
    read = 0
    for size in range(0, len(data), step):
        head = data[:size]
        try:
            content = read_all(head)
        except InputError:
            continue
        read += 1
        lines = count_lines(head)
        assert content.stored + content.skipped + content.rejected == lines, size
        ended = head.decode(encoding, errors="replace").count("\n")
        if content.reader != whole.reader:
            assert content.message, size
            continue
        # A reject spans its lines; a row that spans several lines and is cut between them is one reject.
        broken = content.rejects["line"].min() - 1 if len(content.rejects) else lines
        for table, columns in tables.items():
            seen = keys(content.tables[table], columns, 1 << 30)
            assert seen <= all_rows[table], (size, table)
            missing = {row for row in all_rows[table] - seen if row[0] <= min(ended, broken)}
            assert not missing, (size, table, missing)
        lost = ended < lines and not head.endswith((b'"', b'",')) and content.stored < whole.stored
        blank = not head.split(b"\n")[-1].strip()
        assert not lost or blank or content.rejected or content.message or tail_is_output(head)
    assert read > len(data) // (4 * step)


def tail_is_output(head):
    """The cut line is no row: a banner or the program's own output."""
    last = head.split(b"\n")[-1].strip(b"\r\n\0 ")
    return not last.startswith(b'"') or last.startswith((b'"ID', b'"GPU'))


def attempt(data, reader=None):
    try:
        _, batches = formats.read(io.BytesIO(data), reader)
        return list(batches)
    except InputError:
        return []


@settings(max_examples=300, deadline=None)
@given(data=st.binary(max_size=400), reader=st.sampled_from([None, *WHOLE]))
def test_any_bytes(data, reader):
    attempt(data, reader)


@settings(max_examples=400, deadline=None)
@given(
    parts=st.lists(st.sampled_from(PIECES) | st.binary(max_size=6), max_size=12),
    glue=st.sampled_from([b"\n", b"", b"\r\n"]),
    reader=st.sampled_from(list(WHOLE)),
)
def test_shuffled_pieces_of_exports(parts, glue, reader):
    data = glue.join(parts)
    batches = attempt(data, reader)
    if batches and not data.startswith((b"\xff\xfe", b"\xfe\xff", b"\x1f\x8b", b"\x28\xb5")):
        lines = data.count(b"\n") + (not data.endswith(b"\n") and data not in (b"", b"\xef\xbb\xbf"))
        assert sum(b.lines_stored + b.lines_skipped + b.lines_rejected for b in batches) == lines


@pytest.mark.parametrize("reader", [formats.by_name(name) for name in WHOLE], ids=lambda reader: reader.NAME)
def test_damaged_fixtures(reader):
    """Single bytes of a whole file replaced: nothing but an InputError may come."""
    data = (FIXTURES / WHOLE[reader.NAME]).read_bytes()
    for place in range(0, len(data), 31):
        for byte in (b'"', b"\n", b",", b"\xff"):
            attempt(data[:place] + byte + data[place + 1 :], reader.NAME)

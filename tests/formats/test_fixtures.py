"""Every file under fixtures against the truth beside it: add a file, get a test."""

import json
import math

import pytest

from profsvc import formats
from profsvc.errors import InputError
from profsvc.formats.parsing.head import Head
from profsvc.formats.parsing.stream import open_stream
from profsvc.tables import TABLES, check
from tests.formats.fixtures import FOLDERS, MONITORS, PHASE, REFUSAL, ROOT, TRUTH, beside, files, good, shown

FILES, GOOD = files(*FOLDERS), good(*FOLDERS)
BAD = [path for path in FILES if beside(path, REFUSAL).exists()]
EVERY = [path for path in sorted(ROOT.glob("*/*")) if path.is_file() and path.parent.name != "fuzz"]
EVERY = [path for path in EVERY if not path.name.endswith((TRUTH, REFUSAL))]
EMPTY = {"rejects": [], "facts": {}, "message": ""}
# Readers of the files in other folders, by the begin of their name; no reader knows the others.
ELSEWHERE = {
    "ncu_raw": ["ncu-raw"], "ncu_details": ["ncu-details"], "ncu_source": ["ncu-source"], "power_marks": ["marks"],
    "power_smi": ["nvidia-smi"], "characterization": ["characterization"], "two_launches": ["ncu-report"],
    "ncu_report": ["ncu-report"],
    **{begin: ["nsys-stats"] for begin in ("batched_", "graph_", "launches_", "merged_")},
}  # fmt: skip
UNREADABLE = {"ncu_raw/bad_cut_header.csv", "characterization/bad_no_y.csv"}


def plain(value):
    return None if value is None or value != value else value


def same(seen, expected, tolerance=1e-12) -> bool:
    seen, expected = plain(seen), plain(expected)
    if isinstance(seen, str) or isinstance(expected, str) or None in (seen, expected):
        return seen == expected
    return math.isclose(seen, expected, rel_tol=tolerance) if isinstance(expected, float) else seen == expected


def rows_of(content, table):
    return list(content.rows(table))


def has(row, expected) -> bool:
    return all(same(row[key], value) for key, value in expected.items())


def test_every_file_has_one_truth_and_no_truth_stands_alone():
    assert not set(GOOD) & set(BAD)
    without = {path for path in FILES if path not in GOOD and path not in BAD}
    assert without <= {path for path in FILES if path.suffix == ".ncu-rep"}
    assert len({beside(path, "") for path in FILES}) == len(FILES)
    truths = {path for folder in FOLDERS for path in (ROOT / folder).iterdir()} - set(FILES)
    assert truths == {beside(path, TRUTH) for path in GOOD} | {beside(path, REFUSAL) for path in BAD}
    assert len(GOOD) > 280
    assert len(BAD) > 70


@pytest.mark.parametrize("path", GOOD, ids=shown)
def test_good_file(path, read_all, count_lines):
    truth = EMPTY | json.loads(beside(path, TRUTH).read_text(encoding="utf-8"))
    content, folder = read_all(path), path.parent.name
    assert content.reader == truth.get("format", "memory-trace" if "trace" in folder else folder)
    account = content.stored, content.skipped, content.rejected
    assert account == (truth["stored"], truth["skipped"], truth["rejected"])
    # The lines of a binary file are its rows.
    if not path.read_bytes().startswith((b"SQLite", b"PAR1", b"ARROW1")):
        assert sum(account) == truth.get("lines", count_lines(path))
    assert content.message == truth["message"]
    # The truths of board monitors name only the facts that each file is about.
    told = content.facts if folder not in MONITORS else {name: content.facts[name] for name in truth["facts"]}
    assert told == truth["facts"]
    for batch in content.batches:
        for name, table in batch.tables.items():
            check(name, table)
    assert_rejects(content, truth)
    if "tables" in truth:
        assert_tables(content, truth["tables"], every_column=folder.startswith("nvprof"))
    if "kernels" in truth:
        assert_launches(content, truth)
    if "values" in truth:
        assert_channels(content, truth)
    if folder in MONITORS:
        assert_sensors(content, truth)
    if "metric_rows" in truth or "metrics" in truth:
        assert_metrics(content, truth)
    if folder == "marks":
        assert [[row[name] for name in PHASE] for row in content.rows("ranges")] == truth["rows"]
    if folder == "characterization":
        table = content.characterizations
        assert table.astype(object).where(table.notna(), None).to_numpy().tolist() == truth["rows"]


def assert_rejects(content, truth):
    seen, expected = rows_of(content, "rejects"), truth["rejects"]
    assert sum(row["lines"] for row in seen) == content.rejected
    if "tables" in truth:
        return
    for wanted in expected:
        keys = ("line", "reason") if len(wanted) == 2 else ("line", "lines", "reason")
        wanted = wanted if isinstance(wanted, dict) else dict(zip(keys, wanted, strict=True))
        row = seen.pop(0)
        assert {key: row[key] for key in wanted} == wanted
    assert seen == []


def assert_tables(content, truth, *, every_column):
    for name in TABLES:
        rows, expected = rows_of(content, name), truth.get(name, [])
        if name == "metrics" and not every_column:
            assert all(any(has(row, wanted) for row in rows) for wanted in expected), (expected, rows)
            assert bool(rows) == bool(expected)
            continue
        assert len(rows) == len(expected), (name, rows)
        for row, wanted in zip(rows, expected, strict=True):
            assert has(row, wanted), (name, row, wanted)
            assert not every_column or {key for key, value in row.items() if value is not None} == wanted.keys()


def assert_launches(content, truth):
    launches = rows_of(content, "launches")
    assert [row["kernel"] for row in launches] == truth["kernels"]
    assert [row["launch_index"] for row in launches] == list(range(len(launches)))
    if "durations_ns" in truth:
        seen = [row["duration_ns"] for row in launches]
        assert all(map(same, seen, truth["durations_ns"])), seen
    for row, expected in zip(launches, truth.get("launches", []), strict=False):
        assert has(row, expected), (row, expected)
    for name, key in (("kernel_summaries", "summaries"), ("rules", "rules")):
        if key in truth:
            rows = rows_of(content, name)
            assert len(rows) == len(truth[key])
            assert all(map(has, rows, truth[key])), rows


def assert_metrics(content, truth):
    metrics = rows_of(content, "metrics")
    assert len(metrics) == truth.get("metric_rows", len(metrics))
    for wanted in truth.get("metrics", []):
        near = [row for row in metrics if row["metric"] == wanted["metric"]]
        assert any(has(row, wanted) for row in near), (wanted, near[:3])


def assert_channels(content, truth):
    """Compare the readings of meters, by the names of their channels."""
    sensors, samples = rows_of(content, "sensors"), rows_of(content, "samples")
    assert [[row["name"], row["quantity"], row["unit"]] for row in sensors] == truth["sensors"]
    assert [row["gpu_index"] for row in sensors] == truth.get("gpus", [None] * len(sensors))
    assert [row["sensor_index"] for row in sensors] == list(range(len(sensors)))
    assert all((row["value"] is None) == (row["reason"] is not None) for row in samples)
    names = [row["name"] for row in sensors]
    found = {name: [row for row in samples if names[row["sensor_index"]] == name] for name in names}
    assert sum(map(len, found.values())) == len(samples)
    for name, values in truth["values"].items():
        seen = [row["value"] for row in found[name]]
        assert len(seen) == len(values), (name, seen)
        assert all(map(same, seen, values)), (name, seen)
    for name, reasons in truth.get("reasons", {}).items():
        assert [row["reason"] for row in found[name]] == reasons
    first = [row for row in samples if row["sensor_index"] == 0]
    for column, expected in truth.get("clock", {}).items():
        assert [row[column] for row in first] == expected, column
    for name, expected in truth.get("times", {}).items():
        assert [row["time_ns"] for row in found[name]] == expected


def assert_sensors(content, truth):
    """Compare the readings of board monitors, by name, quantity and GPU."""
    for wanted in truth["sensors"]:
        assert_sensor(content, wanted, truth)
    ranges = [
        {key: row[key] for key in ("name", "start_ns", "duration_ns", "line")} for row in rows_of(content, "ranges")
    ]
    assert ranges == truth.get("ranges", [])


def assert_sensor(content, wanted, truth):
    keys = ("name", "quantity", "gpu_index")
    found = [row for row in rows_of(content, "sensors") if all(row[key] == wanted[key] for key in keys)]
    found = [row for row in found if wanted.get("device") in (None, row["device"])]
    assert len(found) == 1, (wanted, found)
    sensor = found[0]
    samples = [row for row in rows_of(content, "samples") if row["sensor_index"] == sensor["sensor_index"]]
    assert sensor["unit"] == wanted["unit"]
    values = [row["value"] for row in samples]
    assert len(values) == len(wanted["values"])
    assert all(same(*pair, 1e-15) for pair in zip(values, wanted["values"], strict=True)), (sensor["name"], values)
    assert [row["sample_index"] for row in samples] == list(range(len(samples)))
    assert [row["reason"] for row in samples] == wanted.get("reasons", [None] * len(samples))
    assert wanted.get("quality", sensor["quality"]) == sensor["quality"]
    for name in ("local_ns", "time_ns", "elapsed_ns"):
        if name in truth and wanted is truth["sensors"][0]:
            assert [row[name] for row in samples][: len(truth[name])] == truth[name]
    has_time, kind = [row["elapsed_ns"] is not None for row in samples], truth.get("time")
    assert all(has_time) if kind != "none" else not any(has_time)
    if kind is not None:
        assert all(row["time_ns"] is row["local_ns"] is None for row in samples)
    else:
        assert all((row["time_ns"] is None) != (row["local_ns"] is None) for row in samples)


@pytest.mark.parametrize("path", BAD, ids=shown)
def test_refused_file(path, read_all):
    with pytest.raises(InputError) as caught:
        read_all(path)
    assert str(caught.value) == beside(path, REFUSAL).read_text(encoding="utf-8").rstrip("\n")


def test_one_reader_alone_knows_a_file():
    wrong = []
    for path in EVERY:
        try:
            head = Head(open_stream(path).read(formats.HEAD_BYTES))  # as the program does: its lines are split once
        except InputError:
            wrong += [] if path in BAD else [f"{shown(path)}: cannot be opened"]
            continue
        folder = path.parent.name
        if folder == "saved_again":  # known only as their tool wrote them
            continue
        expected = next((readers for begin, readers in ELSEWHERE.items() if path.name.startswith(begin)), [])
        if folder in FOLDERS:
            expected = ["memory-trace"] if folder == "memory_trace_parquet" else [folder.replace("_", "-")]
        knowing = [reader.NAME for reader in formats.READERS if reader.sniff(head)]
        if knowing != ([] if shown(path) in UNREADABLE else expected):
            wrong.append(f"{shown(path)}: {knowing}")
    assert len(EVERY) > 800
    assert wrong == []

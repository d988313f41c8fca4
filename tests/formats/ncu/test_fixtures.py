"""Every file under fixtures/ncu_* against the truth beside it: add a file, get a test."""

import json
import math
from pathlib import Path

import pytest

from profsvc.errors import InputError

FIXTURES = Path(__file__).parents[3] / "fixtures"
# A report is read by NVIDIA's package; what it must become stands in the lines made of it.
FILES = sorted(
    p
    for p in FIXTURES.glob("ncu_*/*")
    if not p.name.endswith((".expected.json", ".error.txt", ".ncu-rep")) and p.is_file()
)


def beside(path: Path, suffix: str) -> Path:
    return path.parent / (path.name.split(".")[0] + suffix)


GOOD = [path for path in FILES if beside(path, ".expected.json").exists()]
BAD = [path for path in FILES if beside(path, ".error.txt").exists()]


def same(seen, expected) -> bool:
    if expected is None or seen is None or seen != seen:
        return expected is None and (seen is None or seen != seen)
    return math.isclose(seen, expected, rel_tol=1e-12) if isinstance(expected, float) else seen == expected


def rows_of(table):
    records = table.astype(object).where(table.notna(), None).to_dict("records")
    return [{key: None if value is None or value != value else value for key, value in row.items()} for row in records]


def has(row, expected) -> bool:
    return all(same(row[key], value) for key, value in expected.items())


def test_every_file_has_a_truth():
    assert set(FILES) == set(GOOD) | set(BAD)
    assert not set(GOOD) & set(BAD)
    assert len({beside(path, "") for path in FILES}) == len(FILES)


@pytest.mark.parametrize("path", GOOD, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_good_file(path, read_all, count_lines):
    truth = json.loads(beside(path, ".expected.json").read_text(encoding="utf-8"))
    content = read_all(path)
    assert content.reader == truth["format"]
    assert (content.stored, content.skipped, content.rejected) == (truth["stored"], truth["skipped"], truth["rejected"])
    assert content.stored + content.skipped + content.rejected == count_lines(path)
    assert content.facts == truth["facts"]
    assert content.message == truth["message"]
    launches = rows_of(content.launches)
    assert [row["kernel"] for row in launches] == truth["kernels"]
    assert [row["launch_index"] for row in launches] == list(range(len(launches)))
    if "durations_ns" in truth:
        seen = [row["duration_ns"] for row in launches]
        assert all(map(same, seen, truth["durations_ns"])), seen
    for row, expected in zip(launches, truth.get("launches", []), strict=False):
        assert has(row, expected), (row, expected)
    assert len(content.metrics) == truth.get("metric_rows", len(content.metrics))
    metrics = rows_of(content.metrics)
    for expected in truth.get("metrics", []):
        assert any(has(row, expected) for row in metrics), (
            expected,
            [r for r in metrics if r["metric"] == expected["metric"]][:3],
        )
    if "summaries" in truth:
        summaries = rows_of(content.kernel_summaries)
        assert len(summaries) == len(truth["summaries"])
        assert all(map(has, summaries, truth["summaries"])), summaries
    if "rules" in truth:
        rules = rows_of(content.rules)
        assert len(rules) == len(truth["rules"])
        assert all(map(has, rules, truth["rules"])), rules
    rejects = rows_of(content.rejects)
    assert [{k: row[k] for k in ("line", "lines", "reason")} for row in rejects] == truth.get("rejects", [])


@pytest.mark.parametrize("path", BAD, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_bad_file(path, read_all):
    message = beside(path, ".error.txt").read_text(encoding="utf-8").rstrip("\n")
    with pytest.raises(InputError) as caught:
        read_all(path)
    assert str(caught.value) == message

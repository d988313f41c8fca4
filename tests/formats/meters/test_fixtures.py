"""Every file of the readers of meters and sensors against the truth beside it: add a file, get a test."""

import json
import math
from pathlib import Path

import pytest

from profsvc import formats
from profsvc.errors import InputError

FIXTURES = Path(__file__).parents[3] / "fixtures"
FOLDERS = ("yokogawa", "hioki", "picolog", "joulescope", "ptdaemon", "wattsup", "lvm", "timeseries", "tdms")
FOLDERS += ("monsoon", "otii", "extech", "tweet_a_watt", "hardware_monitor", "jtop")
FILES = sorted(
    path
    for folder in FOLDERS
    for path in (FIXTURES / folder).iterdir()
    if not path.name.endswith((".expected.json", ".error.txt"))
)


def beside(path: Path, suffix: str) -> Path:
    return path.parent / (path.name.split(".")[0] + suffix)


GOOD = [path for path in FILES if beside(path, ".expected.json").exists()]
BAD = [path for path in FILES if beside(path, ".error.txt").exists()]


def same(seen, expected) -> bool:
    if expected is None or seen is None or seen != seen:
        return expected is None and (seen is None or seen != seen)
    return math.isclose(seen, expected, rel_tol=1e-12) if isinstance(expected, float) else seen == expected


def nullable(column) -> list:
    return column.astype(object).where(column.notna(), None).tolist()


def test_every_file_has_a_truth():
    assert set(FILES) == set(GOOD) | set(BAD)
    assert not set(GOOD) & set(BAD)


@pytest.mark.parametrize("path", GOOD, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_good_file(path, read_all, count_lines):
    truth = json.loads(beside(path, ".expected.json").read_text(encoding="utf-8"))
    content = read_all(path)
    assert content.reader == truth["format"]
    assert (content.stored, content.skipped, content.rejected) == (truth["stored"], truth["skipped"], truth["rejected"])
    # The lines of a binary file are its readings.
    assert content.stored + content.skipped + content.rejected == truth.get("lines", count_lines(path))
    assert content.facts == truth["facts"]
    assert content.message == truth["message"]
    assert content.sensors[["name", "quantity", "unit"]].to_numpy().tolist() == truth["sensors"]
    assert nullable(content.sensors["gpu_index"]) == truth.get("gpus", [None] * len(truth["sensors"]))
    assert content.sensors["sensor_index"].tolist() == list(range(len(truth["sensors"])))
    samples = content.samples.merge(content.sensors[["sensor_index", "name"]], on="sensor_index")
    assert len(samples) == len(content.samples)
    assert (samples["value"].isna() == samples["reason"].notna()).all()
    for name, values in truth["values"].items():
        seen = nullable(samples.loc[samples["name"] == name, "value"])
        assert len(seen) == len(values), (name, seen)
        assert all(map(same, seen, values)), (name, seen)
    for name, reasons in truth.get("reasons", {}).items():
        assert nullable(samples.loc[samples["name"] == name, "reason"]) == reasons
    first = samples[samples["sensor_index"] == 0]
    for column, expected in truth.get("clock", {}).items():
        assert nullable(first[column]) == expected, column
    for name, expected in truth.get("times", {}).items():
        assert nullable(samples.loc[samples["name"] == name, "time_ns"]) == expected
    rejects = content.rejects[["line", "lines", "reason"]].to_dict("records")
    assert rejects == truth.get("rejects", [])


@pytest.mark.parametrize("path", BAD, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_bad_file(path, read_all):
    with pytest.raises(InputError) as caught:
        read_all(path)
    assert str(caught.value) == beside(path, ".error.txt").read_text(encoding="utf-8").rstrip("\n")


def test_no_two_readers_know_a_file():
    for path in FILES:
        head = path.read_bytes()
        reader = formats.detect(head, path.name)
        assert path.parent.name == reader.NAME.replace("-", "_")

"""The results of nsight-python: which run each value is of, and the example of the documentation."""

import csv
import re
import subprocess
import sys
from pathlib import Path

import pytest

from profsvc import docs, pipeline, store
from tests.conftest import ROOT
from tests.formats.conftest import read_all

FIXTURE = ROOT / "fixtures" / "ncu_python" / "profiled_data.csv"
# A library that writes what nsight-python writes for the same call; the real one needs a GPU.
STUB = f"""
import contextlib, shutil

annotate = contextlib.nullcontext


class analyze:
    def kernel(*, configs, runs, output_prefix, output_csv):
        assert configs and runs and output_csv

        def profiled(function):
            def run():
                for config in configs:
                    function(*config)
                shutil.copy({str(FIXTURE)!r}, f"{{output_prefix}}profiled_data-{{function.__name__}}-0.csv")
            return run
        return profiled
"""


def rows() -> list[list[str]]:
    return list(csv.reader(FIXTURE.read_text().splitlines()))


def test_values_of_a_run_are_of_one_launch_wherever_its_rows_stand() -> None:
    """Derived metrics stand at the end of the file; runs may be mixed with other configurations."""
    header, *lines = rows()
    mixed = sorted(lines, key=lambda row: row[2])  # by metric: the order of runs within each stays
    text = "\n".join(",".join(row) for row in (header, *mixed)) + "\n"
    straight, turned = read_all(FIXTURE.read_bytes()), read_all(text.encode())
    for content in (straight, turned):
        metrics, launches = list(content.rows("metrics")), list(content.rows("launches"))
        assert len(launches) == 12
        times = {row["launch_index"]: row["value"] for row in metrics if row["metric"] == "gpu__time_duration.sum"}
        assert {row["launch_index"]: row["duration_ns"] / 1e9 for row in launches} == pytest.approx(times)
        work = {row["launch_index"]: row for row in metrics if row["metric"] == "TFLOPs"}
        for launch in launches:
            size = int(re.search(r"n=(\d+)", work[launch["launch_index"]]["section"])[1])
            assert work[launch["launch_index"]]["value"] == pytest.approx(2 * size**3 / launch["duration_ns"] / 1e3)


def test_the_example_of_the_documentation_ends_in_launches(tmp_path: Path, engine) -> None:
    page = (docs.FOLDER / "howto" / "export.md").read_text(encoding="utf-8")
    code = re.search(r"```python\n# file: kernels.py\n(.*?)```", page, re.DOTALL)[1]
    (tmp_path / "nsight.py").write_text(STUB)
    (tmp_path / "kernels.py").write_text("multiply = print\n" + code)
    subprocess.run([sys.executable, "kernels.py"], cwd=tmp_path, check=True, capture_output=True)
    (file,) = tmp_path.glob("matmul-profiled_data-*.csv")
    assert len([line for line in code.splitlines() if line.strip()]) <= 10
    with file.open("rb") as stream:
        done = pipeline.ingest(engine, stream, file.name, store.RunInfo(name="matmul"))
    assert (done.format, done.launches) == ("ncu-python", 12)
    counters = store.select(engine, "v1_counters")
    assert {row["sm_clock_max_hz"] for row in counters} == {1.98e9}
    assert all(row["duration_ns"] and row["dram_read_bytes"] for row in counters)

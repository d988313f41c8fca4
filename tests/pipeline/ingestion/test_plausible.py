"""What cannot be is stored, flagged, kept out of results, and says why: in SQL, in the verdict, on the pages."""

import io
from collections.abc import Iterator

import numpy as np
import pytest
from sqlalchemy import Engine

from profsvc import pipeline, specs, store
from profsvc.analysis.plausibility import without_implausible_values
from profsvc.errors import DomainError
from profsvc.specs.plausibility import read_ranges
from profsvc.tables import Batch, Wide, WideColumns, frame

LOG = """timestamp, index, name, power.draw.instant [W], temperature.gpu, clocks.current.sm [MHz], utilization.gpu [%]
2026/11/20 13:16:16.000, 0, NVIDIA H200, 300.00 W, 45, 1980 MHz, 100 %
2026/11/20 13:16:17.000, 0, NVIDIA H200, 8051.00 W, 45, 1980 MHz, 100 %
2026/11/20 13:16:18.000, 0, NVIDIA H200, 302.00 W, 2300, 1980 MHz, 100 %
2026/11/20 13:16:19.000, 0, NVIDIA H200, 301.00 W, 46, 99999999 MHz, 700 %
2026/11/20 13:16:20.000, 0, NVIDIA H200, 303.00 W, 46, 1980 MHz, 100 %
2026/11/20 13:16:21.000, 0, NVIDIA H200, 300.00 W, 46, 1980 MHz, 100 %
"""
HEAD = (
    '"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size","Device",'
    '"CC","device__attribute_display_name","gpu__time_duration.sum"\n"","","","","","","","","","","","","ms"\n'
)
ROW = '"{}","47","app","127.0.0.1","{}(int)","1","7","(256, 1, 1)","(10, 1, 1)","0","9.0","NVIDIA H200","{}"\n'
PAGE = HEAD + "".join(ROW.format(n, name, ms) for n, (name, ms) in enumerate(
    (("first", "-5"), ("second", "2"), ("third", "1e26"))
))  # fmt: skip


@pytest.fixture(params=["sqlite", "postgresql"])
def engine(request: pytest.FixtureRequest, tmp_path) -> Iterator[Engine]:
    if request.param == "sqlite":
        made = store.open_store(str(tmp_path / "store.sqlite"), pooled=True)
    else:
        made = store.open_store(request.getfixturevalue("postgres_url"), pooled=True)
    yield made
    made.dispose()


def ingest(engine: Engine, name: str, text: str, **how: object) -> pipeline.ImportResult:
    return pipeline.ingest(
        engine, io.BytesIO(text.encode()), name, store.RunInfo(name=name), pipeline.ReadOptions(zone="UTC")
    )


def sql(engine: Engine, query: str) -> list[dict[str, object]]:
    return [
        dict(zip(answer.columns, row, strict=True)) for answer in [store.query(engine, query)] for row in answer.rows
    ]


def test_readings_that_cannot_be_are_no_readings_but_can_be_read(engine: Engine) -> None:
    verdict = ingest(engine, "smi.csv", LOG)
    reason = "power 8051 W is implausible; the range is 0 to 4000 W"
    assert f"power.draw.instant: 1 reading kept out of results: {reason}" in verdict.message
    power = sql(engine, "select max(value) as most, count(value) as n, count(*) as every from v1_samples"
                        " where quantity = 'power'")  # fmt: skip
    assert power == [{"most": 303.0, "n": 5, "every": 6}]
    odd = sql(engine, "select quantity, value, as_read, reason from v1_samples where value is null order by quantity")
    assert [row["quantity"] for row in odd] == ["clock", "power", "temperature", "utilization"]
    assert odd[1]["as_read"] == 8051.0
    assert odd[2]["as_read"] == 2300.0
    assert all("plausible" in str(row["reason"]) for row in odd)
    flagged = sql(engine, "select quantity, implausible, quality from v1_sensors order by quantity")
    assert [row["implausible"] for row in flagged] == [1, 1, 1, 1]
    assert "temperature 2300 degC is implausible; the range is -60 to 150 degC" in str(flagged[2]["quality"])
    windows = sql(engine, "select mean_power_w, highest_temperature_c from v1_power where kind = 'run'")
    assert 300 <= windows[0]["mean_power_w"] <= 303
    assert windows[0]["highest_temperature_c"] == 46
    again = ingest(engine, "smi.csv", LOG)
    assert again.known
    assert again.message == verdict.message


def test_durations_that_cannot_be_are_kept_as_what_stood_there(engine: Engine) -> None:
    verdict = ingest(engine, "page.csv", PAGE)
    assert verdict.launches == 3
    assert "values are implausible and excluded from results, for example: " in verdict.message
    assert "is implausible" in verdict.message
    launches = sql(engine, "select launch_id, kernel_short, duration_ns from v1_launches order by launch_index")
    assert [row["duration_ns"] for row in launches] == [None, 2e6, None]
    kept = sql(engine, "select launch_id, raw_text, value, unit, reason from v1_metrics"
                       " where metric = 'launches.duration_ns' order by launch_id")  # fmt: skip
    assert [row["launch_id"] for row in kept] == [launches[0]["launch_id"], launches[2]["launch_id"]]
    assert [float(str(row["raw_text"])) for row in kept] == [-5e6, pytest.approx(1e32)]
    assert [row["value"] for row in kept] == [None, None]
    assert all("is implausible; the range is 0 to 2.7e+15 ns" in str(row["reason"]) for row in kept)
    assert sql(engine, "select gpu_time_ns from v1_runs") == [{"gpu_time_ns": 2e6}]


def test_times_of_a_page_of_metrics_that_cannot_be_have_no_value() -> None:
    columns = WideColumns(("gpu__time_duration.sum", "n"), ("s", ""), ("s", "1"), np.ones(2))
    letters, bounds = np.frombuffer(b"-55", np.uint8), np.array([[[0, 2], [2, 3]]], np.int32)
    wide = Wide(columns, 0, np.array([3]), letters, bounds, np.array([[-5.0, 5.0]]))
    table = frame("metrics", {"metric": ["t", "n"], "raw_text": ["1e20", "-3"], "value": [1e20, -3.0],
                              "si_unit": ["s", "1"], "line": [1, 2]})  # fmt: skip
    kept, reasons = without_implausible_values(Batch({"metrics": table}, wide=wide))
    assert len(reasons) == 2
    assert kept.tables["metrics"]["value"].isna().tolist() == [True, False]
    assert kept.tables["metrics"]["reason"].notna().tolist() == [True, False]
    assert kept.wide is not None
    assert np.isnan(kept.wide.values).tolist() == [[True, False]]
    assert list(kept.wide.reasons) == [(0, 0)]


def test_what_can_be_passes_as_it_is() -> None:
    batch = Batch({"metrics": frame("metrics", {"metric": ["t"], "raw_text": ["1"], "value": [1.0], "si_unit": ["s"],
                                                "line": [1]})})  # fmt: skip
    kept, reasons = without_implausible_values(batch)
    assert reasons == []
    assert kept.tables["metrics"] is batch.tables["metrics"]


def test_the_ranges_hold_what_boards_and_meters_do() -> None:
    for of, unit, name, good, bad in (
        ("temperature", "degC", "TC 1", (-196.0, 1300.0), (2300.78, -300.0)),
        ("temperature", "degC", "GPU core", (0.0, 109.0), (180.0, 2300.78)),
        ("power", "W", "wall", (-3.0, 8051.0), (1e8,)),
        ("power", "W", "power.draw", (0.0, 1400.0), (8051.0, -1.0)),
        ("utilization", "1", "utilization.gpu", (0.0, 1.0), (7.0, -0.1)),
    ):
        limits = specs.range_of(of, unit, name)
        assert limits is not None
        assert all(limits.low <= value <= limits.high for value in good)
        assert not any(limits.low <= value <= limits.high for value in bad)
    with pytest.raises(DomainError, match="line 2: low must be below high"):
        read_ranges("of,unit,name,low,high,why\npower,W,,5,1,because\n")

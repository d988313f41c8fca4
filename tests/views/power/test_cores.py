"""Runs with known active cores: a die of three clusters whose maps are known, and table 12 from logs of power."""

import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sqlalchemy import Engine

from profsvc import pipeline, store
from profsvc.errors import InputError, NotFoundError, UsageError
from profsvc.views.calculators.power.placement import TABLE_12
from profsvc.views.power.cores import COLUMNS, cores, drawn
from tests.cli import conftest as commands
from tests.views import thermocouple_logs as logs

cli, store_file = commands.cli, commands.store_file
IDLE_C, RISE_C, TPCS = 40.0, 5.0, 3
CENTRES = ("T0", "T4", "T8")  # of the clusters


def field(*active: int) -> dict[str, float]:
    """What each place reads with these cores active; the two of a cluster lie half a millimetre apart."""
    found = dict.fromkeys(logs.PLACES, IDLE_C)
    for core in active:
        x0, y0 = logs.PLACES[CENTRES[core % TPCS]]
        x0 += 0.5 * (core // TPCS)
        for name, (x, y) in logs.PLACES.items():
            found[name] += RISE_C * float(np.exp(-((x - x0) ** 2 + (y - y0) ** 2) / 90))
    return found


def add(engine: Engine, run: str, data: bytes, tag: str = "", how: pipeline.ReadOptions | None = None) -> None:
    info = store.RunInfo(name=run, tags={"cores": tag} if tag else {})
    pipeline.ingest(engine, io.BytesIO(data), f"{run}.csv", info, how or logs.how())


def four_cores() -> tuple[bytes, bytes]:
    """A log of power and marks of the nine configurations of table 12, for a minute each."""
    lines = ["timestamp, index, name, power.draw.instant [W], temperature.gpu"]
    marks, begin = ["unix_s,mark,type,sms,extra"], 1795180576
    for row in TABLE_12.splitlines()[1:]:
        name, power, heat = row.split(",")
        marks += [f"{begin},begin,cores {name},4,", f"{begin + 60},end,cores {name},4,"]
        for second in range(70):
            watts = float(power) if second < 60 else 200.0
            stamp = np.datetime64(begin + second, "s").astype(str).replace("-", "/").replace("T", " ")
            degrees = int(float(heat) + second * 37 % 60 / 60)  # of whole degrees, but right on average
            lines.append(f"{stamp}.000, 0, GeForce 8800 GT, {watts + 0.01 * (second % 3):.2f} W, {degrees}")
        begin += 70
    return "\n".join(lines).encode() + b"\n", "\n".join(marks).encode() + b"\n"


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("cores") / "store.sqlite"
    engine = store.open_store(str(file), pooled=True)
    add(engine, "idle", logs.log(field(), seed=90))
    for core in range(2 * TPCS):
        add(engine, f"core{core}", logs.log(field(core), seed=core), str(core))
    add(engine, "both", logs.log(field(0, 1), seed=20), "0-1")
    add(engine, "strange", logs.log(field(0), seed=21), "first")
    add(engine, "untagged", logs.log(field(0), seed=22))
    power, marks = four_cores()
    for data in (power, marks):
        add(engine, "four", data, how=pipeline.ReadOptions(zone="UTC"))
    engine.dispose()
    return file


@pytest.fixture(scope="module")
def engine(file: Any) -> Iterator[Engine]:
    engine = store.open_store(str(file), pooled=True)
    yield engine
    engine.dispose()


EVERY = [f"core{core}" for core in range(2 * TPCS)]


def rows(view: dict[str, Any], kind: str) -> dict[str, dict[str, Any]]:
    return {row["cores"]: row for row in view["rows"] if row["kind"] == kind}


def test_one_active_core_is_seen_at_its_place(engine: Engine) -> None:
    found = rows(cores(engine, EVERY, "idle", tpcs=TPCS), "core")
    for core in range(2 * TPCS):
        row = found[str(core)]
        assert (row["x_mm"], row["y_mm"]) == logs.PLACES[CENTRES[core % TPCS]]
        values = np.array(list(field(core).values()))
        assert 0 < row["contrast_low_c"] < row["contrast_c"] < row["contrast_high_c"]
        assert row["contrast_c"] == pytest.approx(values.max() - np.median(values), abs=0.05)


def test_cores_of_one_cluster_are_partners(engine: Engine) -> None:
    view = cores(engine, EVERY, "idle", tpcs=TPCS)
    found = rows(view, "core")
    assert {core: row["partner"] for core, row in found.items()} == {str(k): str((k + 3) % 6) for k in range(6)}
    assert view["notes"][0] == "pairs of one cluster: 0-3, 1-4, 2-5"
    without = cores(engine, EVERY[:4], "idle", tpcs=TPCS)
    assert without["notes"][0] == "pairs of one cluster: 0-3"
    assert "no clear partner" in rows(without, "core")["1"]["note"]


def test_the_hot_spot_of_a_set_follows_from_its_cores(engine: Engine) -> None:
    view = cores(engine, [*EVERY, "both"], "idle", tpcs=TPCS, active=2)
    (row,) = rows(view, "set").values()
    assert row["hot_spot_c"] == pytest.approx(max(field(0, 1).values()), abs=0.05)
    assert abs(row["error_c"]) < 0.1
    assert "hot spots of 1 measured set are predicted" in view["notes"][1]
    choices = list(rows(view, "choice").values())
    assert choices[0]["predicted_c"] < choices[-1]["predicted_c"]
    worst = [one["cores"] for one in choices if one["note"] == "the hottest choice"]
    assert worst
    assert {int(core) % TPCS for core in worst[0].split("-")} == {int(worst[0][0]) % TPCS}


def test_the_slope_across_loads_of_one_run_is_that_of_table_12(
    engine: Engine, file: Any, cli: Any, tmp_path: Any
) -> None:
    view = cores(engine, ["four"])
    notes = " ".join(view["notes"])
    assert "4 active: 3.9" in notes
    assert re.search(r"2\.6\d* \+- 0\.\d+ W/degC across the configurations", notes)
    assert len(rows(view, "configuration")) == 9
    shown = cli("--store", file, "cores", "four", "--plot", tmp_path / "four.svg")
    assert (tmp_path / "four.svg").read_bytes().startswith(b"<?xml")
    assert "power and temperature of sets of cores" in shown.out


def test_the_command_shows_maps_and_every_form(cli: Any, file: Any, tmp_path: Any) -> None:
    words = ["--store", file, "cores", *EVERY, "--idle", "idle", "--tpcs", "3", "--active", "2"]
    shown = cli(*words, "--plot", tmp_path / "a.png")
    assert (shown.code, (tmp_path / "a.png").read_bytes()[:4]) == (0, b"\x89PNG")
    for words_of in ("one active core, above the idle die", "pairs of one cluster: 0-3, 1-4, 2-5"):
        assert words_of in shown.out
    answer = json.loads(cli(*words, "-o", "json").out)
    assert set(answer["rows"][0]) == set(COLUMNS)
    assert cli(*words, "-o", "csv").out.splitlines()[0] == ",".join(COLUMNS)


def test_what_cannot_be_compared_says_why(engine: Engine) -> None:
    for asked, kind, message in (
        ((["core0"], "four"), InputError, "the idle run: none of the 1 temperature channels has a position"),
        ((["untagged"], "idle"), InputError, "no run has the tag cores; upload each run with its active cores"),
        ((["strange"], "idle"), InputError, "run 'strange': tag cores: cores 'first' must be numbers with a hyphen"),
        ((["core0"],), NotFoundError, "no power of known active cores in run core0"),
        (([],), UsageError, "0 runs were given"),
        ((["core0"], None, None, 0), UsageError, "--tpcs 0 must be"),
        ((["core0"], None, None, 7, 2), UsageError, "need thermocouples of an idle run"),
    ):
        with pytest.raises(kind, match=message):
            cores(engine, *asked)
    few = cores(engine, ["core0", "core1"], "idle", active=3)
    assert "3 active cores cannot be chosen: 2 cores were measured alone" in few["notes"]
    assert drawn(few, "svg").startswith(b"<?xml")

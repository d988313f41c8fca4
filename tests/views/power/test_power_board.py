"""What one run tells of a board is known in the next: carried, pooled, said, and never taken from another board."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from sqlalchemy import Engine

from profsvc import pipeline, store
from profsvc.reports.text.power.run_power import power as in_words
from profsvc.views.power.run_power import power
from tests.inputs.uploads import ingest_all

BEGIN = datetime(2026, 11, 20, 8, 0, 0, tzinfo=UTC)
SIGMA = 0.9
WARMING = ((300.0, 40.0, 52.0), (420.0, 46.0, 60.0), (300.0, 50.0, 44.0))
STILL = ((350.0, 55.0, 55.0), (450.0, 47.0, 47.0))


def log(plan: tuple[tuple[float, float, float], ...], device: str = "NVIDIA H200", day: int = 0) -> tuple[str, str]:
    """What nvidia-smi prints while one load follows the other, and the marks of the loads."""
    rng = np.random.default_rng(4 + day)
    lines = ["timestamp, index, name, power.draw.instant [W], temperature.gpu, clocks.current.sm [MHz]"]
    first = BEGIN + timedelta(days=day)
    marks = ["unix_s,mark,type,sms,extra"]
    for number, (watts, low, high) in enumerate(plan):
        begin = first + timedelta(seconds=61 * number)
        edges = [begin.timestamp() + after for after in (0.0, 60.0)]
        marks += [f"{edges[0]:.3f},begin,load{watts:.0f},132", f"{edges[1]:.3f},end,load{watts:.0f},132"]
        for step in range(240):
            warmth = low + (high - low) * (1 - np.exp(-step / 60)) / (1 - np.exp(-4))
            read = watts + SIGMA * (warmth - 40) + 0.4 * rng.standard_normal()
            stamp = (begin + timedelta(seconds=step / 4)).strftime("%Y/%m/%d %H:%M:%S.%f")[:-3]
            lines.append(f"{stamp}, 0, {device}, {read:.2f} W, {warmth + 0.2 * rng.standard_normal():.0f}, 1980 MHz")
    return "\n".join(lines) + "\n", "\n".join(marks) + "\n"


def upload(engine: Engine, run: str, files: tuple[str, str], **about: str) -> None:
    named = zip((text.encode() for text in files), (f"{run}_smi.csv", f"{run}_phases.csv"), strict=True)
    ingest_all(engine, named, store.RunInfo(name=run, **about), pipeline.ReadOptions(zone="UTC"))


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    made = store.open_store(str(tmp_path_factory.mktemp("board") / "store.sqlite"), pooled=True)
    upload(made, "first", log(WARMING))
    upload(made, "next", log(STILL, day=1))
    upload(made, "elsewhere", log(STILL, day=2), host="another")
    upload(made, "other", log(STILL, "NVIDIA A100-SXM4-80GB", day=3))
    yield made
    made.dispose()


def rows(engine: Engine, run: str, form: str) -> list[dict[str, object]]:
    return [row for row in power(engine, run)["coefficients"] if row["form"] == form]


def test_the_next_run_of_a_board_is_corrected_with_what_the_first_told(engine: Engine) -> None:
    (told,) = rows(engine, "first", "consistent")
    assert told["coefficient_low"] < SIGMA < told["coefficient_high"]
    assert (told["used"], told["sound"]) == (1, 1)
    (own,), (carried,) = rows(engine, "next", "consistent"), rows(engine, "next", "pooled")
    assert own["used"] == 0
    assert carried["used"] == 1
    assert carried["coefficient_w_per_c"] == pytest.approx(told["coefficient_w_per_c"], rel=0.1)
    assert f"run {told['run_id']} of this board" in str(carried["basis"])
    windows = {row["window"]: row for row in power(engine, "next")["windows"]}
    for row in (windows["load350, 132 SMs"], windows["load450, 132 SMs"]):
        true_w = float(str(row["load"])[4:]) + SIGMA * (row["reference_temperature_c"] - 40)
        assert row["corrected_power_low_w"] - 1 < true_w < row["corrected_power_high_w"] + 1
        assert "coefficient_carried" in row["quality"]
    assert f"linear, pooled at 1980 MHz: {carried['coefficient_w_per_c']:.4g}"[:34] in in_words(power(engine, "next"))


def test_another_host_and_another_device_are_other_boards(engine: Engine) -> None:
    for run in ("elsewhere", "other"):
        assert rows(engine, run, "pooled") == []
        assert all(row["corrected_power_w"] is None for row in power(engine, run)["windows"])


def test_what_is_computed_for_a_call_knows_the_board_as_well(engine: Engine) -> None:
    again = pipeline.power.power_of_run(engine, store.find_run(engine, "next"))
    stored = rows(engine, "next", "pooled")[0]
    frame = again["power_coefficients"]
    assert frame[frame["form"] == "pooled"]["coefficient_w_per_c"].iloc[0] == stored["coefficient_w_per_c"]


def test_the_first_run_knows_nothing_of_the_next(engine: Engine) -> None:
    """What a run tells must not depend on what came after it: the same files give the same rows."""
    pipeline.power.analyze_power(engine, store.find_run(engine, "first"))
    assert rows(engine, "first", "pooled") == []

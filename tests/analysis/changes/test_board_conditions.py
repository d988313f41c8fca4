"""Clock and temperature of one board that change together are one finding."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from profsvc.analysis.changes.nightly import find_changes
from tests.benchmarks.detection import points_of
from tests.inputs.noise import white

NIGHTS, CHANGED = 40, 25
KINDS = ("clock", "temperature")


def points(clock: np.ndarray, temperature: np.ndarray, gpus: tuple[int, int] = (0, 0)) -> pd.DataFrame:
    made = points_of(np.stack((clock, temperature))[:, :, np.newaxis], np.arange(2))
    sensors = f"SM clock of GPU {gpus[0]}", f"temperature.gpu of GPU {gpus[1]}"
    one = made["group"].to_numpy(np.int64)
    value = np.where(one == 0, 1e9, 50.0) * made["value"] / 1e6
    return made.assign(kind=np.array(KINDS)[one], sensor=np.array(sensors)[one], subject="whole run", value=value)


def walk(made: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the findings of all nights from the change on."""
    known: list[dict[str, Any]] = []
    night = pd.factorize(made["at"], sort=True)[0]
    for newest in range(CHANGED, NIGHTS):
        verdict = find_changes(made[night <= newest].reset_index(drop=True), known)
        states = {move["finding_id"]: move for move in verdict.moves}
        known = [one | {name: states[one["finding_id"]][name] for name in ("state", "said_at")}
                 if one["finding_id"] in states else one for one in known]  # fmt: skip
        known += [row | {"finding_id": 1 + len(known), "state": "new", "said_at": None} for row in verdict.found]
    return known


def step(height: float, at: int = CHANGED, until: int = NIGHTS) -> np.ndarray:
    place = np.arange(NIGHTS)
    return height * ((place >= at) & (place < until))


@pytest.fixture
def noise() -> np.ndarray:
    return 0.3 * white(np.random.default_rng(1), 2, NIGHTS)


def test_of_changes_in_the_same_night_the_clock_is_told(noise):
    (one,) = walk(points(noise[0] - step(8.0), noise[1] + step(8.0)))
    assert one["kind"] == "clock"


def test_a_temperature_that_is_sure_nights_later_is_no_finding_of_its_own(noise):
    noise[1, CHANGED : CHANGED + 2] = np.nan
    alone = walk(points(noise[0], noise[1] + step(8.0)))
    assert [one["kind"] for one in alone] == ["temperature"]
    (one,) = walk(points(noise[0] - step(8.0), noise[1] + step(8.0)))
    assert one["kind"] == "clock"
    assert one["found_at"] < alone[0]["found_at"]


def test_another_board_or_another_time_is_a_change_of_its_own(noise):
    changed = noise[0] - step(8.0), noise[1] + step(8.0)
    assert {one["kind"] for one in walk(points(*changed, gpus=(0, 1)))} == set(KINDS)
    later = walk(points(noise[0] - step(8.0), noise[1] + step(8.0) + step(8.0, CHANGED + 8)))
    assert [one["kind"] for one in later] == ["clock", "temperature"]
    assert later[1]["run_id"] == CHANGED + 9


def test_a_board_that_goes_back_leaves_both_conditions_as_they_were(noise):
    found = walk(points(noise[0] - step(8.0, until=CHANGED + 6), noise[1] + step(8.0, until=CHANGED + 6)))
    assert [(one["kind"], one["state"]) for one in found] == [("clock", "fixed")]

"""A small instance of the benchmark: schedulers killed at random around the nights in which the clock is changed."""

from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from tests.benchmarks.schedule import CRONS, ZONE, prove


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.parametrize(
    ("database", "night", "seed"),
    [("sqlite", "2026-03-29", 5), ("postgresql", "2026-10-25", 6)],
)
def test_a_slot_is_worked_off_once_whoever_dies(database, night, seed, tmp_path: Path, request) -> None:
    url = request.getfixturevalue("postgres_url") if database == "postgresql" else str(tmp_path / "store.sqlite")
    before = datetime.fromisoformat(f"{night}T12:00").replace(tzinfo=ZoneInfo(ZONE))
    outcome = prove(url, 5, seed, 3, before.replace(day=before.day - 1), killed=0.5)
    assert outcome.is_right(), outcome
    assert outcome.at_night[night] == len(CRONS)
    assert outcome.kills >= 1

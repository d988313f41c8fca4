"""Totals of launches by place and shape: batch by batch they are what all launches at once give."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from profsvc.store.ingest.writers import launch_totals
from profsvc.store.ingest.writers.launch_totals import NO_MAX, NO_MIN, SIZES, LaunchTotals


def launches(rows: int, draw: np.random.Generator) -> pd.DataFrame:
    """Return launches of some places and shapes; half of the sizes are unknown, and all sizes of shape 7."""
    found = pd.DataFrame({"place": draw.integers(3, 6, rows), "shape": draw.choice([7, 9, 2**40, 11], rows)})
    for name in SIZES:
        sizes = pd.array(draw.integers(-(2**62), 2**62, rows), dtype="Int64")
        sizes[draw.random(rows) < 0.5] = pd.NA
        sizes[(found["shape"] == 7).to_numpy()] = pd.NA
        found[name] = sizes
    return found


def expected(all_launches: pd.DataFrame) -> list[list[Any]]:
    """Return the rows of shapes by pandas."""
    rows: list[list[Any]] = []
    for shape, own in all_launches.groupby("shape"):
        ends: list[Any] = []
        for name in SIZES:
            known = own[name].dropna().tolist()
            ends += [min(known, default=NO_MIN), max(known, default=NO_MAX)]
        rows.append([shape, len(own), *ends])
    return rows


@pytest.mark.parametrize("waiting", [0, 3, 1 << 16])
def test_batches_give_the_totals_of_all_launches(monkeypatch: pytest.MonkeyPatch, waiting: int) -> None:
    monkeypatch.setattr(launch_totals, "MIN_WAITING_ROWS", waiting)
    draw, totals = np.random.default_rng(3), LaunchTotals()
    parts = [launches(rows, draw) for rows in (1, 40, 2, 300, 17)]
    for part in parts:
        totals.add(part["place"].to_numpy(), part["shape"].to_numpy(), part)
    totals.sum_up()
    together = pd.concat(parts)
    assert totals._shapes.rows() == expected(together)
    assert totals._places.rows() == [[place, len(own)] for place, own in together.groupby("place")]


def test_a_file_without_launches_has_no_totals() -> None:
    totals = LaunchTotals()
    totals.sum_up()
    assert totals._shapes.rows() == totals._places.rows() == []

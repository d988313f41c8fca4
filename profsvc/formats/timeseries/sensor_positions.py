"""Positions of sensors on the die, which the user supplies because logs lack them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from profsvc.errors import BrokenInputError, NotFoundError, UsageError
from profsvc.tables.on_demand import pd

Positions = Mapping[str, tuple[float, float]]
MAX_POSITION_MM = 1000.0


def read_positions(texts: Iterable[str]) -> dict[str, tuple[float, float]]:
    """Parse values of ``--position``: CHANNEL=X,Y in mm; raise `UsageError` for another form.

    >>> read_positions(["TC-08 Ch 1 Last=3.5,-0.25"])
    {'TC-08 Ch 1 Last': (3.5, -0.25)}
    """
    found: dict[str, tuple[float, float]] = {}
    for text in texts:
        name, _, place = text.rpartition("=")
        parts = place.split(",")
        try:
            x_mm, y_mm = map(float, parts)
        except ValueError:
            x_mm = y_mm = math.nan
        if not name.strip() or not max(abs(x_mm), abs(y_mm)) <= MAX_POSITION_MM:
            raise UsageError(f"--position {text!r} must look like CHANNEL=X,Y in mm, such as --position T1=3.5,12")
        if name.strip() in found:
            raise UsageError(f"--position names {name.strip()!r} twice; a channel has one position")
        found[name.strip()] = (x_mm, y_mm)
    return found


def with_positions(sensors: pd.DataFrame, positions: Positions) -> pd.DataFrame:
    """Return tidy sensors with the ``x_mm`` and ``y_mm`` of the named channels; refuse an unknown name."""
    names = sensors["name"].tolist()
    for name in positions:
        if name not in names:
            raise BrokenInputError(
                f"--position: {NotFoundError.near('channel', name, map(str, names))}; "
                "upload files with other channels separately"
            )
    axes = {}
    for n, axis in enumerate(("x_mm", "y_mm")):
        known = pd.Series([positions[name][n] if name in positions else None for name in names], dtype="float64")
        axes[axis] = known.set_axis(sensors.index).fillna(sensors[axis])
    return sensors.assign(**axes)

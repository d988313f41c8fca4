"""Where sensors sit on the die, as the user says it: no log of a meter knows."""

import math
from collections.abc import Iterable, Mapping

import pandas as pd

from profsvc.errors import BrokenInputError, NotFoundError, UsageError

Positions = Mapping[str, tuple[float, float]]
MOST_MM = 1000.0


def read_positions(texts: Iterable[str]) -> dict[str, tuple[float, float]]:
    """Read the values of ``--position``: CHANNEL=X,Y in mm; raise `UsageError` for any other.

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
        if not name.strip() or not max(abs(x_mm), abs(y_mm)) <= MOST_MM:
            raise UsageError(f"--position {text!r} must look like CHANNEL=X,Y in mm, such as --position T1=3.5,12")
        if name.strip() in found:
            raise UsageError(f"--position names {name.strip()!r} twice; a channel has one place")
        found[name.strip()] = (x_mm, y_mm)
    return found


def placed_sensors(sensors: pd.DataFrame, positions: Positions) -> pd.DataFrame:
    """Return tidy sensors with ``x_mm`` and ``y_mm`` of the channels that are named; refuse a name that none has."""
    names = sensors["name"].tolist()
    for name in positions:
        if name not in names:
            raise BrokenInputError(
                f"--position: {NotFoundError.near('channel', name, map(str, names))}; "
                "upload files with other channels apart"
            )
    axes = {}
    for n, axis in enumerate(("x_mm", "y_mm")):
        known = pd.Series([positions[name][n] if name in positions else None for name in names], dtype="float64")
        axes[axis] = known.set_axis(sensors.index).fillna(sensors[axis])
    return sensors.assign(**axes)

"""The raw output of the microbenchmarks: facts of the device, and one line for each repeat of a point."""

import csv
import io
import math
from typing import NamedTuple

import pandas as pd

COLUMNS = ["name", "x", "value", "unit", "repeat"]


class Raw(NamedTuple):
    """Facts by name, the repeats of all points, and the lines that are neither."""

    facts: dict[str, str]
    points: pd.DataFrame
    rejected: list[str]

    def number(self, fact: str) -> float:
        """Return a fact as a number, NaN without it."""
        try:
            return float(self.facts[fact])
        except (KeyError, ValueError):
            return math.nan


def read_raw(text: str) -> Raw:
    """Read what the programs printed, one after another.

    >>> raw = read_raw("# sms: 132\\nname,x,value,unit,repeat\\ndram_read,64,4.4e12,B/s,1\\ndram_re")
    >>> raw.facts, raw.points["value"].tolist(), raw.rejected
    ({'sms': '132'}, [4400000000000.0], ['dram_re'])
    """
    facts: dict[str, str] = {}
    points, rejected = [], []
    for line in io.StringIO(text):
        line = line.rstrip("\r\n")
        if line.startswith("#"):
            name, _, value = line[1:].partition(":")
            facts.setdefault(name.strip(), value.strip())
        elif line.strip() and line != ",".join(COLUMNS):
            point = _point(next(csv.reader([line])))
            if point is None:
                rejected.append(line)
            else:
                points.append(point)
    return Raw(facts, pd.DataFrame(points, columns=COLUMNS), rejected)


def _point(cells: list[str]) -> tuple[str, float, float, str, int] | None:
    try:
        name, x, value, unit, repeat = cells
        point = name, float(x), float(value), unit, int(repeat)
    except ValueError:
        return None
    return point if math.isfinite(point[1]) and 0 < point[2] < math.inf else None

"""New findings of other tools on series that are looked at every night.

It is run by a Python that has ``apache-otava``, ``asv`` and ``ruptures``, and imports nothing else but NumPy; what is
missing there is named. Input: an ``.npy`` of shape (series, nights), NaN where a night is missing, and as argument the
first night that is looked at. Output: JSON, for each tool [series, night, place of the change] of each finding.

A tool sees all values up to a night. A change is new if it lies three nights or more from all that it said before.
*otava* is at p = 0.001, *asv* is its step detection without the threshold of 5 %, *ruptures* is an exact search for
steps (l2) with the penalty of BIC in units of the noise, and *threshold* compares the newest value with the median of
those before: 10 %.
"""

import io
import json
import sys
from collections.abc import Callable
from importlib import import_module

import numpy as np

NEAR = 3
Places = Callable[[np.ndarray], list[int]]


def otava() -> Places:
    """Return the change points of Apache Otava."""
    find = import_module("otava.analysis").compute_change_points
    return lambda x: [int(point.index) for point in find(x.tolist(), max_pvalue=0.001)[0]]


def asv() -> Places:
    """Return the steps of airspeed velocity."""
    find = import_module("asv.step_detect").detect_steps
    return lambda x: [int(step[0]) for step in find(x.tolist())[1:]]


def ruptures() -> Places:
    """Return the change points of ruptures."""
    search = import_module("ruptures").KernelCPD

    def places(x: np.ndarray) -> list[int]:
        sd = 1.4826 * np.median(np.abs(np.diff(x))) / np.sqrt(2)
        if not sd > 0:
            return []
        fitted = search(kernel="linear", min_size=2).fit(x[:, np.newaxis] / sd)
        return [int(place) for place in fitted.predict(pen=2 * np.log(x.size))[:-1]]

    return places


def threshold() -> Places:
    """Return the newest place if its value is 10 % away from the median before it."""
    return lambda x: [x.size - 1] if abs(x[-1] / np.median(x[:-1]) - 1) > 0.1 else []


def findings(places: Places, rows: np.ndarray, first: int) -> list[list[int]]:
    """Return series, night and place of what is new in each night from ``first`` on."""
    out = []
    for number, row in enumerate(rows):
        said: list[int] = []
        for night in range(first, row.size):
            known = np.flatnonzero(~np.isnan(row[: night + 1]))
            if known.size < 4 or np.isnan(row[night]):
                continue
            for place in (int(known[one]) for one in places(row[known])):
                if all(abs(place - old) >= NEAR for old in said):
                    said.append(place)
                    out.append([number, night, place])
    return out


def main() -> None:
    """Print the findings of every tool, and why one is missing."""
    rows, first = np.load(io.BytesIO(sys.stdin.buffer.read())), int(sys.argv[1])
    out: dict[str, object] = {}
    for tool in (otava, asv, ruptures, threshold):
        try:
            places = tool()
        except ImportError as error:
            out[tool.__name__] = str(error)
        else:
            out[tool.__name__] = findings(places, rows, first)
    json.dump(out, sys.stdout)


if __name__ == "__main__":
    main()

"""Public histories of benchmarks, and the series of the Turing change point data, beside other tools.

Run it with ``python -m tests.benchmarks.public_histories FOLDER [--peers PYTHON]``. The folder is read as it is, with
its folders; nothing of it is kept. Three kinds of files count:

* ``data.js`` of github-action-benchmark: a suite with its series, in the order of its commits;
* a graph of airspeed velocity, ``[[revision, value], ...]``: all graphs of a folder are one suite;
* a series of the Turing change point data, one-dimensional and with ``annotations.json`` beside or above it.

Histories are looked at every night, as `tests.benchmarks.detection` does. No tool says what a step is. A step is
*obvious* where the medians of the 20 nights before and since differ by five times the larger of their robust standard
deviations and by 1 %; of such places within ten nights, the one with the largest difference. It counts as found if a
finding within twenty nights names a place at most five nights away. A finding is *false* if at no place within three
nights the 20 values before and since differ by the test of Mann and Whitney (p = 0.001). ``--half 0`` and ``--half 1``
take every other series, so that one half can be kept back.

Series of the Turing data are looked at once. Covering and F1 are those of van den Burg and Williams (2020), with a
margin of five; their best defaults over all one-dimensional series are 0.706 and 0.744.
"""

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import mannwhitneyu

from profsvc.formulas.change.histories import all_steps
from tests.benchmarks.detection import SD, later, of_peers, walk
from tests.command_line import parser_of

SIDE, FIRST, NEAR, SOON, MARGIN = 20, 20, 5, 20, 5
OBVIOUS_SD, OBVIOUS_SHARE = 5.0, 0.01
FALSE_P, FALSE_NEAR = 1e-3, 3
Floats = np.ndarray
Found = Sequence[Sequence[int]]  # series, night and place of each finding


class Score(NamedTuple):
    """What a tool said of a suite."""

    found: int
    false: int
    said: int


def suites(folder: Path) -> Iterator[tuple[str, dict[str, Floats]]]:
    """Yield the histories below a folder, by suite; values are above 0, NaN where one is missing."""
    for path in sorted(folder.rglob("data.js")):
        data = json.loads(path.read_text(encoding="utf-8").partition("=")[2].rstrip().rstrip(";"))
        for name, runs in data["entries"].items():
            told: dict[str, Floats] = {}
            for place, run in enumerate(runs):
                for bench in run["benches"]:
                    row = told.setdefault(bench["name"], np.full(len(runs), np.nan))
                    row[place] = float(bench["value"]) if bench["value"] else np.nan
            yield f"{path.parent.name}/{name}", told
    for parent in sorted({path.parent for path in folder.rglob("*.json")}):
        graphs = {}
        for path in sorted(parent.glob("*.json")):
            rows = json.loads(path.read_text(encoding="utf-8"))
            if isinstance(rows, list) and rows and all(isinstance(row, list) and len(row) == 2 for row in rows):
                graphs[path.stem] = np.array([row[1] or np.nan for row in rows], dtype=np.float64)
        if graphs:
            yield parent.name, graphs


def obvious_steps(x: Floats) -> list[int]:
    """Return the places of the obvious steps of a history."""
    known = np.flatnonzero(~np.isnan(x))
    y, sizes = x[known], np.zeros(known.size)
    for place in range(SIDE, y.size - SIDE + 1):
        before, since = y[place - SIDE : place], y[place : place + SIDE]
        levels = np.median(before), np.median(since)
        sd = max(1.4826 * np.median(np.abs(side - level)) for side, level in zip((before, since), levels, strict=True))
        rise = abs(levels[1] - levels[0])
        if rise >= OBVIOUS_SD * sd and rise >= OBVIOUS_SHARE * levels[0]:
            # The split of least squares is where it is: medians are alike at several places.
            sizes[place] = abs(before.mean() - since.mean()) / np.sqrt(before.var() + since.var() + 1e-300)
    out: list[int] = []
    for place in np.argsort(-sizes, kind="stable"):
        if sizes[place] > 0 and all(abs(place - other) > SIDE // 2 for other in out):
            out.append(int(place))
    return sorted(int(known[place]) for place in out)


def is_false(x: Floats, place: int) -> bool:
    """Return whether no test near a place says that the values before it and since differ."""
    known = np.flatnonzero(~np.isnan(x))
    y, at = x[known], int(np.searchsorted(known, place))
    for one in range(max(3, at - FALSE_NEAR), min(y.size - 3, at + FALSE_NEAR) + 1):
        if mannwhitneyu(y[max(0, one - SIDE) : one], y[one : one + SIDE]).pvalue <= FALSE_P:
            return False
    return True


def scored(x: Floats, steps: Mapping[int, Sequence[int]], found: Found) -> Score:
    """Hold the findings of a tool against the steps of each series."""
    hit = sum(
        any(one == series and abs(at - step) <= NEAR and night <= step + SOON for one, night, at in found)
        for series, places in steps.items()
        for step in places
    )
    return Score(hit, sum(is_false(x[one], at) for one, _, at in found), len(found))


def compared(series: Mapping[str, Floats], python: str) -> tuple[dict[str, Score], int, int]:
    """Return the scores of every tool on a suite, its obvious steps, and its nights of series."""
    rows = [row / np.nanmedian(row[:FIRST]) for row in series.values()]
    x = np.full((len(rows), max(row.size for row in rows)), np.nan)
    for number, row in enumerate(rows):
        x[number, : row.size] = row
    steps = {number: [at for at in obvious_steps(row) if at >= FIRST] for number, row in enumerate(x)}
    scaled = (x - 1.0) / SD
    told = [(int(row["series"][1:]), row["night"], row["run_id"] - 1) for row in walk(scaled[:, :, None], FIRST).rows]
    by_tool: dict[str, Found] = {"profsvc": [one for one in told if one[1] > FIRST]}
    for name, found in of_peers(python, scaled, FIRST).items():
        by_tool[name] = later(found, FIRST)
    nights = int((~np.isnan(x[:, FIRST + 1 :])).sum())
    return {name: scored(x, steps, found) for name, found in by_tool.items()}, sum(map(len, steps.values())), nights


def turing(folder: Path) -> Iterator[tuple[str, Floats, list[list[int]]]]:
    """Yield the one-dimensional series of the Turing data with what its annotators say."""
    notes: dict[str, Any] = {}
    for path in folder.rglob("annotations.json"):
        notes |= json.loads(path.read_text(encoding="utf-8"))
    for path in sorted(folder.rglob("*.json")):
        row = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(row, dict) and row.get("n_dim") == 1 and row.get("name") in notes:
            raw = np.array(row["series"][0]["raw"], dtype=np.float64)
            yield row["name"], raw, list(notes[row["name"]].values())


def matched(truth: Sequence[int], said: Sequence[int]) -> set[int]:
    """Return which true places are met, each by a place of its own."""
    left, met = sorted(said), set()
    for place in sorted(truth):
        near = [other for other in left if abs(other - place) <= MARGIN]
        if near:
            met.add(place)
            left.remove(min(near, key=lambda other: abs(other - place)))
    return met


def f1(annotations: Sequence[Sequence[int]], said: Sequence[int]) -> float:
    """Return F1 of places against several annotators; the begin of the series counts as a place."""
    found = {0, *said}
    precision = len(matched(sorted({0, *(at for one in annotations for at in one)}), sorted(found))) / len(found)
    recall = np.mean([len(matched(sorted({0, *one}), sorted(found))) / len({0, *one}) for one in annotations])
    return float(2 * precision * recall / (precision + recall)) if precision + recall else 0.0


def covering(annotations: Sequence[Sequence[int]], said: Sequence[int], size: int) -> float:
    """Return how well segments cover those of the annotators: mean Jaccard index, weighted by length."""

    def parts(places: Sequence[int]) -> list[tuple[int, int]]:
        edges = [0, *sorted({place for place in places if 0 < place < size}), size]
        return list(pairwise(edges))

    def jaccard(a: tuple[int, int], b: tuple[int, int]) -> float:
        both = max(0, min(a[1], b[1]) - max(a[0], b[0]))
        return both / (a[1] - a[0] + b[1] - b[0] - both)

    return float(
        np.mean([sum((a[1] - a[0]) * max(jaccard(a, b) for b in parts(said)) for a in parts(one)) / size
                 for one in annotations])
    )  # fmt: skip


def _turing_table(folder: Path, python: str) -> None:
    figures: dict[str, list[tuple[float, float]]] = {}
    names = []
    for name, x, annotations in turing(folder):
        said = {"profsvc": all_steps(x).at.tolist(), "no step": []}
        for tool, found in of_peers(python, ((x / np.nanmedian(np.abs(x)) - 1.0) / SD)[None], x.size - 1).items():
            said[tool] = [at for _, _, at in found]
        for tool, places in said.items():
            figures.setdefault(tool, []).append((covering(annotations, places, x.size), f1(annotations, places)))
        names.append(name)
        print(
            f"{name:24}" + "".join(f"{tool} {figures[tool][-1][0]:.2f} {figures[tool][-1][1]:.2f}  " for tool in said)
        )
    if names:
        print(f"{len(names)} series of the Turing data: covering, F1 (best defaults published, of all: 0.706, 0.744)")
        for tool, both in figures.items():
            print(f"    {tool:12}{np.mean([one[0] for one in both]):.3f}  {np.mean([one[1] for one in both]):.3f}")


def main() -> None:
    """Print the tables."""
    parser = parser_of(__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--half", type=int, choices=(0, 1), help="every other series; default: all")
    parser.add_argument("--peers", default=sys.executable, metavar="PYTHON", help="that has the other tools")
    asked = parser.parse_args()
    totals: dict[str, list[Score]] = {}
    steps = nights = 0
    for name, series in suites(asked.folder):
        kept = {key: row for key, row in series.items() if np.isfinite(row).sum() > FIRST + 2 * SIDE}
        if asked.half is not None:
            kept = dict(list(kept.items())[asked.half :: 2])
        if not kept:
            continue
        scores, own_steps, own_nights = compared(kept, asked.peers)
        steps, nights = steps + own_steps, nights + own_nights
        for tool, score in scores.items():
            totals.setdefault(tool, []).append(score)
        print(f"{name}: {len(kept)} series, {own_nights} nights of series, {own_steps} obvious steps", flush=True)
    for tool, several in totals.items():
        found, false, said = (sum(column) for column in zip(*several, strict=True))
        print(f"    {tool:12}{found} of {steps} found, {1000 * false / nights:.1f} false per 1000 ({said} findings)")
    _turing_table(asked.folder, asked.peers)


if __name__ == "__main__":
    main()

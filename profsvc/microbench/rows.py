"""From raw figures of the microbenchmarks to the lines of a characterization."""

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from profsvc.analysis.launches.characterization import SECTOR_BYTES
from profsvc.microbench.raw import Raw
from profsvc.specs.criteria import Microbenchmark, microbenchmarks
from profsvc.specs.criteria import figures as figures_of_device

WARP = 32
LINE_BYTES_IN_FLIGHT = 8 * 16 * WARP  # each lane of a warp of l1_lines has eight loads of 16 bytes under way
LESS_IS_BETTER = ("cycle", "s")
MEET, FREE = "meet", "free"  # benchmarks of parts of a kernel with a barrier before each, and without
DDR = 2  # transfers of a bus line per memory clock, for HBM and GDDR as the driver states the clock


class Rows(NamedTuple):
    """Lines of a characterization, and what was not measured with the reason."""

    lines: list[dict[str, Any]]
    missing: dict[str, str]


def characterization_rows(raw: Raw, unexpected: Mapping[str, str] | None = None) -> Rows:
    """Return the lines that the raw figures give: one for each repeat of a point.

    ``unexpected`` are benchmarks whose machine code is not what they are to measure; they give none.
    """
    lines: list[dict[str, Any]] = []
    missing: dict[str, str] = {}
    for one in microbenchmarks():
        try:
            lines += [_line(one, raw, row) for row in _picked(one, raw, unexpected or {})]
        except LookupError as error:
            missing[one.quantity] = str(error.args[0])
    return Rows(lines, missing)


def _line(one: Microbenchmark, raw: Raw, row: Mapping[str, Any]) -> dict[str, Any]:
    single = one.pick != "all"
    return {"device": raw.facts["device"], "quantity": one.quantity, "x": None if single else row["x"],
            "y": row["value"], "unit": one.unit, "method": one.meaning}  # fmt: skip


def _picked(one: Microbenchmark, raw: Raw, unexpected: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    """Yield x and value on the scale of the quantity; raise `LookupError` with the reason if there are none."""
    wrong = {name: why for name in one.benchmarks for start, why in unexpected.items() if name.startswith(start)}
    points = raw.points[raw.points["name"].isin(set(one.benchmarks) - set(wrong))]
    if points.empty:
        raise LookupError(next(iter(wrong.values()), "this device or program gave no such figure"))
    if one.pick.startswith("at:"):
        points = points[points["x"] == float(one.pick.removeprefix("at:"))]
    elif one.pick == "best":
        points = _best(points)
    if points.empty:
        raise LookupError("no point of the sweep can be used")
    scaled = SCALES[one.scale](points, raw) if one.scale in SCALES else _rate(points, raw, one.scale)
    good = np.isfinite(scaled["value"]) & (scaled["value"] > 0)
    if not good.all():
        raise LookupError("the peak of the unit is not known for this device")
    for x, value in zip(scaled["x"], scaled["value"], strict=True):
        yield {"x": float(x), "value": float(value)}


def _best(points: pd.DataFrame) -> pd.DataFrame:
    # Groups of pandas take three times as long for so few points, and this is asked of nearly every quantity.
    names, x = np.unique(points["name"].to_numpy(str), return_inverse=True)[1], points["x"].to_numpy(np.float64)
    values, medians = points["value"].to_numpy(np.float64), dict[tuple[int, float], float]()
    for name in np.unique(names).tolist():
        for place in np.unique(x[names == name]).tolist():
            medians[name, place] = float(np.median(values[(names == name) & (x == place)]))
    choose = min if points["unit"].iloc[0] in LESS_IS_BETTER else max
    name, place = choose(medians, key=medians.__getitem__)
    best: pd.DataFrame = points[(names == name) & (x == place)]
    return best


def _figures(raw: Raw) -> dict[str, Any]:
    return dict(figures_of_device(raw.facts["device"], raw.facts.get("compute_capability")))


def _over(points: pd.DataFrame, value: pd.Series) -> pd.DataFrame:
    return points.assign(value=value)


def _first(points: pd.DataFrame) -> float:
    return float(points.loc[points["x"] == points["x"].min(), "value"].median())


def dram_peak(raw: Raw) -> float:
    """Return the theoretical DRAM bandwidth from memory clock and bus width in bytes per second."""
    return DDR * raw.number("memory_clock_hz") * raw.number("memory_bus_width_bits") / 8


def l2_peak(raw: Raw) -> float:
    """Return the L2 peak of Nsight Compute in bytes per second: the rate of a read over its share of that peak."""
    reads = raw.points[raw.points["name"] == "l2_read"]  # the profiled launch has the smallest size
    return _first(reads) / (raw.number("l2_percent_of_peak") / 100) if len(reads) else math.nan


def _sector(points: pd.DataFrame, raw: Raw) -> pd.DataFrame:
    return _over(points, SECTOR_BYTES * raw.number("boost_clock_hz") / points["value"])


def _line_rate(points: pd.DataFrame, raw: Raw) -> pd.DataFrame:
    return points.assign(x=points["x"] * LINE_BYTES_IN_FLIGHT, value=1 / points["value"])


def _rate(points: pd.DataFrame, raw: Raw, lanes: str) -> pd.DataFrame:
    """Return the rate over that of the lanes, or of the schedulers, which begin one warp instruction a cycle each."""
    peak = float(_figures(raw).get(lanes) or math.nan) / (1 if lanes.startswith("schedulers") else WARP)
    return _over(points, 1 / peak / points["value"])


def _barrier_constant(points: pd.DataFrame, raw: Raw) -> pd.DataFrame:
    """Return Gamma of each sort of blocks, over parts of several lengths.

    A barrier adds Gamma times latency over length to the cycles of a part for each warp: least squares.
    """
    latencies = raw.points.loc[raw.points["name"] == "dram_latency", "value"]
    if latencies.empty:
        raise LookupError("the latency of DRAM was not measured")
    named = points.groupby(["name", "x"])["value"].median().reset_index()
    medians = {(str(name), float(x)): float(value) for name, x, value in named.itertuples(index=False, name=None)}
    sorts: dict[tuple[str, float], list[tuple[float, float]]] = {}
    for (name, warps), cycles in medians.items():
        kind, _, length = name.rpartition("_")
        free = medians.get((name.replace(MEET, FREE, 1), warps))
        if kind.startswith(MEET) and free is not None:
            one = float(latencies.median()) / float(length)
            sorts.setdefault((kind, warps), []).append((one, cycles - free))
    found = {
        blocks: sum(one * added for one, added in each) / sum(one**2 for one, _ in each)
        for blocks, each in sorts.items()
    }
    if not found or min(found.values()) <= 0:
        raise LookupError("barriers of some blocks cost nothing that could be measured")
    return pd.DataFrame({"x": [warps for _, warps in found], "value": list(found.values())})


SCALES: Mapping[str, Callable[[pd.DataFrame, Raw], pd.DataFrame]] = {
    "": lambda points, raw: points,
    "dram": lambda points, raw: _over(points, points["value"] / dram_peak(raw)),
    "l2": lambda points, raw: _over(points, points["value"] / l2_peak(raw)),
    "line": _line_rate,
    "sector": _sector,
    "transaction": lambda points, raw: _over(points, points["value"] / WARP),
    "slowdown": lambda points, raw: _over(points, points.groupby("x")["value"].median().min() / points["value"]),
    "gamma": _barrier_constant,
    "conflict": lambda points, raw: _over(points, points["x"] * _first(points) / points["value"]),
}

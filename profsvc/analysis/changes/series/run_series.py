"""Results of runs as time series: one point per run for every kernel, power window and file.

A power is put at the one reference temperature of its series, as `profsvc.views.power.comparison` puts two runs at one:
runs are corrected to temperatures of their own. Where no run of a series is corrected, the series is of the power as it
was measured, under a name of its own (``raw_power``, ``raw_energy``).
"""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from profsvc.analysis.changes.kernels.renames import KernelNames, renamed_subject
from profsvc.formulas.numerics.distributions import NORMAL_975

Frame = pd.DataFrame
WHOLE_RUN = "whole run"
IDENTITY = ("project", "kernel", "subject", "device", "sensor", "quantity", "branch")
"""What a series is of; the branch is None for a main branch, and for runs that name none."""
COLUMNS = (
    *IDENTITY, "kind", "unit", "run_id", "value", "raw", "low", "high", "per_c", "per_c_low", "per_c_high",
    "reference_c", "reason",
)  # fmt: skip
NUMBERS = ("value", "raw", "low", "high", "per_c", "per_c_low", "per_c_high", "reference_c")
UNITS = {"duration": "ns", "power": "W", "energy": "J", "temperature": "degC", "clock": "Hz"}
COMPUTED = ("criteria", "whole", "potential", "missing")
"""Figures that a version of the analysis computes, which another computes otherwise."""
REFERENCE_STEP_C = 5.0
"""References are rounded to this, so that another run more does not move a whole series."""
RUN, LEVELS = "run", "change_points"


def run_points(runs: Frame, figures: Mapping[str, Frame]) -> Frame:
    """Return the points of all series, of `COLUMNS`; of a power as each run was corrected, with what moves it.

    ``runs``: run_id, project, device, branch, version, oldest first; ``figures``: as
    `profsvc.store.queries.nightly_series` gives them. What an older version of the analysis computed is left out.
    """
    older = runs.loc[of_older_analysis(runs), "run_id"]
    if len(older):
        figures = {
            name: frame[~frame["run_id"].isin(older)] if name in COMPUTED and len(frame) else frame
            for name, frame in figures.items()
        }
    # Most kinds of figures have no rows in most histories, and of these no points are made.
    parts = [
        part
        for name, points in POINTS_OF_FIGURES.items()
        if len(figures[name]) or name == "durations"
        for part in points(figures[name])
    ]
    # One column at a time, texts as numbers of equal ones: a year of many kernels is a table of millions of rows.
    columns = {name: _joined(parts, name) for name in COLUMNS}
    place = pd.Index(runs["run_id"]).get_indexer(columns["run_id"])
    of_runs = {name: _coded(runs[name]).take(place) for name in ("project", "branch", "device")}
    device = _filled(columns["device"], of_runs["device"])
    return pd.DataFrame(columns | of_runs | {"device": device}, copy=False)


def of_older_analysis(runs: Frame) -> "pd.Series[bool]":
    """Tell which runs another version of the analysis computed than the newest run of their history, if any."""
    keys = [runs[name].fillna("") for name in ("project", "device", "branch")]
    newest = runs.groupby(keys)["version"].transform("last")
    return runs["version"].notna() & newest.notna() & (runs["version"] != newest)


def _joined(parts: Sequence[Frame], name: str) -> Any:
    if name == "run_id":
        return np.concatenate([part[name].to_numpy(np.int64) for part in parts])
    if name in NUMBERS:
        if not any(name in part and len(part) for part in parts):
            return _without_value(sum(map(len, parts)))
        return np.concatenate([
            part[name].to_numpy().astype(np.float64, copy=False) if name in part else _without_value(len(part))
            for part in parts
        ])  # fmt: skip
    codes: list[Any] = []
    places: dict[str, int] = {}
    for part in parts:
        if name not in part:
            codes.append(np.full(len(part), -1, dtype=np.int8))
            continue
        own = _coded(part[name])
        numbers = [*(places.setdefault(text, len(places)) for text in own.categories), -1]
        codes.append(np.array(numbers, dtype=np.min_scalar_type(-max(len(places), 1)))[own.codes])
    return pd.Categorical.from_codes(np.concatenate(codes), pd.Index(list(places), dtype=object))


def _without_value(size: int) -> Any:
    """Return NaN so many times, in the memory of one: most quantities have no interval, and no temperature."""
    return np.broadcast_to(np.nan, size)


def _coded(texts: Any) -> pd.Categorical:
    """Return texts as numbers of equal ones."""
    if isinstance(getattr(texts, "dtype", None), pd.CategoricalDtype):
        return pd.Categorical(texts)
    codes, names = pd.factorize(np.asarray(texts, dtype=object))
    return pd.Categorical.from_codes(codes, pd.Index(names, dtype=object))


def _filled(texts: pd.Categorical, other: pd.Categorical) -> pd.Categorical:
    """Return texts, and the other ones where they are missing."""
    names = list(dict.fromkeys([*texts.categories, *other.categories]))
    number = np.array([*map(names.index, other.categories), -1], dtype=np.intp)
    codes = np.where(texts.codes < 0, number[other.codes], texts.codes)
    return pd.Categorical.from_codes(codes, pd.Index(names, dtype=object))


def _relabelled(texts: Any, of: Callable[[str], str]) -> pd.Categorical:
    """Return texts with another one for each, which several may share."""
    own = _coded(texts)
    codes, names = pd.factorize(np.array([of(str(text)) for text in own.categories], dtype=object))
    return pd.Categorical.from_codes(np.append(codes, -1)[own.codes], pd.Index(names, dtype=object))


def _constant(text: str, size: int) -> pd.Categorical:
    return pd.Categorical.from_codes(np.zeros(size, dtype=np.int8), pd.Index([text], dtype=object))


def _texts(coded: "pd.Series[Any]") -> Any:
    """Return texts as they were, None where one is missing."""
    names = np.array([*coded.cat.categories, None], dtype=object)
    return names[coded.cat.codes.to_numpy()]


def with_texts(points: Frame) -> Frame:
    """Return points with texts instead of their numbers, None where one is missing: for some points, not for all."""
    coded = [name for name in points if isinstance(points[name].dtype, pd.CategoricalDtype)]
    # Pandas would take texts for its own type, in which None becomes NaN.
    return points.assign(**{str(name): pd.Series(_texts(points[name]), points.index, dtype=object) for name in coded})


def _by_tool(durations: Frame) -> Frame:
    return durations.assign(sensor=_relabelled(durations["format"], lambda form: form.split("-")[0]))


def _kernel_points(frame: Frame, quantity: str | None, kind: str) -> Frame:
    made = frame.rename(columns={"kernel_short": "subject"})
    again = made.duplicated([name for name in ("run_id", "kernel", "sensor", "criterion") if name in made])
    made = made[~again] if again.any() else made
    of = made["criterion"] if quantity is None else _constant(quantity, len(made))
    return made.assign(quantity=of, kind=_constant(kind, len(made)), unit=_constant(UNITS.get(kind, "1"), len(made)))


def _whole_run_points(frame: Frame, quantity: Any, kind: str) -> Frame:
    return frame.assign(subject=WHOLE_RUN, quantity=quantity, kind=kind, unit=UNITS.get(kind, "1"))


def _power_points(frame: Frame) -> list[Frame]:
    """Return power and energy of the windows, temperature and clock of the whole, and the share not corrected."""
    frame = with_texts(frame)
    gpu = ["" if pd.isna(gpu) else f" of GPU {int(gpu)}" for gpu in frame["gpu_index"]]
    frame = frame.assign(gpu=pd.Series(gpu, frame.index, dtype=object))
    whole, windows = frame[frame["kind"] == RUN], frame[frame["kind"] != RUN]
    sensors = windows["sensor"] + windows["gpu"]
    many = windows.groupby(["run_id", "sensor", "gpu"])["window"].transform("size").astype(str)
    levels = windows["source"] == LEVELS
    windows = windows.assign(
        sensor=sensors, subject=windows["window"].where(~levels, windows["window"] + " of " + many)
    )
    doubtful = windows.assign(value=windows["corrected_power_w"].isna().astype(float))
    doubtful = doubtful.groupby("run_id")["value"].mean().reset_index()
    warmth = whole.assign(value=whole["mean_temperature_c"], sensor=whole["temperature_sensor"] + whole["gpu"])
    clock = whole.assign(value=whole["mean_clock_hz"], sensor="SM clock" + whole["gpu"])
    conditions = [
        _whole_run_points(part.dropna(subset=["value"]).drop_duplicates(["run_id", "sensor"]), kind, kind).assign(
            kernel=None
        )
        for part, kind in ((warmth, "temperature"), (clock, "clock"))
    ]
    return [
        _corrected_points(windows, "power", "w", 1.0),
        _corrected_points(windows, "energy", "j", windows["duration_s"]),
        *conditions,
        _whole_run_points(doubtful, "uncorrected_power", "data_quality"),
    ]


def _corrected_points(windows: Frame, kind: str, unit: str, seconds: Any) -> Frame:
    """Power or energy of windows; an energy is that of one launch where the launches are known."""
    launches = windows["launches"].astype(np.float64)
    each = launches.where(launches > 0, 1.0) if kind == "energy" else 1.0
    raw = "mean_power_w" if kind == "power" else "energy_j"
    names = {"value": f"corrected_{kind}_{unit}", "raw": raw, "low": f"corrected_{kind}_low_{unit}",
             "high": f"corrected_{kind}_high_{unit}"}  # fmt: skip
    figures = {name: windows[column].astype(np.float64) / each for name, column in names.items()}
    moves = {"per_c": "coefficient_w_per_c", "per_c_low": "coefficient_low", "per_c_high": "coefficient_high"}
    figures |= {name: windows[column].astype(np.float64) * seconds / each for name, column in moves.items()}
    quantity = kind if kind == "power" else np.where(launches > 0, "energy_per_launch", "energy")
    return windows.assign(
        **figures, quantity=quantity, kind=kind, unit=UNITS[kind],
        reference_c=windows["reference_temperature_c"].astype(np.float64),
    )  # fmt: skip


POINTS_OF_FIGURES: Mapping[str, Callable[[Frame], list[Frame]]] = {
    "durations": lambda frame: [_kernel_points(_by_tool(frame), "duration", "duration")],
    "means": lambda frame: [_kernel_points(frame, "mean_duration", "duration")],
    "potential": lambda frame: [_kernel_points(frame, "potential", "potential")],
    "criteria": lambda frame: [_kernel_points(frame, None, "criterion")],
    "whole": lambda frame: [_whole_run_points(frame, frame["criterion"], "criterion")],
    "lines": lambda frame: [_whole_run_points(frame, "rejected_lines", "data_quality")],
    "missing": lambda frame: [_whole_run_points(frame, "missing_criteria", "data_quality")],
    "power": _power_points,
}
"""Figures of runs, by the names that `profsvc.store.queries.nightly_series` has for them, and the points of each."""


def to_series(table: Frame, runs: Frame, references: Mapping[str, float], names: KernelNames | None = None) -> Frame:
    """Return the points with ``series`` and ``group``, those of a series together and in the order of the runs.

    ``table`` is empty then: of many kernels there is no room for two. ``names``: of kernels with several names, of
    which the points have the newest; a series is named by the oldest.

    Powers are at the temperature that ``references`` gives for their series, else at that of their runs, rounded; it is
    ``reference_c`` then. ``error`` is the standard error of a value where it is known, NaN elsewhere.
    """
    place = pd.Index(runs["run_id"]).get_indexer(table["run_id"])
    number, digests = _digests(table, names)
    of_series, rank = np.unique(digests, return_inverse=True)
    order = np.lexsort((place, rank[number]))
    place, series = place[order], rank[number][order]
    columns = {name: _taken(table.pop(name), order) for name in COLUMNS}
    columns |= {name: _coded(runs[name]).take(place) for name in ("run", "build")}
    # Pandas would take texts for its own type, in which None becomes NaN.
    columns["at"] = pd.Series(runs["at"].to_numpy(object)[place], dtype=object)
    columns["series"] = pd.Categorical.from_codes(series, pd.Index(of_series, dtype=object))
    columns["group"] = np.cumsum(np.diff(series, prepend=series[:1]) != 0)
    made = _at_reference_temperature(pd.DataFrame(columns, copy=False), references)
    uncorrected = made["kind"].isin(["power", "energy"])
    uncorrected &= ~made["group"].isin(made.loc[made["value"].notna(), "group"].unique()) if uncorrected.any() else True
    return _as_measured(made, uncorrected.to_numpy(), names) if uncorrected.any() else made


def _taken(column: "pd.Series[Any]", order: Any) -> Any:
    if column.name in NUMBERS and column.isna().all():
        return _without_value(len(column))
    return column.array.take(order)


def _as_measured(points: Frame, inside: Any, names: KernelNames | None) -> Frame:
    """Return points of which some are those of the power or energy as it was measured, under a name of its own."""
    own = with_texts(points[inside])
    own = own.assign(quantity="raw_" + own["quantity"])
    number, digests = _digests(own, names)
    columns = {"quantity": own["quantity"].to_numpy(object), "series": digests[number]}
    texts = {name: _replaced(points[name], inside, own_texts) for name, own_texts in columns.items()}
    numbers = {name: points[name].mask(inside) for name in ("raw", "low", "high", "reference_c", "error")}
    return points.assign(**texts, **numbers, value=points["value"].where(~inside, points["raw"]))


def _replaced(coded: "pd.Series[Any]", inside: Any, texts: Any) -> pd.Categorical:
    """Return coded texts, with others at some places."""
    places = {text: code for code, text in enumerate(coded.cat.categories)}
    codes = coded.cat.codes.to_numpy(np.int64, copy=True)
    codes[inside] = [places.setdefault(text, len(places)) for text in texts]
    return pd.Categorical.from_codes(codes, pd.Index(list(places), dtype=object))


def _digests(table: Frame, known: KernelNames | None) -> tuple[Any, Any]:
    """Return the number of the series of each point, and the digests of all series."""
    number = np.zeros(len(table), dtype=np.int64)
    for name in IDENTITY:
        codes, names = pd.factorize(table[name])
        number = pd.factorize(number * (len(names) + 1) + codes + 1)[0]
    first = np.unique(number, return_index=True)[1]
    heads = table[list(IDENTITY)].iloc[first].astype(object)
    keys = heads.where(heads.notna(), None).itertuples(index=False, name=None)
    if known and known.known:
        keys = (_under_oldest_name(key, known) for key in keys)
    return number, np.array([series_digest(key) for key in keys], dtype=object)


def series_of_finding(row: Mapping[str, Any], names: KernelNames) -> str:
    """Return the name of the series that a finding is of, with these names of its kernel."""
    return series_digest(_under_oldest_name(tuple(row[name] for name in IDENTITY), names))


def _under_oldest_name(key: tuple[str | None, ...], known: KernelNames) -> tuple[str | None, ...]:
    row = dict(zip(IDENTITY, key, strict=True))
    if row["kernel"] and (oldest := known.of(row).oldest) != row["kernel"]:
        row |= {"kernel": oldest, "subject": renamed_subject(str(row["subject"]), row["kernel"], oldest)}
    return tuple(row.values())


def series_digest(identity: tuple[str | None, ...]) -> str:
    """Return the name of a series in the store: the SHA-256 of what it is of, in the order of `IDENTITY`.

    A series of a main branch has the name that it has without one.
    """
    identity = identity if identity[-1] else identity[:-1]
    return hashlib.sha256(json.dumps(identity, ensure_ascii=False).encode("utf-8", "backslashreplace")).hexdigest()


def _at_reference_temperature(table: Frame, references: Mapping[str, float]) -> Frame:
    """Put the powers of each series at one temperature; their intervals grow by those of their coefficients.

    Add ``error``. The coefficients are left out: they have no more to say.
    """
    warm = table["group"].isin(table.loc[table["reference_c"].notna(), "group"].unique())
    inside = (warm | table["series"].isin(list(references))).to_numpy()
    own = table.loc[inside]
    usual = own["reference_c"].where(own["value"].notna()).groupby(own["group"]).transform("median")
    usual = (usual / REFERENCE_STEP_C).round() * REFERENCE_STEP_C
    wanted = own["series"].astype(object).map(dict(references)).astype(np.float64).fillna(usual)
    away = (wanted - own["reference_c"]).fillna(0.0)
    shift = (own["per_c"] * away).where(away != 0, 0.0)
    ends = np.sort(np.stack([own["per_c_low"] * away, own["per_c_high"] * away]), axis=0)
    known = np.where(away == 0, 0.0, ends)
    moved = {"value": own["value"] + shift, "low": own["low"] + known[0], "high": own["high"] + known[1],
             "reference_c": wanted}  # fmt: skip
    columns = {"error": _without_value(len(table))}
    for name, cells in moved.items() if inside.any() else ():
        columns[name] = table[name].to_numpy(copy=True)
        columns[name][inside] = cells
    if table["high"].notna().any():
        columns["error"] = (columns.get("high", table["high"]) - columns.get("low", table["low"])) / (2 * NORMAL_975)
    return table.drop(columns=["per_c", "per_c_low", "per_c_high"]).assign(**columns)

"""Results of runs as time series: one point per run for every kernel, power window and file.

A power is put at the one reference temperature of its series, as `profsvc.views.power.comparison` puts two runs at one:
runs are corrected to temperatures of their own. Where no run of a series is corrected, the series is of the power as it
was measured, under a name of its own (``raw_power``, ``raw_energy``).
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from profsvc.analysis.changes.renames import KernelNames, renamed_subject
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
QUALITY_SHARES = {"lines": "rejected_lines", "missing": "missing_criteria"}
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
    figures = {
        name: frame[~frame["run_id"].isin(older)] if name in COMPUTED and len(frame) else frame
        for name, frame in figures.items()
    }
    parts = [
        _kernel_points(_by_tool(figures["durations"]), "duration", "duration"),
        _kernel_points(figures["means"], "mean_duration", "duration"),
        _kernel_points(figures["potential"], "potential", "potential"),
        _kernel_points(figures["criteria"], None, "criterion"),
        _whole_run_points(figures["whole"], figures["whole"]["criterion"], "criterion"),
        *(_whole_run_points(figures[name], quantity, "data_quality") for name, quantity in QUALITY_SHARES.items()),
        *_power_points(figures["power"]),
    ]
    # One column at a time, texts as numbers of equal ones: a year of many kernels is a table of millions of rows.
    table = pd.DataFrame({name: _joined(parts, name) for name in COLUMNS})
    own = runs.set_index("run_id").reindex(table["run_id"])
    for name in ("project", "branch"):
        table[name] = _coded(own[name].to_numpy(object))
    device = _texts(table["device"])
    table["device"] = _coded(np.where(pd.isna(device), own["device"].to_numpy(object), device))
    return table


def of_older_analysis(runs: Frame) -> "pd.Series[bool]":
    """Tell which runs another version of the analysis computed than the newest run of their history, if any."""
    keys = [runs[name].fillna("") for name in ("project", "device", "branch")]
    newest = runs.groupby(keys)["version"].transform("last")
    return runs["version"].notna() & newest.notna() & (runs["version"] != newest)


def _joined(parts: Sequence[Frame], name: str) -> Any:
    if name in NUMBERS:
        return np.concatenate([_column(part, name, np.nan).astype(np.float64) for part in parts])
    if name == "run_id":
        return np.concatenate([part[name].to_numpy(np.int64) for part in parts])
    return _coded(np.concatenate([_column(part, name, None).astype(object) for part in parts]))


def _column(part: Frame, name: str, missing: float | None) -> Any:
    return part[name].to_numpy() if name in part else np.full(len(part), missing)


def _coded(texts: Any) -> pd.Categorical:
    codes, names = pd.factorize(texts)
    return pd.Categorical.from_codes(codes, pd.Index(names, dtype=object))


def _texts(coded: "pd.Series[Any]") -> Any:
    """Return texts as they were, None where one is missing."""
    names = np.array([*coded.cat.categories, None], dtype=object)
    return names[coded.cat.codes.to_numpy()]


def _by_tool(durations: Frame) -> Frame:
    tools = {form: str(form).split("-")[0] for form in durations["format"].unique()}
    return durations.assign(sensor=durations["format"].map(tools))


def _kernel_points(frame: Frame, quantity: str | None, kind: str) -> Frame:
    made = frame.rename(columns={"kernel_short": "subject"})
    made = made.drop_duplicates([name for name in ("run_id", "kernel", "sensor", "criterion") if name in made])
    return made.assign(
        quantity=made["criterion"] if quantity is None else quantity, kind=kind, unit=UNITS.get(kind, "1")
    )


def _whole_run_points(frame: Frame, quantity: Any, kind: str) -> Frame:
    return frame.assign(subject=WHOLE_RUN, quantity=quantity, kind=kind, unit=UNITS.get(kind, "1"))


def _power_points(frame: Frame) -> list[Frame]:
    """Return power and energy of the windows, temperature and clock of the whole, and the share not corrected."""
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


def to_series(table: Frame, runs: Frame, references: Mapping[str, float], names: KernelNames | None = None) -> Frame:
    """Return the points with ``series`` and ``group``, those of a series together and in the order of the runs.

    ``names``: of kernels with several names, of which the points have the newest; a series is named by the oldest.

    Powers are at the temperature that ``references`` gives for their series, else at that of their runs, rounded; it is
    ``reference_c`` then. ``error`` is the standard error of a value where it is known, NaN elsewhere.
    """
    place = pd.Index(runs["run_id"]).get_indexer(table["run_id"])
    number, digests = _digests(table, names)
    of_series, rank = np.unique(digests, return_inverse=True)
    order = np.lexsort((place, rank[number]))
    table = table.take(order).reset_index(drop=True)
    place, series = place[order], rank[number[order]]
    texts = {name: _texts(table[name]) for name in COLUMNS if name not in (*NUMBERS, "run_id")}
    texts |= {name: _known(runs[name])[place] for name in ("at", "run", "build")} | {"series": of_series[series]}
    # Pandas would take texts for its own type, in which None becomes NaN.
    objects = {name: pd.Series(cells, dtype=object) for name, cells in texts.items()}
    table = table.assign(**objects, place=place, group=pd.factorize(series)[0])
    table = _at_reference_temperature(table, references)
    raw_only = table["kind"].isin(["power", "energy"]) & table.groupby("group")["value"].transform("count").eq(0)
    if raw_only.any():
        table.loc[raw_only, "value"] = table.loc[raw_only, "raw"]
        table.loc[raw_only, ["raw", "low", "high", "reference_c"]] = np.nan
        table.loc[raw_only, "quantity"] = "raw_" + table.loc[raw_only, "quantity"].astype(object)
        number, digests = _digests(table[raw_only], names)
        table.loc[raw_only, "series"] = digests[number]
    table["error"] = (table["high"] - table["low"]) / (2 * NORMAL_975)
    return table


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


def _known(texts: "pd.Series[Any]") -> Any:
    return texts.astype(object).where(texts.notna(), None).to_numpy(object)


def series_digest(identity: tuple[str | None, ...]) -> str:
    """Return the name of a series in the store: the SHA-256 of what it is of, in the order of `IDENTITY`.

    A series of a main branch has the name that it has without one.
    """
    identity = identity if identity[-1] else identity[:-1]
    return hashlib.sha256(json.dumps(identity, ensure_ascii=False).encode("utf-8", "backslashreplace")).hexdigest()


def _at_reference_temperature(table: Frame, references: Mapping[str, float]) -> Frame:
    """Put the powers of each series at one temperature; their intervals grow by those of their coefficients."""
    own = table["reference_c"].where(table["value"].notna())
    usual = (own.groupby(table["group"]).transform("median") / REFERENCE_STEP_C).round() * REFERENCE_STEP_C
    wanted = table["series"].map(dict(references)).astype(np.float64).fillna(usual)
    away = (wanted - table["reference_c"]).fillna(0.0)
    shift = (table["per_c"] * away).where(away != 0, 0.0)
    ends = np.sort(np.stack([table["per_c_low"] * away, table["per_c_high"] * away]), axis=0)
    known = np.where(away == 0, 0.0, ends)
    return table.assign(
        value=table["value"] + shift, low=table["low"] + known[0], high=table["high"] + known[1], reference_c=wanted
    )

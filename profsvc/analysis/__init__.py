"""Tidy tables and a device in, result rows out; pure: no files, no SQL, no clock.

``attributes``     what a session page says of a device -> metrics of its launches
``counters``       metrics of a tool -> canonical counters
``peaks``          what the device can do: its own word first, then the catalogue
``counts``         counters of launches as arrays
``tensor``         operations of the tensor pipe by type, and their least time
``memory_traffic`` bytes that global accesses asked of a cache, and that it moved for them
``useful_time``    useful work of each unit
``potential``      overall potential: joint bound, published form, ceiling
``uncounted``      launches whose potential nobody counted enough for
``criteria``       the nine criteria
``lacking``        launches that lack the same counters
``model_inputs``   what the models take of a launch, and where it comes from
``models``         every performance model: its answers as rows
``merged``         counters of launches that several files counted
``same_launches``  which launches of a file are those of another
``kernels``        kernels with means over their launches alone
``characterized``  what was measured of the device
``timeline``       times of launches that are not kept
``advice``         what to do first
``memory_traces``  caches of a device; rows of the hit ratios of memory traces
``thermocouples``  heat map of the die; ``sensor_series``, ``settled``, ``plates`` are its steps
``sensor_turns``   rotation and repeatability test of thermocouples
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from profsvc import specs
from profsvc.analysis import criteria, potential
from profsvc.analysis.attributes import lend
from profsvc.analysis.characterized import attainable_shares
from profsvc.analysis.characterized import of_device as characterization_of
from profsvc.analysis.counters import counters_of, feeds_criteria, metrics_used
from profsvc.analysis.merged import Counted, beside, merged, standing
from profsvc.analysis.models import Machine, application, model_rows
from profsvc.analysis.peaks import peaks
from profsvc.analysis.timeline import Timeline
from profsvc.analysis.uncounted import without_empty_bounds

__all__ = [
    "VERSION",
    "Counted",
    "Rest",
    "analyze",
    "attainable_shares",
    "beside",
    "counters_of",
    "feeds_criteria",
    "lend",
    "merged",
    "metrics_used",
    "of_device",
    "of_models",
    "of_run",
    "standing",
]

VERSION = "7"
"""Raised when any number changes for the same input."""


class Rest(NamedTuple):
    """What a run has beside the launches that have metrics.

    ``timeline``: of all launches with times, measured or not; ``launches``, ``duration_ns``: number and time of those
    without metrics; ``advice``: how to collect what they lack.
    """

    timeline: Timeline | None = None
    launches: int = 0
    duration_ns: float = 0.0
    advice: str = ""


NOTHING_ELSE = Rest()


def _useful(times: pd.DataFrame, origin: Mapping[str, str], measured: set[str], lost: pd.DataFrame) -> pd.DataFrame:
    rates = "peak rates of the catalogue" if origin["sm_clock_hz"] == "catalogue" else "peak rates of the export"
    parts = []
    for model, table, unit in (("useful_work", times, "ns"), ("waste", lost, "fraction")):
        rows = table.rename_axis("launch_id").reset_index()
        rows = rows.melt("launch_id", var_name="quantity", value_name="value").assign(model=model, unit=unit, flags=0)
        forms = np.array(["measured" if name in measured else rates for name in table], dtype=object)
        rows["form"] = pd.Series(np.repeat(forms, len(table)), dtype=object)
        parts.append(rows[rows["value"].notna()])
    return pd.concat(parts, ignore_index=True)


def of_device(
    counters: pd.DataFrame,
    device: str | None,
    capability: str | None,
    domain: Mapping[str, Any],
    measured: pd.DataFrame,
    tool: str,
) -> dict[str, pd.DataFrame]:
    """Return the results of launches on one device: potential, criteria, models, by the index of ``counters``."""
    figures, origin = peaks(counters, specs.figures(device, capability))
    known = characterization_of(measured, device, domain)
    shares = attainable_shares(domain, None)[0] | dict(known.sustained)
    bounds, times = potential.potential(counters, figures, shares, known.sustained)
    lost = potential.waste(counters, times, shares, domain["cause"])
    bounds = without_empty_bounds(bounds, counters, figures, tool, capability)
    return {
        "potential": bounds.rename_axis("launch_id").reset_index(),
        "criteria": criteria.of_launches(counters, figures, known, domain["criterion"]),
        "models": _useful(times, origin, set(known.sustained), lost),
    }


def of_models(
    counters: pd.DataFrame,
    bounds: pd.DataFrame,
    device: str | None,
    capability: str | None,
    domain: Mapping[str, Any],
    measured: pd.DataFrame,
    tool: str,
) -> Iterator[dict[str, pd.DataFrame]]:
    """Yield what performance models say of launches on one device; ``bounds`` is their potential, in the same order."""
    figures, known = specs.figures(device, capability), characterization_of(measured, device, domain)
    machine = Machine(figures, specs.memory_table(str(figures.get("key"))), known.sustained, tool, capability)
    yield from ({"models": rows} for rows in model_rows(counters, machine, bounds))


def analyze(
    launches: pd.DataFrame,
    counters: Iterable[tuple[pd.DataFrame, Mapping[str, np.ndarray], str, Sequence[Counted]]],
    measured: pd.DataFrame,
    domain: Mapping[str, Any],
    rest: Rest = NOTHING_ELSE,
) -> Iterator[dict[str, pd.DataFrame]]:
    """Yield the result tables of one run, those of some launches at a time: counters, criteria, potential, models.

    ``launches`` are those of the run that have metrics, once each, ``rest`` what else it has; ``counters`` are what
    `counters_of` returned for parts of them, with the tool, and the counters of other files that are kept beside them;
    ``measured`` holds characterizations (device, quantity, x, y); ``domain`` is criteria.toml. A row without launch_id
    is the run's own, and comes last.
    """
    bounds: list[pd.DataFrame] = []
    values: list[pd.DataFrame] = []
    device_of = launches.set_index("launch_id")[["device", "compute_capability"]]
    for table, sources, tool, others in counters:
        yield {"counters": pd.concat([_long(*part) for part in ((table, sources), *others)], ignore_index=True)}
        own = device_of.loc[table.index].astype(object).where(lambda d: d.notna(), None)
        for (device, capability), group in own.groupby(["device", "compute_capability"], dropna=False):
            name_of, version = (part if isinstance(part, str) else None for part in (device, capability))
            part = table.loc[group.index]
            rows = of_device(part, name_of, version, domain, measured, tool)
            bounds.append(rows["potential"])
            values.append(rows["criteria"][list(criteria.OF_RUN)])
            yield rows
            yield from of_models(part, rows["potential"], name_of, version, domain, measured, tool)
    if bounds:
        yield of_run(launches, pd.concat(bounds, ignore_index=True), pd.concat(values, ignore_index=True), rest)
    elif rest.launches:
        reason = f"no launch of the run has metrics that criteria are computed from; {rest.advice}"
        yield {
            "potential": pd.DataFrame([{"launch_id": None, "speedup": None, "reason": reason}]),
            "criteria": _stack(
                criteria.of_nothing(domain["criterion"], reason), pd.DataFrame([criteria.host_sync(rest.timeline)])
            ),
        }


def of_run(launches: pd.DataFrame, bounds: pd.DataFrame, values: pd.DataFrame, rest: Rest) -> dict[str, pd.DataFrame]:
    """Return the rows of the whole run, from the potential and the criteria of its launches."""
    timed = _as_they_count(launches, bounds)
    named = timed.assign(kernel=timed["launch_id"].map(launches.set_index("launch_id")["kernel"]))
    whole = potential.of_run(timed, rest.launches, rest.duration_ns)
    of_run = criteria.of_run(values, timed.set_index("launch_id")["duration_ns"])
    return {
        "potential": pd.DataFrame([{"launch_id": None, **whole}]),
        "criteria": _stack(of_run, pd.DataFrame([criteria.host_sync(rest.timeline)])),
        "models": application(named, rest.duration_ns),
    }


def _as_they_count(launches: pd.DataFrame, bounds: pd.DataFrame) -> pd.DataFrame:
    """Return the bounds of launches with the time that each counts for in the run: by a trace, where there is one.

    A launch keeps its speedup; its ideal time is as long, in proportion, as the launch is.
    """
    rows = bounds.sort_values("launch_id").reset_index(drop=True)
    if "time_ns" not in launches:
        return rows
    times = rows["launch_id"].map(launches.set_index("launch_id")["time_ns"]).to_numpy(dtype="float64")
    own = rows["duration_ns"].to_numpy(dtype="float64")
    with np.errstate(all="ignore"):
        ratio = np.where((times > 0) & (own > 0), times / own, 1.0)
    return rows.assign(duration_ns=own * ratio, ideal_ns=rows["ideal_ns"].to_numpy(dtype="float64") * ratio)


def _stack(*tables: pd.DataFrame) -> pd.DataFrame:
    """Put tables under each other as plain objects, null where a column is absent."""
    return pd.concat([t.astype(object).reindex(columns=tables[0].columns) for t in tables], ignore_index=True)


def _long(table: pd.DataFrame, sources: Mapping[str, np.ndarray]) -> pd.DataFrame:
    values = table.to_numpy(dtype="float64").T
    unknown = np.full(len(table), None, dtype=object)
    behind = np.array([sources.get(str(counter), unknown) for counter in table], dtype=object).reshape(values.shape)
    place, row = np.nonzero(~np.isnan(values))
    # Texts as plain objects: one object for each is known by its address, and needs no array of its own.
    return pd.DataFrame(
        {
            "launch_id": table.index.to_numpy()[row],
            "counter": pd.Series(np.array(list(table), dtype=object)[place], dtype=object),
            "value": values[place, row],
            "expression": pd.Series(behind[place, row], dtype=object),
        }
    )

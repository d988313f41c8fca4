"""All results of one run: counters, criteria, potential and models of its launches, and of the run as a whole."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from profsvc import specs
from profsvc.analysis.causes.first_steps import with_first_steps
from profsvc.analysis.causes.mended_range import with_ranges
from profsvc.analysis.causes.remaining_loss import without_remaining
from profsvc.analysis.causes.rows import launch_causes
from profsvc.analysis.counters.merged import CountersBlock
from profsvc.analysis.launches import criteria
from profsvc.analysis.launches.characterization import attainable_shares
from profsvc.analysis.launches.characterization import device_characterization as characterization_of
from profsvc.analysis.launches.timeline import Timeline
from profsvc.analysis.models.evaluation import Machine, amdahl_rows, model_rows
from profsvc.analysis.potential import launch_potential as potential
from profsvc.analysis.potential.peaks import peaks
from profsvc.analysis.potential.unknown_potential import without_uninformative_bounds


class OtherLaunches(NamedTuple):
    """What a run has beside the launches that have metrics.

    ``timeline``: of all launches with times, measured or not; ``launches``, ``duration_ns``: number and time of those
    without metrics; ``advice``: how to collect what they lack; ``graphs``: number of CUDA graphs whose kernels are
    missing.
    """

    timeline: Timeline | None = None
    launches: int = 0
    duration_ns: float = 0.0
    advice: str = ""
    graphs: int = 0


NO_OTHER_LAUNCHES = OtherLaunches()


def _useful_work_rows(times: pd.DataFrame, origin: Mapping[str, str], measured: set[str]) -> pd.DataFrame:
    rates = "peak rates of the catalogue" if origin["sm_clock_hz"] == "catalogue" else "peak rates of the export"
    values = times.to_numpy(dtype="float64").T
    unit, row = np.nonzero(~np.isnan(values))
    forms = np.array(["measured" if name in measured else rates for name in times], dtype=object)
    rows = {
        "launch_id": times.index.to_numpy()[row],
        "quantity": pd.Series(np.array(list(times), dtype=object)[unit], dtype=object),
        "value": values[unit, row],
        "form": pd.Series(forms[unit], dtype=object),
    }
    return pd.DataFrame({**rows, "model": "useful_work", "unit": "ns", "flags": 0})


def launch_results(
    counters: pd.DataFrame,
    device: str | None,
    capability: str | None,
    domain: Mapping[str, Any],
    measured: pd.DataFrame,
    tool: str,
) -> dict[str, pd.DataFrame]:
    """Return the results of launches on one device, table by table, by the index of ``counters``."""
    figures, origin = peaks(counters, specs.figures(device, capability))
    known = characterization_of(measured, device, domain)
    shares = attainable_shares(domain, known.sustained)
    bounds, times = potential.launch_potentials(counters, figures, shares, known.sustained)
    bounds = without_uninformative_bounds(bounds, counters, figures, tool, capability)
    causes, bounds = without_remaining(launch_causes(counters, figures, bounds), bounds, counters)
    bounds = with_ranges(bounds, causes, counters)
    return {
        "potential": bounds.rename_axis("launch_id").reset_index(),
        "criteria": criteria.launch_criteria(counters, figures, known, domain["criterion"]),
        "models": _useful_work_rows(times, origin, set(known.sustained)),
        "causes": causes,
    }


def model_results(
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
    machine = Machine(figures, specs.memory_table(str(figures.get("key"))), known.measured, tool, capability)
    yield from ({"models": rows} for rows in model_rows(counters, machine, bounds))


def analyze_launches(
    launches: pd.DataFrame,
    counters: Iterable[CountersBlock],
    measured: pd.DataFrame,
    domain: Mapping[str, Any],
    rest: OtherLaunches = NO_OTHER_LAUNCHES,
    known: Mapping[str, pd.DataFrame] | None = None,
) -> Iterator[dict[str, pd.DataFrame]]:
    """Yield the result tables of one run, those of some launches at a time: counters, criteria, potential, models.

    ``launches`` are those of the run that have metrics, once each, ``rest`` what else it has; ``counters`` are parts of
    them; ``measured`` holds characterizations (device, quantity, x, y); ``domain`` is criteria.toml. A row without
    launch_id is the run's own, and comes last. ``known`` has the ``potential`` and ``criteria`` of the launches that
    are not in ``counters``, as they were computed before.
    """
    bounds = [known["potential"]] if known and len(known["potential"]) else []
    values = [known["criteria"]] if known and len(known["potential"]) else []
    device_of = launches.set_index("launch_id")[["device", "compute_capability"]]
    kernel_of = launches.set_index("launch_id")["kernel"]
    for table, sources, tool, others in counters:
        yield {"counters": pd.concat([_counter_rows(*part) for part in ((table, sources), *others)], ignore_index=True)}
        own = device_of.loc[table.index].astype(object).where(lambda d: d.notna(), None)
        for (device, capability), group in own.groupby(["device", "compute_capability"], dropna=False):
            name_of, version = (part if isinstance(part, str) else None for part in (device, capability))
            part = table.loc[group.index]
            rows = launch_results(part, name_of, version, domain, measured, tool)
            rows["causes"] = with_first_steps(rows["causes"], kernel_of)
            bounds.append(rows["potential"])
            values.append(rows["criteria"][list(criteria.RUN_INPUT_COLUMNS)])
            yield rows
            yield from model_results(part, rows["potential"], name_of, version, domain, measured, tool)
    if bounds:
        yield run_results(launches, pd.concat(bounds, ignore_index=True), pd.concat(values, ignore_index=True), rest)
    elif rest.launches:
        reason = f"no launch of the run has the metrics that criteria need; {rest.advice}"
        yield {
            "potential": pd.DataFrame([{"launch_id": None, "speedup": None, "reason": reason}]),
            "criteria": _concat_as_objects(
                criteria.null_criteria(domain["criterion"], reason),
                pd.DataFrame([criteria.host_sync(rest.timeline, rest.graphs)]),
            ),
        }


def run_results(
    launches: pd.DataFrame, bounds: pd.DataFrame, values: pd.DataFrame, rest: OtherLaunches
) -> dict[str, pd.DataFrame]:
    """Return the rows of the whole run, from the potential and the criteria of its launches."""
    timed = _with_counted_times(launches, bounds)
    named = timed.assign(kernel=timed["launch_id"].map(launches.set_index("launch_id")["kernel"]))
    whole = potential.run_potential(timed, rest.launches, rest.duration_ns)
    values = values.sort_values("launch_id", kind="stable")  # a sum of floats depends on its order
    of_run = criteria.run_criteria(values, timed.set_index("launch_id")["duration_ns"])
    return {
        "potential": pd.DataFrame([{"launch_id": None, **whole}]),
        "criteria": _concat_as_objects(of_run, pd.DataFrame([criteria.host_sync(rest.timeline, rest.graphs)])),
        "models": amdahl_rows(named, rest.duration_ns),
    }


def _with_counted_times(launches: pd.DataFrame, bounds: pd.DataFrame) -> pd.DataFrame:
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


def _concat_as_objects(*tables: pd.DataFrame) -> pd.DataFrame:
    """Put tables under each other as plain objects, null where a column is absent."""
    return pd.concat([t.astype(object).reindex(columns=tables[0].columns) for t in tables], ignore_index=True)


def _counter_rows(table: pd.DataFrame, sources: Mapping[str, np.ndarray]) -> pd.DataFrame:
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

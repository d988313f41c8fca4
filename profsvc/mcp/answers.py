"""Small answers for assistants: few numbers, with units in their names, and the command or page with everything."""

import math
import shlex
import statistics
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from profsvc.analysis.causes.sentence import evidence_text, first_step
from profsvc.errors import NotFoundError
from profsvc.reports.kernel_names import labels
from profsvc.reports.text.cells import sign_of
from profsvc.views.catalog import titles_and_hints

if TYPE_CHECKING:
    from profsvc.api import LocalStore
    from profsvc.client import Client

Answer = dict[str, Any]
DIGITS = 4
MAX_CAUSES = 3
MAX_LINES = 5
MAX_SPREAD_LAUNCHES = 200
MIN_LAUNCHES = 3
MIN_CHANGE_PERCENT = 1.0
"""Smaller changes are never called one."""
UNREPEATED_CHANGE_PERCENT = 5.0
"""A change that counts although the noise is unknown."""
POTENTIAL_IS = {
    "": "an estimate",
    "\u2265": "at least so much",
    "\u2264": "at most so much",
    "~": "at least or at most so much: the export lacks counters",
}
"""What the sign before a potential means."""


def rounded(value: Any) -> Any:
    """Return an answer with numbers of `DIGITS` significant digits.

    >>> rounded({"a_us": 737.5361, "n": 34, "missing": math.nan})
    {'a_us': 737.5, 'n': 34, 'missing': None}
    """
    if isinstance(value, Mapping):
        return {key: rounded(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(one) for one in value]
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}") if math.isfinite(value) else None
    return value


def link(target: "LocalStore | Client", run_id: int, launch_id: int | None = None, kernel: str = "") -> str:
    """Return the page of a run or launch, or for a store the command that shows it."""
    url = getattr(target, "url", "")
    if url:
        return f"{url}/runs/{run_id}" + (f"/launches/{launch_id}" if launch_id else "")
    return f"profsvc show id:{run_id}" + (f" --kernel {kernel}" if kernel else "")


def runs(target: "LocalStore | Client", project: str, limit: int) -> Answer:
    """Return the newest runs."""
    only = {"project": project} if project else {}
    rows = target.rows("runs", order="-run_id", limit=limit, **only)
    return {
        "runs": [
            {
                **{key: row[key] for key in ("run_id", "project", "name", "device", "commit_id", "launches", "tags")},
                "gpu_time_us": _micro(row["gpu_time_ns"]),
                "at": row["started_at"] or row["created_at"],
                "see": link(target, row["run_id"]),
            }
            for row in rows
        ]
    }


def run(target: "LocalStore | Client", name: str, limit: int) -> Answer:
    """Return where a run can save most time: its causes by time saved, and its longest launches."""
    view = target.run(name, limit=limit)
    about, whole = view["run"], view["potential"] or {}
    named = labels([row["kernel"] for row in view["causes"]])
    return {
        "run_id": about["run_id"],
        "name": about["name"],
        "device": about["device"],
        "launches": view["total_launches"],
        "gpu_time_us": _micro(about["gpu_time_ns"]),
        "potential_speedup": whole.get("speedup"),
        "causes": [
            {
                "kernel": named[row["kernel"]],
                "cause": row["title"],
                "saving_us": _micro(row["saving_ns"]),
                "first_step": row["first_step"],
            }
            for row in view["causes"][:limit]
        ],
        "longest_launches": [
            {
                "launch": row["launch"],
                "kernel": row["kernel"],
                "duration_us": row["duration_us"],
                "limited_by": row["bound"],
                "potential_speedup": row["potential"],
                "no_result_because": row["reason"],
                "what_to_do_first": row["first"],
            }
            for row in view["launches"][:limit]
        ],
        "see": link(target, about["run_id"]),
    }


def what_to_change(target: "LocalStore | Client", name: str, kernel: str) -> Answer:
    """Return what to change in a kernel first: causes with evidence and cost, source lines, and the potential."""
    if not kernel:
        launches = target.run(name, limit=MAX_SPREAD_LAUNCHES)["launches"]
        if not launches:
            raise NotFoundError(f"run {name!r} has no launches; upload a profile to it")
        saving = [(row["duration_us"] or 0.0) * (1 - 1 / (row["potential"] or 1.0)) for row in launches]
        kernel = str(launches[saving.index(max(saving))]["launch"])
    view = target.launch(name, kernel, limit=1)
    if not view["launches"]:
        raise NotFoundError(f"run {name!r} has no launch of {kernel!r}")
    one = view["launches"][0]
    launch, potential = one["launch"], one["potential"] or {}
    causes = [_cause(cause) for cause in one["causes"][:MAX_CAUSES]]
    run_id, index = view["run"]["run_id"], str(launch["launch_index"])
    return {
        "run_id": run_id,
        "launch": launch["launch_index"],
        "kernel": launch["kernel_short"],
        "device": launch["device"],
        "duration_us": _micro(launch["duration_ns"]),
        "potential_speedup": potential.get("speedup"),
        "potential_is": _is(potential),
        "eight_of_ten_mended_kernels_reach": _ends(potential),
        "limited_by": titles_and_hints()[potential["bound"]]["title"] if potential.get("bound") else None,
        "stop_here": bool(causes) and causes[0]["kind"] == "limit",
        "causes": causes,
        "no_causes_because": "" if causes else one.get("reason") or "the export has no counts of stall reasons",
        "lines": _lines(target, run_id, launch["launch_id"]),
        "see": link(target, run_id, launch["launch_id"], index),
    }


def _is(potential: Mapping[str, Any]) -> str | None:
    """Say how the potential is meant; None where there is none."""
    return None if potential.get("speedup") is None else POTENTIAL_IS[sign_of(potential.get("flags") or "").strip()]


def _ends(potential: Mapping[str, Any]) -> Answer | None:
    low, high = potential.get("speedup_low"), potential.get("speedup_high")
    return None if low is None or high is None else {"low": low, "high": high}


def _cause(row: Mapping[str, Any]) -> Answer:
    share = {"saving": row["saving_fraction"], "low": row["low"], "high": row["high"]}
    return {
        "cause": row["title"],
        "kind": row["kind"],
        "saving_us": _micro(row["saving_ns"]),
        **{f"{key}_percent": None if value is None else 100 * value for key, value in share.items()},
        "evidence": evidence_text(row["cause"], row["evidence"]) or _counters(row["evidence"]),
        "first_step": row["first_step"] and first_step(row),
    }


def _counters(evidence: Sequence[Mapping[str, Any]]) -> str:
    """Return the counters of a cause that has no words for its evidence."""
    known = [one for one in evidence if one["value"] is not None]
    return ", ".join(f"{one['counter']} {one['value']:.{DIGITS}g} {one['unit']}" for one in known)


def _lines(target: "LocalStore | Client", run_id: int, launch_id: int) -> list[Answer] | str:
    """Return the source lines where most can be saved, or why there are none."""
    try:
        view = target.source(run_id, f"id:{launch_id}", limit=MAX_LINES)
    except NotFoundError:
        return "no source page; export one with ncu --page source --print-source cuda,sass, and compile with -lineinfo"
    return [
        {
            "file": row["file"],
            "line": row["source_line"],
            "text": (row["source_text"] or "").strip(),
            "samples_percent": None if row["samples_fraction"] is None else 100 * row["samples_fraction"],
            "main_stall": row["main_stall"],
            "main_cause": row["main_cause"],
            "time_caused_percent": None if row["time_fraction"] is None else 100 * row["time_fraction"],
        }
        for row in view["lines"]
    ]


def did_it_help(
    target: "LocalStore | Client", before: str, after: str, mapped: Mapping[str, str], *, record: bool
) -> Answer:
    """Return whether a change helped, kernel by kernel, with the noise, the causes, and what makes it uncertain."""
    view = target.compare(before, after, mapped, record=record)
    kernels = [_kernel(target, view, row) for row in view["kernels"]]
    saved = view.get("predictions")
    return {
        "before": {key: view["before"][key] for key in ("run_id", "name", "device")},
        "after": {key: view["after"][key] for key in ("run_id", "name", "device")},
        "speedup": view["geometric_mean_speedup"],
        "warnings": view["warnings"],
        "kernels": kernels,
        "only_before": [row["kernel"] for row in view["only_before"]],
        "only_after": [row["kernel"] for row in view["only_after"]],
        "ledger": {"predictions_scored": saved["scored"], "not_scored_because": saved["reasons"]}
        if saved
        else "not recorded: only with --write, over stdio",
        "see": _comparison_link(view, mapped),
    }


def _comparison_link(view: Mapping[str, Any], mapped: Mapping[str, str]) -> str:
    pairs = "".join(f" --map {shlex.quote(f'{old}={new}')}" for old, new in mapped.items())
    return f"profsvc compare id:{view['before']['run_id']} id:{view['after']['run_id']}{pairs}"


def _kernel(target: "LocalStore | Client", view: Mapping[str, Any], row: Mapping[str, Any]) -> Answer:
    spreads = [
        spread_percent(_durations(target, view[when]["run_id"], row[f"kernel_{when}_full"]))
        for when in ("before", "after")
    ]
    noise = None if None in spreads else max(one for one in spreads if one is not None)
    helped, because = judge(row["speedup"], noise)
    return {
        "kernel": row["kernel_after"],
        "was": row["kernel_before"],
        "helped": helped,
        "because": because,
        "speedup": row["speedup"],
        "before_us": row["mean_before_us"],
        "after_us": row["mean_after_us"],
        "noise_percent": noise,
        "predicted_speedup": row["predicted"],
        "share_of_predicted_saving_percent": None if row["achieved_share"] is None else 100 * row["achieved_share"],
        "limited_by": [row["limit_before"], row["limit_after"]],
        "causes": [
            {"cause": one["title"], "change_us": _micro(one["change_ns"])} for one in row["causes"][:MAX_CAUSES]
        ],
    }


def _durations(target: "LocalStore | Client", run_id: int, kernel: str) -> list[float]:
    rows = target.rows("launches", run_id=run_id, kernel=kernel, limit=MAX_SPREAD_LAUNCHES)
    return [row["duration_ns"] for row in rows if row["duration_ns"]]


def spread_percent(durations: Sequence[float]) -> float | None:
    """Return half the range of durations over their median; None for too few of them.

    >>> spread_percent([98.0, 100.0, 102.0]), spread_percent([100.0])
    (2.0, None)
    """
    if len(durations) < MIN_LAUNCHES:
        return None
    return 50 * (max(durations) - min(durations)) / statistics.median(durations)


def judge(speedup: float | None, noise_percent: float | None) -> tuple[str, str]:
    """Return ``yes``, ``no``, ``slower`` or ``not proven``, and why.

    >>> judge(1.2, 2.0)[0], judge(1.02, 3.0)[0], judge(0.9, 1.0)[0], judge(1.02, None)[0], judge(None, None)[0]
    ('yes', 'no', 'slower', 'not proven', 'not proven')
    """
    if speedup is None:
        return "not proven", "one of the runs has no duration of this kernel"
    change = 100 * (1 / speedup - 1)
    if noise_percent is None:
        why = f"noise unknown: fewer than {MIN_LAUNCHES} launches in one of the runs"
        if abs(change) < UNREPEATED_CHANGE_PERCENT:
            return "not proven", f"{change:+.1f} % of time; {why}"
        return "slower" if change > 0 else "yes", f"{change:+.1f} % of time, beyond usual noise; {why}"
    limit = max(noise_percent, MIN_CHANGE_PERCENT)
    if abs(change) <= limit:
        return "no", f"{change:+.1f} % of time, within {limit:.1f} %"
    return "slower" if change > 0 else "yes", f"{change:+.1f} % of time, beyond {limit:.1f} %"


def _micro(ns: float | None) -> float | None:
    return None if ns is None else ns / 1e3

"""Answers of models as rows, and why a model has none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from profsvc import specs
from profsvc.analysis.counters.arrays import Counts
from profsvc.analysis.counters.missing import collection_hint, group_identical_rows, list_counters
from profsvc.analysis.models.answer import Answer
from profsvc.analysis.models.inputs import Inputs, MissingCounters, input_names
from profsvc.specs.models.inputs import ASSUMED, DEVICE, MEASURED
from profsvc.tables.on_demand import pd

COLUMNS = ("launch_id", "model", "quantity", "value", "unit", "form", "flags", "label", "reason")
INPUTS = "inputs"
INPUT_MODELS = {"benefit": ("benefit", "machine")}


def _part(ids: NDArray[Any], model: str, one: Answer) -> dict[str, Any]:
    value = np.broadcast_to(np.asarray(one.value, dtype=np.float64), ids.shape)
    known = np.isfinite(value)
    labels = _code_names(one.names)[value[known].astype(np.intp)] if one.names else None
    return {
        "launch_id": ids[known],
        "value": value[known],
        "flags": np.broadcast_to(np.asarray(one.flags, dtype=np.int64), ids.shape)[known],
        "label": labels,
        "reason": None,
        "fixed": (model, one.quantity, one.unit, one.form),
    }


def _code_names(names: Mapping[int, str]) -> NDArray[np.object_]:
    """Return the word of each code at its place.

    >>> _code_names({1: "memory"}).tolist()
    [None, 'memory']
    """
    return np.array([names.get(code) for code in range(max(names) + 1)], dtype=object)


def missing_part(ids: NDArray[Any], model: str, one: Answer, reasons: Any) -> dict[str, Any]:
    """Return the part of `stacked` with the launches that a model has no answer for, each with its reason."""
    return {
        "launch_id": ids,
        "value": np.full(len(ids), np.nan),
        "flags": np.zeros(len(ids), dtype=np.int64),
        "label": None,
        "reason": reasons,
        "fixed": (model, one.quantity, one.unit, one.form),
    }


def stacked(parts: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Put parts under each other; what is the same in all rows of a part is repeated."""
    if not parts:
        return pd.DataFrame(columns=list(COLUMNS))
    sizes = [len(part["value"]) for part in parts]
    columns: dict[str, Any] = {
        name: np.concatenate([part[name] for part in parts]) for name in ("launch_id", "value", "flags")
    }
    for place, name in enumerate(("model", "quantity", "unit", "form")):
        texts = np.array([part["fixed"][place] for part in parts], dtype=object)
        columns[name] = pd.Series(np.repeat(texts, sizes), dtype=object)
    for name in ("label", "reason"):
        texts = np.full(sum(sizes), None, dtype=object)
        for part, end, size in zip(parts, np.cumsum(sizes), sizes, strict=True):
            if part[name] is not None:
                texts[end - size : end] = part[name]
        columns[name] = pd.Series(texts, dtype=object)
    return pd.DataFrame(columns, columns=list(COLUMNS))


def _input_parts(ids: NDArray[Any], inputs: Inputs) -> Iterator[dict[str, Any]]:
    """Yield the inputs that models take, with the expression behind each in place of a form.

    What a single counter gives is a row of the counters. What the device table or the source gives is the same in
    launch after launch: a row an origin, whose label has them all.
    """
    fixed: dict[str, list[str]] = {origin: [] for origin in (DEVICE, ASSUMED)}
    for name, one in specs.model_inputs().items():
        if not one.models:
            continue
        used, value = inputs.used[name], inputs.values[name]
        for place, (alternative, origin) in enumerate(zip(one.expression.alternatives, one.origins, strict=True)):
            if origin == MEASURED or not (here := used == place).any():
                continue
            if origin in fixed and np.ndim(value) == 0:
                fixed[origin].append(f"{name} {float(value):g}")
            else:
                form = f"{origin}: {alternative.text}"
                yield _part(ids, INPUTS, Answer(name, np.where(here, value, np.nan), one.unit, form=form))
    for origin, names in fixed.items():
        count = np.full(ids.shape, float(len(names)))
        yield _part(ids, INPUTS, Answer(origin, count, names={len(names): ", ".join(names)}, form=""))


def answer_rows(ids: NDArray[Any], inputs: Inputs, found: Mapping[str, Sequence[Answer]]) -> pd.DataFrame:
    """Return one row per launch and quantity, of those that are known; inputs are rows of the model ``inputs``."""
    parts = [_part(ids, model, one) for model, answers in found.items() for one in answers]
    return stacked([*parts, *_input_parts(ids, inputs)])


def missing_answer_rows(
    counters: pd.DataFrame,
    inputs: Inputs,
    found: Mapping[str, Sequence[Answer]],
    tool: str,
    capability: str | None,
    refused: Mapping[str, NDArray[Any]],
) -> pd.DataFrame:
    """Return one row per launch and model without an answer, whose value is null, with the reason.

    ``refused`` holds for some models the reason of each launch for which the model does not hold at all, or None.
    """
    parts = []
    counts = Counts(counters)
    known: dict[bytes, MissingCounters] = {}
    for model, answers in found.items():
        first = answers[0]
        none = ~np.isfinite(np.broadcast_to(np.asarray(first.value, dtype=np.float64), inputs.launches))
        if not none.any():
            continue
        why = np.full(inputs.launches, None, dtype=object)
        for lacking in _groups_lacking_inputs(model, inputs, none):
            missing = known.setdefault(lacking.tobytes(), MissingCounters(inputs, lacking, counts))
            why[lacking] = _missing_reason(model, missing, tool, capability)
        said = refused.get(model)
        why = why if said is None else np.where(pd.isna(said), why, said)
        parts.append(missing_part(counters.index.to_numpy()[none], model, first, why[none]))
    return stacked(parts)


def _groups_lacking_inputs(model: str, inputs: Inputs, none: NDArray[np.bool_]) -> Iterator[NDArray[np.bool_]]:
    """Yield the launches ``none`` in groups that lack the same inputs."""
    names = [name for part in INPUT_MODELS.get(model, (model,)) for name in input_names(part)]
    lacks = np.column_stack(
        [np.broadcast_to(np.isnan(inputs.values[name]), none.shape) for name in names] or [np.zeros_like(none)]
    )
    kinds, place = group_identical_rows(lacks[none])
    for number in range(len(kinds)):
        group = np.zeros_like(none)
        group[none] = place == number
        yield group


def _missing_reason(model: str, missing: MissingCounters, tool: str, capability: str | None) -> str:
    """Say which counters a model lacks for launches, and how to collect them."""
    names = [name for part in INPUT_MODELS.get(model, (model,)) for name in input_names(part)]
    without = [name for name in names if missing.is_unknown(name)]
    wanted = list(dict.fromkeys(c for name in without for c in missing.of_input(name)))
    if wanted:
        return f"the export has no {list_counters(wanted)}{collection_hint(tool, tuple(wanted), capability)}"
    if without:
        return f"neither the export nor the device table contains {', '.join(without)}"
    return "undefined: division by zero in the model, or contradictory inputs"

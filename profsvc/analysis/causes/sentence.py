"""What a cause says in one sentence: its title, the evidence, what it costs and the first step."""

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from profsvc.analysis.causes import IDEAL_TIME_ERROR
from profsvc.specs.advice.causes import ALTERNATIVE, COUNTER, causes
from profsvc.specs.metrics.vocabulary import counters as vocabulary

# Unit: from which value on a prefix is used, what it stands for, and its name.
Scales = tuple[tuple[float, float, str], ...]
SCALES: Mapping[str, Scales] = {
    "ns": ((1e9, 1e9, "s"), (1e6, 1e6, "ms"), (1e3, 1e3, "us"), (0.0, 1.0, "ns")),
    "byte": ((1e9, 1e9, "GB"), (1e6, 1e6, "MB"), (1e3, 1e3, "kB"), (0.0, 1.0, "B")),
}
OF_COUNTS: Scales = ((1e9, 1e9, "G"), (1e6, 1e6, "M"), (1e4, 1e3, "k"), (0.0, 1.0, ""))
NOTHING_TO_GAIN = "Nothing to gain"
# Of causes of which none stands out, those are named that cost at least this part of the time, if there are two.
LEAST_NAMED, MIN_NAMED, MAX_NAMED = 0.05, 2, 3
# Those that may not be avoidable are not among them.
UNPROVEN = ("possible", "by list")
PLURAL = re.compile(r"^( \w+)s\b")
"""The word behind a number, as it is after all but 1."""
PARTS_OF_A_LIMIT = 2
"""Number of units that a limit shows: the busiest."""


def amount(value: float, unit: str) -> str:
    """Return a value with three significant digits and a suitable unit; counts have a prefix alone.

    >>> amount(47e6, "inst"), amount(0.314, "fraction"), amount(12_345.0, "ns"), amount(132.0, "SM")
    ('47 M', '31.4 %', '12.3 us', '132')
    """
    if unit == "fraction":
        return f"{100 * value:.{2 if value < 0.0995 else 3}g} %"
    scales = SCALES.get(unit.split("/")[0], OF_COUNTS)
    size, name = next(scale[1:] for scale in scales if abs(value) >= scale[0])
    return f"{value / size:.{4 if size == 1 else 3}g} {name}".rstrip()


def _shown(counter: Mapping[str, Any]) -> str:
    unit = "fraction" if str(counter["counter"]).endswith("_fraction") else str(counter["unit"])
    return amount(counter["value"], unit)


def counter_text(name: str, value: float) -> str:
    """Return the value of a counter with a suitable unit.

    >>> counter_text("dram_read_bytes", 67.1e6)
    '67.1 MB'
    """
    return _shown({"counter": name, "value": value, "unit": vocabulary()[name].unit})


def evidence_of(cause: str, counters: Mapping[str, float]) -> list[dict[str, Any]]:
    """Return the evidence of a cause: each counter that is known, with value and unit."""
    return [
        {"counter": name, "value": float(counters[name]), "unit": vocabulary()[name].unit}
        for name in causes()[cause].evidence
        if name in counters and math.isfinite(counters[name])
    ]


def evidence_text(cause: str, evidence: Sequence[Mapping[str, Any]]) -> str:
    """Return the evidence of a cause as text; a part with an unknown counter, or with none but 0, is left out.

    >>> evidence_text("grid_too_small", [{"counter": "grid_blocks", "value": 33.0, "unit": "block"},
    ...                                  {"counter": "sm_count", "value": 132.0, "unit": "SM"}])
    '33 blocks on 132 SMs'
    >>> evidence_text("grid_too_small", [{"counter": "grid_blocks", "value": 1.0, "unit": "block"},
    ...                                  {"counter": "sm_count", "value": 132.0, "unit": "SM"}])
    '1 block on 132 SMs'
    """
    return "".join(text for text, _ in evidence_pieces(cause, evidence))


def evidence_pieces(cause: str, evidence: Sequence[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """Return the pieces of `evidence_text`: each value with its counter, other text with an empty name.

    A cause of an older version that has no words any more has no pieces.
    """
    if cause not in causes():
        return []
    known = {one["counter"]: one for one in evidence if one["value"] is not None and math.isfinite(one["value"])}
    parts = {part: COUNTER.findall(part) for part in causes()[cause].shown}
    most = {
        part: max(known[name]["value"] for name in names) for part, names in parts.items() if set(names) <= set(known)
    }
    told = [part for part, value in most.items() if value > 0] or list(most)
    if causes()[cause].kind == "limit":
        units = [part for part in told if parts[part][0].endswith("_fraction")]
        others = [part for part in told if part not in units]
        told = sorted(units, key=lambda part: -most[part])[:PARTS_OF_A_LIMIT] + others
    pieces: list[tuple[str, str]] = []
    for part in told:
        # Splitting by a group yields text and names in turn.
        words = COUNTER.split(f", {part}" if pieces else part)
        for place, word in enumerate(words):
            follows_one = place % 2 == 0 and pieces and pieces[-1][0] == "1"
            text = PLURAL.sub(r"\1", word) if follows_one else word
            pieces.append((_shown(known[word]), word) if place % 2 else (text, ""))
    return [piece for piece in pieces if piece[0]]


def unit_at_limit(title: str) -> str:
    """Return the unit of the title of a limit.

    >>> unit_at_limit("At the limit of memory bandwidth")
    'memory bandwidth'
    """
    return title.removeprefix("At the limit of ")


def brief(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the causes of a launch, first of all its answer, in a few words that agree with its sentence.

    >>> brief([{"kind": "flaw", "title": "Register spills", "saving_fraction": 0.31}])
    'Register spills: up to 31 % less time'
    >>> limit = {"kind": "limit", "title": "At the limit of memory bandwidth", "saving_fraction": 0.0, "high": 0.1}
    >>> brief([limit])
    'at its limit: memory bandwidth'
    >>> flaws = [{"kind": "flaw", "cause": name, "title": name.title(), "saving_fraction": 0.15}
    ...          for name in ("barriers", "tail_wave")]
    >>> brief([{**limit, "high": 0.4}, *flaws])
    'several causes: up to 40 % less time'
    """
    row = rows[0]
    if row["kind"] == "limit":
        if largest_together(rows):
            return f"several causes: up to {100 * row['high']:.0f} % less time"
        return f"at its limit: {unit_at_limit(row['title'])}"
    share = f"{100 * row['saving_fraction']:.0f} %"
    return f"{row['title']}: {share if row['kind'] == 'unexplained' else f'up to {share} less time'}"


def first_step(row: Mapping[str, Any]) -> str:
    """Return the first step of a row of causes; a launch that lost time has something to gain.

    >>> first_step({"kind": "limit", "high": 0.1, "first_step": "Nothing to gain from tuning: another algorithm."})
    'Nothing to gain from tuning: another algorithm.'
    >>> first_step({"kind": "limit", "high": 0.6, "first_step": "Nothing to gain from tuning: another algorithm."})
    'Another algorithm.'
    """
    step = str(row["first_step"])
    if row["kind"] == "limit" and step.startswith(NOTHING_TO_GAIN) and _open_loss(row):
        step = step.partition(": ")[2]
    return f"{step[:1].upper()}{step[1:]}"


def sentence(row: Mapping[str, Any], duration_ns: float | None = None) -> str:
    """Return a row of `profsvc.analysis.causes.rows.launch_causes` as one sentence.

    >>> sentence({"cause": "grid_too_small", "title": "Grid too small", "kind": "flaw", "saving_ns": 12.2e6,
    ...           "saving_fraction": 0.9, "evidence": [], "first_step": "Launch more blocks."}, 12.35e6)
    'Grid too small cost 12.2 ms of 12.3 ms; launch more blocks.'
    >>> sentence({"cause": "barriers", "title": "Barriers", "kind": "alternative", "saving_ns": 0.0,
    ...           "saving_fraction": 0.0, "evidence": [], "first_step": "If all have the same work: go."})
    'Or barriers. If all have the same work: go.'
    """
    told = evidence_text(row["cause"], row["evidence"])
    title = f"At its limit: {unit_at_limit(row['title'])}" if row["kind"] == "limit" else str(row["title"])
    subject = f"{title} ({told})" if told else title
    step = first_step(row)
    if row["kind"] == ALTERNATIVE:
        return f"Or {_lower(subject)}. {step}"
    if row["kind"] == "limit":
        return f"{subject}. {step}{_open_loss(row)}"
    cost = f"{amount(row['saving_fraction'], 'fraction')} of the time"
    if row["saving_ns"] is not None and math.isfinite(row["saving_ns"]):
        whole = f" of {amount(duration_ns, 'ns')}" if duration_ns else ""
        cost = amount(row["saving_ns"], "ns") + whole
    return f"{subject} cost {cost}; {step[:1].lower()}{step[1:]}"


def answer(rows: Sequence[Mapping[str, Any]], duration_ns: float | None = None) -> str:
    """Return the causes of a launch, first of all its answer, as one sentence.

    Where none stands out of causes that cost much together, the largest are named, if they are half of it.

    >>> limit = {"cause": "arithmetic_limit", "title": "At the limit of arithmetic", "kind": "limit", "high": 0.6,
    ...          "saving_ns": 0.0, "saving_fraction": 0.0, "evidence": [], "first_step": "Nothing to gain: another."}
    >>> flaw = {"cause": "barriers", "title": "Barriers", "kind": "flaw", "saving_fraction": 0.2, "first_step": "Go."}
    >>> answer([limit, flaw, {**flaw, "title": "Tail effect", "saving_fraction": 0.125}], 10e3)
    'No single cause: barriers (20 %) and tail effect (12.5 %) are the largest of what costs 6 us of 10 us; first go.'
    """
    first, flaws = rows[0], largest_together(rows)
    if not flaws:
        return sentence(first, duration_ns)
    named = [f"{_lower(one['title'])} ({amount(one['saving_fraction'], 'fraction')})" for one in flaws]
    cost = f"{amount(first['high'], 'fraction')} of the time"
    if duration_ns:
        cost = f"{amount(first['high'] * duration_ns, 'ns')} of {amount(duration_ns, 'ns')}"
    listed = f"{', '.join(named[:-1])} and {named[-1]}"
    return f"No single cause: {listed} are the largest of what costs {cost}; first {_lower(first_step(flaws[0]))}"


def largest_together(rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the largest causes, if none stands out and together they are at least half of what is lost."""
    first = rows[0]
    flaws = [one for one in rows[1:] if one["kind"] == "flaw" and (one["saving_fraction"] or 0.0) >= LEAST_NAMED]
    flaws = [one for one in flaws if one["cause"] in causes() and causes()[one["cause"]].avoidable not in UNPROVEN]
    flaws = sorted(flaws, key=lambda one: -one["saving_fraction"])[:MAX_NAMED]
    if first["kind"] != "limit" or not _open_loss(first) or len(flaws) < MIN_NAMED:
        return []
    return flaws if sum(one["saving_fraction"] for one in flaws) >= first["high"] / 2 else []


def _lower(text: str) -> str:
    """Return a title or a step inside a sentence.

    >>> _lower("Tail effect"), _lower("TMA is not used")
    ('tail effect', 'TMA is not used')
    """
    return text if text[1:2].isupper() else f"{text[:1].lower()}{text[1:]}"


def _open_loss(row: Mapping[str, Any]) -> str:
    """Return what causes that do not stand out may cost together; nothing within the uncertainty of the ideal time."""
    if row["high"] is None or not row["high"] > 1 - 1 / IDEAL_TIME_ERROR:
        return ""
    return f" Up to {amount(row['high'], 'fraction')} of the time is lost to causes of which none stands out."

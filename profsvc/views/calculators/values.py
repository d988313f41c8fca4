"""Checks the inputs of a calculator, wherever they come from: options, a form, a query string or JSON."""

import tomllib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from profsvc.errors import NotFoundError, UsageError
from profsvc.views.calculators.declaration import INF, Calculator, Input, Values
from profsvc.views.calculators.tables import MAX_TEXT_BYTES, read_table
from profsvc.views.calculators.units import factor_to, shown, split_number

# Arrays hold no larger whole number.
MAX_WHOLE = 2.0**63
MAX_NUMBERS = 500


class Checked(NamedTuple):
    """Inputs that are right, and what is wrong with the others, by name."""

    values: dict[str, Any]
    problems: dict[str, str]


def check(calculator: Calculator, given: Mapping[str, Any]) -> Checked:
    """Check every input; raise `UsageError` for a name that the calculator has not."""
    known = {one.name for one in calculator.inputs}
    for name in given:
        if name not in known:
            raise UsageError(str(NotFoundError.near(f"input of {calculator.name!r}", name, known)))
    found = Checked({}, {})
    for one in calculator.inputs:
        try:
            found.values[one.name] = value_of(one, given.get(one.name))
        except UsageError as error:
            found.problems[one.name] = str(error)
    return found


def checked_values(calculator: Calculator, given: Mapping[str, Any]) -> Values:
    """Return the checked inputs; raise `UsageError` with all that is wrong."""
    values, problems = check(calculator, given)
    if problems:
        raise UsageError("; ".join(f"{name}: {problem}" for name, problem in problems.items()))
    return values


def value_of(one: Input, given: Any) -> Any:
    """Return the value of an input as its kind; None if it is optional and missing."""
    if given is None or (isinstance(given, str) and not given.strip()):
        if one.default is None:
            raise UsageError(f"it is missing; needed: {one.help}, {allowed(one)}")
        if not one.default:
            return None
        given = one.default
    if one.kind == "table":
        return read_table(one, given, value_of)
    if one.kind == "document":
        return _document(given)
    if isinstance(given, list | tuple) and one.kind == "numbers":
        given = ",".join(map(str, given))
    if isinstance(given, bool) or not isinstance(given, str | int | float):
        raise UsageError(f"{shown(given)} is not {allowed(one)}")
    return _scalar(one, str(given))


def section_of(document: Mapping[str, Any], name: str, inputs: Sequence[Input]) -> dict[str, Any]:
    """Return the checked entries of a section of a document, such as ``[kernel]``; an optional one may be missing."""
    section = document.get(name, {})
    if not isinstance(section, dict):
        raise UsageError(f"{name} must be a section: write [{name}] above its entries")
    known = {one.name: one for one in inputs}
    for key in section:
        if key not in known:
            raise UsageError(f"[{name}]: {NotFoundError.near('entry', key, known)}")
    found = {}
    for one in inputs:
        try:
            found[one.name] = value_of(one, section.get(one.name))
        except UsageError as error:
            raise UsageError(f"[{name}] {one.name}: {error}") from None
    return found


def _scalar(one: Input, text: str) -> Any:
    if len(text) > MAX_TEXT_BYTES:
        raise UsageError(f"it has {len(text)} characters; allowed: {MAX_TEXT_BYTES}")
    if one.kind == "numbers":
        return _numbers(one, text)
    if one.kind in ("number", "integer"):
        number, unit = split_number(text)
        return _in_range(one, number * factor_to(unit, one.unit))
    text = text.strip()
    if one.kind == "choice" and text not in one.choices:
        raise UsageError(f"{shown(text)} is not {allowed(one)}")
    return text


def _numbers(one: Input, text: str) -> list[float]:
    """Return the numbers of a list; a unit at its end holds for all."""
    parts = [_span(part) for part in text.split(",")]
    if sum(len(part) for part, _ in parts) > MAX_NUMBERS:
        raise UsageError(f"there are more than {MAX_NUMBERS} numbers")
    units = [unit for _, unit in parts]
    if units[-1] and not any(units[:-1]):
        units = [units[-1]] * len(units)
    if any(units) and not all(units):
        raise UsageError(f"{shown(text)} has numbers with and without a unit; give it to all, or once at the end")
    return [
        _in_range(one, number * factor_to(unit, one.unit))
        for (part, _), unit in zip(parts, units, strict=True)
        for number in part
    ]


def _span(part: str) -> tuple[list[float], str]:
    """Return the numbers of ``8``, ``1:4`` (all whole steps) or ``0:1:0.25``, and their unit."""
    ends = part.split(":")
    if len(ends) > 3:
        raise UsageError(f"{shown(part)} is neither a number nor FROM:TO or FROM:TO:STEP")
    *first, (last, unit) = (split_number(end) for end in ends)
    numbers = [number for number, _ in first] + [last]
    if any(own for _, own in first):
        raise UsageError(f"{shown(part)} has a unit inside; give it at the end")
    if len(numbers) == 1:
        return numbers, unit
    start, stop, step = (*numbers, 1.0)[:3]
    count = (stop - start) / step if step > 0 else -1.0
    if not 0 <= count < MAX_NUMBERS:
        raise UsageError(f"{shown(part)} must go up, in at most {MAX_NUMBERS} steps above 0")
    return [start + step * n for n in range(int(count + 1e-9) + 1)], unit


def _in_range(one: Input, number: float) -> Any:
    whole = one.kind == "integer"
    if whole and not (abs(number) < MAX_WHOLE and number == int(number)):
        raise UsageError(f"{number:g} is not {allowed(one)}{'' if abs(number) < MAX_WHOLE else ', below 2^63'}")
    if not (one.minimum <= number <= one.maximum and number > one.above):
        raise UsageError(f"{number:g} is not {allowed(one)}")
    return int(number) if whole else number


def allowed(one: Input) -> str:
    """Return what an input may be, in words.

    >>> allowed(Input("share", "Share", maximum=1, minimum=0)), allowed(Input("clock", "Clock", unit="MHz", above=0))
    ('a number from 0 to 1', 'a number above 0, in MHz')
    """
    if one.kind == "choice":
        return f"one of {', '.join(one.choices)}"
    if one.kind not in ("number", "integer", "numbers"):
        return {"table": "a table as CSV", "document": "a document as TOML", "text": "a text"}[one.kind]
    words = {"number": "a number", "integer": "a whole number", "numbers": "numbers separated by commas"}[one.kind]
    limits = [f"above {one.above:g}"] if one.above > -INF else []
    if one.minimum > -INF and one.maximum < INF:
        limits.append(f"from {one.minimum:g} to {one.maximum:g}")
    else:
        limits += [f"of at least {one.minimum:g}"] if one.minimum > -INF else []
        limits += [f"of at most {one.maximum:g}"] if one.maximum < INF else []
    unit = f", in {one.unit}" if one.unit else ""
    return f"{words} {' and '.join(limits)}".strip() + unit


def _document(given: Any) -> dict[str, Any]:
    if isinstance(given, dict):
        return given
    if not isinstance(given, str) or len(given) > MAX_TEXT_BYTES:
        raise UsageError(f"it is not a document as TOML of at most {MAX_TEXT_BYTES} characters")
    try:
        return tomllib.loads(given.replace("\r\n", "\n"))
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise UsageError(f"it is not TOML: {error}") from None

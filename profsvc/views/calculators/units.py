"""Numbers with units: the prefixes of SI on the unit that an input is declared in."""

import math
import re

from profsvc.errors import UsageError

PREFIXES = {"n": 1e-9, "u": 1e-6, "µ": 1e-6, "m": 1e-3, "": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12,
            "P": 1e15}  # fmt: skip
BASES = ("FLOP/s", "flop/s", "op/s", "B/s", "bit/s", "Hz", "B", "J", "W", "V", "A", "s")
NUMBER = re.compile(r"\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*((?:[^\d\s,.+-].*?)?)\s*", re.ASCII | re.DOTALL)
MAX_SHOWN = 60


def shown(value: object) -> str:
    """Return a value as a message shows it.

    >>> shown("a" * 70)[-8:]
    "aaaaaa…'"
    """
    text = str(value)
    return repr(text if len(text) <= MAX_SHOWN else text[:MAX_SHOWN] + "…")


def split_number(text: str) -> tuple[float, str]:
    """Return a number and its unit; raise `UsageError` for anything else.

    >>> split_number("1.35 GHz"), split_number("-2e3")
    ((1.35, 'GHz'), (-2000.0, ''))
    """
    found = NUMBER.fullmatch(text)
    if found is None or not math.isfinite(value := float(found[1])):
        hint = f"; write {text.replace(',', '.')}" if re.fullmatch(r"\s*\d+,\d+\s*", text, re.ASCII) else ""
        raise UsageError(f"{shown(text)} is not a finite number{hint}")
    return value, found[2]


def factor_to(unit: str, declared: str) -> float:
    """Return the factor from ``unit`` to the declared one.

    >>> factor_to("GHz", "MHz"), factor_to("", "W"), round(factor_to("TB/s", "GB/s"))
    (1000.0, 1.0, 1000)
    """
    if unit in ("", declared):
        return 1.0
    for base in BASES:
        own, wanted = unit.removesuffix(base), declared.removesuffix(base)
        if unit.endswith(base) and declared.endswith(base) and own in PREFIXES and wanted in PREFIXES:
            return PREFIXES[own] / PREFIXES[wanted]
    raise UsageError(
        f"the unit {shown(unit)} is not allowed; " + (f"give it in {declared}" if declared else "it has none")
    )

"""What the readers of Nsight Systems share: names of copies, times and the rows of launches."""

from decimal import Decimal
from functools import cache

from profsvc.specs import units

TOOL = "Nsight Systems"
_PLACES = {
    "host": "H",
    "device": "D",
    "array": "A",
    "peer": "P",
    "h": "H",
    "d": "D",
    "a": "A",
    "p": "P",
}


def copy_kind(operation: str) -> str:
    """Return the kind of a copy from the tool's words for it; words that we do not know stay as they are.

    >>> [copy_kind(words) for words in ("[CUDA memcpy Host-to-Device]", "[CUDA memset]", "[CUDA memcpy DtoH]")]
    ['HtoD', 'memset', 'DtoH']
    >>> copy_kind("[CUDA memcpy Unified Host-to-Device]"), copy_kind("[CUDA Unified Memory memcpy HtoD]")
    ('unified HtoD', 'unified HtoD')
    """
    words = operation.strip().strip("[]").lower()
    if "memset" in words.split():
        return "memset"
    last = words.split()[-1] if words else ""
    source, _, target = last.partition("-to-") if "-to-" in last else last.partition("to")
    if source in _PLACES and target in _PLACES:
        return f"{'unified ' if 'unified' in words else ''}{_PLACES[source]}to{_PLACES[target]}"
    return operation.strip().strip("[]") or "unknown"


@cache
def factor_of(unit: str | None, si_unit: str) -> Decimal | None:
    """Return what a number in ``unit`` is multiplied with to be in ``si_unit``; None if that is another dimension.

    >>> factor_of("ms", "s"), factor_of("MB", "byte"), factor_of("MB", "s")
    (Decimal('0.001'), Decimal('1000000'), None)
    """
    known = units("nsys").get(unit or "?")
    return Decimal(f"{known.factor:.15g}") if known and known.si_unit == si_unit else None

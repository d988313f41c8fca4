"""The flags that every formula raises, as a bit mask, and the check of the argument ``form``."""

import enum
from collections.abc import Sequence
from typing import SupportsInt

AS_PUBLISHED = "as_published"
CONSISTENT = "consistent"
FORMS = (AS_PUBLISHED, CONSISTENT)


class Flag(enum.IntFlag):
    """One bit each; the meaning is the same in every formula, and stored masks rely on the numbers."""

    ZERO_DENOM = 1 << 0  # a denominator was 0; the value is NaN or the convention the formula states
    NOT_APPLICABLE = 1 << 1  # the resource was not used; the value is neutral (criterion 1, share 0, speedup 1)
    RAW_OUT_OF_RANGE = 1 << 2  # the raw value left its declared interval
    CLIPPED = 1 << 3  # `value` differs from `raw`
    EXTRAPOLATED = 1 << 4  # a characterization or a log was evaluated outside its support
    INPUT_SUSPECT = 1 << 5  # the inputs contradict each other or their unit (negative count, percent, active > elapsed)
    UPPER_BOUND = 1 << 6  # a time share was unknown and 1 was assumed: the speedup is only a ceiling
    TAIL_EFFECT = 1 << 7  # a quantisation the formula ignores: fractional wave, partly filled warp
    CASE_AMBIGUOUS = 1 << 8  # the published and the consistent rule choose different cases
    OVERLAP = 1 << 9  # time intervals overlapped (several streams)
    LOWER_BOUND = 1 << 10  # what of a unit's work is useful was not counted and all was taken: the speedup is a floor


def flag_names(mask: SupportsInt) -> list[str]:
    """Names of the flags raised in one mask, lowest bit first.

    Source: the conventions of `profsvc.formulas`; no paper.

    Args:
        mask: One mask: an int, a NumPy integer or an array of no dimension.

    Returns: the names.

    Range: bits without a name are ignored.

    Errors: TypeError if ``mask`` is not one number.

    >>> flag_names(12)
    ['RAW_OUT_OF_RANGE', 'CLIPPED']
    """
    bits = int(mask)
    return [str(flag.name) for flag in Flag if bits & flag]


def check_form(form: str, allowed: Sequence[str] = FORMS) -> str:
    """Return the form if the formula has it.

    Source: the conventions of `profsvc.formulas`; no paper.

    Args:
        form: The form asked for.
        allowed: The forms the formula has.

    Returns: ``form``.

    Range: one of ``allowed``.

    Errors: ValueError, with the list of those allowed.

    >>> check_form("printed")
    Traceback (most recent call last):
    ValueError: no form 'printed'; allowed: 'as_published', 'consistent'
    """
    if form not in allowed:
        raise ValueError(f"no form {form!r}; allowed: {', '.join(map(repr, allowed))}")
    return form

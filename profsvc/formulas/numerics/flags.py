"""The flags that every formula raises, as a bit mask, and the check of the argument ``form``."""

import enum
from collections.abc import Sequence
from typing import SupportsInt

import numpy as np
from numpy.typing import ArrayLike

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


def flag_mask(names: str) -> int:
    """Return the mask of flags given by name, with a space between; the inverse of `flag_names`.

    Source: the conventions of `profsvc.formulas`; no paper.

    Args:
        names: Names of flags with spaces between, in any order.

    Returns: the mask.

    Range: 0 for an empty text.

    Errors: KeyError for a name that is no flag.

    >>> flag_mask("RAW_OUT_OF_RANGE CLIPPED")
    12
    """
    return int(sum(Flag[name] for name in set(names.split())))


def flag_names_each(masks: ArrayLike) -> list[list[str]]:
    """Names of the flags of every mask in an array; each distinct mask is named once.

    Source: the conventions of `profsvc.formulas`; no paper.

    Args:
        masks: Masks of any shape, taken in C order.

    Returns: a list of names for each mask.

    Range: as `flag_names`.

    Errors: TypeError if the masks are not integers.

    >>> flag_names_each([0, 3, 0])
    [[], ['ZERO_DENOM', 'NOT_APPLICABLE'], []]
    """
    array = np.asarray(masks)
    if array.dtype.kind not in "iu" and array.size:
        raise TypeError(f"masks have dtype {array.dtype}; allowed: integers")
    distinct, inverse = np.unique(array.ravel(), return_inverse=True)
    names = [flag_names(mask) for mask in distinct]
    return [list(names[k]) for k in inverse]


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

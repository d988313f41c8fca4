import numpy as np
import pytest

from profsvc.formulas.numerics.flags import Flag, check_form, flag_names


def test_bits_are_those_that_stored_masks_hold() -> None:
    names = [
        "ZERO_DENOM",
        "NOT_APPLICABLE",
        "RAW_OUT_OF_RANGE",
        "CLIPPED",
        "EXTRAPOLATED",
        "INPUT_SUSPECT",
        "UPPER_BOUND",
        "TAIL_EFFECT",
        "CASE_AMBIGUOUS",
        "OVERLAP",
        "LOWER_BOUND",
    ]
    assert {flag.name: int(flag) for flag in Flag} == {name: 2**bit for bit, name in enumerate(names)}


def test_names_of_one_mask() -> None:
    assert flag_names(0) == []
    assert flag_names(np.array(Flag.OVERLAP | Flag.CLIPPED, dtype=np.uint32)) == ["CLIPPED", "OVERLAP"]


def test_unknown_form_lists_the_allowed() -> None:
    with pytest.raises(ValueError, match="no form 'x'; allowed: 'as_published', 'consistent', 'issue'"):
        check_form("x", ("as_published", "consistent", "issue"))

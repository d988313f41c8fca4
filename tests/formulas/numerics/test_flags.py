import numpy as np
import pytest

from profsvc.formulas.numerics.flags import Flag, check_form, flag_mask, flag_names, flag_names_each


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


def test_names_of_many_masks_are_separate_lists() -> None:
    masks = np.array([[1, 0], [1, 2]], dtype=np.uint32)
    names = flag_names_each(masks)
    assert names == [["ZERO_DENOM"], [], ["ZERO_DENOM"], ["NOT_APPLICABLE"]]
    names[0].append("x")
    assert names[2] == ["ZERO_DENOM"]
    assert flag_names_each([]) == []


def test_masks_are_integers() -> None:
    with pytest.raises(TypeError, match="float64"):
        flag_names_each([0.5])


def test_unknown_form_lists_the_allowed() -> None:
    with pytest.raises(ValueError, match="no form 'x'; allowed: 'as_published', 'consistent', 'issue'"):
        check_form("x", ("as_published", "consistent", "issue"))


def test_a_mask_of_names_is_that_which_gave_them() -> None:
    for mask in (0, 1, 12, 1 << 6 | 1 << 10):
        assert flag_mask(" ".join(flag_names(mask))) == mask
    with pytest.raises(KeyError, match="FLOOR"):
        flag_mask("FLOOR")

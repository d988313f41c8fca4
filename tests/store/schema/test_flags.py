"""The names of the flags in the store are those of the formulas."""

from profsvc.formulas.numerics.flags import Flag
from profsvc.store import FLAGS


def test_bits_have_one_meaning() -> None:
    assert [(name, 1 << bit) for bit, name in enumerate(FLAGS)] == [(flag.name, flag.value) for flag in Flag]

"""Result type of several functions of the model."""

from typing import NamedTuple

from profsvc.formulas.numerics.arrays import Array, Mask


class Quantity(NamedTuple):
    """A number of instructions, warps or cycles, or a factor of them."""

    value: Array
    flags: Mask

"""What several functions of the model return."""

from typing import NamedTuple

from profsvc.formulas._arrays import Array, Mask


class Quantity(NamedTuple):
    """A number of instructions, warps or cycles, or a factor of them."""

    value: Array
    flags: Mask

"""Which counter of Nsight Compute each instruction of a GPU is counted in, by its opcode without modifiers."""

from functools import cache
from typing import NamedTuple

from profsvc.specs.table_files import rows_of

FILE = "metrics/instruction_classes.csv"
CAPABILITY = "9.0"
"""The devices on which the counters agreed with the sums over opcodes."""
SPECIAL_UNIT, SIZED = "special_unit", "sized"
ALSO = ("", SPECIAL_UNIT, SIZED)


class InstructionClass(NamedTuple):
    """The counter of its threads, whether its warps count for the special function unit or by access size, its own.

    Nsight Compute counts some in no class: their counter is an empty text.
    """

    counter: str
    also: str
    own: str


@cache
def instruction_classes() -> dict[str, InstructionClass]:
    """Return the known opcodes.

    >>> instruction_classes()["I2F"]
    InstructionClass(counter='inst_bit_convert_thread', also='special_unit', own='inst_i2f_thread')
    """
    rows = rows_of(FILE, ("opcode", "counter", "also", "own"))
    return {row["opcode"]: InstructionClass(row["counter"], row.one_of("also", ALSO), row["own"]) for row in rows}

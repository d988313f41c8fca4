"""Files of a few formats by their number, as uploads that are disturbed and undisturbed both need them."""

import re
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from functools import partial

from tests.inputs.long_exports import gpu_trace, ncu_raw, smi_log

Make = Callable[[int], Iterator[str]]
KINDS: tuple[tuple[Make, int], ...] = ((gpu_trace, 400), (smi_log, 150), (partial(ncu_raw, metrics=100), 3))


def content(number: int) -> bytes:
    """Return the bytes of a file; every number gives another."""
    make, rows = KINDS[number % len(KINDS)]
    said = "" if make is smi_log else f"the program's output {number}\n"
    text = said + "".join(make(rows + number % 7))
    if make is gpu_trace:  # a program that begins at another second
        text = re.sub(r"(?m)^0\.", f"{number}.", text)
    if make is smi_log:
        last = datetime(2027, 1, 1) + timedelta(seconds=number)
        text += f"{last:%Y/%m/%d %H:%M:%S}.000, 0, 60.00 W, 30, 345 MHz, 0 %\n"
    return text.encode()


def run_of(number: int, runs: int) -> str:
    """Name the run of a file: its own, or one of so many."""
    return f"run {number % runs}" if runs else f"file {number}"

"""Ratios as a person reads them: no more than a measurement can tell, and never an infinite one."""

import math

MOST = 1000
"""A ratio beyond it rests on a thousandth of a time, which no counter resolves: it is written as that bound."""


def times(value: float | None) -> str:
    """Write a speedup.

    >>> times(1.234), times(None), times(123.4), times(38341.2), times(float("inf"))
    ('1.23x', '', '123x', '1000x+', '1000x+')
    """
    if value is None or math.isnan(value):
        return ""
    return f"{MOST}x+" if value > MOST else f"{value:.2f}x" if value < 100 else f"{value:.0f}x"


def factor(value: float | None) -> str:
    """Write how many times as much something is as something else.

    >>> factor(0.6234), factor(None), factor(2.0**53)
    ('x0.62', '', 'x1000+')
    """
    written = times(value)
    return f"x{written.replace('x', '')}" if written else ""


def change(value: float) -> str:
    """Write a relative change, as a factor where a percentage would be long.

    >>> change(0.256), change(-0.5), change(30.99), change(float("inf"))
    ('+26 %', '-50 %', 'x31.99', 'x1000+')
    """
    return f"{100 * value:+.0f} %" if value < 10 else factor(1 + value)

"""Ratios as text, limited to what a measurement can resolve, never infinite."""

import math

MAX_RATIO = 1000
"""Larger ratios are beyond the resolution of counters and are shown as this bound."""


def times(value: float | None) -> str:
    """Return a speedup as text.

    >>> times(1.234), times(None), times(123.4), times(38341.2), times(float("inf"))
    ('1.23x', '', '123x', '1000x+', '1000x+')
    """
    if value is None or math.isnan(value):
        return ""
    return f"{MAX_RATIO}x+" if value > MAX_RATIO else f"{value:.2f}x" if value < 100 else f"{value:.0f}x"


def factor(value: float | None) -> str:
    """Return a factor as text.

    >>> factor(0.6234), factor(None), factor(2.0**53)
    ('x0.62', '', 'x1000+')
    """
    written = times(value)
    return f"x{written.replace('x', '')}" if written else ""


def change(value: float) -> str:
    """Return a relative change as a percentage, or as a factor if it is large.

    >>> change(0.256), change(-0.5), change(30.99), change(float("inf"))
    ('+26 %', '-50 %', 'x31.99', 'x1000+')
    """
    return f"{100 * value:+.0f} %" if value < 10 else factor(1 + value)

"""Accurate functions of the CUDA math library, known in machine code by a coefficient of their polynomial.

Each function is inlined, and has a polynomial whose coefficients no other computation has. The table has one of them as
machine code prints it without its sign, the arithmetic instructions of the function on its common path, and those of
its fast form, if the device has one; both counted in code of CUDA 13.0 for compute capability 9.0.
"""

from functools import cache

from profsvc.specs.table_files import rows_of

FILE = "metrics/accurate_functions.csv"
POSSIBLE = 0.5
"""Part of a function without a fast form that a computation of less accuracy may spare."""


@cache
def spared_arithmetic() -> dict[str, float]:
    """Return for each coefficient how many arithmetic instructions a cheaper form of its function spares.

    >>> spared_arithmetic()["0.1331529766321182251"], spared_arithmetic()["0.030762933194637298584"]
    (13.0, 11.0)
    """
    found = {}
    for row in rows_of(FILE, ("function", "coefficient", "arithmetic", "fast")):
        length = row.number("arithmetic")
        found[row["coefficient"]] = length - row.number("fast") if row["fast"] else POSSIBLE * length
    return found

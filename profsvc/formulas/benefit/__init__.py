r"""Time of a kernel as computation and memory less what overlaps, and what removing each of four costs would give.

.. math:: T_{exec} = T_{comp} + T_{mem} - T_{overlap}

All times and overheads are SM cycles of an average SM that works; seconds are cycles over the clock. The benefits say
where to look: ``B_itilp`` asks for more warps or instruction-level parallelism, ``B_memlp`` for more requests in flight
or better locality, ``B_fp`` for fewer instructions beside the arithmetic (never all of it: data has to be moved),
``B_serial`` for fewer barriers, special functions, divergence and bank conflicts.

Modules::

    chart            benefit chart: a kernel as a point of memory and computation cost
    execution        time of a kernel and its four potential benefits
    overheads        cost of barriers, special functions, divergence and bank conflicts
    result           parameters of the machine, and results
    synchronization  cost of a barrier from measured times
"""

from profsvc.formulas.benefit.chart import BENEFITS, COMPUTE, MEMORY, BenefitChart, benefit_chart
from profsvc.formulas.benefit.execution import benefit
from profsvc.formulas.benefit.overheads import Overheads, serial_overheads
from profsvc.formulas.benefit.result import Benefit, GammaFit, Machine
from profsvc.formulas.benefit.synchronization import fit_gamma

__all__ = [
    "BENEFITS",
    "COMPUTE",
    "MEMORY",
    "Benefit",
    "BenefitChart",
    "GammaFit",
    "Machine",
    "Overheads",
    "benefit",
    "benefit_chart",
    "fit_gamma",
    "serial_overheads",
]

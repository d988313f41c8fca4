"""Formulas of the papers, as pure functions of numbers: NumPy in, NumPy out.

What holds for every function here:

* Pure. No files, clock, settings or state; arguments are never changed; the same input gives the same bits.
* Vectorised. Arguments broadcast to one shape and are computed in float64; integer time stamps are subtracted
  before they are converted. Ragged data (kernels of an application, warps of a kernel) comes as flat arrays with
  ``group`` ids, and the result has one entry per distinct id, in ascending order.
* Two forms. ``form="as_published"`` is the printed formula, literally: no clipping, no guards, so inf, NaN and
  values outside the stated range are possible. ``form="consistent"``, the default, repairs what is wrong with it;
  the docstring says in one line what that is. Flags are raised in both.
* A result is a named tuple of arrays: the ``raw`` number, the clipped ``value``, and ``flags`` (`flags.Flag`) that
  say what happened on the way.
* No exception for the content of an array: in the consistent form a negative count, NaN or inf makes NaN, with
  INPUT_SUSPECT, of the results computed from it. An optional share that is None, or NaN in a row, is *unknown*:
  1 is assumed, with UPPER_BOUND. TypeError is for a wrong dtype, ValueError for shapes that do not fit and for an
  unknown form.

Shares and criteria are fractions of 1, never percent. ``[Key]`` names a source in ``data/published/references.toml``.

Packages::

    numerics          helpers of all formulas
    performance       performance of one launch
    criteria          the nine optimization criteria
    mwp_cwp           memory and computation warp parallelism
    benefit           computation, memory and overlap
    throughput        peak of the instructions and useful cycles
    memory_hierarchy  work-flow graph, hit ratios of caches
    sensors           sensor logs
    thermal           temperature under power
    power             power and energy
    thermocouples     thermocouple measurements
    change            change between runs
"""

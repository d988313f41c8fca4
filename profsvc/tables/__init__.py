"""The schemas of the tidy tables that readers yield, and the one check that a table is tidy.

A reader turns bytes into `Batch` objects. A batch holds tidy tables (pandas frames with exactly the columns
below) and the account of the lines it consumed: every line of a file is stored, skipped or rejected.
Units stand in the names. Missing is null, and where a value is null a ``reason`` column says why.

A page with one column per metric has millions of cells; a row of ``metrics`` for each would take ten times the memory.
Such cells stay together in `Wide`; `unpivot` returns the equivalent rows. So do those of a page with one row per
metric, where many launches have the same metrics.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

"""Tidy tables and a device in, result rows out; pure: no files, no SQL, no clock.

``counters`` derives counters of launches from a tool's metrics; ``potential``, ``launches`` and ``models`` compute
results from them; ``power`` and ``thermocouples`` evaluate logs; ``changes`` compares runs. ``analyze`` joins the
results of one run, ``kernel_means`` does the same for kernels of which a tool prints only averages.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

"""The imports of a service of several processes: done once, and shared by all that are forked afterwards.

The collector of cycles would write to each object that it visits, and each page written to is a page copied; frozen
objects are not visited.
"""

import gc

import profsvc.web.app  # noqa: F401

gc.collect()
gc.freeze()

"""Bytes -> tidy tables -> store -> analysis -> results: the one pipeline that every command and page calls.

``ingestion`` stores a file and analyzes its run, and reads a stored file again. ``analysis``, ``power``,
``thermocouples``, ``memory_traces`` and ``kernel_means`` read a run from the store, compute and store its results.
``nightly`` makes the nightly report, ``delivery`` sends it.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

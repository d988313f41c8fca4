"""Bytes -> tidy tables -> store -> analysis -> results: the one pipeline that every command and page calls.

``ingestion`` stores a file and analyzes its run, ``reparsing`` reads a stored file again. ``analysis``, ``power``,
``thermocouples``, ``memory_traces`` and ``kernel_means`` read a run from the store, compute and store its results.
``nightly`` makes the nightly report, ``delivery`` sends it.
"""

from profsvc.pipeline.analysis import analyze, analyze_again
from profsvc.pipeline.demo import demo_files, demo_runs
from profsvc.pipeline.import_result import ImportResult, Progress
from profsvc.pipeline.ingestion import analyze_unfinished, check_file, ingest
from profsvc.pipeline.power import analyze_power
from profsvc.pipeline.reading_options import ReadOptions
from profsvc.pipeline.reparsing import reparse, undelete

__all__ = [
    "ImportResult",
    "Progress",
    "ReadOptions",
    "analyze",
    "analyze_again",
    "analyze_power",
    "analyze_unfinished",
    "check_file",
    "demo_files",
    "demo_runs",
    "ingest",
    "reparse",
    "undelete",
]

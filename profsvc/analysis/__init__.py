"""Tidy tables and a device in, result rows out; pure: no files, no SQL, no clock.

``counters`` derives counters of launches from a tool's metrics; ``potential``, ``launches`` and ``models`` compute
results from them; ``power`` and ``thermocouples`` evaluate logs; ``changes`` compares runs. ``analyze`` joins the
results of one run, ``kernel_means`` does the same for kernels of which a tool prints only averages.
"""

from profsvc.analysis.analyze import (
    VERSION,
    OtherLaunches,
    analyze_launches,
    launch_results,
    model_results,
    run_results,
)
from profsvc.analysis.counters.by_opcode import with_source_page
from profsvc.analysis.counters.device_attributes import fill_from_session
from profsvc.analysis.counters.from_metrics import feeds_criteria, launch_counters, used_metric_names
from profsvc.analysis.counters.merged import SourcedCounters, best_file_per_launch, merge_counters, unmerged_counters
from profsvc.analysis.launches.characterization import attainable_shares

__all__ = [
    "VERSION",
    "OtherLaunches",
    "SourcedCounters",
    "analyze_launches",
    "attainable_shares",
    "best_file_per_launch",
    "feeds_criteria",
    "fill_from_session",
    "launch_counters",
    "launch_results",
    "merge_counters",
    "model_results",
    "run_results",
    "unmerged_counters",
    "used_metric_names",
    "with_source_page",
]

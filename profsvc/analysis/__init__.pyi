from .analyze import (
    OtherLaunches as OtherLaunches,
    analyze_launches as analyze_launches,
    launch_results as launch_results,
    model_results as model_results,
    run_results as run_results,
)
from .counters.by_code import with_machine_code as with_machine_code
from .counters.by_opcode import with_source_page as with_source_page
from .counters.device_attributes import fill_from_session as fill_from_session
from .counters.from_metrics import (
    launch_counters as launch_counters,
    used_metric_names as used_metric_names,
)
from .counters.merged import (
    CountersBlock as CountersBlock,
    SourcedCounters as SourcedCounters,
    best_file_per_launch as best_file_per_launch,
    joined_blocks as joined_blocks,
    merge_counters as merge_counters,
    unmerged_counters as unmerged_counters,
)
from .launches.characterization import attainable_shares as attainable_shares
from .launches.memory_traces import draw_statistics as draw_statistics
from .timezones import time_zone as time_zone
from .version import VERSION as VERSION

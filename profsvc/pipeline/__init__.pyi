from . import (
    analysis as analysis,
    memory_traces as memory_traces,
    power as power,
)
from .analysis import analyze as analyze, analyze_again as analyze_again
from .demo import demo_files as demo_files, demo_runs as demo_runs
from .ingestion import file_batches as file_batches, reparsing as reparsing
from .ingestion.import_result import ImportResult as ImportResult, Progress as Progress
from .ingestion.upload import (
    analyze_stored as analyze_stored,
    analyze_unfinished as analyze_unfinished,
    check_file as check_file,
    ingest as ingest,
)
from .power import analyze_power as analyze_power
from .ingestion.reading_options import ReadOptions as ReadOptions
from .ingestion.reparsing import reparse as reparse, undelete as undelete

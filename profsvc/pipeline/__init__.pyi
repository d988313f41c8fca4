from . import (
    analysis as analysis,
    file_batches as file_batches,
    ingestion as ingestion,
    memory_traces as memory_traces,
    power as power,
    reparsing as reparsing,
)
from .analysis import analyze as analyze, analyze_again as analyze_again
from .demo import demo_files as demo_files, demo_runs as demo_runs
from .import_result import ImportResult as ImportResult, Progress as Progress
from .ingestion import analyze_unfinished as analyze_unfinished, check_file as check_file, ingest as ingest
from .power import analyze_power as analyze_power
from .reading_options import ReadOptions as ReadOptions
from .reparsing import reparse as reparse, undelete as undelete

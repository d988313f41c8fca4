"""Many files and runs at once: the pipeline's functions, mapped over them here or on the workers of a Dask cluster.

``files`` says which files are one run, ``work`` is what is done with each, ``bulk`` does it for all and settles what
runs take from each other, and ``clusters`` starts or reaches the workers.
"""

from profsvc.scale.bulk import analyze, ingest
from profsvc.scale.clusters import one_process, workers
from profsvc.scale.files import FileGroup, group_files
from profsvc.scale.work import Outcome

__all__ = ["FileGroup", "Outcome", "analyze", "group_files", "ingest", "one_process", "workers"]

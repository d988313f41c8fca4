"""Python client of a profsvc service: upload files, run SQL, read views, compare runs.

::

    from profsvc.client import Client
    with Client("https://profsvc.lab", token) as service:
        service.submit("ncu_raw.csv", run="nightly")
        service.sql("select kernel_short, criterion, value from v1_criteria where value < :v", {"v": 0.5})
        service.table("launches", run_id=1, duration_ns__gt=1e6)
        service.compare("monday", "tuesday")

Every failure raises an error of `profsvc.errors`, the same one as on the command line. Requests without an answer are
retried after a delay. Retrying an upload is safe, because the service recognizes a file by its bytes.
"""

from profsvc.client.client import Client
from profsvc.client.uploads import spool_folder

__all__ = ["Client", "spool_folder"]

"""Labels of columns as strings of Python while results are computed.

pandas keeps the labels of a frame as Arrow text, which is made for long columns: to take columns of a small frame, to
add one or to join two then takes twice as long. Results are computed from many small frames.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pandas as pd

_OPTION = "mode.string_storage"
_lock = threading.Lock()
_works: list[str] = []
"""What the option was when each of the works under way began, oldest first."""


@contextmanager
def python_labels() -> Iterator[None]:
    """Let pandas keep the labels of new frames as strings of Python within the block.

    The option is one of the whole process, so the last of several blocks at once sets it back to what it was.

    >>> with python_labels():
    ...     print(pd.DataFrame({"duration_ns": [1.0]}).columns.dtype.storage)
    python
    """
    with _lock:
        _works.append(pd.get_option(_OPTION))
        pd.set_option(_OPTION, "python")
    try:
        yield
    finally:
        with _lock:
            before = _works.pop()
            if not _works:
                pd.set_option(_OPTION, before)

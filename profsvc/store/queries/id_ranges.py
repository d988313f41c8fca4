"""The ids of the rows of uploads: those of each are adjacent, and other runs may lie between two files of a run."""

import numpy as np
import numpy.typing as npt

from profsvc.store.schema.column_types import IDS_PER_UPLOAD


def id_range(upload_id: int) -> tuple[int, int]:
    """Return the lowest and the highest id that a row of an upload can have."""
    return upload_id * IDS_PER_UPLOAD + 1, (upload_id + 1) * IDS_PER_UPLOAD - 1


def id_ranges(ids: npt.NDArray[np.int64]) -> list[tuple[int, int]]:
    """Return the lowest and the highest of ascending ids, upload by upload."""
    if not len(ids):
        return []
    ends = np.flatnonzero(np.diff(ids // IDS_PER_UPLOAD)) + 1
    return [(int(part[0]), int(part[-1])) for part in np.split(ids, ends)]

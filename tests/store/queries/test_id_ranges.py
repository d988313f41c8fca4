"""Ids of several uploads: no id of an upload between them is in a range."""

import numpy as np

from profsvc.store.queries.id_ranges import id_range, id_ranges
from profsvc.store.schema.column_types import IDS_PER_UPLOAD


def test_the_ranges_of_some_ids_end_with_their_upload() -> None:
    ids = np.array([3, 5, IDS_PER_UPLOAD - 1, 2 * IDS_PER_UPLOAD + 1, 7 * IDS_PER_UPLOAD + 2, 7 * IDS_PER_UPLOAD + 9])
    assert id_ranges(ids) == [
        (3, IDS_PER_UPLOAD - 1),
        (2 * IDS_PER_UPLOAD + 1, 2 * IDS_PER_UPLOAD + 1),
        (7 * IDS_PER_UPLOAD + 2, 7 * IDS_PER_UPLOAD + 9),
    ]
    assert id_ranges(np.array([], "int64")) == []


def test_the_range_of_an_upload_holds_its_ids_alone() -> None:
    low, high = id_range(2)
    assert [low // IDS_PER_UPLOAD, high // IDS_PER_UPLOAD, (low - 1) % IDS_PER_UPLOAD] == [2, 2, 0]
    assert id_range(3)[0] == high + 2  # an id that is a multiple belongs to no row of a launch

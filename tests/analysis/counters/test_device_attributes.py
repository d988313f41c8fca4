"""What a session page says of a device counts for the launches on it, and for no other."""

import pandas as pd
import pytest

from profsvc.analysis import fill_from_session

LAUNCHES = pd.DataFrame({
    "launch_id": pd.Series([11, 12, 13, 14], dtype="Int64"),
    "device_index": pd.Series([0, 1, 0, None], dtype="Int64"),
    "compute_capability": ["9.0", "9.0", "8.0", "9.0"],
    "device": [None, None, None, None],
})  # fmt: skip


def attributes(name: str = "NVIDIA H200", upload: int = 1) -> pd.DataFrame:
    cells = {"display_name": name, "compute_capability_major": "9", "compute_capability_minor": "0",
             "multiprocessor_count": "132"}  # fmt: skip
    return pd.DataFrame({
        "upload_id": upload, "device_index": 0, "metric": [f"device__attribute_{key}" for key in cells],
        "raw_text": list(cells.values()), "value": pd.to_numeric(pd.Series(cells.values()), errors="coerce"),
        "si_unit": "1",
    })  # fmt: skip


def test_only_launches_of_the_same_ordinal_and_capability():
    named, metrics = fill_from_session(LAUNCHES, attributes())
    assert named["device"].tolist() == ["NVIDIA H200", None, None, None]
    assert set(metrics["launch_id"]) == {11}
    assert metrics.set_index("metric")["value"]["device__attribute_multiprocessor_count"] == 132
    assert LAUNCHES["device"].isna().all()


def test_a_launch_that_names_another_device_is_left_alone():
    own = LAUNCHES.assign(device=["NVIDIA H100", None, None, None])
    named, metrics = fill_from_session(own, attributes())
    assert named.equals(own)
    assert metrics.empty


@pytest.mark.parametrize(("second", "lent"), [("NVIDIA H200", 4), ("NVIDIA GH200", 0)])
def test_session_pages_that_disagree_lend_nothing(second, lent):
    _, metrics = fill_from_session(LAUNCHES, pd.concat([attributes(), attributes(second, upload=2)]))
    assert len(metrics) == lent


def test_without_a_session_page():
    named, metrics = fill_from_session(LAUNCHES, attributes().iloc[:0])
    assert named.equals(LAUNCHES)
    assert metrics.empty

"""All metrics of a launch, and the difference of each from those of another."""

import pytest

from profsvc import store
from profsvc.errors import NotFoundError
from profsvc.views.launches.metrics import COLUMNS, differing, launch_metrics


@pytest.fixture(scope="module")
def run_id(demo):
    return store.find_run(demo, "h200")


def test_every_metric_of_a_launch_is_there(demo, run_id):
    found = launch_metrics(demo, run_id, "3")
    stored = store.select(demo, "v1_metrics", launch_id=found["launch"]["launch_id"])
    assert found["launch"]["launch_index"] == 3
    assert len(found["metrics"]) == found["total"] == len(stored) > 100
    assert {tuple(row) for row in found["metrics"]} == {COLUMNS}
    assert all(row["baseline"] is row["change"] is None for row in found["metrics"])


def test_metrics_are_searched_by_words_of_their_name(demo, run_id):
    found = launch_metrics(demo, run_id, "3", search="DRAM bytes")
    assert 0 < len(found["metrics"]) < found["total"]
    assert all("dram" in row["metric"] and "bytes" in row["metric"] for row in found["metrics"])
    assert launch_metrics(demo, run_id, "3", search="nothing like it")["metrics"] == []


def test_two_launches_differ_metric_by_metric(demo, run_id):
    found = launch_metrics(demo, run_id, "3", (run_id, "4"))
    values = [
        {row["metric"]: row["value"] for row in store.select(demo, "v1_metrics", launch_id=found[name]["launch_id"])}
        for name in ("launch", "baseline")
    ]
    for row in found["metrics"]:
        own, other = (one.get(row["metric"]) for one in values)
        assert (row["value"], row["baseline"]) == (own, other)
        if own is not None and other is not None:
            assert row["change"] == own - other
    shares = [abs(row["change_fraction"]) for row in found["metrics"] if row["change_fraction"]]
    assert shares == sorted(shares, reverse=True)
    assert differing(found["metrics"]) >= len(shares) > 0


def test_a_launch_does_not_differ_from_itself(demo, run_id):
    found = launch_metrics(demo, run_id, "3", (run_id, "3"))
    assert differing(found["metrics"]) == 0
    with pytest.raises(NotFoundError):
        launch_metrics(demo, run_id, "3", (run_id, "99"))

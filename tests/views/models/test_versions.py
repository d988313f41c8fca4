"""Speedups along versions: a kernel that was tuned in seven steps, and runs whose kernels change."""

import io
import json

import pytest

from profsvc import pipeline, store
from profsvc.errors import NotFoundError, UsageError
from profsvc.reports.rows import plain
from profsvc.reports.text.models import versions as text
from profsvc.views.models.versions import COLUMNS, KERNELS_NOTE, MEAN_NOTE, PART_NOTE, versions

HEAD = '==1== Profiling result:\n"Type","Time(%)","Time","Calls","Avg","Min","Max","Name"\n,%,us,,us,us,us,\n'


@pytest.fixture
def tuned(engine):
    """Runs whose kernels take so many us in so many calls."""
    runs = {
        "first": {"solve(int)": (1, 60.0), "copy(int)": (1, 30.0), "rest(int)": (1, 10.0)},
        "second": {"solve(int)": (1, 20.0), "copy(int)": (1, 30.0), "rest(int)": (1, 10.0)},
        "third": {"solve(int)": (2, 20.0), "rest(int)": (1, 20.0)},
    }
    for name, kernels in runs.items():
        rows = [f'"GPU activities",1,{n * us},{n},{us},{us},{us},"{kernel}"' for kernel, (n, us) in kernels.items()]
        data = (HEAD + "\n".join(rows) + "\n").encode()
        pipeline.ingest(engine, io.BytesIO(data), f"{name}.csv", store.RunInfo(name=name))
    return engine


def test_launches_of_a_run_are_the_steps_of_a_reduction(demo):
    """Versions of the same work have the same ideal time, and the first one's potential came true within 5 %."""
    view = versions(demo, ["h200"], "reduce")
    rows = view["rows"]
    assert len(rows) == 7
    assert rows[0]["version"] == "#0 reduce_v1_divergent"
    assert [row["total"] for row in rows] == pytest.approx([rows[0]["time_us"] / row["time_us"] for row in rows])
    assert rows[-1]["total"] == pytest.approx(9.92, abs=0.01)
    assert [row["ideal_us"] for row in rows] == pytest.approx([rows[0]["ideal_us"]] * 7, rel=0.03)
    assert rows[-1]["left_of_first"] == pytest.approx(rows[0]["potential"] / rows[-1]["total"])
    assert rows[-1]["left_of_first"] == pytest.approx(1, abs=0.05)
    json.dumps(plain(view))
    assert "left of first" in text.page(view)


def test_launches_of_many_kernels_are_told_to_be_taken_as_one_work(demo):
    assert KERNELS_NOTE.format(29) in versions(demo, ["h200"])["notes"]
    assert not any("as versions of the same work" in note for note in versions(demo, ["h200"], "reduce")["notes"])


def test_runs_name_the_kernel_that_gained_most(tuned):
    view = versions(tuned, ["first", "second", "third"])
    first, second, third = view["rows"]
    assert [row["time_us"] for row in view["rows"]] == [100, 60, 60]
    assert (second["step"], third["total"]) == (pytest.approx(5 / 3), pytest.approx(5 / 3))
    assert (second["part"], second["part_share"], second["part_speedup"]) == ("solve", 0.6, 3)
    assert second["part_alone"] == pytest.approx(1 / (1 - 0.6 + 0.2))
    assert (third["part"], third["part_speedup"], third["part_alone"]) == ("copy", None, pytest.approx(2))
    assert first["part"] is None
    assert PART_NOTE in view["notes"]
    assert set(first) == set(COLUMNS)


def test_a_kernel_of_other_launches_is_compared_by_its_mean(tuned):
    view = versions(tuned, ["first", "third"], "solve")
    assert [row["time_us"] for row in view["rows"]] == [60, 20]
    assert MEAN_NOTE in view["notes"]


def test_what_cannot_be_is_refused(demo, tuned):
    with pytest.raises(UsageError, match="there is only 1 version"):
        versions(demo, ["h200"], "saxpy")
    with pytest.raises(NotFoundError, match="run 'third' has no kernel named 'copy'"):
        versions(tuned, ["first", "third"], "copy")
    with pytest.raises(UsageError, match="0 runs are given"):
        versions(tuned, [])

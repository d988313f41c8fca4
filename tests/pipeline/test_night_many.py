"""The benchmark of nights, small."""

from profsvc import store
from tests.benchmarks import nightly


def test_many_kernels_of_which_few_change(tmp_path):
    engine = store.open_store(str(tmp_path / "store.sqlite"))
    got = nightly.watched(engine, 60, 30)
    engine.dispose()
    assert (got.real, got.found, got.same) == (1, 1, True)
    assert got.false <= 1
    assert len(got.seconds) == nightly.LAST + 1


def test_a_season_that_only_warms_raises_no_alarm_about_corrected_power(tmp_path):
    assert nightly.drifted(tmp_path, 0.0, 1) == (1, 1, 0)

"""The benchmark of nights, small."""

import numpy as np

from profsvc.store.queries import nightly_series
from tests.benchmarks import nightly
from tests.inputs import nights


def test_many_kernels_of_which_few_change(engine):
    got = nightly.watched(engine, 60, 30)
    assert (got.real, got.found, got.same) == (1, 1, True)
    assert got.false <= 1
    assert len(got.seconds) == nightly.LAST + 1


def test_a_season_that_only_warms_raises_no_alarm_about_corrected_power(tmp_path):
    assert nightly.drifted(tmp_path, 0.0, 1) == (1, 1, 0)


def test_the_report_is_the_same_however_many_rows_are_read_at_once(engine, monkeypatch):
    """Whole columns are joined from parts, of which some have no values."""
    rng = np.random.default_rng(5)
    for night in range(12):
        nights.put(engine, night, rng, temperature_c=40.0, more_w=9.0 * (night > 8))
    whole = nights.report(engine, 11)
    for rows in (1, 3):
        monkeypatch.setattr(nightly_series, "ROWS_AT_ONCE", rows)
        assert nights.report(engine, 11) == whole
    assert whole["series"]["looked_at"] > 0

"""Nights by their date and time zone, and dates that are none."""

from datetime import UTC, date, datetime

import pytest

from profsvc.errors import UsageError
from profsvc.pipeline.nightly import period, report_of_night


@pytest.mark.parametrize(
    ("night", "zone", "words"),
    [("2026-13-01", "UTC", "is not a date"), ("yesterday", "UTC", "is not a date"),
     ("9999-12-31", "UTC", "in the future"), ("0001-01-01", "UTC", "before 1970"),
     ("2026-01-01", "Mars/Phobos", "no time zone is named")],
)  # fmt: skip
def test_a_night_that_is_none_is_refused(engine, night, zone, words):
    with pytest.raises(UsageError, match=words):
        report_of_night(engine, night=night, zone=zone)


def test_a_night_ends_with_its_date_in_its_zone():
    now = datetime(2026, 3, 29, 23, 30, tzinfo=UTC)
    assert period.report_period(None, "Europe/Berlin", now).night == "2026-03-30"
    assert period.report_period(None, "America/New_York", now).night == "2026-03-29"
    for night, hours in (("2026-03-29", 23), ("2026-10-25", 25), ("2026-03-28", 24)):
        span = period.report_period(night, "Europe/Berlin", datetime(2027, 1, 1, tzinfo=UTC))
        assert (span.ends.astimezone(UTC) - span.begins.astimezone(UTC)).total_seconds() == hours * 3600
    assert period.report_period(date(2026, 3, 28), "UTC", now).ends.isoformat() == "2026-03-29T00:00:00+00:00"

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profsvc.errors import UsageError
from profsvc.scheduler.cron import parse_cron

BERLIN = ZoneInfo("Europe/Berlin")
YEAR = (datetime(2025, 12, 31, 23, 59, tzinfo=BERLIN), datetime(2026, 12, 31, 23, 59, tzinfo=BERLIN))
SPRING, AUTUMN = date(2026, 3, 29), date(2026, 10, 25)


def days(cron: str) -> list[date]:
    return [due.at.astimezone(BERLIN).date() for due in parse_cron(cron, "Europe/Berlin").between(*YEAR)]


@pytest.mark.parametrize(
    "cron", ["0 6 * * *", "30 2 * * *", "0 2 * * *", "0 3 * * *", "59 1 * * *", "0 0 * * *", "5 0 * * *"]
)
def test_a_daily_schedule_is_due_once_on_every_day_of_a_year(cron: str) -> None:
    every = [date(2026, 1, 1) + timedelta(days=n) for n in range(365)]
    assert days(cron) == every


def test_the_hour_that_comes_twice_and_the_one_that_does_not_come() -> None:
    times = parse_cron("30 2 * * *", "Europe/Berlin")
    at = {due.at.astimezone(BERLIN).date(): due for due in times.between(*YEAR)}
    assert at[SPRING].at == datetime(2026, 3, 29, 1, 30, tzinfo=UTC)  # half past three there
    assert at[AUTUMN].at == datetime(2026, 10, 25, 0, 30, tzinfo=UTC)  # the first of the two
    assert at[AUTUMN].key == "2026-10-25T02:30"
    second = times.latest(datetime(2026, 10, 25, 2, 0, tzinfo=UTC), datetime(2026, 10, 1, tzinfo=UTC))
    assert second == at[AUTUMN]
    assert times.after(at[AUTUMN].at) == datetime(2026, 10, 26, 1, 30, tzinfo=UTC)


def test_an_hourly_schedule_goes_on_in_both_nights() -> None:
    times = parse_cron("30 * * * *", "Europe/Berlin")
    for day, hours in ((SPRING, 23), (AUTUMN, 25), (date(2026, 6, 1), 24)):
        begin = datetime(day.year, day.month, day.day, tzinfo=BERLIN)
        found = times.between(begin, datetime.combine(day + timedelta(days=1), begin.timetz()))
        assert len(found) == hours
        assert len({due.key for due in found}) == hours


def test_midnight_after_the_short_night_is_not_stepped_over() -> None:
    times = parse_cron("0 0 1 4 *", "Europe/Berlin")
    assert times.after(datetime(2026, 3, 28, 23, 0, 1, tzinfo=UTC)) == datetime(2026, 3, 31, 22, tzinfo=UTC)
    daily = parse_cron("0 0 * * *", "Europe/Berlin")
    assert daily.after(datetime(2026, 3, 28, 23, tzinfo=UTC)) == datetime(2026, 3, 29, 22, tzinfo=UTC)


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/St_Johns", "Australia/Lord_Howe", "Asia/Kolkata", "UTC"])
@pytest.mark.parametrize("cron", ["*/30 * * * *", "*/20 0-3 * * *", "15 0,1,2,3,23 * * *"])
def test_step_by_step_comes_to_the_same_as_at_once(zone: str, cron: str) -> None:
    times = parse_cron(cron, zone)
    for month, day in ((3, 7), (3, 28), (4, 4), (10, 3), (10, 24), (10, 31)):
        begin = datetime(2026, month, day, 12, tzinfo=UTC)
        want = sorted({due.at for due in times.between(begin, begin + timedelta(days=2))})
        found, when = [], times.after(begin)
        while when is not None and when <= begin + timedelta(days=2):
            found.append(when)
            when = times.after(when)
        assert found == want
        local = {when.astimezone(ZoneInfo(zone)).minute % 5 for when in found}
        assert local == {0}


def test_days_of_the_week_are_those_of_cron() -> None:
    monday = date(2026, 3, 2)
    for field, wanted in (
        ("1", {1}),
        ("0", {0}),
        ("7", {0}),
        ("1-5", {1, 2, 3, 4, 5}),
        ("fri-mon", {5, 6, 0, 1}),
        ("sun,wed", {0, 3}),
        ("*/2", {0, 2, 4, 6}),
        ("0-7", set(range(7))),
        ("5-7", {5, 6, 0}),
    ):
        times = parse_cron(f"0 6 * * {field}")
        begin = datetime(monday.year, monday.month, monday.day, tzinfo=UTC)
        found = {due.at.isoweekday() % 7 for due in times.between(begin, begin + timedelta(days=7))}
        assert found == wanted, field


@given(
    st.datetimes(datetime(2026, 1, 2), datetime(2026, 12, 31), timezones=st.just(UTC)),
    st.sampled_from(["30 2 * * *", "*/20 * * * *", "0 6 1 * *", "15 2,14 * * 0", "0 3 29 2 *"]),
)
def test_the_newest_time_is_the_last_of_those_before(now: datetime, cron: str) -> None:
    times = parse_cron(cron, "Europe/Berlin")
    since = datetime(2020, 1, 1, tzinfo=UTC)
    found = times.latest(now, since)
    assert found
    assert found.at <= now
    assert times.after(found.at) is not None
    following = times.after(found.at)
    assert following is None or following > now
    assert times.latest(now, found.at) is None
    assert times.latest(now, now) is None


@pytest.mark.parametrize(
    ("cron", "said"),
    [
        ("", "must have five fields"),
        ("0 6 * *", "must have five fields"),
        ("@daily", "must have five fields"),
        ("0 6 * * * *", "must have five fields"),
        ("0 6 last * *", "the day 'last' is not one of 1 to 31"),
        ("a b c d e", "the minute 'a' is not one of 0 to 59"),
        ("0 6 ? * *", "the day '.' is not one of 1 to 31"),
        ("60 6 * * *", "the minute '60' is not one of 0 to 59; lists"),
        ("0 24 * * *", "the hour '24' is not one of 0 to 23"),
        ("0 6 0 * *", "the day '0' is not one of 1 to 31"),
        ("0 6 * foo *", "the month 'foo' is not one of 1 to 12 or jan to dec"),
        ("0 6 * * 8", "the day of the week '8' is not one of 0 to 7"),
        ("0 6 * * x", "the day of the week 'x' is not one of 0 to 7 or sun to sat .*such as '0 6 "),
        ("0-70 6 * * *", "the minute '0-70' is not one of"),
        ("0 6 1 * 1", "give one of them"),
        ("0 6 31 2 *", "is never due"),
        ("0 6 * * */0", "the day of the week '\\*/0' is not one of"),
        ("*/0 6 * * *", "the minute '\\*/0' is not one of"),
    ],
)
def test_what_is_no_cron_is_refused(cron: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        parse_cron(cron)


def test_a_zone_that_is_not_is_refused() -> None:
    with pytest.raises(UsageError, match="no time zone is named 'Berlin'"):
        parse_cron("0 6 * * *", "Berlin")

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import Engine, text

from profsvc import store
from profsvc.errors import NotFoundError
from profsvc.pipeline.nightly import report_of_night
from profsvc.store.connection.timestamps import format_time
from profsvc.store.connection.transactions import writing
from profsvc.store.results import reports
from profsvc.store.service import schedules

NOW = datetime(2026, 3, 1, 6, 0, tzinfo=UTC)
LEASE = timedelta(minutes=5)


@pytest.fixture
def daily(engine: Engine) -> int:
    said = {"channels": ["team"]}
    return store.add_schedule(engine, "nightly", "0 6 * * *", "UTC", said, project="lab", next_at=NOW, now=NOW)


def take(engine: Engine, schedule_id: int, owner: str = "a", at: datetime = NOW) -> store.Slot | None:
    return store.take_slot(engine, schedule_id, "2026-03-01T06:00", NOW, owner, at, at + LEASE)


def sent(engine: Engine) -> store.Delivery:
    number = report_of_night(engine)["report_id"]
    return store.Delivery(number, "team", "smtp", True, None, "schedule 1", format_time(NOW))


def test_a_schedule_is_kept_listed_and_removed(engine: Engine, daily: int) -> None:
    (row,) = store.list_schedules(engine)
    assert (row["kind"], row["project"], row["cron"], row["zone"]) == ("nightly", "lab", "0 6 * * *", "UTC")
    assert (row["arguments"], row["enabled"], row["last_due_at"]) == ({"channels": ["team"]}, 1, None)
    store.enable_schedule(engine, daily, False, NOW + LEASE)
    store.save_next_time(engine, daily, None)
    (row,) = store.list_schedules(engine)
    assert (row["enabled"], row["since"], row["next_at"]) == (0, "2026-03-01T06:05:00Z", None)
    assert take(engine, daily)
    store.remove_schedule(engine, daily)
    assert store.list_schedules(engine) == store.select(engine, "v1_slots") == []
    for change in (store.remove_schedule, lambda *of: store.enable_schedule(*of, True, NOW)):
        with pytest.raises(NotFoundError, match="no schedule has the number 1"):
            change(engine, daily)
    assert store.add_schedule(engine, "backup", "0 6 * * *", "UTC", {}, next_at=NOW, now=NOW) == daily + 1


def test_of_many_one_takes_a_slot(engine: Engine, daily: int) -> None:
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda n: take(engine, daily, f"owner {n}"), range(8)))
    (slot,) = [slot for slot in found if slot]
    (row,) = store.select(engine, "v1_slots")
    assert (row["owner"], row["ended_at"], row["attempts"]) == (slot.owner, None, 1)
    assert slot.due_at == NOW
    late = NOW + LEASE + timedelta(seconds=1)
    with ThreadPoolExecutor(8) as pool:
        again = list(pool.map(lambda n: store.take_over_slot(engine, daily, f"heir {n}", late, late + LEASE), range(8)))
    (heir,) = [slot for slot in again if slot]
    assert (heir.slot_id, heir.attempts) == (slot.slot_id, 2)


def test_a_lease_is_kept_by_its_owner_alone(engine: Engine, daily: int) -> None:
    slot = take(engine, daily)
    assert slot
    half = NOW + LEASE / 2
    assert store.renew_slot(engine, slot, half, half + LEASE)
    assert store.take_over_slot(engine, daily, "b", NOW + LEASE + timedelta(seconds=1), NOW + 2 * LEASE) is None
    late = half + LEASE + timedelta(seconds=1)
    other = store.take_over_slot(engine, daily, "b", late, late + LEASE)
    assert other
    assert store.save_slot_deliveries(engine, other, {"team": "delivered"}, sent(engine))
    for lost in (
        store.renew_slot(engine, slot, late, late + LEASE),
        store.save_slot_deliveries(engine, slot, {}, sent(engine)),
        store.end_slot(engine, slot, late, "done", "mine"),
        store.postpone_slot(engine, slot, late, "mine"),
    ):
        assert not lost
    assert store.end_slot(engine, other, late, "done", "3 findings")
    assert not store.end_slot(engine, other, late, "failed", "again")
    (row,) = store.select(engine, "v1_schedules")
    assert (row["last_state"], row["last_message"], row["last_attempts"]) == ("done", "3 findings", 2)
    assert (row["last_due_at"], row["last_deliveries"]) == ("2026-03-01T06:00:00Z", '{"team": "delivered"}')
    assert store.take_over_slot(engine, daily, "c", late + 9 * LEASE, late + 10 * LEASE) is None
    assert take(engine, daily, "c", late + 9 * LEASE) is None


def test_a_delivery_and_the_word_of_its_slot_are_kept_together(engine: Engine, daily: int, monkeypatch) -> None:
    slot, one = take(engine, daily), sent(engine)
    assert slot

    def killed(*_: object) -> bool:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(reports, "write_slot", killed)
        with pytest.raises(KeyboardInterrupt):
            store.save_slot_deliveries(engine, slot, {"team": "delivered"}, one)
    assert store.select(engine, "v1_deliveries") == []
    assert store.save_slot_deliveries(engine, slot, {"team": "delivered"}, one)
    assert [row["channel"] for row in store.select(engine, "v1_deliveries")] == ["team"]
    assert [row["deliveries"] for row in store.select(engine, "v1_slots")] == ['{"team": "delivered"}']


def test_what_is_put_off_is_anybodys_later(engine: Engine, daily: int) -> None:
    slot = take(engine, daily)
    assert slot
    assert store.postpone_slot(engine, slot, NOW + LEASE, "the store was busy")
    assert store.select(engine, "v1_slots")[0]["state"] == "waiting"
    assert store.list_schedules(engine)[0]["lease_until"] == "2026-03-01T06:05:00Z"
    assert not store.renew_slot(engine, slot, NOW, NOW + LEASE)
    late = NOW + LEASE + timedelta(seconds=1)
    again = store.take_over_slot(engine, daily, "b", late, late + LEASE)
    assert again
    assert (again.attempts, again.message) == (2, "the store was busy")


def test_of_the_slots_that_ended_the_newest_are_remembered(
    engine: Engine, daily: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schedules, "MAX_SLOTS", 3)
    for number in range(6):
        key = f"2026-03-0{number + 1}T06:00"
        slot = store.take_slot(engine, daily, key, NOW + number * timedelta(days=1), "a", NOW, NOW + LEASE)
        assert slot
        if number:  # the first is still at work
            assert store.end_slot(engine, slot, NOW, "done", "")
    store.save_next_time(engine, daily, NOW)
    assert [row["slot_id"] for row in store.select(engine, "v1_slots")] == [1, 4, 5, 6]


def test_a_slot_whose_owner_was_killed_is_lost(engine: Engine, daily: int) -> None:
    """Whether or not somebody comes to take it over: nobody may be left, or the schedule may rest."""
    now = datetime.now(UTC)
    assert take(engine, daily, at=now)
    (row,), (schedule,) = store.select(engine, "v1_slots"), store.select(engine, "v1_schedules")
    assert (row["state"], schedule["last_state"]) == ("running", "running")
    store.enable_schedule(engine, daily, False, now)
    with writing(engine) as connection:
        connection.execute(text("UPDATE slots SET lease_until = :gone"), {"gone": format_time(now - LEASE)})
    (row,), (schedule,) = store.select(engine, "v1_slots"), store.select(engine, "v1_schedules")
    assert (row["state"], schedule["last_state"]) == ("lost", "lost")

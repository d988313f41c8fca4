"""Deliveries of reports, on every kind of database: kept without addresses, seen by who sees the report."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy import Engine, text

from profsvc import store
from profsvc.channels import Channel, load
from profsvc.pipeline import delivery
from profsvc.pipeline import nightly as night
from profsvc.store.connection.transactions import writing
from profsvc.store.maintenance import migrations, readiness
from profsvc.views.nightly import report as nightly
from tests.conftest import COUNTERS
from tests.store.conftest import batches, info

NOW = datetime(2026, 3, 1, 6, 0, tzinfo=UTC)


def channels(folder: Path) -> dict[str, Channel]:
    (folder / "blocked@lab.example").write_text("")
    kinds = {"good": folder / "good", "bad": folder / "blocked@lab.example"}
    toml = "".join(f'[{name}]\nkind = "file"\nfolder = "{place}"\n' for name, place in kinds.items())
    (folder / "c.toml").write_text(toml)
    return load(folder / "c.toml")


def test_what_became_of_each_sending_is_kept_without_an_address(engine: Engine, tmp_path: Path) -> None:
    store.write_upload(engine, info(), store.RunInfo(name="r", project="lab"), batches())
    every, own = night.report_of_night(engine), night.report_of_night(engine, "lab")
    to = channels(tmp_path)
    done = delivery.deliver(engine, every, [to["bad"], to["good"]], "somebody")
    delivery.deliver(engine, own, [to["good"]], "schedule 3")
    assert [one.delivered for one in done] == [False, True]
    assert "blocked@lab.example" in done[0].outcome
    rows = store.select(engine, "v1_deliveries")
    named = [(row["report_id"], row["project"], row["channel"], row["kind"], row["delivered"], row["sent_by"])
             for row in rows]  # fmt: skip
    assert named == [
        (every["report_id"], None, "bad", "file", 0, "somebody"),
        (every["report_id"], None, "good", "file", 1, "somebody"),
        (own["report_id"], "lab", "good", "file", 1, "schedule 3"),
    ]
    assert [row["message"] is None for row in rows] == [False, True, True]
    assert "(an address)" in rows[0]["message"]
    assert "@" not in json.dumps(rows)
    numbers = [every["report_id"], own["report_id"]]
    seen = [{number: len(sent) for number, sent in nightly.deliveries(engine, numbers, project).items()}
            for project in (None, "lab", "other")]  # fmt: skip
    first, second = numbers
    assert seen == [{first: 2, second: 1}, {first: 0, second: 1}, {first: 0, second: 0}]
    assert nightly.sent(nightly.deliveries(engine, numbers)[first][1]).startswith("good (file) delivered 20")
    # The same night again is the same report: what was sent of it before stays known.
    assert night.report_of_night(engine)["report_id"] == first
    assert len(store.select(engine, "v1_deliveries")) == 3


def test_addresses_that_an_older_schema_kept_are_taken_out(engine: Engine) -> None:
    number = store.add_schedule(engine, "nightly", "0 6 * * *", "UTC", {}, next_at=NOW, now=NOW)
    report = night.report_of_night(engine)["report_id"]
    sent = store.Delivery(report, "team", "smtp", True, None, "schedule 1", "2026-03-01T06:00:00Z")
    for hour, said in (
        (1, "delivered 2026: mail to a.b@lab.example, c@lab.example"),
        (2, "failed 2026: slack at hook"),
    ):
        slot = store.take_slot(engine, number, f"{hour}", NOW, "a", NOW, NOW + timedelta(minutes=5))
        assert slot
        assert store.save_slot_deliveries(engine, slot, {"team": said}, sent)
        assert store.end_slot(engine, slot, NOW, "done", "was not delivered to team: no user <a.b@lab.example>")
    with writing(engine) as connection:
        connection.execute(text("UPDATE slots SET message = 'fine' WHERE slot_key = '2'"))
    config = Config()
    config.set_main_option("script_location", str(readiness.migrations_folder()))
    with migrations.changing_schema(engine) as connection:
        config.attributes["connection"] = connection
        command.downgrade(config, "0016")
    assert migrations.upgrade(engine, COUNTERS) == store.latest_revision()
    one, two = store.select(engine, "v1_slots")
    assert json.loads(one["deliveries"]) == {"team": "delivered 2026: mail to (an address), (an address)"}
    assert one["message"] == "was not delivered to team: no user <(an address)>"
    assert (json.loads(two["deliveries"]), two["message"]) == ({"team": "failed 2026: slack at hook"}, "fine")

"""Machine code of launches: their instructions in the order of addresses, with the waits for memory."""

import pytest
from sqlalchemy import Engine

from profsvc import store
from tests.store.ingest.test_source_launches import REDUCE, SAXPY, both, launches
from tests.store.queries.told import raw, upload


@pytest.mark.usefixtures("unanalysed")
def test_instructions_come_in_the_order_of_their_addresses(engine: Engine) -> None:
    upload(engine, raw(launches(REDUCE, SAXPY)), "raw.csv")
    upload(engine, both(REDUCE, SAXPY), "source.csv")
    known = [one["launch_id"] for one in store.select(engine, "v1_launches")]
    found = store.machine_code(engine, known)
    assert set(found) == set(known)
    shown = store.select(engine, "v1_source_lines", kind="instruction")
    for launch, rows in found.items():
        assert [row["address"] for row in rows] in (["0x100", "0x110"], ["0x200", "0x210"])
        assert {row["address"]: row["sass"] for row in rows} == {
            one["address"]: one["sass"] for one in shown if one["launch_id"] == launch
        }
        counts = ("instructions", "thread_instructions", "l2_sectors", "ideal_l2_sectors")
        assert {tuple(row[name] for name in counts) for row in rows} == {
            tuple(one[name] for name in counts) for one in shown if one["launch_id"] == launch
        }
    assert {row["long_scoreboard"] for rows in found.values() for row in rows} >= {10, None}
    assert store.machine_code(engine, [0]) == {}

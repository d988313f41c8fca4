"""The launches of a run, in every order and page by page; on both databases by their plain SQL."""

import pytest

from profsvc import store, views
from profsvc.errors import NotFoundError, UsageError
from profsvc.store.queries.launch_list import LAUNCH_ORDERS


@pytest.fixture(scope="module")
def run_id(demo):
    return store.find_run(demo, "h200")


@pytest.mark.parametrize("order", LAUNCH_ORDERS)
def test_launches_come_in_every_order_page_by_page(demo, run_id, order):
    key = {"launch": "launch_index", "duration": "duration_ns", "kernel": "kernel_short"}
    bounds = {row["launch_id"]: row["speedup"] for row in store.select(demo, "v1_potential", run_id=run_id)}
    for down in ("", "-"):
        whole, truncated = store.list_launches(demo, run_id, order=down + order, limit=100)
        assert (len(whole), truncated) == (34, False)
        values = [bounds[row["launch_id"]] if order == "potential" else row[key[order]] for row in whole]
        assert values == sorted(values, reverse=bool(down))
        pages = [store.list_launches(demo, run_id, order=down + order, skip=skip, limit=20) for skip in (0, 20)]
        assert [row for rows, _ in pages for row in rows] == whole
        assert [more for _, more in pages] == [True, False]


def test_launches_of_one_kernel(demo, run_id):
    one = store.select(demo, "v1_launches", run_id=run_id)[5]
    for order in LAUNCH_ORDERS:
        rows, _ = store.list_launches(demo, run_id, order=order, kernel_id=one["kernel_id"])
        assert {row["kernel"] for row in rows} == {one["kernel"]}
        assert rows


def test_what_cannot_be_listed_is_refused(demo, run_id):
    for options, match in (({"order": "luck"}, "launch or duration"), ({"skip": -1}, "cannot"), ({"limit": 0}, "1 to")):
        with pytest.raises(UsageError, match=match):
            store.list_launches(demo, run_id, **options)


def test_a_page_shows_launches_as_the_run_does(demo, run_id):
    whole = {row["launch_id"]: row for row in views.run(demo, run_id, None)["launches"]}
    page = views.launch_page(demo, run_id, order="-duration", limit=5)
    assert page["truncated"]
    assert page["launches"] == [whole[row["launch_id"]] for row in page["launches"]]
    times = [row["duration_us"] for row in page["launches"]]
    assert times == sorted((row["duration_us"] for row in whole.values()), reverse=True)[:5]


def test_a_launch_is_opened_by_its_number_in_the_store(demo, run_id):
    one = store.select(demo, "v1_launches", run_id=run_id)[5]
    opened = views.launch(demo, run_id, f"id:{one['launch_id']}")["launches"]
    assert [row["launch"] for row in opened] == [one]
    for wrong in ("id:999999", f"id:{2**62}"):
        with pytest.raises(NotFoundError, match="no launch with the launch_id"):
            views.launch(demo, run_id, wrong)

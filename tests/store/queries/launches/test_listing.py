"""The launches of a run, in every order and page by page; on both databases by their plain SQL."""

import pytest

from profsvc import store, views
from profsvc.errors import NotFoundError, UsageError
from profsvc.store.queries.launches.listing import LAUNCH_ORDERS


@pytest.fixture(scope="module")
def run_id(demo):
    return store.find_run(demo, "h200")


def _values(engine, run_id):
    """Return what launches are ordered by, by order and launch."""
    bounds = store.select(engine, "v1_potential", run_id=run_id)
    counters = store.select(engine, "v1_counter_values", run_id=run_id)
    named = {"potential": "speedup", "ceiling": "speedup_ceiling", "limit": "bound"}
    return {
        **{order: {row["launch_id"]: row[column] for row in bounds} for order, column in named.items()},
        "saving": {
            row["launch_id"]: row["saving_ns"] for row in store.select(engine, "v1_causes", run_id=run_id, rank=1)
        },
        **{
            order: {row["launch_id"]: row["value"] for row in counters if row["counter"] == counter}
            for order, counter in (("compute", "sol_sm_fraction"), ("memory", "sol_memory_fraction"))
        },
    }


@pytest.mark.parametrize("order", LAUNCH_ORDERS)
def test_launches_come_in_every_order_page_by_page(demo, run_id, order):
    key = {"launch": "launch_index", "duration": "duration_ns", "kernel": "kernel_short"}
    values = _values(demo, run_id)
    for down in ("", "-"):
        whole, truncated = store.list_launches(demo, run_id, order=down + order, limit=100)
        assert (len(whole), truncated) == (34, False)
        found = [row[key[order]] if order in key else values[order].get(row["launch_id"]) for row in whole]
        known = [value for value in found if value is not None]
        assert known == sorted(known, reverse=bool(down))
        assert found == known + [None] * (34 - len(known))
        pages = [store.list_launches(demo, run_id, order=down + order, skip=skip, limit=20) for skip in (0, 20)]
        assert [row for rows, _ in pages for row in rows] == whole
        assert [more for _, more in pages] == [True, False]


def test_launches_of_one_kernel(demo, run_id):
    one = store.select(demo, "v1_launches", run_id=run_id)[5]
    for order in LAUNCH_ORDERS:
        rows, _ = store.list_launches(demo, run_id, store.LaunchFilter(kernel_id=one["kernel_id"]), order=order)
        assert {row["kernel"] for row in rows} == {one["kernel"]}
        assert rows


def test_launches_are_filtered_by_all_that_is_given(demo, run_id):
    whole = store.select(demo, "v1_launches", run_id=run_id)
    costly = store.select(demo, "v1_causes", run_id=run_id, cause="bank_conflicts")
    one = whole[0]
    only = {
        "kernel": ("SHARED_conf", {row["launch_id"] for row in whole if "shared_conf" in row["kernel"]}),
        "cause": ("bank_conflicts", {row["launch_id"] for row in costly}),
        "upload_id": (one["upload_id"], {row["launch_id"] for row in whole}),
        "device_id": (one["device_id"], {row["launch_id"] for row in whole}),
        "stream": (one["stream"], {row["launch_id"] for row in whole if row["stream"] == one["stream"]}),
    }
    for name, (value, expected) in only.items():
        for order in LAUNCH_ORDERS:
            rows, _ = store.list_launches(demo, run_id, store.LaunchFilter(**{name: value}), order=order, limit=100)
            assert {row["launch_id"] for row in rows} == expected
            assert expected
    every = store.LaunchFilter(**{name: value for name, (value, _) in only.items()})
    rows, _ = store.list_launches(demo, run_id, every)
    assert {row["launch_id"] for row in rows} == set.intersection(*(expected for _, expected in only.values()))
    assert store.count_launches(demo, run_id, every) == len(rows)
    assert store.count_launches(demo, run_id, store.LaunchFilter(kernel="100%")) == 0


def test_facets_count_every_launch(demo, run_id):
    facets = store.launch_facets(demo, run_id)
    assert {name: sum(row["launches"] for row in rows) for name, rows in facets.items()} == dict.fromkeys(
        ("device", "stream", "source"), 34
    )
    assert [row["title"] for row in facets["device"]] == ["NVIDIA H200"]


def test_the_launches_of_a_cause_are_those_it_costs_most(demo, run_id):
    rows = store.select(demo, "v1_causes", run_id=run_id)
    (pair, *_), limit = [(row["kernel_id"], row["cause"]) for row in store.costly_causes(demo, run_id, 5)], 2
    kernels = {row["launch_id"]: row["kernel_id"] for row in store.select(demo, "v1_launches", run_id=run_id)}
    expected = sorted(
        (row["saving_ns"] for row in rows if (kernels.get(row["launch_id"]), row["cause"]) == pair), reverse=True
    )
    found = store.costly_launches(demo, run_id, [pair], limit)
    assert [row["saving_ns"] for row in found[pair]] == expected[:limit]
    assert store.costly_launches(demo, run_id, [], limit) == {}


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

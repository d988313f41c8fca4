"""The list of runs: found by any word, in every order, page by page, counted up to a limit; on both databases."""

import io

import pytest
from sqlalchemy import text

from profsvc import pipeline, store
from profsvc.errors import UsageError
from profsvc.store.connection.transactions import kept_connections, writing
from profsvc.store.queries.runs import listing as run_list
from profsvc.store.queries.runs.listing import RUN_ORDERS
from tests.conftest import ROOT, copied

PLAIN = ROOT / "fixtures" / "ncu_raw" / "plain.csv"
RUNS = 5


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def engine(request, tmp_path_factory):
    """A store with five runs; tests only read it."""
    folder = tmp_path_factory.mktemp("runs")
    if request.param == "sqlite":
        yield from _filled(str(folder / "store.sqlite"), folder)
        return
    server, template = (request.getfixturevalue(f"postgres_{name}") for name in ("server", "whole_template"))
    with copied(server, template) as url:
        yield from _filled(url, folder)


def _filled(url, folder):
    made = store.open_store(url)
    for number in range(RUNS):
        device = b"NVIDIA H200" if number < 3 else b"Tesla V100"
        content = PLAIN.read_bytes().replace(b"saxpy", b"kernel%d" % number).replace(b"NVIDIA H200", device)
        run = store.RunInfo(
            name=f"night-{number}", project="lab" if number % 2 else "Other_100%", commit_id=f"c{number}",
            tags={"branch": f"b{number}", "case": "X"},
        )  # fmt: skip
        path = folder / f"{number}.csv"
        path.write_bytes(content)
        with path.open("rb") as stream:
            pipeline.ingest(made, stream, path.name, run, files=store.blob_store_of(made, free_bytes=1))
    with writing(made) as connection:
        connection.execute(text("UPDATE uploads SET gpu_time_ns = 1000 * (upload_id % 3) WHERE upload_id > 1"))
        connection.execute(text("UPDATE uploads SET gpu_time_ns = NULL WHERE upload_id = 1"))
    with kept_connections(made):  # a new one takes longer than most questions
        yield made
    made.dispose()


def names(page):
    return [int(row["name"].removeprefix("night-")) for row in page.rows]


def test_runs_are_found(engine):
    def found(**only):
        page = store.list_runs(engine, store.RunFilter(**only))
        assert page.total == len(page.rows)
        return names(page)

    assert found() == [4, 3, 2, 1, 0]
    assert found(search="NIGHT-3") == [3]
    assert found(search="lab") == found(project="lab") == [3, 1]
    assert found(search="v100") == found(device="Tesla V100") == [4, 3]
    assert found(search="lab v100") == [3]
    assert found(search="c2") == found(commit="c2") == [2]
    assert found(search="branch=b4") == found(tag="branch=b4") == [4]
    assert found(tag="case") == found(search="case=x") == [4, 3, 2, 1, 0]
    assert found(tag="case=x") == found(search="nothing") == []
    assert found(search="other_1") == [4, 2, 0]
    assert found(search="100%") == [4, 2, 0]
    assert found(search="night%3") == found(search="night_3") == []  # signs of LIKE mean themselves


def test_a_token_of_a_project_lists_that_project(engine):
    page = store.list_runs(engine, project="lab")
    assert (names(page), page.total) == ([3, 1], 2)
    assert store.list_runs(engine, store.RunFilter(project="Other_100%"), project="lab").rows == []


@pytest.mark.parametrize("order", RUN_ORDERS)
def test_runs_come_in_every_order_page_by_page(engine, order):
    for down in ("", "-"):
        whole = names(store.list_runs(engine, order=down + order))
        assert sorted(whole) == list(range(RUNS))
        pages = [store.list_runs(engine, order=down + order, skip=skip, limit=2) for skip in (0, 2, 4, 6)]
        assert [number for page in pages for number in names(page)] == whole
        assert [page.truncated for page in pages] == [True, True, False, False]
        assert {page.total for page in pages} == {RUNS}
    if order == "time":  # runs without a time come last, whichever way
        assert (
            names(store.list_runs(engine, order="-time"))[-1] == names(store.list_runs(engine, order="time"))[-1] == 0
        )


def test_a_run_is_shown_as_its_views_have_it(demo):
    engine, row = demo, store.list_runs(demo).rows[0]
    view = store.select(engine, "v1_runs", run_id=row["run_id"])[0]
    assert {name: row[name] for name in view} == view
    bound = store.select(engine, "v1_potential", run_id=row["run_id"], launch_id=None, kernel=None)[0]
    assert (row["potential"], row["ceiling"], row["bound"]) == (
        bound["speedup"],
        bound["speedup_ceiling"],
        bound["bound"],
    )
    known = [
        one for one in store.select(engine, "v1_criteria", run_id=row["run_id"], launch_id=None, kernel=None)
        if one["value"] is not None
    ]  # fmt: skip
    worst = max(known, key=lambda one: (one["speedup"] or 1.0, -one["value"]))
    assert (row["worst_criterion"], row["worst_value"]) == (worst["criterion"], worst["value"])
    assert row["mean_power_w"] is None


def test_more_runs_than_are_counted_are_said(engine, monkeypatch):
    monkeypatch.setattr(run_list, "MAX_COUNTED_RUNS", 3)
    assert store.list_runs(engine).total == 4


def test_a_run_of_logs_alone_is_on_the_one_device_that_they_name(engine):
    head = "timestamp, index, name, power.draw [W]"
    logs = {"one": ["NVIDIA T4"], "alike": ["NVIDIA L4", "NVIDIA L4"], "two": ["NVIDIA T4", "NVIDIA L4"]}
    made = []
    try:
        for run, boards in logs.items():
            rows = [f"2026/03/04 10:00:00.000, {index}, {name}, 31.5 W" for index, name in enumerate(boards)]
            file = io.BytesIO("\n".join([head, *rows, ""]).encode())
            how = pipeline.ReadOptions(zone="UTC")
            made.append(pipeline.ingest(engine, file, "smi.csv", store.RunInfo(name=run), how).run_id)
        found = {row["name"]: row["device"] for row in store.list_runs(engine).rows if row["run_id"] in made}
        assert found == {"one": "NVIDIA T4", "alike": "NVIDIA L4", "two": None}
        for only in ({"device": "NVIDIA L4"}, {"search": "l4"}):
            page = store.list_runs(engine, store.RunFilter(**only))
            assert {row["name"] for row in page.rows} == {"alike", "two"}
    finally:
        for number in made:
            store.delete_run(engine, number)


@pytest.mark.parametrize(
    ("options", "match"),
    [({"order": "luck"}, "can be run or name"), ({"skip": -1}, "be skipped"), ({"skip": 2**60}, "be skipped"),
     ({"only": store.RunFilter(search="a\0")}, "NUL")],
)  # fmt: skip
def test_what_cannot_be_asked_is_refused(demo, options, match):
    with pytest.raises(UsageError, match=match):
        store.list_runs(demo, options.pop("only", store.RunFilter()), **options)

"""The timeline of a run has the events of the store: as many and as long at every level of detail."""

import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta

import pytest

from profsvc import pipeline, store
from profsvc.analysis.launches import time_levels
from profsvc.errors import NotFoundError, UsageError
from profsvc.reports.plots.timeline import draw
from profsvc.views.traces import timeline as module
from profsvc.views.traces.timeline import search, timeline
from tests.conftest import ROOT

FILES = ("nvprof/gpu_trace.csv", "nsys_stats/several_reports.csv")


@pytest.fixture(scope="module")
def traced(made_once):
    """A store with a run of two traces; tests only read it."""

    def fill(engine):
        for name in FILES:
            with (ROOT / "fixtures" / name).open("rb") as stream:
                pipeline.ingest(engine, stream, name.replace("/", "_"), store.RunInfo(name="traced"))

    engine = store.open_store(str(made_once("traced", fill)), pooled=True)
    yield engine
    engine.dispose()


def totals(view):
    found = {}
    for lane in view["lanes"]:
        count, busy = found.get(lane["kind"], (0, 0))
        found[lane["kind"]] = count + sum(lane["events"]), busy + sum(lane["busy_ns"])
    return found


def stored(engine):
    views = {"kernels": "v1_launches", "transfers": "v1_transfers", "api_calls": "v1_api_calls", "ranges": "v1_ranges"}
    found = {}
    for kind, view in views.items():
        rows = [row for row in store.select(engine, view) if row["start_ns"] is not None]
        if rows:
            found[kind] = len(rows), sum(round(row["duration_ns"] or 0) for row in rows)
    return found


@pytest.mark.parametrize("columns", [1, 2, 7, 600])
def test_every_level_has_all_events_and_their_time(traced, columns):
    view = timeline(traced, "traced", columns=columns)
    assert totals(view) == stored(traced)
    assert sum(count for count, _ in totals(view).values()) == view["events"]


def test_a_zoom_has_the_events_of_its_span_each_as_itself(traced):
    whole = timeline(traced, "traced")
    launches = [row for row in store.select(traced, "v1_launches") if row["start_ns"] is not None]
    one = max(launches, key=lambda row: row["duration_ns"])
    begin = one["start_ns"] - whole["begin_ns"]
    view = timeline(traced, "traced", begin, begin + round(one["duration_ns"]))
    lane = next(lane for lane in view["lanes"] if one["launch_id"] in lane["number"])
    at = lane["number"].index(one["launch_id"])
    assert (lane["start_ns"][at], lane["busy_ns"][at]) == (begin, round(one["duration_ns"]))
    assert view["names"][lane["name"][at]] == one["kernel_short"]


def names(engine):
    """Return the start, end, name and kind of each event of the views, by start."""
    begin = timeline(engine, "traced")["begin_ns"]
    columns = {"v1_launches": ("kernel_short", "kernels"), "v1_transfers": ("kind", "copies"),
               "v1_api_calls": ("name", "API calls"), "v1_ranges": ("name", "ranges")}  # fmt: skip
    rows = [
        (row["start_ns"] - begin, row["start_ns"] - begin + round(row["duration_ns"] or 0), row[name], kind)
        for view, (name, kind) in columns.items()
        for row in store.select(engine, view)
        if row["start_ns"] is not None
    ]
    return sorted(rows, key=lambda row: row[0])


def test_the_events_of_a_span_are_summed_by_name(traced, monkeypatch):
    monkeypatch.setattr(module, "MAX_NAMES", 10**6)
    length = timeline(traced, "traced")["length_ns"]
    for begin, end in ((0, length), (length // 3, length // 2), (length // 2, length // 2 + 1)):
        view = timeline(traced, "traced", begin, end, columns=1)
        expected = {}
        for start, stop, name, kind in names(traced):
            if start < end and (stop > begin or start >= begin):
                events, time_ns = expected.get((name, kind), (0, 0))
                expected[name, kind] = events + 1, time_ns + min(stop, end) - max(start, begin)
        found = {(row["name"], row["kind"]): (row["events"], row["time_ns"]) for row in view["by_name"]}
        assert found == expected
        assert view["names_in_span"] == len(expected)
        times = [row["time_ns"] for row in view["by_name"]]
        assert times == sorted(times, reverse=True)


def test_events_are_found_by_a_part_of_their_name_one_after_the_other(traced):
    every = names(traced)
    part = every[len(every) // 2][2][1:6]
    wanted = [row for row in every if part.lower() in row[2].lower()]
    assert len(wanted) > 2
    steps = [search(traced, "traced", part.upper(), match) for match in range(len(wanted))]
    assert {one["events"] for one in steps} == {len(wanted)}
    assert {one["time_ns"] for one in steps} == {sum(stop - start for start, stop, _, _ in wanted)}
    found = [(one["match"]["start_ns"], one["match"]["end_ns"], one["match"]["name"]) for one in steps]
    assert sorted(found) == sorted(row[:3] for row in wanted)
    assert [start for start, _, _ in found] == [row[0] for row in wanted]
    view = timeline(traced, "traced")
    for one in (step["match"] for step in steps):
        lane = view["lanes"][one["lane"]]
        assert (one["group"], one["title"]) == (lane["group"], lane["title"])
        assert one["start_ns"] in lane["start_ns"]
    assert search(traced, "traced", part, len(wanted))["match"]["ordinal"] == 0
    assert search(traced, "traced", part, -1)["match"]["ordinal"] == len(wanted) - 1
    last = wanted[-1][0]
    assert search(traced, "traced", part, from_ns=last)["match"]["start_ns"] == last
    assert search(traced, "traced", part, from_ns=last + 1)["match"]["ordinal"] == 0
    assert search(traced, "traced", "no such thing")["match"] is None
    with pytest.raises(UsageError, match="part of the name"):
        search(traced, "traced", "")


def test_every_lane_has_its_own_name(traced):
    lanes = [(lane["group"], lane["title"]) for lane in timeline(traced, "traced")["lanes"]]
    assert any(title.endswith(", level 2") for _, title in lanes)
    assert len(set(lanes)) == len(lanes)


def test_a_lane_with_more_at_once_than_lanes_says_that_it_is_approximate(traced, monkeypatch):
    assert not any(
        lane["approximate"] or "approximate" in lane["title"] for lane in timeline(traced, "traced")["lanes"]
    )
    monkeypatch.setattr(time_levels, "MAX_DEPTH", 1)
    monkeypatch.setattr(module, "_HELD", module._Held())
    lanes = timeline(traced, "traced")["lanes"]
    assert any(lane["approximate"] for lane in lanes)
    assert all(lane["approximate"] == ("approximate" in lane["title"]) for lane in lanes)
    assert totals(timeline(traced, "traced", columns=600))["kernels"][0] == stored(traced)["kernels"][0]


def test_the_answer_does_not_grow_with_the_events(traced, monkeypatch):
    monkeypatch.setattr(module, "MAX_ITEMS", 7)
    view = timeline(traced, "traced")
    assert all(len(lane["start_ns"]) <= 1 for lane in view["lanes"])
    assert totals(view) == stored(traced)


def test_another_file_is_seen_at_once(engine):
    seen = []
    for name in FILES:
        with (ROOT / "fixtures" / name).open("rb") as stream:
            pipeline.ingest(engine, stream, name.replace("/", "_"), store.RunInfo(name="traced"))
        seen.append(timeline(engine, "traced")["events"])
        assert totals(timeline(engine, "traced")) == stored(engine)
    assert seen[0] < seen[1]


BEGIN_NS = 1_700_000_000_000_000_000


def session(tmp_path, name, begin_ns, later_ns=0):
    """Write a database whose session began at a time; its kernels last longer by some."""
    file = tmp_path / f"{name}.sqlite"
    file.write_bytes((ROOT / "fixtures" / "nsys_sqlite" / "two_devices.sqlite").read_bytes())
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("create table if not exists TARGET_INFO_SESSION_START_TIME(utcEpochNs)")
        connection.execute("delete from TARGET_INFO_SESSION_START_TIME")
        connection.execute("insert into TARGET_INFO_SESSION_START_TIME(utcEpochNs) values (?)", (begin_ns,))
        connection.execute("update CUPTI_ACTIVITY_KIND_KERNEL set end = end + ?", (later_ns,))
    return file


def ingest(engine, file, name=None):
    with file.open("rb") as stream:
        pipeline.ingest(
            engine, stream, name or file.name, store.RunInfo(name="ranks"), pipeline.ReadOptions(zone="UTC")
        )


def power_log(tmp_path, begin_ns, boards=1):
    file = tmp_path / "power.csv"
    times = [datetime.fromtimestamp(begin_ns / 1e9, UTC) + timedelta(milliseconds=k) for k in range(20)]
    lines = [f"{time:%Y/%m/%d %H:%M:%S}.{time.microsecond // 1000:03d}, {board}, {100 + k}.00 W"
             for k, time in enumerate(times) for board in range(boards)]  # fmt: skip
    file.write_text("\n".join(["timestamp, index, power.draw [W]", *lines, ""]))
    return file


def test_sessions_are_laid_where_they_began(engine, tmp_path):
    later = 2_000_000
    ingest(engine, session(tmp_path, "rank0", BEGIN_NS))
    alone = timeline(engine, "ranks")
    assert (alone["sessions"], alone["aligned"], alone["lanes"][0]["group"]) == (1, True, "GPU 0")
    ingest(engine, session(tmp_path, "rank1", BEGIN_NS + later, 91))
    view = timeline(engine, "ranks")
    assert (view["sessions"], view["aligned"], view["begin_ns"]) == (2, True, alone["begin_ns"])
    starts = {rank: {(lane["group"].split(" of ")[0], lane["title"]): lane["start_ns"]
                     for lane in view["lanes"] if lane["kind"] != "kernels" and lane["group"].endswith(rank)}
              for rank in ("rank0.sqlite", "rank1.sqlite")}  # fmt: skip
    assert len(starts["rank0.sqlite"]) > 3
    shifted = {key: [one + later for one in values] for key, values in starts["rank0.sqlite"].items()}
    assert shifted == starts["rank1.sqlite"]
    assert totals(view) == stored(engine)
    assert len({row["name"] for row in view["by_name"]}) == len(view["by_name"])


def test_sessions_of_files_with_one_name_have_the_upload_in_their_lanes(engine, tmp_path):
    for number in (0, 1):
        ingest(engine, session(tmp_path, f"rank{number}", BEGIN_NS + number, number), "report.sqlite")
    groups = {lane["group"] for lane in timeline(engine, "ranks")["lanes"] if lane["kind"] == "kernels"}
    assert groups == {f"GPU {gpu} of report.sqlite (upload {upload})" for gpu in (0, 1) for upload in (1, 2)}


def test_a_session_is_not_aligned_with_a_file_whose_begin_is_unknown(engine, tmp_path):
    ingest(engine, session(tmp_path, "rank0", BEGIN_NS))
    ingest(engine, ROOT / "fixtures" / FILES[0])
    view = timeline(engine, "ranks")
    assert (view["aligned"], view["sessions"]) == (False, 1)
    assert view["length_ns"] < BEGIN_NS
    assert totals(view) == stored(engine)


def test_a_page_of_the_same_report_without_a_begin_hinders_nothing(engine, tmp_path):
    ingest(engine, session(tmp_path, "rank0", BEGIN_NS))
    alone = timeline(engine, "ranks")
    file = session(tmp_path, "rank1", BEGIN_NS)
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("delete from TARGET_INFO_SESSION_START_TIME")
    ingest(engine, file)
    assert [row["same_as"] for row in store.select(engine, "v1_uploads")] == [None, 1]
    view = timeline(engine, "ranks")
    assert view == alone


@pytest.mark.parametrize("boards", [1, 3])
def test_power_of_a_log_is_drawn_beside_a_session_whose_begin_is_known(engine, tmp_path, boards):
    ingest(engine, session(tmp_path, "rank0", BEGIN_NS))
    ingest(engine, power_log(tmp_path, BEGIN_NS, boards))
    view = timeline(engine, "ranks")
    names = ["power.draw"] if boards == 1 else [f"power.draw of GPU {board}" for board in range(boards)]
    assert [one["name"] for one in view["sensors"]] == names
    first = view["sensors"][0]
    inside = [k for k in range(20) if 0 <= BEGIN_NS + k * 1_000_000 - view["begin_ns"] <= view["length_ns"]]
    assert first["value"] == [100.0 + k for k in inside]
    assert first["time_ns"] == [BEGIN_NS + k * 1_000_000 - view["begin_ns"] for k in inside]
    assert len(inside) > 3


def test_what_cannot_be_shown_is_said(traced, demo, monkeypatch):
    with pytest.raises(NotFoundError, match="upload a trace"):
        timeline(demo, "h200")
    with pytest.raises(UsageError, match="before to_ns"):
        timeline(traced, "traced", 5, 5)
    with pytest.raises(UsageError, match="columns=0"):
        timeline(traced, "traced", columns=0)
    monkeypatch.setattr(module, "_HELD", module._Held())
    monkeypatch.setattr(module, "MAX_EVENTS", 2)
    with pytest.raises(UsageError, match="export perfetto"):
        timeline(traced, "traced")


def test_the_picture_is_svg_with_a_row_per_lane(traced):
    view = timeline(traced, "traced")
    svg = draw(view).decode()
    assert svg.startswith("<svg ")
    assert svg.count("<text") == len(view["lanes"]) + len(view["sensors"]) + 5
    hostile = view | {"lanes": [view["lanes"][0] | {"title": "<script>"}]}
    assert "<script" not in draw(hostile).decode()

"""Every number on every page leads to what it means, how it came about and, where it is known, its file and line."""

import re
from urllib.parse import unquote

import pytest
from sqlalchemy import text

from profsvc import specs, store
from profsvc.errors import NotFoundError
from profsvc.views.explain.numbers import explain
from profsvc.views.explain.rows import row_steps
from tests.web.pages.browser.numbers import Numbers, is_number
from tests.web.pages.browser.walked import WALKED

UNDONE = re.compile(r'<a class="number" data-explain[^>]*>([^<]*)</a>')
HTML = {"accept": "text/html"}
WITHOUT = {
    *(
        "runs-none",
        "models",
        "upload",
        "login",
        "explain",
        "sql",
        "sql-values",
        "compare-choose",
        "timeline",
        "renames",
    ),
    *(
        "docs",
        "docs-criteria",
        "docs-commands",
        "settings",
        "settings-storage",
        "settings-schedules",
        "settings-channels",
        "api",
        "api-view",
        "api-body",
    ),
}
"""Pages without a number in a table, a tile or a list of facts."""


@pytest.mark.parametrize(
    "text",
    ["12", "-3.5 W", "1\u202f234 ns", "300 [299, 301]", "\u22129 %", "8.76\xd7", "1.5e-07", "131072 \xd7 1 \xd7 1",
     "+6.4 %", "302.6 W -> 318.9 W (+5.4 %)", "37 launches", "0", "1,234.5", "50 \u00b1 2", "~3 ms"],
)  # fmt: skip
def test_a_number_is_known_as_one(text):
    assert is_number(text)


@pytest.mark.parametrize(
    "text",
    ["", "\u2013", "2026-11-21", "2026-11-21 04:00", "4268209c", "0000009", "127.0.0.1", "3 of them are not known",
     "reduce_v1", "#3", "ncu", "10 MB would be too many"],
)  # fmt: skip
def test_other_texts_are_none(text):
    assert not is_number(text)


@pytest.mark.parametrize(
    ("inside", "bare"),
    [
        ("<table><tbody><tr><td>1.5 W</td></tr></tbody></table>", ["1.5 W"]),
        (
            "<table><thead><tr><th>a</th><th>b</th></tr></thead><tr><td><code>7</code></td><td>7</td></tr></table>",
            ["7"],
        ),
        ('<table><thead><tr><th><a data-explain href="/x">W</a></th></tr></thead><tr><td>1.5</td></tr></table>', []),
        ('<table><tr><td><a data-explain href="/x">1.5 W</a></td><td><time>2026</time></td></tr></table>', []),
        ('<table><tr><td><a href="/runs/2026">2026</a><span class="named">42</span></td></tr></table>', []),
        ("<dl><dt>p</dt><dd>0.01</dd></dl>", ["0.01"]),
        ('<section class="tile"><div class="big">2\xd7</div><p class="muted">ideal of it all</p></section>', ["2\xd7"]),
        ('<ol class="advice"><li><b>\u22129 %</b> less</li></ol>', ["\u22129 %"]),
    ],
)
def test_a_number_without_an_explanation_is_found(inside, bare):
    assert [place.text for place in Numbers(f"<main><p>3</p>{inside}</main>").bare] == bare


def test_every_number_leads_to_what_it_means(shown):
    """And each explanation that is led to says how the number comes about, down to the file where it names a row."""
    led = dict[str, str]()
    for one in WALKED:
        text = shown.html(one.path)
        found = Numbers(text)
        assert found.bare == [], one.name
        assert bool(found.explained) != (one.status != 200 or one.name in WITHOUT), one.name
        assert len(Numbers(UNDONE.sub(r"\1", text)).bare) >= bool(found.explained), one.name
        for link in found.explained:
            name = unquote(link.partition("?")[0].removeprefix("/explain/"))
            led[name] = link if name not in led or "row=" in link else led[name]
    assert len(led) > 150
    of_a_kind = [name for name in led if name in specs.counters() or name in specs.model_inputs()]
    for name in set(led) - set(of_a_kind[10:]):
        answer = shown.service.http.get(f"{shown.service.url}{led[name]}{'&' if '?' in led[name] else '?'}part=1")
        assert answer.status_code == 200, name
        assert re.search('class="formula"|Read from:|Counters used|class="trace"', answer.text), (
            name,
            answer.text,
        )
        assert "row=" not in led[name] or 'class="trace"' in answer.text, (name, answer.text)


def test_a_number_of_a_row_leads_to_its_file_and_line(shown):
    def explained(name, **where):
        answer = shown.service.get(f"/explain/{name}", part="1", **where)
        assert answer.status_code == 200
        return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", "", answer.text))

    engine, run = shown.service.site.engine, shown.numbers["traced"]
    one = store.select(engine, "v1_kernel_summaries", run_id=run)[0]
    text = explained("v1_kernel_summaries.total_ns", run=run, row=one["summary_id"])
    assert f"from several_reports.csv line {one['line']}" in text
    assert "Total Time" in text
    board = shown.numbers["board"]
    text = explained("v1_power.energy_j", run=board, row=store.select(engine, "v1_power", run_id=board)[0]["item"])
    assert "v1_power.mean_power_w = " in text
    assert "from power_smi.csv.gz" in text
    assert "datasheet" in explained("device.dram_peak_bytes_per_s", device="NVIDIA H200")


def test_a_row_that_is_not_there_is_said(shown):
    run = shown.numbers["run"]
    for path, status, said in (
        (f"/explain/v1_power.energy_j?run={run}&row=99", 200, "has no row 99 in v1_power"),
        (f"/explain/v1_criteria.value?run={run}&row=1", 200, "have no number, so"),
        (f"/explain/divergence?run={run}&row=1", 200, "no view named"),
        (f"/explain/v1_runs.launches?run={run}&row={run + 1}", 200, "has no row"),
        (f"/explain/v1_runs.launches?run={run}&row=x", 400, "must be the number of a row"),
        ("/explain/device.luck?device=NVIDIA+H200", 404, "no criterion"),
        ("/explain/device.sms?device=nothing", 200, "property of a device"),
    ):
        answer = shown.service.http.get(shown.service.url + path, headers=HTML)
        assert answer.status_code == status, path
        assert said in answer.text, (path, answer.text)


def test_a_view_without_runs_has_no_rows_to_explain(demo):
    with pytest.raises(NotFoundError, match="have no number, so"):
        row_steps(demo, "v1_reports.series", 1, 1)
    steps = row_steps(demo, "v1_runs.launches", 1, 1)
    assert [step.get("value") for step in steps] == [34, None]
    assert steps[1]["file"] == "ncu_raw.csv.gz"


HEADS = re.compile(r"^/explain/(figure|run|v1_kernel_totals|v1_characterizations)\.")
"""Titles of columns, whose numbers have no row of their own."""
WORDS = {
    "criterion", "model", "quantity", "bound", "ideal_bound", "flag", "flags", "ceiling_flags", "kind", "limit",
    "limits", "law", "counter", "source", "status", "state", "statistic", "direction",
}  # fmt: skip
"""Columns of the views that hold names, not texts."""
JOBS = {"v1_schedules", "v1_schedule_runs", "v1_deliveries"}


def test_every_name_that_sql_prints_can_be_explained(shown):
    engine, walked = shown.service.site.engine, set()
    with engine.connect() as connection:
        for view, (_, columns) in store.VIEWS.items():
            for column in WORDS & set(columns) if view not in JOBS else ():
                for (found,) in connection.execute(text(f"select distinct {column} from {view}")).all():
                    walked |= set(found.split() if "flag" in column else [found]) if isinstance(found, str) else set()
    unknown = []
    for name in sorted(walked):
        try:
            assert explain(engine, name, None, None)["meaning"]
        except NotFoundError:
            unknown.append(name)
    assert unknown == []
    assert {"inputs", "hot_spot", "rc_rise_s", "segments_left_out", "UPPER_BOUND"} <= walked


def test_a_name_of_a_power_model_leads_to_its_rows(shown):
    engine, run = shown.service.site.engine, shown.numbers["board"]
    rows = store.select(engine, "v1_power_models", run_id=run, quantity="rc_rise_s")
    found = explain(engine, "rc_rise_s", run, None)["trace"]
    assert [one["value"] for one in found] == [row["value"] for row in rows] != []


def test_numbers_of_a_launch_and_of_a_run_lead_to_their_rows(shown):
    """A link without a run leads only to what is of no run, and one with a run tells its value there."""
    for page in ("/runs/{run}", "/runs/{run}/launches/{launch}", "/runs/{run}/kernels/10"):
        links = dict.fromkeys(link for link in Numbers(shown.html(page)).explained)
        bare = {link for link in links if "?" not in link and not HEADS.search(link)}
        assert bare == set(), page
        for name in ("v1_potential.", "v1_criteria.", "advice.saving", "launch.useful"):
            for link in [one for one in links if one.startswith(f"/explain/{name}")][:3]:
                answer = shown.service.http.get(f"{shown.service.url}{link}&part=1")
                assert 'class="trace"' in answer.text, (link, answer.text)

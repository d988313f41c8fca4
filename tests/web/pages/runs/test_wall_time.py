"""The wall time on the page of a run: the same rows as elsewhere, and every number leads to its origin."""

import html
import re

from profsvc import pipeline, store, views
from profsvc.client import Client
from tests.conftest import ROOT
from tests.views.traces.test_wall_time import STEPS, trace
from tests.web.conftest import running
from tests.web.pages.conftest import window

TRACE = ROOT / "fixtures" / "nsys_sqlite" / "two_devices.sqlite"


def test_the_page_and_the_api_have_the_rows_of_the_view(site, engine):
    with TRACE.open("rb") as stream:
        pipeline.ingest(engine, stream, TRACE.name, store.RunInfo(name="trace"))
    lanes = views.run(engine, 1)["wall_time"]
    with running(site()) as service:
        text = service.http.get(f"{service.url}/runs/1", headers={"accept": "text/html"}).text
        section = text[text.index('id="wall-time"') :]
        for lane in lanes:
            assert all(row["title"] in html.unescape(section) for row in lane["budget"])
        assert section.count('class="bar stacked"') == len(lanes)
        paths = re.findall(r'href="(/explain/v1_wall_time\.[^"]+)"', section)
        assert len(paths) > 4
        for path in paths[:3]:
            answer = service.http.get(service.url + html.unescape(path), headers={"accept": "text/html"})
            assert answer.status_code == 200, path
        assert service.http.get(f"{service.url}/v1/runs/1").json()["wall_time"] == lanes
        rows = service.http.get(f"{service.url}/v1/wall_time.json").json()["rows"]
        assert sum(row["time_ns"] for row in rows) == sum(lane["wall_ns"] for lane in lanes)


def test_a_colour_is_one_kind_of_time_in_all_bars_of_the_page(site, engine):
    with TRACE.open("rb") as stream:
        pipeline.ingest(engine, stream, TRACE.name, store.RunInfo(name="trace"))
    colour_of = re.compile(r'<rect class="(part-\d)"[^>]*><title>(\w+)')
    with running(site()) as service:
        text = service.http.get(f"{service.url}/runs/1", headers={"accept": "text/html"}).text
    top, _, lower = text.partition('id="wall-time"')
    summary = {title: colour for colour, title in colour_of.findall(top)}
    assert set(summary) == {"Kernels", "Copies", "Idle"}
    wanted = {"Kernels": "Kernels", "Exposed": "Copies", "Gaps": "Idle", "Launch": "Idle", "Host": "Idle"}
    parts = colour_of.findall(lower)
    assert len(parts) > 4
    assert all(colour == summary[wanted[title]] for colour, title in parts)


def test_names_and_remarks_fit_into_the_first_column_of_a_phone(chromium, site, engine):
    with TRACE.open("rb") as stream:
        pipeline.ingest(engine, stream, TRACE.name, store.RunInfo(name="trace"))
    with running(site()) as service, window(chromium, service.url, viewport={"width": 400, "height": 900}) as found:
        found.open("/runs/1")
        outside = found.page.evaluate(
            """() => [...document.querySelectorAll("td .note")].filter(one =>
            one.getBoundingClientRect().right > one.closest("td").getBoundingClientRect().right + 1).length"""
        )
        broken = found.page.evaluate(
            """() => { const cells = [...document.querySelectorAll("td")];
            const cell = cells.find(one => one.innerText.startsWith("Host sync"));
            const range = document.createRange(); range.setStart(cell.firstChild, 5); range.setEnd(cell.firstChild, 20);
            return [range.toString(), range.getClientRects().length]; }"""
        )
    assert outside == 0
    assert broken == ["synchronization", 1]


def test_who_arrives_last_at_collectives_is_on_the_page_and_in_the_api(site):
    with running(site()) as service:
        for rank, length in enumerate((3000.0, 2500.0)):
            assert service.upload(trace(rank, length), run="ddp").status_code == 201
        text = html.unescape(service.http.get(f"{service.url}/runs/1", headers={"accept": "text/html"}).text)
        section = text[text.index('id="wall-time"') :]
        assert section.count("Waits up to 1.5 ms in collectives for device 1") == 1
        assert section.count("Arrives last at collectives: the others wait for it.") == 1
        with Client(service.url) as client:
            waits = [lane["waits_ns"] for lane in client.run("ddp")["wall_time"]]
        assert sorted(waits) == [0, STEPS * 500_000]
        assert [lane["waits_ns"] for lane in service.ok("/v1/runs/ddp")["wall_time"]] == waits

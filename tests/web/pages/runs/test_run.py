"""The page of a run: where time can be saved, and its launches filtered, ordered and cut by the address."""

import re

import pytest

from profsvc import store
from profsvc.web.pages.runs.wall_time import wall_time_summary
from tests.web.conftest import PLAIN, SMI, running
from tests.web.pages.conftest import window


def rows_of(text, caption):
    table = text.partition(f">{caption}</caption>")[2].partition("</table>")[0]
    found = re.findall(r"<tr>(.*?)</tr>", table.partition("<tbody>")[2], re.DOTALL)
    return [" ".join(re.sub(r"<[^>]*>", " ", row).split()) for row in found]


def test_what_saves_most_comes_first(shown):
    engine, run = shown.service.site.engine, shown.numbers["run"]
    text = shown.html("/runs/{run}")
    rows = rows_of(text, "Kernels and causes by time saved")
    best = store.costly_causes(engine, run, 8)
    assert len(rows) == len(best)
    assert [one["title"] in row for one, row in zip(best, rows, strict=True)] == [True] * len(best)
    assert "shared_conflict" in rows[0]
    assert "11.6 %" in rows[0]
    assert text.index("Kernels and causes by time saved") < text.index('id="launches"')
    assert f'href="/runs/{run}/launches/' in text.partition("Kernels and causes by time saved")[2][:3000]


def test_pairs_are_ordered_and_filtered(shown):
    by_kernel = rows_of(shown.html("/runs/{run}?by=kernel&pairs=100"), "Kernels and causes by time saved")
    assert len(by_kernel) > 20
    assert by_kernel == sorted(by_kernel, key=lambda row: row.partition(" ")[0].partition("<")[0].partition("&")[0])
    only = rows_of(shown.html("/runs/{run}?cause=thread_divergence&kernel=reduce"), "Kernels and causes by time saved")
    assert only
    assert all(row.startswith("reduce") and "Thread divergence" in row for row in only)
    assert "No cause matches the filter." in shown.html("/runs/{run}?kernel=nothing+like+it")


def test_launches_are_filtered_by_the_address(shown):
    text = shown.html("/runs/{run}?kernel=gemm&order=kernel&columns=potential&limit=5")
    rows = rows_of(text, "Launches")
    assert rows
    assert all("gemm" in row for row in rows)
    assert "of 34" not in text
    heads = re.findall(r"<th[^>]*>(.*?)</th>", text.partition(">Launches</caption>")[2].partition("</thead>")[0])
    assert [re.sub(r"<[^>]*>| [▲▼]", "", head) for head in heads] == ["#", "kernel", "duration", "potential"]
    assert "launches 1 to " in text
    assert "No launches match." in shown.html("/runs/{run}?kernel=nothing+like+it")
    service = shown.service
    assert service.get(shown.path("/runs/{run}?device=x")).status_code == 400
    assert service.get(shown.path("/runs/{run}?by=luck")).status_code == 400


def test_a_run_of_means_says_what_to_do(shown):
    text = shown.html("/runs/{means}")
    assert 'id="first"' in text
    assert "Kernel averages" in text


def test_the_wall_time_of_all_devices_is_one_bar():
    lanes = [
        {"wall_ns": wall_ns, "budget": [{"category": name, "time_ns": time_ns} for name, time_ns in budget.items()]}
        for wall_ns, budget in (
            (100, {"kernels": 60, "sync_calls": 40}),
            (100, {"host_copies": 20, "kernels": 80}),
            (None, {}),
        )
    ]
    found = wall_time_summary(lanes)
    assert (found["wall_ns"], found["devices"]) == (200, 2)
    assert [(part["name"], part["time_ns"]) for part in found["parts"]] == [
        ("kernels", 140), ("copies", 20), ("idle", 40),
    ]  # fmt: skip
    assert sum(part["width"] for part in found["parts"]) == 100
    assert wall_time_summary([]) is None


def test_the_worst_is_above_the_fold_and_its_launch_one_click_away(chromium, shown):
    with window(chromium, shown.service.url, viewport={"width": 1280, "height": 900}) as found:
        found.open("/")
        found.page.click("main tbody a:text-is('h200')")
        found.page.wait_for_url("**/runs/*")
        row = found.page.locator("table:has(caption:text-is('Kernels and causes by time saved')) tbody tr").first
        box = row.bounding_box()
        assert box["y"] + box["height"] < 900
        row.locator("td:first-child a").click()
        found.page.wait_for_url("**/launches/*")
        assert "wavefronts" in found.page.inner_text("main")


def test_a_cause_opens_to_its_launches_and_filters_by_keys(browser_page, shown):
    browser_page.open(shown.path("/runs/{run}"))
    page = browser_page.page
    page.locator("details.worst summary").first.click()
    page.click("details.worst[open] a:has-text('all in the table')")
    page.wait_for_url("**cause=**#launches")
    assert page.locator("#facet-cause").input_value()
    page.click("text=Clear")
    page.wait_for_url(lambda url: "cause=" not in url)


@pytest.mark.parametrize(
    ("export", "said"),
    [
        (SMI, None),  # a power log has no launches to mend
        (PLAIN, "Unknown: the export lacks the counters that name causes of lost time."),
    ],
)
def test_nothing_is_said_of_causes_that_were_not_counted(site, export, said):
    with running(site()) as service:
        assert service.upload(export.read_bytes(), run="bare").status_code == 201
        text = service.http.get(f"{service.url}/runs/1", headers={"accept": "text/html"}).text
    assert "No mechanism is known" not in text
    assert ('<h2 id="first">' in text) == (said is not None)
    assert said is None or said in text


def test_readings_of_sensors_have_units_that_fit_them(site):
    lines = ["timestamp, power.draw [W], temperature.gpu, clocks.current.sm [MHz], utilization.gpu [%]"]
    lines += [f"2026/11/20 10:00:0{n}.000, 300.00 W, 5{n}, 1980 MHz, 54 %" for n in range(4)]
    with running(site()) as service:
        assert service.upload("\n".join(lines).encode(), run="log").status_code == 201
        text = service.http.get(f"{service.url}/runs/1", headers={"accept": "text/html"}).text
    table = re.sub("<[^>]+>", " ", text[text.index(">Sensors</caption>") : text.index('<h2 id="files">')])
    assert all(said in table for said in ("300 W", "51.5 \u00b0C", "1.98 GHz", "0.54"))
    assert "degC" not in table
    assert 'data-v="1980000000' in text  # what an export takes

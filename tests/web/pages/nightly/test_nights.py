"""Findings, reports and histories as pages: what is listed, what a form sets, and what another project sees of it."""

import re
import statistics

import httpx
import numpy as np
import pytest

from profsvc import store
from profsvc.errors import NotFoundError
from profsvc.views.power import plots as power_plots
from profsvc.views.power.run_power import power
from profsvc.web.http.state import AppState
from tests.inputs import nights
from tests.web.conftest import running
from tests.web.pages.conftest import fill_nights, window

HTML = {"accept": "text/html"}


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """A store with fifteen nights of one project and two of another."""
    file = tmp_path_factory.mktemp("told") / "store.sqlite"
    engine = store.open_store(str(file), pooled=True)
    numbers = fill_nights(engine)
    for night in range(2):
        nights.put(engine, night, np.random.default_rng(1), project="secret", name=f"hidden {night}")
    yield engine, numbers
    engine.dispose()


@pytest.fixture
def closed(told, tmp_path):
    """A copy of it, to be closed by a token."""
    store.backup(told[0], tmp_path / "closed.sqlite")
    engine = store.open_store(str(tmp_path / "closed.sqlite"))
    yield engine, told[1]
    engine.dispose()


@pytest.fixture
def service(told):
    with running(site(told[0])) as found:
        yield found


def site(engine, **options):
    return AppState(engine, store.blob_store_of(engine, free_bytes=1), **options)


def page(service, path, status=200, **options):
    answer = service.http.get(service.url + path, headers=HTML | options.pop("headers", {}), **options)
    assert answer.status_code == status, answer.text[:500]
    return answer.text


def test_findings_are_listed_and_filtered(service):
    everything = page(service, "/findings")
    assert [everything.count(f">gemm {what}<") for what in ("duration", "power", "energy per launch")] == [1, 1, 1]
    assert "gemm power" not in page(service, "/findings?quantity=duration")
    assert "No findings match" in page(service, "/findings?worse=0")
    assert "No findings match" in page(service, "/findings?kernel=nothing")
    assert "No findings match" in page(service, "/findings?state=accepted&state=fixed")
    assert "Showing the newest 1." in page(service, "/findings?limit=1")
    assert "is not a state of a finding" in page(service, "/findings?state=odd", 400)
    assert "worse=&#39;x&#39; is not valid" in page(service, "/findings?worse=x", 400)


def test_a_form_sets_the_state_of_a_finding(closed):
    engine, numbers = closed
    path = f"/findings/{numbers['finding']}"
    form = {"state": "accepted", "because": "<b>wider</b> tiles"}
    with running(site(engine)) as service:
        own = {"origin": service.url}

        def posted(to, data, headers=own):
            return service.http.post(service.url + to, data=data, headers=headers).status_code

        assert "Changing the state needs" not in page(service, path)
        answer = service.http.post(service.url + path, data=form, headers=own)
        assert (answer.status_code, answer.headers["location"]) == (303, path)
        assert "&lt;b&gt;wider&lt;/b&gt; tiles" in page(service, path)
        assert store.select(engine, "v1_findings", finding_id=numbers["finding"])[0]["state"] == "accepted"
        for wrong in ({"state": "accepted"}, {"state": "odd", "because": "x"}, {}):
            assert posted(path, wrong) == 400
        assert posted(path, form, {"origin": "https://evil.example"}) == 403
        assert posted("/findings/999", form) == 404
        assert posted("/findings/x", form) == 404
        assert page(service, "/findings/" + "9" * 30, 404)


def test_a_state_is_set_in_a_browser(chromium, closed):
    engine, numbers = closed
    size = {"width": 1280, "height": 900}
    with running(site(engine)) as service, window(chromium, service.url, viewport=size) as found:
        found.open(f"/findings/{numbers['finding']}")
        found.page.select_option("#state", "accepted")
        found.page.fill("#because", "wider tiles")
        with found.page.expect_navigation():
            found.page.click("button.main")
        assert "wider tiles" in found.page.inner_text("main")
    assert store.select(engine, "v1_findings", finding_id=numbers["finding"])[0]["because"] == "wider tiles"


def test_a_form_links_two_names_and_undoes_it(service, told):
    nights.put(
        told[0], 0, np.random.default_rng(1), project="alone", kernels=("void old_gemm(float *)", nights.KERNELS[1])
    )
    nights.put(told[0], 1, np.random.default_rng(1), project="alone")
    own, form = {"origin": service.url}, {"kernel_before": "old_gemm", "kernel": "gemm", "because": "<b>tiled</b>"}
    assert "No kernel was renamed" in page(service, "/renames?project=alone")
    answer = service.http.post(f"{service.url}/renames", data=form | {"act": "link"}, headers=own)
    assert (answer.status_code, answer.headers["location"]) == (303, "/renames")
    shown = page(service, "/renames")
    assert "&lt;b&gt;tiled&lt;/b&gt;" in shown
    assert "linked" in page(service, "/renames?project=alone")
    assert store.rename_decisions(told[0], "alone")[0]["decision"] == "linked"
    assert service.http.post(f"{service.url}/renames", data=form | {"act": "undo"}, headers=own).status_code == 303
    assert "No kernel was renamed" in page(service, "/renames?project=alone")
    for wrong, status in ((form, 400), (form | {"act": "join"}, 400), (form | {"act": "link", "kernel": "no"}, 404)):
        assert service.http.post(f"{service.url}/renames", data=wrong, headers=own).status_code == status
    elsewhere = {"origin": "https://evil.example"}
    assert (
        service.http.post(f"{service.url}/renames", data=form | {"act": "link"}, headers=elsewhere).status_code == 403
    )


def test_a_finding_whose_first_run_was_deleted_offers_no_comparison(closed):
    engine, numbers = closed
    (row,) = store.select(engine, "v1_findings", finding_id=numbers["finding"])
    with running(site(engine)) as service:
        link = f"/compare/{row['run_before_id']}...{row['run_id']}"
        before = page(service, f"/findings/{numbers['finding']}")
        assert link in before
        assert f"since run {row['run']}, of" in before
        store.delete_run(engine, row["run_id"])
        after = page(service, f"/findings/{numbers['finding']}")
        assert link not in after + page(service, "/findings")
        assert "since a run that was deleted, of" in after


def test_a_form_makes_the_report_of_a_night(closed):
    engine, _ = closed
    with running(site(engine)) as service:
        own = {"origin": service.url}

        def sent(status, headers=own, **form):
            answer = service.http.post(f"{service.url}/reports", data=form, headers=headers | HTML)
            assert answer.status_code == status, answer.text[:300]
            return answer

        assert "Create report" in page(service, "/reports")
        made = sent(303, project="lab", date="2026-01-20", zone="Europe/Berlin").headers["location"]
        shown = page(service, made)
        assert "Nightly report of 2026-01-20" in shown
        assert "Europe/Berlin" in shown
        assert sent(303, project="lab", date="2026-01-20", zone="Europe/Berlin").headers["location"] == made
        short = page(service, sent(303, project="secret", date="2026-01-20").headers["location"])
        assert "no series could be judged" in short
        assert 'class="message plain lead"' in short
        assert "is before it" in sent(400, project="lab", date="2026-01-19").text
        assert "no project named" in sent(404, project="no such").text
        for wrong in ({"date": "yesterday"}, {"zone": "Mars/Olympus"}, {"luck": "1"}, {"project": "a\0b"}):
            sent(400, **wrong)
        sent(403, {"origin": "https://evil.example"}, project="lab")


def test_a_reader_makes_no_report(closed):
    read = store.create_token(closed[0], "reader", ["read"])
    with running(site(closed[0], is_public=True)) as service:
        own = {"authorization": f"Bearer {read}", "origin": service.url}
        shown = page(service, "/reports", headers=own)
        assert "Creating a report needs a token with scope admin" in shown
        assert "Create report" not in shown
        assert service.http.post(f"{service.url}/reports", data={}, headers=own).status_code == 403


def test_a_run_without_readings_says_so_in_place_of_a_picture(service, told):
    shown = page(service, f"/runs/{told[1]['night']}/power")
    assert "are stored, only windows, so its power over time cannot be plotted." in shown
    assert "No readings of " in shown
    with pytest.raises(NotFoundError, match="only windows"):
        power_plots.drawn(told[0], power(told[0], told[1]["night"]), "svg")
    (whole,) = power_plots.drawn(told[0], power(told[0], told[1]["night"]), "html")
    assert b"<p>no readings of " in whole.data


def test_a_reader_sees_findings_and_sets_none(closed):
    engine, numbers = closed
    read = store.create_token(engine, "reader", ["read"])
    with running(site(engine, is_public=True)) as service:
        own = {"authorization": f"Bearer {read}", "origin": service.url}
        path = f"/findings/{numbers['finding']}"
        assert "Changing the state needs a token with scope admin" in page(service, path, headers=own)
        form = {"state": "fixed", "because": "x"}
        assert service.http.post(service.url + path, data=form, headers=own).status_code == 403
        assert "Deciding needs a token with scope admin" in page(service, "/renames", headers=own)
        decision = {"act": "link", "kernel_before": "gemm", "kernel": "saxpy", "because": "x"}
        assert service.http.post(f"{service.url}/renames", data=decision, headers=own).status_code == 403


def test_a_token_of_another_project_sees_nothing_of_it(closed):
    engine, numbers = closed
    token = store.create_token(engine, "other", ["read"], project="secret")
    own = {"authorization": f"Bearer {token}"}
    with running(site(engine, is_public=True)) as service:
        assert "No findings match" in page(service, "/findings", headers=own)
        page(service, "/findings?project=lab", 404, headers=own)
        page(service, f"/findings/{numbers['finding']}", 404, headers=own)
        page(service, f"/reports/{numbers['report']}", 404, headers=own)
        assert "No reports yet" in page(service, "/reports", headers=own)
        page(service, f"/runs/{numbers['night']}/power", 404, headers=own)
        page(service, f"/compare?before={numbers['night']}&after={numbers['night']}", 404, headers=own)
        chosen = page(service, "/compare", headers=own)
        assert "hidden" in chosen
        assert "night 1" not in chosen
        history = page(service, "/history?kernel=gemm", headers=own)
        assert "hidden 1" in history
        assert "night 3" not in history
        page(service, "/history?kernel=gemm&project=lab", 404, headers=own)
        assert "gemm" in page(service, "/history", headers=own)
        page(service, "/sql", 403, headers=own)


def test_a_report_leads_to_its_findings_and_forms(service, told):
    listed = page(service, "/reports")
    assert f'href="/reports/{told[1]["report"]}"' in listed
    shown = page(service, f"/reports/{told[1]['report']}")
    assert shown.count("<svg") > 2
    assert f'href="/findings/{told[1]["finding"]}"' in shown
    for form in ("html", "md", "txt"):
        path = f"/v1/reports/{told[1]['report']}.{form}"
        assert f'href="{path}"' in shown
        assert service.http.get(service.url + path).status_code == 200
    assert "Deliveries" not in shown
    sent = store.Delivery(
        told[1]["report"], "te<a>m", "smtp", False, "no such user", "schedule 3", "2026-01-16T06:00:00Z"
    )
    store.save_delivery(told[0], sent)
    shown = page(service, f"/reports/{told[1]['report']}")
    assert "Deliveries" in shown
    assert "te&lt;a&gt;m" in shown
    assert all(words in shown for words in ("smtp", "not delivered", "no such user", "schedule 3"))
    (kept,) = service.ok(f"/v1/reports/{told[1]['report']}")["deliveries"]
    assert (kept["channel"], kept["delivered"], kept["message"]) == ("te<a>m", 0, "no such user")
    assert service.ok("/v1/deliveries")["rows"][0]["sent_by"] == "schedule 3"
    assert "Nightly report of 2026-01-15" in page(service, "/reports/newest")
    page(service, "/reports/odd", 404)


def test_a_history_marks_what_nights_found_and_leads_to_neighbours(service, told):
    shown = page(service, "/history?kernel=gemm&project=lab")
    assert "Findings of nightly checks" in shown
    before, after = told[1]["night_before"], told[1]["night_before"] + 1
    assert f'href="/compare/{before}...{after}"' in shown
    assert f'href="/runs/{after}"' in shown
    commit = re.search(r'href="(/commits/[0-9a-f]+)"', shown)[1]
    moved = service.http.get(service.url + commit)
    assert (moved.status_code, moved.headers["location"]) == (303, f"/?commit={commit.rpartition('/')[2]}")
    kernel = store.kernels_named(told[0], "saxpy")[0]["kernel_id"]
    assert service.http.get(f"{service.url}/history/{kernel}").headers["location"] == f"/history?kernel={kernel}"
    assert "void gemm" in page(service, f"/history?kernel=%23{store.kernels_named(told[0], 'gemm')[0]['kernel_id']}")
    older = re.search(r'rel="next" href="([^"]+)"', page(service, "/history?kernel=gemm&project=lab&points=4"))[1]
    assert "night 10 2" in page(service, older.replace("&amp;", "&"))


def test_pages_under_a_path_of_a_proxy_stay_there(told):
    with running(site(told[0], root_path="/tools/lab")) as service:
        for path in (
            "/findings",
            "/reports",
            "/history?kernel=gemm",
            "/compare",
            "/sql",
            f"/runs/{told[1]['night']}/power",
        ):
            shown = page(service, "/tools/lab" + path)
            links = re.findall(r'(?:href|action|src)="(/[^"]*)"', shown)
            assert links
            assert [link for link in links if not link.startswith("/tools/lab/")] == []


def test_a_page_that_a_browser_has_is_not_sent_again(service):
    for path in ("/findings", "/history?kernel=gemm", "/sql"):
        first = httpx.get(service.url + path, headers=HTML, verify=False)
        again = httpx.get(service.url + path, headers=HTML | {"if-none-match": first.headers["etag"]}, verify=False)
        assert (first.status_code, again.status_code, again.content) == (200, 304, b"")


def test_groups_of_runs_say_how_the_last_night_was(shown):
    groups = {one["project"]: one for one in shown.service.ok("/v1/groups")["groups"]}
    lab, night = groups["lab"], groups["lab"]["night"]
    known = [time for time in lab["times"][:-1] if time]
    assert lab["change"] == pytest.approx(lab["times"][-1] / statistics.median(known) - 1)
    rows = shown.service.ok("/v1/findings", project="lab", limit=1000)["rows"]
    is_open = [row for row in rows if row["state"] in ("new", "confirmed")]
    assert night["open"] == len(is_open) > 0
    assert night["new"] == sum(row["report_id"] == night["report_id"] for row in is_open)
    newest = max(row["night"] for row in shown.service.ok("/v1/reports", limit=1000)["rows"])
    assert night["night"] == newest
    html = shown.html("/?by=branch")
    assert f'href="/reports/{night["report_id"]}">{newest}' in html
    assert f"{night['open']} open" in html

"""What every page has: a strict policy, a tag of its bytes, links under a proxy's path, errors in the same words."""

import html
import re
import shutil
from urllib.parse import urlsplit

import pytest
from sqlalchemy import event

from profsvc import store
from profsvc.reports.plots import figure
from profsvc.web.app import create_app
from profsvc.web.http.authorization import route_of
from profsvc.web.http.state import AppState
from profsvc.web.pages.rendering import assets
from profsvc.web.server import Endpoint
from tests.web.conftest import error_of, running
from tests.web.pages.browser.walked import NO_PAGES, WALKED

HTML = {"accept": "text/html,application/xhtml+xml,*/*;q=0.8"}


NAMED = r"\d+|(?<=explain/)[^?]*|(?<=history/)[^?]*|(?<=devices/)[^?]*"


ADDRESS = re.compile(r'\s(?:href|src|action|data-upload|data-runs)="([^"]*)"')


def links_of(text):
    """The addresses in a page, of which every attribute stands in quotes; a parser takes a hundred times as long."""
    return [html.unescape(address) for address in ADDRESS.findall(text)]


def luminance(colour):
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", [assets.LIGHT, assets.DARK])
def test_colours_can_be_told_apart(theme):
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(
        4.48, abs=0.01
    )  # the example of WCAG's understanding of 1.4.3
    for text in ("ink", "muted", "link", "good", "warn", "bad"):
        for back in ("back", "raised"):
            assert contrast(theme[text], theme[back]) >= 4.5, (text, back)
    assert contrast(theme["on-link"], theme["link"]) >= 4.5
    for name in ("edge", "lines-0", "good", "warn"):  # edges of inputs, and bars
        assert contrast(theme[name], theme["back"]) >= 3, name
    for bar in ("lines-0", "good", "warn"):
        assert contrast(theme[bar], theme["track"]) >= 3, bar


def test_light_and_dark_name_the_same_colours():
    assert set(assets.LIGHT) == set(assets.DARK)
    by_light = {}
    for name, colour in assets.css_colours(figure.LIGHT).items():
        by_light.setdefault(colour, set()).add(assets.css_colours(figure.DARK)[name])
    assert [names for names in by_light.values() if len(names) > 1] == []  # a light colour has one dark one
    css = assets.assets()["style.css"].content.decode()
    for name in re.findall(r"var\(--([\w-]+)\)", css):
        assert name in assets.LIGHT, name


def test_every_page_of_the_service_is_walked(shown):
    routes = create_app(shown.service.site).routes
    pages = {
        route.path
        for route in routes
        if "GET" in (getattr(route, "methods", None) or ()) and not getattr(route, "include_in_schema", True)
        and not route.path.startswith("/v1/")
    }  # fmt: skip
    walked = set()
    for one in WALKED:
        scope = {"type": "http", "method": "GET", "path": urlsplit(shown.path(one.path)).path, "root_path": ""}
        walked.add(route_of(routes, scope).path)
    assert pages - walked - NO_PAGES == set()
    assert pages >= NO_PAGES


def test_every_page_has_the_policy_and_is_sent_once(shown, monkeypatch):
    disk = shutil.disk_usage("/")  # other processes fill the disk meanwhile, and the page of storage shows it
    monkeypatch.setattr(shutil, "disk_usage", lambda _: disk)
    for one in WALKED:
        answer = shown.service.http.get(shown.service.url + shown.path(one.path), headers=HTML)
        assert answer.status_code == one.status
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert answer.headers["cache-control"] == "private, no-cache"
        assert not re.search(r"<[^>]* style=|<style|<script(?! src=)| on[a-z]+=", answer.text)
        if answer.status_code == 200:
            known = {**HTML, "if-none-match": answer.headers["etag"]}
            again = shown.service.http.get(shown.service.url + shown.path(one.path), headers=known)
            assert (one.path, again.status_code, again.text) == (one.path, 304, "")


def test_files_of_pages_never_go_stale(shown):
    names = {asset.name for asset in assets.assets().values()}
    assert {name.split("-")[0] for name in names} >= {"style", "page", "upload", "icon"}
    for name in names:
        answer = shown.service.get(f"/static/{name}")
        assert answer.status_code == 200
        assert answer.headers["cache-control"] == assets.CACHE_CONTROL
        assert answer.headers["x-content-type-options"] == "nosniff"
        tag = answer.headers["etag"]
        assert shown.service.http.get(str(answer.url), headers={"if-none-match": tag}).status_code == 304
    for wrong in ("style.css", "style-0000000000000000.css", "..%2F..%2Fapp.py", "page-x.js"):
        assert shown.service.get(f"/static/{wrong}").status_code == 404
    linked = [link for link in links_of(shown.html("/")) if "/static/" in link]
    assert len(linked) == 3
    assert {link.rpartition("/")[2] for link in linked} <= names


def test_every_link_stays_under_the_path_of_the_proxy(shown):
    site = shown.service.site
    below = AppState(site.engine, site.files, root_path="/tools/profsvc")
    with running(below, endpoint=Endpoint(root_path="/tools/profsvc")) as service:
        for one in WALKED:
            text = service.http.get(f"{service.url}/tools/profsvc{shown.path(one.path)}", headers=HTML).text
            found = [link for link in links_of(text) if not link.startswith("#")]
            assert len(found) > 5
            assert [link for link in found if not link.startswith("/tools/profsvc/")] == [], one.name
            assert "/tools/profsvc/tools" not in text
        link = next(link for link in links_of(text) if "style" in link)
        assert service.http.get(service.url + link).status_code == 200


@pytest.mark.parametrize("path", ["/runs/{run}", "/runs/{board}/power", "/v1/runs/{run}", "/v1/runs/{board}/power"])
def test_all_of_a_page_is_read_over_one_connection(shown, path):
    """And a service that was asked before has it already."""
    assert shown.service.get(shown.path(path)).status_code == 200
    opened = []

    def note(connection, _):
        opened.append(connection)

    event.listen(shown.service.site.engine, "connect", note)
    try:
        assert shown.service.get(shown.path(path)).status_code == 200
    finally:
        event.remove(shown.service.site.engine, "connect", note)
    assert opened == []


def test_no_link_of_the_service_is_broken(shown):
    """Every page and file that a page leads to answers."""
    seen = set()
    for one in WALKED:
        for link in links_of(shown.html(one.path)):
            if link.startswith("/") and link not in seen and not link.startswith(("/v1/", "/logout", "/theme")):
                seen.add(link)
    kinds = {}
    for link in seen:  # of many links of one kind a few
        kinds.setdefault(re.sub(NAMED, "N", link.partition("?")[0]), []).append(link)
    for links in kinds.values():
        for link in sorted(links)[:2]:
            answer = shown.service.http.get(shown.service.url + link, headers=HTML, follow_redirects=True)
            assert answer.status_code == 200 or link == "/runs/", link


def test_the_same_as_data_is_there(shown):
    links = {link: one.name for one in WALKED for link in links_of(shown.html(one.path)) if link.startswith("/v1/")}
    assert len(links) > len(WALKED)
    for link, name in links.items():
        if not link.startswith("/v1/uploads"):
            assert shown.service.get(link).status_code == 200, (name, link)


def test_errors_are_pages_for_who_asks_for_pages(shown):
    path = "/runs/nothing+like+it"
    page = shown.service.http.get(shown.service.url + path, headers=HTML)
    assert page.status_code == 404
    assert page.headers["content-type"].startswith("text/html")
    data = shown.service.http.get(shown.service.url + path)
    message = error_of(data)["message"]
    assert data.status_code == 404
    assert message.replace("'", "&#39;") in page.text
    assert page.headers["x-request-id"] in page.text
    way_back = '<a href="/runs/1">The run</a>'
    assert way_back not in page.text
    below = shown.service.http.get(shown.service.url + "/runs/1/launches/7", headers=HTML)
    assert (below.status_code, way_back in below.text) == (404, True)
    no_run = shown.service.http.get(shown.service.url + "/runs/999999/power", headers=HTML)
    assert (no_run.status_code, "The run</a>" in no_run.text) == (404, False)
    wrong = shown.service.http.get(shown.service.url + "/?order=luck", headers=HTML)
    assert wrong.status_code == 400
    assert "order=&#39;luck&#39; is not known" in wrong.text
    method = shown.service.http.delete(shown.service.url + "/", headers=HTML)
    assert method.status_code == 405
    assert "GET" in method.headers["allow"]


def test_colours_are_kept_without_script(shown):
    with_form = shown.service.http.post(
        shown.service.url + "/theme",
        data={"theme": "dark", "after": "/?search=h200"},
        headers={**HTML, "origin": shown.service.url},
    )
    assert (with_form.status_code, with_form.headers["location"]) == (303, "/?search=h200")
    cookie = with_form.headers["set-cookie"]
    assert "samesite=strict" in cookie.lower()
    shown.service.http.cookies.clear()
    assert 'data-theme="dark"' in shown.html("/", cookie="profsvc_theme=dark")
    assert "data-theme=" not in shown.html("/", cookie="profsvc_theme=%22%3E%3Cscript%3E")
    for theme, status in (("pink", 400), ("light", 303)):
        answer = shown.service.http.post(
            shown.service.url + "/theme", data={"theme": theme, "after": "//evil.example"}, headers=HTML
        )
        assert answer.status_code == status
    assert answer.headers["location"] == "/"
    script = {"origin": shown.service.url}
    assert (
        shown.service.http.post(shown.service.url + "/theme", data={"theme": "dark"}, headers=script).status_code == 204
    )
    shown.service.http.cookies.clear()


@pytest.fixture
def closed(site, engine, profile):
    """A service that needs tokens, with a run, and a token that reads."""
    with running(site(is_public=True)) as service:
        token = store.create_token(engine, "person", ["read", "upload"])
        service.http.post(
            f"{service.url}/v1/uploads?run=mine", content=profile, headers={"authorization": f"Bearer {token}"}
        )
        yield service, token


def test_a_browser_logs_in_and_out(closed, engine):
    service, token = closed
    met = service.http.get(service.url + "/runs/mine?order=launch", headers=HTML)
    assert met.status_code == 401
    assert "authentication needed: send the header" in met.text
    assert 'value="/runs/mine?order=launch"' in met.text
    same = {**HTML, "origin": service.url}
    wrong = service.http.post(service.url + "/login", data={"token": "psvc_" + "0" * 64, "after": "/"}, headers=same)
    assert wrong.status_code == 401
    assert "set-cookie" not in wrong.headers
    done = service.http.post(service.url + "/login", data={"token": f" {token} ", "after": "/runs/mine"}, headers=same)
    assert (done.status_code, done.headers["location"]) == (303, "/runs/mine")
    cookie = done.headers["set-cookie"]
    for said in ("httponly", "samesite=strict", "path=/"):
        assert said in cookie.lower()
    assert "secure" not in cookie.lower()  # this is http
    assert f"profsvc_token_{service.port}=" in cookie
    assert service.http.get(service.url + "/runs/mine", headers=HTML).status_code == 200
    assert service.http.get(service.url + "/v1/runs").status_code == 200
    assert service.http.get(service.url + "/v1/sql?q=select+1+as+a").status_code == 403
    for headers, status in (({}, 403), ({"origin": "https://evil.example"}, 403), ({"origin": service.url}, 200)):
        answer = service.http.post(service.url + "/v1/uploads", params={"check": "1"}, content=b"x", headers=headers)
        assert (answer.status_code == 403) == (status == 403), headers
    out = service.http.post(service.url + "/logout", headers=same)
    assert out.status_code == 303
    assert service.http.get(service.url + "/runs/mine", headers=HTML).status_code == 401


def test_a_cookie_that_holds_no_more_counts_as_none(service, engine):
    name = f"profsvc_token_{service.port}"
    for value in ("psvc_" + "1" * 64, "x", ""):
        assert service.http.get(service.url + "/", headers={**HTML, "cookie": f"{name}={value}"}).status_code == 200
    token = store.create_token(engine, "a", ["read"])
    store.create_token(engine, "b", ["read"])
    assert service.http.get(service.url + "/", headers={"cookie": f"{name}={token}"}).status_code == 200
    store.revoke_token(engine, "a")
    assert service.http.get(service.url + "/", headers={"cookie": f"{name}={token}"}).status_code == 401


def test_a_login_leads_nowhere_else_and_is_secure_under_https(site, engine):
    token = store.create_token(engine, "a", ["read"])
    place = Endpoint(trusted_proxies=("127.0.0.1",))
    with running(site(is_public=True), endpoint=place) as service:
        for after in ("https://evil.example/", "//evil.example", "/\\evil.example", "/a\r\nset-cookie: b=c", ""):
            answer = service.http.post(
                service.url + "/login", data={"token": token, "after": after}, headers={"x-forwarded-proto": "https"}
            )
            assert answer.headers["location"] == "/"
            assert "secure" in answer.headers["set-cookie"].lower()


def test_a_link_from_elsewhere_is_asked_again_once(closed):
    service, _ = closed
    came = {**HTML, "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}
    first = service.http.get(service.url + "/runs/mine", headers=came)
    assert first.status_code == 401
    assert '<meta http-equiv="refresh" content="0; url=/runs/mine">' in first.text
    again = service.http.get(service.url + "/runs/mine", headers={**came, "sec-fetch-site": "same-origin"})
    assert "http-equiv" not in again.text

"""Runs are led to by number: no name, whatever it holds, leads elsewhere, and its signs are seen."""

import re

import pytest

from profsvc import store
from profsvc.web.http.state import AppState
from tests.views import histories
from tests.web.conftest import PLAIN, running

HTML = {"accept": "text/html"}
NAMES = ("a\nb", "c\r\nd", "tab\there", "x/y", "2", "../x", "a?b#c", "2026")


@pytest.fixture(scope="module")
def named(tmp_path_factory):
    engine = store.open_store(str(tmp_path_factory.mktemp("named") / "store.sqlite"), pooled=True)
    for name in NAMES:
        histories.put(engine, name, 100.0, project="p\nq", commit_id="c\nd", device="dev\r\nice")
    with running(AppState(engine, store.blob_store_of(engine, free_bytes=1))) as service:
        yield service
    engine.dispose()


def page(service, path, status=200):
    answer = service.http.get(service.url + path, headers=HTML, follow_redirects=True)
    assert answer.status_code == status, (path, answer.text[:300])
    return answer.text


def head(text):
    return re.search("<h1>(.*?)</h1>", text, re.S)[1]


def test_a_run_is_led_to_by_its_number_whatever_it_is_called(named):
    shown = [head(page(named, f"/runs/{number}")) for number in range(1, len(NAMES) + 1)]
    assert shown == [name.encode("unicode_escape").decode() for name in NAMES]
    assert head(page(named, "/runs/2026")) == "2026"  # no run has this number
    assert "no run named" in page(named, "/runs/99", 404)
    assert head(page(named, "/compare?before=2&after=3")) == r"c\r\nd → tab\there"


def test_the_data_of_a_page_is_that_of_its_run_though_another_has_its_number_for_a_name(named):
    (path,) = set(re.findall(r'href="(/v1/runs/[^"?]*)"', page(named, "/runs/2")))
    assert named.http.get(named.url + path).json()["run"]["run_id"] == 2
    assert named.http.get(named.url + "/v1/runs/2").json()["run"]["run_id"] == 5  # a name wins for whoever types it
    pages = ("/runs/{}/timeline", "/runs/{}/power", "/runs/{}/metrics")
    sources = {
        source
        for one in pages
        for source in re.findall(r'"(/v1/runs/[^/"?]*)',
                                 named.http.get(named.url + one.format(2), headers=HTML).text)
    }  # fmt: skip
    assert sources <= {path}


def test_every_link_that_holds_such_a_name_answers(named):
    seen = set()
    for path in ("/", "/devices", "/history", "/compare", "/runs/1", "/runs/2", "/runs/5"):
        links = re.findall(
            r'href="(/(?:runs|upload|history|compare|devices|commits|\?|v1/runs)[^"]*)"', page(named, path)
        )
        seen |= {link.replace("&amp;", "&").replace("&#39;", "'") for link in links if "order=" not in link}
    kinds = {}
    for link in sorted(seen):
        kinds.setdefault(re.sub(r"\d+", "N", link), link)
    assert len(kinds) > 12
    for link in kinds.values():
        answer = named.http.get(named.url + link, headers=HTML, follow_redirects=True)
        assert answer.status_code == 200, link


def test_a_file_is_added_to_a_run_by_its_number(named):
    form = page(named, "/upload?run_id=1")
    assert 'name="run_id" value="1"' in form
    assert r"p\nq/a\nb" in form
    own = {"origin": named.url} | HTML
    answer = named.http.post(
        f"{named.url}/upload", data={"run_id": "1"}, files={"file": ("x.csv", PLAIN.read_bytes())}, headers=own
    )
    assert answer.status_code == 200, answer.text
    assert r'href="/runs/1">a\nb</a>' in answer.text
    assert named.ok("/v1/runs", run_id="1")["rows"][0]["uploads"] == 2
    page(named, "/upload?run_id=77", 404)

"""The documentation over HTTP: every page, its links and pictures; HTML in a page is text."""

import re
from html.parser import HTMLParser

import pytest

from profsvc import docs
from profsvc.web.pages.docs import documentation


class Found(HTMLParser):
    """The addresses and the ids of a page."""

    def __init__(self, page):
        super().__init__()
        self.links, self.ids = set(), set()
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.ids |= {given["id"]} if "id" in given else set()
        if tag in {"a", "img"}:
            self.links.add(given.get("href") or given.get("src"))


def test_every_page_and_every_link_of_it(looked_at):
    known = {}

    def read(path):
        if path not in known:
            answer = looked_at.http.get(looked_at.url + path, headers={"accept": "text/html"})
            assert answer.status_code == 200, path
            known[path] = answer
        return known[path]

    for name, topic in docs.topics().items():
        page = read(f"/docs/{name}").text
        assert topic.title.replace("'", "&#39;") in page
        for link in Found(page).links:
            if link.startswith(("/docs", "#")):
                path, _, fragment = link.partition("#")
                answer = read(path or f"/docs/{name}")
                if path.endswith((".svg", ".png")):
                    assert answer.headers["content-type"].startswith("image/")
                assert not fragment or fragment == "main" or fragment in Found(answer.text).ids, (name, link)
    assert any(path.endswith(".svg") for path in known)


def test_a_page_is_found_by_its_last_word(looked_at):
    assert "<h1>Settings</h1>" in looked_at.http.get(f"{looked_at.url}/docs/settings").text
    wrong = looked_at.http.get(f"{looked_at.url}/docs/setings", headers={"accept": "text/html"})
    assert wrong.status_code == 404
    assert "settings" in wrong.text
    assert looked_at.http.get(f"{looked_at.url}/docs/pictures/none.svg").status_code == 404
    assert looked_at.http.get(f"{looked_at.url}/docs/pictures/..%2Findex.md").status_code == 404


def test_html_in_a_page_is_text(tmp_path, monkeypatch):
    (tmp_path / "x.md").write_text(
        "# X\n\n<script>alert(1)</script>\n\n[a](javascript:alert(1)) <img src=x onerror=y> `<b>`\n\n## A & <i>b</i>\n",
        encoding="utf-8",
    )
    page = docs.Topic("x", "X", "")
    monkeypatch.setattr(docs, "FOLDER", tmp_path)
    monkeypatch.setattr(docs, "topic", lambda name: page)
    shown = documentation.render.__wrapped__("x", "/docs")
    assert not re.search(r"<(script|img|b|i)\b", shown)
    assert 'href="javascript' not in shown


@pytest.mark.parametrize("root", ["/docs", "/tools/profsvc/docs"])
def test_links_keep_the_path_of_a_proxy(root):
    shown = documentation.render("index", root)
    assert f'href="{root}/reference/settings"' in shown

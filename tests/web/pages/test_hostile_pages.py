"""What a file says goes through every page as text: it runs nothing, leads nowhere, and breaks no layout."""

import csv
import io
import re
import shutil

import pytest

from profsvc import store
from profsvc.web.http.state import AppState
from tests.web.conftest import PLAIN, running
from tests.web.pages.browser.test_every_page import AUDIT
from tests.web.pages.conftest import window

SCRIPT = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)></title></svg><svg onload=alert(1)>"
NAMES = [
    SCRIPT + "{{ 7 * 7 }}{% raw %}",
    "javascript:alert(1)//\u202egpj.exe\x1b[2J\r\nSet-Cookie: a=b",
    "k" * 1_000_000,
]
RUN = "<b>\"'&\u202e{{ run }}</h1><script>alert(2)</script>"
# What a page would hold if a name were more than text; 49 is what the template of the first one comes to.
COME_TRUE = r'<script(?! src=)|<img|<svg onload|href="javascript|\x1b|\u202e|>49\b'


@pytest.fixture(scope="module")
def attacked(tmp_path_factory, empty):
    """A service whose run, project, file, tags, device and kernels have hostile names."""
    file = tmp_path_factory.mktemp("attacked") / "store.sqlite"
    shutil.copy(empty, file)
    engine = store.open_store(str(file), pooled=True)
    header, units, launch = list(csv.reader(io.StringIO(PLAIN.read_text())))[:3]
    rows = [[str(number), *launch[1:]] for number in range(len(NAMES))]
    for row, name in zip(rows, NAMES, strict=True):
        row[header.index("Kernel Name")] = name
        row[header.index("device__attribute_display_name")] = SCRIPT
    out = io.StringIO()
    csv.writer(out, quoting=csv.QUOTE_ALL).writerows([header, units, *rows])
    with running(AppState(engine, store.blob_store_of(engine, free_bytes=1))) as service:
        answer = service.upload(
            out.getvalue().encode() + b"broken <script>alert(3)</script>\n", run=RUN, project=NAMES[0], commit=NAMES[1],
            tag=f"t={SCRIPT}", file_name=f"{SCRIPT}.csv",
        )  # fmt: skip
        assert answer.status_code == 201, answer.text
        page = f'"File Path","{SCRIPT}"\n"Function Name","{SCRIPT}"\n"Line No","Source","# Samples"\n'
        page += f'"1","{SCRIPT}","9"\n'
        answer = service.upload(page.encode(), run=RUN, project=NAMES[0], file_name=f"{SCRIPT}2.csv")
        assert answer.status_code == 201, answer.text
        yield service
    engine.dispose()


def paths(service):
    launches = service.ok("/v1/launches")["rows"]
    yield from (
        "/",
        "/runs/1",
        "/runs/1/rejects",
        "/runs/1/source",
        "/devices",
        "/upload?run=%3Cscript%3Ealert(1)%3C/script%3E",
        "/explain/duration_ns?run=1&kernel=0",
    )
    yield from (f"/runs/1/launches/{row['launch_id']}" for row in launches)
    yield from (f"/runs/1/kernels/{row['kernel_id']}" for row in launches)
    yield "/?search=%22%3E%3Cscript%3Ealert(1)%3C/script%3E"


def test_every_page_holds_hostile_names_as_text(attacked, chromium):
    # A script that runs, or an address that is followed, is seen: a dialog, a message, a request, a failed one.
    with window(chromium, attacked.url, viewport={"width": 400, "height": 800}) as found:
        found.page.on("dialog", lambda dialog: found.wrong.append(dialog.message))
        for path in paths(attacked):
            answer = attacked.http.get(attacked.url + path, headers={"accept": "text/html"})
            assert answer.status_code == 200, path
            assert "set-cookie" not in answer.headers
            assert not re.search(COME_TRUE, answer.text), path
            assert len(answer.content) < 400_000, path
            found.open(path)
            wrong = found.page.evaluate(AUDIT)
            assert wrong == [], path


@pytest.mark.parametrize(
    "text", ["%3Cscript%3E", "..%2F..%2Fetc%2Fpasswd", "%0D%0ASet-Cookie:a=b", "%00", "%ff%fe", "%E2%80%AE"]
)
@pytest.mark.parametrize(
    "path", ["/runs/{}", "/runs/1/launches/{}", "/runs/1/kernels/{}", "/runs/1/means/{}", "/devices/{}", "/explain/{}",
             "/?search={}", "/?order={}", "/static/{}", "/{}"],
)  # fmt: skip
def test_hostile_questions_are_answered_as_pages(attacked, path, text):
    answer = attacked.http.get(attacked.url + path.format(text), headers={"accept": "text/html"})
    assert answer.status_code in {200, 303, 400, 404}
    assert "set-cookie" not in answer.headers
    assert "<script>" not in answer.text
    assert "root:" not in answer.text
    assert answer.status_code == 303 or answer.headers["content-type"].startswith("text/html")

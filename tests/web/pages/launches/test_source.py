"""The page and the answer of the source of a launch."""

import html

from tests.store.ingest.test_source_launches import REDUCE, SAXPY, both, launches
from tests.store.queries.told import raw

SCRIPT = "<script>alert(1)</script>{{ 7 * 7 }}<img src=x onerror=alert(1)>"


def filled(service, *, source="y = x;"):
    service.upload(raw(launches(REDUCE, SAXPY)).encode(), run="r")
    service.upload(both(REDUCE, SAXPY, source=source).encode(), run="r")
    return service.ok("/v1/launches")["rows"]


def page(service, path):
    answer = service.http.get(service.url + path, headers={"accept": "text/html"})
    assert answer.status_code == 200, path
    return answer.text


def test_a_launch_has_its_source_beside_sass(service):
    first, second = filled(service)
    path = f"/runs/1/launches/{second['launch_id']}"
    assert f'href="{path}/source"' in page(service, path)
    text = page(service, f"{path}/source")
    for part in ("a.cu line 7: 100.0 % of the samples, Long Scoreboard", "y = x;", "LDG.E R1, [R2]", "0x200", "a.cu:9"):
        assert part in text
    assert "v1_source_lines.samples_fraction" in text
    # Of the whole run the launch with most samples is shown, and the other one is listed.
    text = page(service, "/runs/1/source")
    assert "saxpy" in text
    assert f"/runs/1/launches/{first['launch_id']}/source" in text


def test_the_answer_is_that_of_the_command_line(service):
    filled(service)
    view = service.ok("/v1/runs/1/source", kernel="reduce", limit=1)
    assert view["launch"]["kernel"] == REDUCE
    assert (len(view["lines"]), view["lines_in_all"]) == (1, 2)
    assert view["lines"][0]["stalls"] == {"Long Scoreboard": 10, "Selected": 1}
    service.refused("/v1/runs/1/source", 404, kernel="sgemm")
    service.refused("/v1/runs/1/source", 400, limit=0)


def test_hostile_source_is_text(service):
    filled(service, source=SCRIPT)
    text = page(service, "/runs/1/source")
    assert html.escape(SCRIPT, quote=False).split("{{")[0] in text
    assert "<script>alert" not in text
    assert "<img" not in text
    assert ">49<" not in text


def test_a_launch_that_is_not_there(service):
    filled(service)
    for path in (
        "/runs/1/launches/7/source",
        "/runs/1/launches/x/source",
        "/runs/1/source?kernel=sgemm",
        "/runs/2/source",
    ):
        answer = service.http.get(service.url + path, headers={"accept": "text/html"})
        assert answer.status_code == 404, path

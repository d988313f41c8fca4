"""Pages of runs are computed once, and shown as they would be if they were computed again."""

from collections.abc import Callable

import pytest
from sqlalchemy import Engine

from profsvc import store
from profsvc.web.http.state import AppState
from profsvc.web.pages.rendering import page as pages
from tests.web.conftest import PLAIN, Service, running

HTML = {"accept": "text/html"}
Make = Callable[..., AppState]


def shown(service: Service, path: str, **headers: str) -> tuple[int, str, str]:
    answer = service.http.get(service.url + path, headers=HTML | headers)
    return answer.status_code, answer.text, answer.headers.get("etag", "")


@pytest.fixture
def rendered(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The templates that were rendered."""
    found: list[str] = []
    render = pages.render

    def counted(request: object, template: str, *args: object, **known: object) -> bytes:
        found.append(template)
        return render(request, template, *args, **known)  # type: ignore[arg-type]

    monkeypatch.setattr(pages, "render", counted)
    return found


def test_a_page_is_computed_again_only_after_a_change(site: Make, engine: Engine, rendered: list[str]) -> None:
    with running(site()) as service:
        run = service.upload(PLAIN.read_bytes(), file_name="plain.csv", run="r").json()["run_id"]
        launch = store.select(engine, "v1_launches", run_id=run)[0]["launch_id"]
        paths = [f"/runs/{run}", f"/runs/{run}/launches/{launch}", f"/compare?before={run}&after={run}"]
        first = [shown(service, path) for path in paths]
        assert [status for status, _, _ in first] == [200, 200, 200]
        assert len(rendered) == 3
        assert [shown(service, path) for path in paths] == first
        assert len(rendered) == 3
        assert [
            shown(service, path, **{"if-none-match": tag})[0] for path, (*_, tag) in zip(paths, first, strict=True)
        ] == [304] * 3
        service.upload(PLAIN.read_bytes() + b"\n", file_name="again.csv", run="r")
        changed = [shown(service, path) for path in paths]
        assert len(rendered) == 6
        assert "again.csv" in changed[0][1]


def test_each_theme_and_address_has_its_own(site: Make, rendered: list[str]) -> None:
    with running(site()) as service:
        run = service.upload(PLAIN.read_bytes(), file_name="plain.csv", run="r").json()["run_id"]
        light, dark = (
            shown(service, f"/runs/{run}", cookie=f"profsvc_theme={theme}")[1] for theme in ("light", "dark")
        )
        assert light != dark
        assert shown(service, f"/runs/{run}", cookie="profsvc_theme=dark")[1] == dark
        assert shown(service, f"/runs/{run}?order=duration")[1] != light
        assert len(rendered) == 3


def test_a_page_of_another_project_is_not_seen(site: Make, engine: Engine, rendered: list[str]) -> None:
    own, other, admin = (
        store.create_token(engine, name, [scope], project)
        for name, scope, project in (("own", "read", "p"), ("other", "read", "q"), ("admin", "admin", None))
    )
    with running(site(is_public=True)) as service:
        bearer = {"authorization": f"Bearer {admin}"}
        sent = service.http.post(
            f"{service.url}/v1/uploads", content=PLAIN.read_bytes(), params={"run": "r", "project": "p"}, headers=bearer
        )
        path = f"/runs/{sent.json()['run_id']}"
        assert shown(service, path, authorization=f"Bearer {own}")[0] == 200
        assert shown(service, path, authorization=f"Bearer {other}")[0] == 404
        assert shown(service, path)[0] in (401, 303)
        with_settings = shown(service, path, authorization=f"Bearer {admin}")
        assert "/settings" in with_settings[1]
        assert "/settings" not in shown(service, path, authorization=f"Bearer {own}")[1]


def test_a_page_that_fails_is_refused_as_before(site: Make) -> None:
    with running(site()) as service:
        run = service.upload(PLAIN.read_bytes(), file_name="plain.csv", run="r").json()["run_id"]
        assert shown(service, f"/runs/{run}/launches/7")[0] == 404
        assert shown(service, f"/runs/{run}?order=nothing")[0] == 400

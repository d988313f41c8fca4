"""``/v1/history``: what the command prints, and nothing of another project."""

import shutil

import httpx
import pytest

from profsvc import store
from profsvc.client import Client
from profsvc.web.http.state import AppState
from tests.views import histories
from tests.web.conftest import running


@pytest.fixture(scope="module")
def nights(tmp_path_factory, empty):
    """A service on a store of nights; tests only read it."""
    file = shutil.copy(empty, tmp_path_factory.mktemp("nights") / "store.sqlite")
    engine = store.open_store(str(file), pooled=True)
    histories.fill(engine, histories.steady(6) + histories.steady(5, 110.0, 2))
    with running(AppState(engine, store.blob_store_of(engine, free_bytes=1))) as service:
        yield service
    engine.dispose()


def test_the_answer_is_that_of_the_view(nights):
    view = nights.ok("/v1/history", kernel="saxpy")
    assert [step["run"] for step in view["steps"]] == ["night 7"]
    with Client(nights.url) as client:
        assert {name: value for name, value in client.history("saxpy").items() if name != "ok"} == view
        assert len(client.history("saxpy", points=3)["points"]) == 3
    cut = nights.ok("/v1/history", kernel="saxpy", points=4)
    assert cut["truncated"]
    assert [p["run"] for p in nights.ok("/v1/history", kernel="saxpy", points=4, before=cut["older"])["points"]] == [
        "night 4", "night 5", "night 6", "night 7",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("params", "status", "said"),
    [
        ({}, 400, "kernel is missing"),
        ({"kernel": "saxpy", "quantity": "speed"}, 404, "no quantity named 'speed'"),
        ({"kernel": "saxpy", "points": "0"}, 400, "points=0 must be from 1"),
        ({"kernel": "saxpy", "before": "x"}, 400, "before='x' must be a whole number"),
        ({"kernel": "saxpy", "before": str(10**20)}, 400, "must be from 0 to"),
        ({"kernel": "saxpy", "pionts": "3"}, 400, "no parameter named 'pionts'"),
        ({"kernel": "\x00"}, 400, "no NUL"),
        ({"kernel": "x" * 5000}, 404, "no kernel named"),
    ],
)
def test_a_wrong_question_is_refused(nights, params, status, said):
    assert said in nights.refused("/v1/history", status, **params)


def test_a_token_of_a_project_sees_its_runs_alone(site, engine):
    histories.fill(engine, [100.0, 101.0], "lab")
    histories.fill(engine, [100.0, 101.0, 102.0], "secret")
    histories.put(engine, "own", 1.0, project="secret")
    token = store.create_token(engine, "lab", ["read"], project="lab")
    with running(site(is_public=True)) as service:

        def ask(**params):
            return httpx.get(
                f"{service.url}/v1/history", params=params, headers={"authorization": f"Bearer {token}"}, verify=False
            )

        assert {point["project"] for point in ask(kernel="saxpy").json()["points"]} == {"lab"}
        assert ask(kernel="saxpy", project="secret").status_code == 404
        assert ask(kernel="saxpy", project="lab").status_code == 200

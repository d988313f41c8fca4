"""What the benchmarks of serving and of lists measure is done, whatever time it takes: small ones of each."""

import pytest

from profsvc import store
from profsvc.web.http.state import AppState
from tests.benchmarks import lists, serving
from tests.web.conftest import running


@pytest.mark.parametrize("page", serving.PAGES)
def test_a_page_is_sent_stored_and_shown(page, tmp_path):
    ((said, took),) = serving.rounds(page, 0.05, tmp_path, 1)
    assert said["bytes"] > 50_000
    assert said["launches"] > 0
    assert said["lines_rejected"] == 0
    assert all(seconds > 0 for seconds in took)


def test_every_list_that_is_measured_is_answered(tmp_path):
    engine = store.open_store(str(tmp_path / "store.sqlite"))
    lists.fill(engine, engine, 60)
    with running(AppState(engine, store.blob_store_of(engine, free_bytes=1))) as service:
        answered = {one.question: one.rows for one in lists.answers(service.url, 60, 1)}
        run = service.ok("/v1/runs/59")
    engine.dispose()
    assert answered.keys() == lists.QUESTIONS.keys()
    may_be_empty = {"runs searched for what is not", "kernel history of a project"}
    empty = {question for question, rows in answered.items() if not rows and "deep page" not in question}
    assert empty <= may_be_empty
    assert len(run["launches"]) == 2
    assert len(run["criteria"]) > 5

"""What tests remember of the analysis is what it computes, and nobody's change of it is seen by another."""

from types import MappingProxyType

import numpy as np
import pandas as pd
import pytest

from profsvc import store
from tests.environment.remembered import Memory


def test_the_same_arguments_are_computed_once_and_others_anew(tmp_path):
    asked = []

    def doubled(table: pd.DataFrame, domain: MappingProxyType, factor: float) -> pd.DataFrame:
        asked.append(factor)
        return table * factor

    memory, table, domain = Memory(tmp_path), pd.DataFrame({"x": [1.0, np.nan]}, index=[7, 8]), MappingProxyType({})
    ask = memory.remembering(doubled)
    first = ask(table, domain, 2.0)
    first["x"] = 0.0
    assert ask(table.copy(), domain, 2.0).equals(table * 2.0)
    assert asked == [2.0]
    for other in (
        (table, domain, 3.0), (table.rename(index={7: 9}), domain, 2.0), (table, MappingProxyType({1: 2}), 2.0),
        (table.astype("float32"), domain, 2.0), (table.rename(columns={"x": "y"}), domain, 2.0),
    ):  # fmt: skip
        ask(*other)
    assert len(asked) == 6
    with memory.off():
        ask(table, domain, 2.0)
    assert len(asked) == 7


def test_a_generator_is_one_again_and_errors_are_raised_anew(tmp_path):
    memory, asked = Memory(tmp_path), []

    def parts(count: int):
        asked.append(count)
        yield from range(count)
        if count > 2:
            raise ValueError(count)

    ask = memory.remembering(parts)
    assert [list(ask(2)), next(ask(2)), asked] == [[0, 1], 0, [2]]
    for _ in range(2):
        with pytest.raises(ValueError, match="3"):
            list(ask(3))
    assert asked == [2, 3, 3]


def test_another_process_has_the_answers_and_none_has_more_than_there_is_room_for(tmp_path):
    """Its tables are others by their place in memory and the same by what they hold."""
    asked = []
    for memory in (Memory(tmp_path, max_bytes=10), Memory(tmp_path), Memory(tmp_path)):
        ask = memory.remembering(lambda table: asked.append(len(asked)) or "an answer")
        assert [ask(MappingProxyType({1: MappingProxyType({2: 3})})) for _ in range(2)] == ["an answer"] * 2
    assert asked == [0, 1, 2]
    assert len(list(tmp_path.iterdir())) == 1


def test_where_the_folder_is_gone_everything_is_computed(tmp_path):
    memory = Memory(tmp_path / "remembered")
    (tmp_path / "remembered").rmdir()
    assert memory.remembering(abs)(-1) == 1


def test_a_store_is_the_same_with_and_without(demo, memory, analysed_anew):
    assert memory.is_on
    views = [view for view in store.VIEWS if view.endswith(("criteria", "potential", "models", "causes"))]
    assert len(views) >= 4
    for view in views:
        rows = [[{n: v for n, v in row.items() if n != "upload_id"} for row in store.select(one, view, run_id=1)]
                for one in (demo, analysed_anew)]  # fmt: skip
        assert rows[0] == rows[1]


@pytest.fixture(scope="module")
def analysed_anew(tmp_path_factory, memory):
    """The demo's profile once more, with nothing remembered."""
    from profsvc import pipeline
    from tests.conftest import DEMO

    engine = store.open_store(str(tmp_path_factory.mktemp("again") / "store.sqlite"))
    with memory.off(), DEMO.open("rb") as stream:
        pipeline.ingest(engine, stream, DEMO.name, store.RunInfo(name="h200", project="demo"))
    yield engine
    engine.dispose()

import pytest
from sqlalchemy import Engine

from profsvc import store
from profsvc.errors import NotFoundError, UsageError
from profsvc.store.service import saved_queries

SQL = "select * from v1_launches where kernel_short = :kernel"


def test_a_query_is_saved_with_its_values_and_chart(engine: Engine) -> None:
    chart = {"kind": "bars", "x": "kernel", "y": "duration_ns"}
    saved = store.save_query(engine, " slow \n", f"{SQL}\n", {"kernel": "<b>"}, chart, author="ci")
    assert (saved["name"], saved["sql"], saved["author"]) == ("slow", SQL, "ci")
    assert (saved["params"], saved["chart"]) == ({"kernel": "<b>"}, chart)
    (row,) = store.parse_json_columns("v1_saved_queries", store.select(engine, "v1_saved_queries"))
    assert row == saved
    assert store.list_queries(engine) == [saved]


def test_a_name_is_taken_over_only_where_that_is_meant(engine: Engine) -> None:
    store.save_query(engine, "a, 'b' \"c\" <d>", SQL)
    with pytest.raises(UsageError, match="already saved"):
        store.save_query(engine, "a, 'b' \"c\" <d>", "select 1", replace=False)
    assert [one["sql"] for one in store.list_queries(engine)] == [SQL]
    assert store.save_query(engine, "a, 'b' \"c\" <d>", "select 1")["sql"] == "select 1"
    assert len(store.list_queries(engine)) == 1


def test_a_deleted_query_is_returned_to_be_saved_again(engine: Engine) -> None:
    saved = store.save_query(engine, "slow", SQL, {"kernel": "gemm"})
    gone = store.delete_query(engine, "slow")
    assert gone == saved
    assert store.list_queries(engine) == []
    with pytest.raises(NotFoundError, match="slow"):
        store.delete_query(engine, "slow")
    store.save_query(engine, "slower", SQL)
    with pytest.raises(NotFoundError, match="slower"):
        store.find_query(engine, "slow")


@pytest.mark.parametrize(
    ("name", "sql"),
    [("", SQL), ("  ", SQL), ("a\x00b", SQL), ("a\nb", SQL), ("n" * 101, SQL), ("n", "  "), ("n", "x" * 100_001)],
)
def test_what_cannot_be_saved_is_refused(engine: Engine, name: str, sql: str) -> None:
    with pytest.raises(UsageError):
        store.save_query(engine, name, sql)
    with pytest.raises(UsageError):
        store.save_query(engine, "n", SQL, {"kernel": "x" * saved_queries.MAX_VALUES_CHARS})
    assert store.list_queries(engine) == []
    assert store.save_query(engine, "n" * 100, "x" * 100_000)["query_id"]

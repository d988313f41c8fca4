"""Renames of kernels that reports found, on every kind of database."""

import pytest
from sqlalchemy import Engine

from profsvc import store
from profsvc.errors import ProfsvcError
from profsvc.store.results.renames import RENAME_COLUMNS
from profsvc.store.results.reports import REPORT_COUNTS, NightlyRecord

LAST = "9999-12-31"


def save(engine: Engine, scope: str, night: str, *renames: tuple[str, str, str]) -> None:
    rows = [(project, "GPU", None, old, new, 7, f"{night}T02:00:00Z", "same grid") for project, old, new in renames]
    counts = dict.fromkeys(REPORT_COUNTS, 0) | {"one_line": ""}
    store.save_report(engine, NightlyRecord(scope, night, "UTC", [], [], {}, rows), lambda *_: {"counts": counts})


def names(engine: Engine, scope: str, night: str = LAST) -> list[tuple[str, str]]:
    return [(row["kernel_before"], row["kernel"]) for row in store.known_renames(engine, scope, night)]


def test_renames_are_those_of_the_scope_and_of_earlier_nights(engine: Engine) -> None:
    save(engine, "lab", "2026-03-01", ("lab", "a", "b"))
    save(engine, "lab", "2026-03-02", ("lab", "b", "c"))
    save(engine, "", "2026-03-02", ("lab", "b", "c"), ("x", "k\u00e9", "k"))
    assert names(engine, "lab") == [("a", "b"), ("b", "c"), ("b", "c")]
    assert names(engine, "x") == [("k\u00e9", "k")]
    assert names(engine, "lab", "2026-03-02") == [("a", "b"), ("b", "c")]  # of its own night the other scope's
    assert names(engine, "", "2026-03-02") == [("a", "b"), ("b", "c")]
    assert tuple(store.known_renames(engine, "x", LAST)[0]) == RENAME_COLUMNS


def test_a_report_that_is_made_again_or_deleted_takes_its_renames_along(engine: Engine) -> None:
    save(engine, "lab", "2026-03-01", ("lab", "a", "b"), ("lab", "c", "d"))
    save(engine, "lab", "2026-03-01", ("lab", "a", "b"))
    (row,) = store.select(engine, "v1_kernel_renames")
    assert (row["kernel_before"], row["kernel"], row["night"], row["because"]) == ("a", "b", "2026-03-01", "same grid")
    store.delete_report(engine, row["report_id"])
    assert store.select(engine, "v1_kernel_renames") == []


def test_the_newest_decision_about_two_names_is_valid_and_survives_reports(engine: Engine) -> None:
    save(engine, "lab", "2026-03-01", ("lab", "a", "b"))
    assert store.any_renames(engine)
    for decision, because in (("linked", "same"), ("refused", " another  "), ("linked", "yes")):
        store.decide_rename(engine, "lab", ("a", "b"), decision, because, "ada")
    row = store.decide_rename(engine, "lab", ("b", "c"), "refused", "another algorithm", "ada")
    store.decide_rename(engine, "x", ("a", "b"), "refused", "other project", "bo")
    store.delete_report(engine, 1)
    assert [
        (one["project"], one["kernel_before"], one["decision"], one["said_by"])
        for one in store.rename_decisions(engine)
    ] == [("lab", "a", "linked", "ada"), ("lab", "b", "refused", "ada"), ("x", "a", "refused", "bo")]  # fmt: skip
    assert store.rename_decisions(engine, "lab")[1] == row
    stored = store.select(engine, "v1_rename_decisions")
    assert [one["because"] for one in stored[:3]] == ["same", "another", "yes"]
    assert store.any_renames(engine)


@pytest.mark.parametrize("because", ["", " ", "x" * 2001, "a\0b"])
def test_a_decision_without_a_reason_is_refused(engine: Engine, because: str) -> None:
    with pytest.raises(ProfsvcError):
        store.decide_rename(engine, "lab", ("a", "b"), "linked", because, "ada")
    assert not store.any_renames(engine)

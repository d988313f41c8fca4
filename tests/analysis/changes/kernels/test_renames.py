"""Names of one kernel, and its points under the newest of them."""

import numpy as np
import pandas as pd

from profsvc.analysis.changes.kernels.renames import (
    KernelNames,
    KnownRenames,
    Names,
    Rename,
    RenameDecision,
    kernel_names,
    under_newest_names,
)

RUNS = pd.DataFrame({"run_id": [11, 12, 13, 14], "at": [f"2026-03-{day}" for day in (11, 12, 13, 14)]})


def rename(old: str, new: str, run_id: int, branch: str | None = None) -> Rename:
    return Rename("lab", None, branch, old, new, run_id, f"2026-03-{run_id}", "")


def points(*kernels: tuple[int, str | None, str | None]) -> pd.DataFrame:
    rows = [("lab", None, branch, kernel, kernel or "whole run", run_id) for run_id, kernel, branch in kernels]
    table = pd.DataFrame(rows, columns=["project", "device", "branch", "kernel", "subject", "run_id"])
    return table.assign(**{name: pd.Categorical(table[name]) for name in table.columns[:-1]})


def test_names_that_follow_each_other_are_one_kernel_shown_under_the_newest() -> None:
    table = points((11, "a", None), (12, "b", None), (13, "c", None), (14, "a", None), (14, None, None), (11, "a", "x"))
    renames = [rename("b", "c", 13), rename("a", "b", 12), rename("c", "a", 14)]
    names = kernel_names(KnownRenames(renames), table, RUNS)
    assert names.of({"project": "lab", "device": None, "branch": None, "kernel": "b"}) == Names(
        "a", "a", {"a", "b", "c"}
    )
    shown = under_newest_names(table, names)
    assert shown["kernel"].astype(object).tolist()[:4] == ["a"] * 4
    assert shown["subject"].tolist() == ["a", "a", "a", "a", "whole run", "a"]
    newest = under_newest_names(table, kernel_names(KnownRenames(renames[:2]), table[:3], RUNS))
    assert newest["kernel"].astype(object).tolist()[:4] == ["c"] * 4
    assert newest["kernel"].tolist()[5] == "a"  # another branch has a history of its own
    assert np.isnan(newest["branch"].tolist()[0])


def test_names_that_one_run_has_both_are_two_kernels() -> None:
    table = points((11, "a", None), (12, "b", None), (13, "a", None), (13, "b", None))
    assert kernel_names(KnownRenames([rename("a", "b", 12)]), table, RUNS) == KernelNames({})
    again = kernel_names(KnownRenames([rename("a", "b", 12), rename("b", "c", 14)]), table, RUNS)
    assert set(again.known) == {(("lab", None, None), name) for name in "bc"}


def decision(what: str, old: str, new: str, project: str = "lab") -> RenameDecision:
    return RenameDecision(project, old, new, what, "ada", "ticket 17", "2026-03-20T00:00:00Z")


def test_people_link_and_refuse_names_in_all_histories_of_a_project() -> None:
    table = points((11, "a", None), (12, "b", None), (13, "c", None), (11, "a", "x"), (12, "b", "x"))
    linked = kernel_names(KnownRenames([], [decision("linked", "a", "b")]), table, RUNS)
    assert {key: one.newest for key, one in linked.known.items()} == {
        (("lab", None, branch), name): "b" for branch in (None, "x") for name in "ab"
    }
    assert linked.known[("lab", None, None), "a"] == Names("a", "b", frozenset("ab"))
    found = [rename("a", "b", 12), rename("b", "c", 13)]
    for pair in (("a", "b"), ("b", "a")):
        refused = kernel_names(KnownRenames(found, [decision("refused", *pair)]), table, RUNS)
        assert {name for _, name in refused.known} == {"b", "c"}
    for other in (decision("automatic", "a", "b"), decision("refused", "a", "b", "other project")):
        assert {name for _, name in kernel_names(KnownRenames(found, [other]), table, RUNS).known} == {"a", "b", "c"}


def test_refused_names_are_two_kernels_through_others_too() -> None:
    table = points((11, "a", None), (12, "b", None), (13, "c", None))
    found = [rename("a", "b", 12), rename("b", "c", 13)]
    for pair in (("a", "c"), ("c", "a")):
        names = kernel_names(KnownRenames(found, [decision("refused", *pair)]), table, RUNS)
        assert {name for _, name in names.known} == {"a", "b"}


def test_a_link_of_names_that_one_run_has_both_is_none() -> None:
    table = points((11, "a", None), (12, "a", None), (12, "b", None))
    assert kernel_names(KnownRenames([], [decision("linked", "a", "b")]), table, RUNS) == KernelNames({})

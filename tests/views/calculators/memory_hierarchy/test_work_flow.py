"""Work-flow graphs from a description: costs, visits, and descriptions that are wrong."""

import pytest

from profsvc.analysis.models.work_flow import read_description
from profsvc.errors import UsageError
from profsvc.views.calculators.answers import calculate
from profsvc.views.calculators.catalog import CALCULATORS

MODEL = CALCULATORS["work-flow"]
MACHINE = {"memory_latency_cycles": 100, "bytes_per_cycle": 128}


def described(**nodes):
    return {"machine": MACHINE, "node": nodes}


def rows(graph, **values):
    return calculate(MODEL, {"graph": graph, **values})["rows"]


def node(graph, name):
    return {row["node"]: row for row in rows(graph, show="nodes")}[name]


def test_a_load_is_hidden_by_as_many_warps_as_its_latency_needs() -> None:
    graph = described(load={"kind": "global"}, use={"kind": "computation", "instructions": 9, "uses": ["load"]})
    found = rows(graph, warps="1,8,11,20")
    assert [(row["cycles"], row["bound"]) for row in found] == [
        (110, "latency"), (110, "latency"), (110, "issue"), (200, "issue")
    ]  # fmt: skip
    assert found[0]["data_stall_cycles"] == 100
    assert rows(graph, warps="1", latency="2")[0]["cycles"] == 210
    slow = rows(graph, warps="20", bandwidth="0.01")[0]
    assert (slow["bound"], slow["cycles"]) == ("bandwidth", pytest.approx(2000))
    assert slow["balance"] == pytest.approx(200 / 2000)


def test_loops_branches_and_conflicts() -> None:
    graph = described(
        body={"kind": "shared", "bank_conflict_degree": 4, "loop_to": "body", "trips": 8},
        fork={"kind": "computation", "next": {"left": 1.0, "right": 0.5}},
        left={"kind": "computation", "instructions": 5, "next": "exit"},
        right={"kind": "computation", "instructions": 6},
    )
    assert node(graph, "body")["visits"] == pytest.approx(8)
    assert node(graph, "body")["bank_conflict_cycles"] == pytest.approx(3)
    assert [node(graph, name)["visits"] for name in ("left", "right", "exit")] == pytest.approx([1, 0.5, 1.5])
    found = rows(graph, warps="1")[0]
    assert found["bank_conflict_cycles"] == pytest.approx(24)
    assert found["divergence_cycles"] > 0
    assert found["balance"] is None  # no global memory


LOAD = {"kind": "global"}


@pytest.mark.parametrize(
    ("graph", "said"),
    [
        ({}, "has no table machine"),
        ({"machine": MACHINE}, "has no table node"),
        ({"machine": {}, "node": {"a": LOAD}}, "memory_latency_cycles and bytes_per_cycle missing"),
        ({"machine": MACHINE | {"bytes_per_cycle": 0}, "node": {"a": LOAD}}, "bytes_per_cycle is 0; allowed: more"),
        ({"machine": MACHINE | {"latency": 1}, "node": {"a": LOAD}}, "machine: no entry named 'latency'"),
        (described(a={"kind": "texture"}), "node.a.kind is 'texture'; allowed: computation"),
        (described(a={"kind": "global", "trips": 3}), "loop_to and trips go together"),
        (described(a={"kind": "global", "loop_to": "a", "trips": 0}), "trips is '0'; allowed: .* at least 1"),
        (described(a={"kind": "global", "next": "b"}), "goes on to 'b', which is no node"),
        (described(a={"kind": "global", "next": {"exit": 2}}), "next.exit = 2; allowed: at most 1"),
        (described(a={"kind": "global", "next": []}), "must be a name, or a table"),
        (described(a={"kind": "global", "uses": ["b"]}), "uses has 'b', which is no node of kind global"),
        (described(a={"kind": "global", "uses": 3}), "uses must be a list of names"),
        (described(a={"kind": "global", "instructions": float("nan")}), "instructions is 'nan'"),
        (described(a={"kind": "global", "instructions": True}), "instructions is 'True'"),
        (described(exit=LOAD), "node.exit: this name is for the node that is added"),
        (described(a=3), "node.a is not a table"),
        (described(a={"kind": "global", "next": "a"}), "a loop has no end"),
    ],
)
def test_a_description_that_is_wrong_is_refused(graph, said) -> None:
    with pytest.raises(UsageError, match=said):
        rows(graph)


def test_a_description_of_many_nodes_is_refused() -> None:
    with pytest.raises(UsageError, match="has 501 tables"):
        read_description(described(**{f"n{n}": LOAD for n in range(501)}))

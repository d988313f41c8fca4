"""Work-flow graphs: from a description of a kernel, and of an average warp of a launch from its counters."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from profsvc.errors import NotFoundError, UsageError
from profsvc.formulas.memory_hierarchy.work_flow import BARRIER, COMPUTE, ENTRY, EXIT, GLOBAL, SHARED, Graph

KINDS = {"computation": COMPUTE, "global": GLOBAL, "shared": SHARED, "barrier": BARRIER}
NODE = {"kind", "instructions", "transactions", "bank_conflict_degree", "cycles", "uses", "next", "loop_to", "trips"}
MACHINE: Mapping[str, float | None] = {
    "memory_latency_cycles": None, "bytes_per_cycle": None, "transaction_bytes": 128.0, "issue_cycles": 1.0,
    "pipe_latency_cycles": 0.0, "independent_instructions": 1.0,
}  # fmt: skip
START, END = "entry", "exit"
MAX_NODES = 500


class Description(NamedTuple):
    """A graph with the names of its nodes, and the figures of the machine by the names of `MACHINE`."""

    names: Sequence[str]
    graph: Graph
    machine: Mapping[str, float]


def read_description(text: Mapping[str, Any]) -> Description:
    """Return the graph of a description: a table ``machine``, and a table ``node.NAME`` per node in program order.

    Entry and exit are added. A node goes on to the one behind it, unless ``next`` names another or the shares of
    several; ``loop_to`` with ``trips`` goes back before it goes on. ``uses`` names loads that a node waits for.
    """
    _refuse_unknown("the description", text, {"machine", "node"})
    machine = _machine(_table("machine", text.get("machine")))
    nodes = _table("node", text.get("node"))
    if not nodes or len(nodes) > MAX_NODES:
        raise UsageError(f"the description has {len(nodes)} tables node.NAME; allowed: 1 to {MAX_NODES}")
    if reserved := {START, END} & {*nodes}:
        raise UsageError(f"node.{reserved.pop()}: this name is for the node that is added; choose another")
    names = [START, *nodes, END]
    place = {name: number for number, name in enumerate(names)}
    each = [_node(name, nodes[name]) for name in nodes]
    arcs: list[tuple[int, int, float]] = [(0, 1, 1.0)]
    uses: list[tuple[int, int]] = []
    for number, (name, node) in enumerate(zip(nodes, each, strict=True), 1):
        arcs += [(number, _place(name, place, to), share) for to, share in _ways(name, node, names[number + 1])]
        uses += [(_load(name, place, each, load), number) for load in node["uses"]]
    src, dst, prob = (list(column) for column in zip(*arcs, strict=True))
    columns = [[0.0, *(node[key] for node in each), 0.0] for key in ("instructions", "transactions",
               "bank_conflict_degree", "cycles")]  # fmt: skip
    kinds = [ENTRY, *(KINDS[node["kind"]] for node in each), EXIT]
    graph = Graph(kinds, columns[0], src, dst, prob, [a for a, _ in uses], [b for _, b in uses], *columns[1:])
    return Description(names, graph, machine)


def _table(name: str, given: Any) -> Mapping[str, Any]:
    if not isinstance(given, Mapping):
        raise UsageError(f"the description has no table {name}; it needs [machine] and [node.NAME] tables")
    return given


def _refuse_unknown(where: str, given: Mapping[str, Any], allowed: Any) -> None:
    for name in given:
        if name not in allowed:
            raise UsageError(f"{where}: {NotFoundError.near('entry', str(name), allowed)}")


def _number(where: str, given: Any, least: float = 0.0, *, above: bool = False) -> float:
    if isinstance(given, bool) or not isinstance(given, int | float) or not least <= given < float("inf"):
        raise UsageError(f"{where} is {str(given)[:40]!r}; allowed: a finite number of at least {least:g}")
    if above and given == least:
        raise UsageError(f"{where} is {given:g}; allowed: more than {least:g}")
    return float(given)


def _machine(given: Mapping[str, Any]) -> dict[str, float]:
    _refuse_unknown("machine", given, MACHINE)
    if missing := [name for name, default in MACHINE.items() if default is None and name not in given]:
        raise UsageError(f"machine: {' and '.join(missing)} missing")
    above = {"bytes_per_cycle", "transaction_bytes", "issue_cycles", "independent_instructions"}
    return {
        name: _number(f"machine.{name}", given.get(name, default), above=name in above)
        for name, default in MACHINE.items()
    }


def _node(name: str, given: Any) -> dict[str, Any]:
    where = f"node.{name}"
    if not isinstance(given, Mapping):
        raise UsageError(f"{where} is not a table")
    _refuse_unknown(where, given, NODE)
    kind = given.get("kind")
    if kind not in KINDS:
        raise UsageError(f"{where}.kind is {str(kind)[:40]!r}; allowed: {', '.join(KINDS)}")
    uses = given.get("uses", [])
    uses = [uses] if isinstance(uses, str) else uses
    if not isinstance(uses, list) or not all(isinstance(load, str) for load in uses):
        raise UsageError(f"{where}.uses must be a list of names")
    if ("loop_to" in given) != ("trips" in given):
        raise UsageError(f"{where}: loop_to and trips go together")
    numbers = {
        key: _number(f"{where}.{key}", given.get(key, default))
        for key, default in (
            ("instructions", 1.0),
            ("transactions", 1.0),
            ("bank_conflict_degree", 1.0),
            ("cycles", 0.0),
        )
    }
    return {**given, **numbers, "kind": kind, "uses": uses}


def _ways(name: str, node: Mapping[str, Any], following: str) -> list[tuple[str, float]]:
    """Return the nodes that a node goes on to, and the share of warps of each."""
    given = node.get("next", following)
    shares = {given: 1.0} if isinstance(given, str) else given
    if not isinstance(shares, Mapping) or not shares:
        raise UsageError(f"node.{name}.next must be a name, or a table of names and shares of the warps")
    ways = [(to, _number(f"node.{name}.next.{to}", share)) for to, share in shares.items()]
    if over := [f"{to} = {share:g}" for to, share in ways if share > 1]:
        raise UsageError(f"node.{name}.next.{over[0]}; allowed: at most 1, the share of the warps")
    if "trips" not in node:
        return ways
    trips = _number(f"node.{name}.trips", node["trips"], 1.0)
    return [(str(node["loop_to"]), (trips - 1) / trips), *((to, share / trips) for to, share in ways)]


def _place(name: str, place: Mapping[str, int], to: str) -> int:
    if to not in place or to == START:
        raise UsageError(f"node.{name} goes on to {str(to)[:40]!r}, which is no node")
    return place[to]


def _load(name: str, place: Mapping[str, int], nodes: Sequence[Mapping[str, Any]], load: str) -> int:
    number = place.get(load, 0)
    if not 0 < number <= len(nodes) or nodes[number - 1]["kind"] != "global":
        raise UsageError(f"node.{name}.uses has {load[:40]!r}, which is no node of kind global")
    return number

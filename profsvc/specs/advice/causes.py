"""Why launches lose time: the causes of ``causes.toml``, with their evidence, and the rules that speak of them."""

import dataclasses
import re
import tomllib
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

from profsvc.errors import DomainError
from profsvc.specs.metrics.vocabulary import counters
from profsvc.specs.published.references import references
from profsvc.specs.table_files import rows_of, text_of

FILE, LEAST_SHARES = "advice/causes.toml", "advice/least_shares.csv"
KINDS = ("flaw", "limit", "unexplained")
ALTERNATIVE = "alternative"
"""Kind of a row that reads the same evidence as the answer does in another way."""
AVOIDABLE = ("proven", "measured", "by class", "by list", "possible", "unknown", "no")
EVIDENCE = ("measured", "counted", "waiting")
"""The time itself is measured, the waste is counted, or warps waited."""

COUNTER = re.compile(r"\{(\w+)\}")


@dataclasses.dataclass(frozen=True, slots=True)
class Cause:
    """One cause: what proves it, the first step, the remedy, and the rules of Nsight Compute that speak of it."""

    name: str
    title: str
    kind: str
    avoidable: str
    evidence: tuple[str, ...]
    shown: tuple[str, ...]
    first_step: str
    remedy: str
    rules: tuple[str, ...]
    reference: str


@dataclasses.dataclass(frozen=True, slots=True)
class LeastShare:
    """From which share of the time on a cause stands out, and how many pairs of kernels that comes from."""

    evidence: str
    share: float
    pairs: int


@dataclasses.dataclass(frozen=True, slots=True)
class Alternative:
    """What else the evidence of an answer may mean, and the fact that decides, which no counter has."""

    of: str
    units: tuple[str, ...]
    needs: str
    cause: str
    condition: str


@dataclasses.dataclass(frozen=True, slots=True)
class Rule:
    """One rule of Nsight Compute: what its estimate assumes, and the counters that show whether it holds."""

    name: str
    assumes: str
    shown: tuple[str, ...]


def read_causes(text: str | None = None) -> Mapping[str, Cause]:
    """Read ``causes.toml``: causes by name."""
    found: dict[str, Cause] = {}
    fields = {field.name for field in dataclasses.fields(Cause)}
    for entry in tomllib.loads(text_of(FILE) if text is None else text)["cause"]:
        name = entry.get("name")
        if set(entry) != fields:
            raise DomainError(f"{FILE} cause {name!r}: needs exactly {sorted(fields)}")
        cause = Cause(**entry | {key: tuple(entry[key]) for key in ("evidence", "shown", "rules")})
        if name in found or cause.kind not in KINDS:
            raise DomainError(f"{FILE} cause {name!r}: must stand once, with a kind of {', '.join(KINDS)}")
        if cause.avoidable not in AVOIDABLE:
            raise DomainError(f"{FILE} cause {name!r}: avoidable must be one of {', '.join(AVOIDABLE)}")
        if unknown := [counter for counter in cause.evidence if counter not in counters()]:
            raise DomainError(f"{FILE} cause {name!r}: no such counters: {unknown}")
        if absent := sorted(set(COUNTER.findall(" ".join(cause.shown))) - set(cause.evidence)):
            raise DomainError(f"{FILE} cause {name!r}: shows counters that are not among its evidence: {absent}")
        if cause.reference not in references():
            raise DomainError(f"{FILE} cause {name!r}: no reference {cause.reference!r}")
        found[cause.name] = cause
    return MappingProxyType(found)


@cache
def causes() -> Mapping[str, Cause]:
    """Return the causes, in the order of the file."""
    return read_causes()


def read_least_shares(text: str | None = None) -> Mapping[str, LeastShare]:
    """Read ``least_shares.csv``: every flaw of ``causes.toml`` by name."""
    found: dict[str, LeastShare] = {}
    for row in rows_of(LEAST_SHARES, ("cause", "evidence", "least_share", "pairs"), text):
        share, pairs = row.number("least_share"), row.number("pairs")
        if not 0 < share <= 1 or pairs < 0:
            raise row.wrong(f"least_share must lie in (0, 1] and pairs be 0 or more but are {share:g} and {pairs:g}")
        found[row["cause"]] = LeastShare(row.one_of("evidence", EVIDENCE), share, int(pairs))
    flaws = {name for name, cause in causes().items() if cause.kind == "flaw"}
    if wrong := sorted(flaws ^ set(found)):
        raise DomainError(f"{LEAST_SHARES}: needs a row for each flaw of {FILE}, and for nothing else: {wrong}")
    return MappingProxyType(found)


@cache
def least_shares() -> Mapping[str, LeastShare]:
    """Return from which share of the time on each flaw stands out.

    >>> least_shares()["grid_too_small"].evidence
    'measured'
    """
    return read_least_shares()


@cache
def alternatives() -> Mapping[str, tuple[Alternative, ...]]:
    """Return for each answer what else it may mean: the first whose unit and evidence fit a launch is meant.

    >>> [one.cause for one in alternatives()["memory_limit"]]
    ['cache_thrashing', 'redundant_loads']
    """
    found: dict[str, tuple[Alternative, ...]] = {}
    for entry in tomllib.loads(text_of(FILE))["alternative"]:
        one = Alternative(**entry | {"units": tuple(entry["units"])})
        if unknown := [name for name in (one.of, one.cause) if name not in causes()]:
            raise DomainError(f"{FILE} alternative of {one.of!r}: no such causes: {unknown}")
        found[one.of] = (*found.get(one.of, ()), one)
    return MappingProxyType(found)


@cache
def rules() -> Mapping[str, Rule]:
    """Return the rules of Nsight Compute whose estimates are explained.

    >>> rules()["CPIStall"].assumes
    'warps do not wait for the most frequent reason any more, nor for anything else instead'
    """
    found = {}
    for entry in tomllib.loads(text_of(FILE))["rule"]:
        rule = Rule(**entry | {"shown": tuple(entry["shown"])})
        if unknown := sorted(set(COUNTER.findall(" ".join(rule.shown))) - set(counters())):
            raise DomainError(f"{FILE} rule {rule.name!r}: no such counters: {unknown}")
        found[rule.name] = rule
    return MappingProxyType(found)

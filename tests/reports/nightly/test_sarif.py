"""A nightly report as SARIF 2.1.0: the properties that its schema asks for and allows, and one result a finding."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from profsvc.reports.nightly.formats import in_form
from tests.reports.nightly.test_formats import HOSTILE, PLAIN, document, finding

# Of each object in use what the schema requires, and what it allows of the rest that is used here.
OBJECTS: dict[str, tuple[set[str], set[str]]] = {
    "log": ({"version", "runs"}, {"$schema"}),
    "run": ({"tool"}, {"automationDetails", "invocations", "columnKind", "results", "properties"}),
    "tool": ({"driver"}, set()),
    "driver": ({"name"}, {"version", "rules"}),
    "rule": ({"id"}, {"shortDescription"}),
    "invocation": ({"executionSuccessful"}, {"toolExecutionNotifications"}),
    "notification": ({"message"}, {"level"}),
    "message": (set(), {"text"}),
    "result": (
        {"message"},
        {"ruleId", "ruleIndex", "kind", "level", "locations", "baselineState", "partialFingerprints", "properties"},
    ),
    "location": (set(), {"logicalLocations"}),
    "logical": (set(), {"name", "fullyQualifiedName", "kind"}),
}
LEVELS, STATES = {"none", "note", "warning", "error"}, {"new", "unchanged", "updated", "absent"}
KINDS = {"notApplicable", "pass", "fail", "review", "open", "informational"}


def objects(log: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    yield "log", log
    for run in log["runs"]:
        yield from (("run", run), ("tool", run["tool"]), ("driver", run["tool"]["driver"]))
        for rule in run["tool"]["driver"]["rules"]:
            yield from (("rule", rule), ("message", rule["shortDescription"]))
        for invocation in run["invocations"]:
            yield "invocation", invocation
            for told in invocation["toolExecutionNotifications"]:
                yield from (("notification", told), ("message", told["message"]))
        for result in run["results"]:
            yield from (("result", result), ("message", result["message"]))
            for location in result["locations"]:
                yield "location", location
                yield from (("logical", one) for one in location["logicalLocations"])


def run_of(made: dict[str, Any]) -> dict[str, Any]:
    log = json.loads(in_form(made, "sarif"))
    assert log["version"] == "2.1.0"
    for name, found in objects(log):
        required, allowed = OBJECTS[name]
        assert required <= set(found) <= required | allowed, name
        assert name != "message" or found["text"]
    (run,) = log["runs"]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert len(rules) == len(set(rules))
    for result in run["results"]:
        assert rules[result["ruleIndex"]] == result["ruleId"]
        assert (result["level"] in LEVELS, result["kind"] in KINDS, result["baselineState"] in STATES) == (True,) * 3
        assert (result["level"] == "none") == (result["kind"] != "fail")  # section 3.27.10
    return run


@pytest.mark.parametrize("subject", [PLAIN, HOSTILE])
def test_each_finding_is_a_result(subject: str) -> None:
    run = run_of(document(subject))
    told = [(one["ruleId"], one["kind"], one["level"], one["baselineState"]) for one in run["results"]]
    assert told == [
        ("power-regression", "fail", "error", "new"),
        ("power-improvement", "informational", "none", "new"),
        ("power-regression", "fail", "warning", "unchanged"),
        ("suspected-change", "review", "none", "new"),
    ]
    assert run["results"][0]["partialFingerprints"] == {"finding/v1": "s1/2026-01-09T02:00:00Z"}
    assert len(run["invocations"][0]["toolExecutionNotifications"]) == 2
    texts = [one["message"]["text"] for one in run["results"]]
    assert all(sign.isprintable() or sign == "\n" for text in texts for sign in text)


def test_a_finding_that_is_open_later_is_the_same_result() -> None:
    row = finding(7, "gemm", kernel="gemm<16>(float *)")
    (new,) = run_of(document(findings=[row], open=[], reruns=[]))["results"]
    (later,) = run_of(document(findings=[], open=[row], reruns=[]))["results"]
    for name in ("ruleId", "partialFingerprints", "locations"):
        assert new[name] == later[name]
    assert new["locations"][0]["logicalLocations"] == [
        {"name": "gemm", "fullyQualifiedName": "gemm<16>(float *)", "kind": "function"}
    ]


def test_what_a_clock_explains_is_no_failure() -> None:
    rows = [finding(n, f"k{n}") for n in range(3)]
    event = {"kind": "clock", "members": [0, 1], "slower": True, "text": "SM clock 2 GHz to 1.9 GHz"}
    made = document(findings=rows, events=[event], open=[], reruns=[])
    assert [one["kind"] for one in run_of(made)["results"]] == ["review", "review", "fail"]
    assert 'failures="1" errors="0" skipped="1"' in in_form(made, "junit")
    levels = [line.split(" ")[0] for line in in_form(made, "github").splitlines()]
    assert levels == ["::error", "::warning", "::error"]


def test_a_quiet_night_has_no_result() -> None:
    assert run_of(document(findings=[], open=[], reruns=[]))["results"] == []

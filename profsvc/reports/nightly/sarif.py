"""A nightly report as SARIF 2.1.0, for whatever collects results of analyses."""

import json
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

from profsvc.reports.nightly.checks import ERROR, NOTICE, OPEN, SUITE, SUSPECTED, Check, checks, sort_of
from profsvc.reports.nightly.content import amount, named, percent, short
from profsvc.reports.rows import visible

Row = Mapping[str, Any]
SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
FINGERPRINT = "finding/v1"
"""Name of the fingerprint of a finding: its series, and the time of its first run."""


def sarif(document: Row) -> str:
    """Return a report as SARIF: a result for each finding, new or open, and each suspicion.

    The rule is the sort of the finding, the logical location its kernel, and the fingerprint its series and the time of
    its first run, so that it is the same result as long as it is open. Files that were refused are notifications.
    """
    found = [(check, row, _rule(check, row)) for check in checks(document) for row in check.rows]
    rules = list(dict.fromkeys(rule for _, _, rule in found))
    uploads = document["uploads"]
    told = [f"{short(one['file_name'])} was refused: {short(one['message'], 200)}" for one in uploads["refused"]]
    told += [
        f"{short(one['file_name'])}: {one['lines_rejected']} of {one['lines']} lines rejected"
        for one in uploads["partial"]
    ]
    driver = {
        "name": "profsvc",
        "version": version("profsvc"),
        "rules": [{"id": sort, "shortDescription": {"text": _title(sort)}} for sort in rules],
    }
    run = {
        "tool": {"driver": driver},
        "automationDetails": {"id": f"{SUITE}/{visible(str(document['project'] or 'all'))}/{document['night']}"},
        "invocations": [
            {
                "executionSuccessful": True,
                "toolExecutionNotifications": [{"level": "warning", "message": {"text": words}} for words in told],
            }
        ],
        "columnKind": "unicodeCodePoints",
        "results": [_result(*one, rules.index(one[2])) for one in found],
        "properties": {"verdict": visible(str(document["one_line"]))},
    }
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, ensure_ascii=False, indent=1) + "\n"


def _title(sort: str) -> str:
    """Return the title of a rule.

    >>> _title("duration-regression")
    'Duration regression'
    """
    return sort.replace("-", " ").capitalize()


def _rule(check: Check, row: Row) -> str:
    return SUSPECTED if check.sort == SUSPECTED else sort_of(row)


def _result(check: Check, row: Row, rule: str, index: int) -> Row:
    is_open = check.sort == OPEN
    failed = check.level == ERROR or (is_open and row["worse"] == 1)
    kind = "fail" if failed else "informational" if check.level == NOTICE else "review"
    lines = [f"{check.subject}: {check.message}"]
    if is_open or len(check.rows) > 1:
        levels = " to ".join(amount(row[side], row["unit"]) for side in ("before", "after"))
        lines = [f"{named(row)}: {levels} ({percent(row)})", check.message]
    made: dict[str, Any] = {
        "ruleId": rule,
        "ruleIndex": index,
        "kind": kind,
        # Only a failure has a level.
        "level": ("warning" if is_open else "error") if failed else "none",
        "message": {"text": "\n".join(visible(line) for line in [*lines, *check.more])},
        "locations": [{"logicalLocations": [_location(row)]}],
        "baselineState": check.state,
    }
    if rule != SUSPECTED:
        made["partialFingerprints"] = {FINGERPRINT: f"{row['series']}/{row['changed_at']}"}
        made["properties"] = {"finding": row["finding_id"]}
    return made


def _location(row: Row) -> Row:
    what, name = ("function", row["kernel"]) if row.get("kernel") else ("member", row["subject"])
    return {"name": visible(str(row["subject"])), "fullyQualifiedName": visible(str(name)), "kind": what}

"""A nightly report for build servers: regressions fail, suspicions do not, and no name ends a command or an element."""

from xml.etree import ElementTree

import pytest

from profsvc.reports.nightly.formats import in_form
from profsvc.reports.rows import visible
from tests.reports.nightly.test_formats import HOSTILE, PLAIN, document, finding


@pytest.mark.parametrize("subject", [PLAIN, HOSTILE])
def test_junit_fails_for_regressions_alone(subject: str) -> None:
    made = document(subject)
    root = ElementTree.fromstring(in_form(made, "junit"))
    suite = root[0]
    assert suite.get("tests") == str(len(suite)) == "5"
    assert suite.get("failures") == str(len(suite.findall("testcase/failure"))) == "1"
    assert suite.get("skipped") == str(len(suite.findall("testcase/skipped"))) == "2"
    assert suite[0].findtext("system-out") == visible(made["one_line"])
    # All attributes that the schema of Jenkins' xUnit plugin (junit-10.xsd) has for this element.
    assert set(root.attrib) <= {"name", "time", "tests", "failures", "errors"}
    assert sum("suspected" in _message(case) for case in suite) == 1


def _message(case: ElementTree.Element) -> str:
    part = case.find("skipped")
    return "" if part is None else part.get("message", "")


@pytest.mark.parametrize("subject", [PLAIN, HOSTILE])
def test_annotations_are_one_line_each_and_the_verdict_comes_first(subject: str) -> None:
    lines = in_form(document(subject), "github").splitlines()
    assert [line.split(" ", 1)[0] for line in lines] == ["::error", "::error", "::notice", "::warning", "::warning"]
    for line in lines:
        title, said = line.split(" title=", 1)[1].split("::", 1)
        assert not {":", ",", "\n", "\r"} & set(title)
        assert said
    assert "suspected, not significant yet" in lines[-1]


def test_a_quiet_night_is_a_passed_test_and_a_notice() -> None:
    quiet = document() | {"findings": [], "open": [], "reruns": [], "one_line": "nothing changed: 1 run, 9 series"}
    root = ElementTree.fromstring(in_form(quiet, "junit"))
    assert (root[0].get("tests"), root[0].get("failures"), root[0].get("skipped")) == ("1", "0", "0")
    assert in_form(quiet, "github").startswith("::notice title=profsvc nightly 2026-01-12::nothing changed")


@pytest.mark.parametrize(("count", "shown", "rest"), [(9, 10, False), (10, 10, True), (300, 10, True)])
def test_no_more_annotations_than_are_shown_and_the_last_counts_the_rest(count: int, shown: int, rest: bool) -> None:
    rows = [finding(number, f"k{number}", run_id=number) for number in range(count)]
    lines = in_form(document() | {"findings": rows, "open": rows, "reruns": []}, "github").splitlines()
    errors, warnings = ([line for line in lines if line.startswith(f"::{level} ")] for level in ("error", "warning"))
    assert len(errors) == shown
    assert (f"::and {count - 8} more: " in errors[-1]) == rest
    assert len(warnings) == min(count, 10)
    assert (f"::and {count - 9} more: " in warnings[-1]) == (count > 10)

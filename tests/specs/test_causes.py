"""The causes of lost time: each has evidence that exists, a first step and a reference."""

import pytest

from profsvc.errors import DomainError
from profsvc.specs.causes import causes, read_causes

ENTRY = """[[cause]]
name = "n"
title = "N"
kind = "{kind}"
avoidable = "{avoidable}"
evidence = ["{evidence}"]
shown = ["{shown}"]
first_step = "Do."
remedy = "Do it."
rules = []
reference = "{reference}"
"""


def test_each_cause_says_what_to_do_first_and_why() -> None:
    assert len(causes()) >= 35
    titles = [cause.title for cause in causes().values()]
    assert len(set(titles)) == len(titles)
    for cause in causes().values():
        assert cause.evidence
        assert cause.first_step.endswith(".")
        assert len(cause.first_step.split()) <= 30, cause.name


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"kind": "vice"}, "kind"),
        ({"avoidable": "perhaps"}, "avoidable must be"),
        ({"evidence": "no_such_counter"}, "no such counters"),
        ({"reference": "Nobody1900"}, "no reference"),
        ({"shown": "{waves_per_sm} waves"}, "not among its evidence"),
    ],
)
def test_a_wrong_table_is_refused(values: dict[str, str], said: str) -> None:
    text = ENTRY.format(
        **{
            "kind": "flaw",
            "avoidable": "proven",
            "evidence": "duration_ns",
            "shown": "for long",
            "reference": "NsightCompute",
        }
        | values
    )
    with pytest.raises(DomainError, match=said):
        read_causes(text)

"""The causes of lost time: each has evidence that exists, a first step and a reference."""

import pytest

from profsvc.errors import DomainError
from profsvc.specs.advice.causes import LEAST_SHARES, causes, least_shares, read_causes, read_least_shares
from profsvc.specs.table_files import text_of

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


def test_each_flaw_has_a_share_from_which_on_it_stands_out() -> None:
    assert set(least_shares()) == {name for name, cause in causes().items() if cause.kind == "flaw"}
    assert sum(one.pairs for one in least_shares().values()) > 150


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ("grid_too_small,measured", "grid_too_small,guessed", "evidence must be one of"),
        ("tail_wave,", "memory_limit,", "needs a row for each flaw"),
        ("local_memory,measured,0", "local_memory,measured,5", "must lie in"),
    ],
)
def test_a_wrong_table_of_least_shares_says_what_is_wrong(old: str, new: str, what: str) -> None:
    text = text_of(LEAST_SHARES)
    assert old in text
    with pytest.raises(DomainError, match=what):
        read_least_shares(text.replace(old, new))

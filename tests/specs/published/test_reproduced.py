"""The published figures: what a line may say, and how they are shown."""

import json

import pytest

from profsvc import specs
from profsvc.errors import DomainError
from profsvc.reports.text import explanation
from profsvc.specs.published.reproduced import COLUMNS, read_reproduced
from profsvc.views.explain.numbers import explain

GOOD = {"figure": "a", "source": "Hong2012", "computed": "1", "reproduced": "yes", "inputs": "{}"}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"figure": ""}, "figure must be a new name but is ''"),
        ({"source": "Nobody1900"}, "source 'Nobody1900' is not among the references"),
        ({"reproduced": "nearly"}, "reproduced must be one of"),
        ({"reproduced": "no"}, "it says no but not why"),
        ({"reproduced": "cannot", "why": "lost"}, "reproduced is cannot but computed is '1'"),
        ({"tolerance": "small"}, "tolerance must be a number but is 'small'"),
    ],
)
def test_a_wrong_line_is_named(given: dict[str, str], message: str) -> None:
    cells = GOOD | given
    line = ",".join(cells.get(name, "") for name in COLUMNS)
    with pytest.raises(DomainError, match=r"reproduced\.csv line 2") as error:
        read_reproduced(f"{','.join(COLUMNS)}\n{line}\n")
    assert message in str(error.value)


def test_a_name_stands_once() -> None:
    line = ",".join(GOOD.get(name, "") for name in COLUMNS)
    with pytest.raises(DomainError, match="line 3: figure must be a new name"):
        read_reproduced(f"{','.join(COLUMNS)}\n{line}\n{line}\n")


def test_every_figure_is_shown_with_its_verdict() -> None:
    view = explain(None, "reproduced", None, None)
    json.dumps(view, allow_nan=False)
    shown = explanation.explanation(view)
    counts = [sum(one.reproduced == verdict for one in specs.reproduced()) for verdict in ("yes", "no", "cannot")]
    assert f"the formulas reproduce {counts[0]} of {sum(counts)} published figures; {counts[1]} " in shown
    for one in specs.reproduced():
        assert f"  {one.reproduced:6}  {one.name}: " in shown
        assert one.why in shown

"""The smallest changes that matter, and what their table refuses."""

import pytest

from profsvc.errors import DomainError, NotFoundError
from profsvc.specs import changes, smallest_change
from profsvc.specs.changes import KEYS, read_changes

GOOD = '[power]\nunit = "W"\nrelative = 0.02\nabsolute = 1.0\nworse = "up"\nreason = "why"\n'


def test_every_quantity_has_a_bound_and_a_reason() -> None:
    assert {"duration", "criterion", "potential", "power", "energy", "data_quality"} <= set(changes())
    for quantity, change in changes().items():
        assert change.quantity == quantity
        assert change.relative > 0 or change.absolute > 0
        assert len(change.reason) > 30
        assert change.reason.endswith(".")


def test_an_unknown_quantity_names_the_nearest() -> None:
    with pytest.raises(NotFoundError, match="duration"):
        smallest_change("durations")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('reason = "why"\n', "", f"needs exactly .*{KEYS[-1]}"),
        ("relative = 0.02", "relative = -0.02", "relative must be a number from 0 but is -0.02"),
        ("absolute = 1.0", 'absolute = "1 W"', "absolute must be a number from 0 but is '1 W'"),
        ("absolute = 1.0", "absolute = nan", "absolute must be a number from 0 but is nan"),
        ("relative = 0.02\nabsolute = 1.0", "relative = 0\nabsolute = 0", "must be above 0"),
        ('worse = "up"', 'worse = "more"', "worse must be one of .* but is 'more'"),
    ],
)
def test_a_wrong_table_is_refused(old: str, new: str, message: str) -> None:
    assert read_changes(GOOD)["power"].unit == "W"
    with pytest.raises(DomainError, match=rf"changes.toml \[power\]: .*{message}"):
        read_changes(GOOD.replace(old, new))

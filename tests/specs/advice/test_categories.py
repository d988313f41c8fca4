"""The categories of the throughput model: the table as it is, and rows that are refused."""

import re

import pytest

from profsvc.errors import DomainError
from profsvc.specs import categories
from profsvc.specs.advice.categories import read_categories

HEAD = "category,merit,verdict,advice,source\n"
ROW = "1,7,bad,better,[Hong2012]\n"


def test_all_ten_and_the_order_of_the_source() -> None:
    assert list(categories()) == list(range(1, 11))
    by_merit: dict[int, set[int]] = {}
    for number, category in categories().items():
        by_merit.setdefault(category.merit, set()).add(number)
    assert [by_merit[merit] for merit in sorted(by_merit)] == [{10}, {9}, {5}, {4}, {3, 8}, {2, 7}, {1, 6}]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (HEAD + ROW + ROW, "line 3: category 1 occurs twice"),
        (HEAD + ROW.replace("1,", "11,", 1), "line 2: category must be one of"),
        (HEAD + ROW.replace("7", "best"), "line 2: merit must be one of"),
        (HEAD + ROW.replace("better", ""), "line 2: category 1 needs a verdict and an advice"),
        (HEAD + ROW.replace("2012", "1999"), "line 2: source must be a [reference]"),
    ],
)
def test_a_wrong_row_is_named(text: str, message: str) -> None:
    with pytest.raises(DomainError, match=re.escape(message)):
        read_categories(text)

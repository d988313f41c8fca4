import datetime

import pytest

from profsvc import specs
from profsvc.errors import DomainError, NotFoundError, UsageError
from profsvc.specs.questions import read_questions


def test_defaults_are_texts_or_days_from_today() -> None:
    day = datetime.date(2026, 3, 4)
    assert specs.question("worst_criteria").values({}, day) == {"since": "2026-02-25"}
    assert specs.question("worst_criteria").values({"since": "2020-01-01"}, day) == {"since": "2020-01-01"}
    assert specs.question("bounds").values({}) == {}


def test_what_is_not_known_is_named() -> None:
    with pytest.raises(NotFoundError, match="did you mean 'top_kernels'"):
        specs.question("top_kernel")
    with pytest.raises(UsageError, match="'top_kernels' has no parameter 'kernel'; it has: run"):
        specs.question("top_kernels").values({"kernel": "x"})


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[a]\ntitle = 'x'", r"\[a\]: it has \['title'\] but needs title and sql"),
        ("[a]\ntitle = 'x'\nsql = 'y'\nmore = 1", "it has"),
        ("[a]\ntitle = 'x'\nsql = 'y'\nparams = { z = 1.5 }", "the default of 'z' must be a text"),
        ("[a]\ntitle = 'x'\nsql = 'y'\nparams = { z = true }", "the default of 'z' must be a text"),
    ],
)
def test_a_wrong_table_is_named(text: str, words: str) -> None:
    with pytest.raises(DomainError, match=words):
        read_questions(text)

"""The catalogue of anti-parallel patterns: the table as it is, and rows that are refused."""

import re

import pytest

from profsvc.errors import DomainError
from profsvc.specs import patterns
from profsvc.specs.advice.antipatterns import read_patterns

HEAD = "pattern,title,lost,metric,reading,needs,causes,remedy,source\n"
ROW = "x,X,time,share,lost,run,barriers,do it,[Lemeire2017]\n"


def test_the_catalogue() -> None:
    assert len(patterns()) == 13
    assert {pattern.reading for pattern in patterns().values()} == {"lost", "kept", "factor"}
    assert all(key == pattern.key for key, pattern in patterns().items())
    assert list(read_patterns(HEAD + ROW)) == ["x"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (HEAD + ROW + ROW, "line 3: pattern 'x' is empty or there twice"),
        (HEAD + ROW.replace("x,", ",", 1), "line 2: pattern '' is empty or there twice"),
        (HEAD + ROW.replace("do it", ""), "line 2: 'x' needs remedy"),
        (HEAD + ROW.replace("lost", "gone"), "line 2: reading must be one of"),
        (HEAD + ROW.replace("barriers", "magic"), "line 2: causes: magic is no cause"),
        (HEAD + ROW.replace("2017", "1999"), "line 2: source must be a [reference]"),
    ],
)
def test_a_wrong_row_is_named(text: str, message: str) -> None:
    with pytest.raises(DomainError, match=re.escape(message)):
        read_patterns(text)

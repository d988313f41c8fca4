"""``formats.toml``: a name and a page each, and what is refused."""

import pytest

from profsvc.errors import DomainError
from profsvc.specs.files.formats import read_format_pages


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[[format]]\nname = "a"\n', "exactly a name and a page"),
        ('[[format]]\nname = "a"\npage = " "\n', "exactly a name and a page"),
        ('[[format]]\nname = "a"\npage = "A."\n[[format]]\nname = "a"\npage = "B."\n', "stands once"),
    ],
)
def test_a_wrong_page_is_refused(text: str, message: str) -> None:
    with pytest.raises(DomainError, match=message):
        read_format_pages(text)

"""Someone who follows a tutorial in an empty folder sees what the tutorial shows."""

from pathlib import Path

import pytest

from profsvc import docs
from tests.docs.console import Shell, run_page

TUTORIALS = [one for one in docs.topics() if one.startswith("tutorials/")]


@pytest.mark.parametrize("name", TUTORIALS)
def test_a_tutorial_prints_what_it_shows(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PROFSVC_URL", raising=False)
    _, wrong = run_page(docs.topic(name).text, Shell(tmp_path))
    assert not wrong, "run: python -m tests.docs\n" + "\n".join(wrong)

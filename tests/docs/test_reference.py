"""The reference is what the program says of itself; where this fails, run: python -m tests.docs."""

import re
from typing import Any

import pytest

from profsvc import docs, settings, store
from profsvc.errors import ProfsvcError, error_kinds
from tests.docs import reference


@pytest.mark.parametrize("name", reference.PAGES)
def test_a_page_is_what_is_generated(name: str) -> None:
    written = docs.topic(f"reference/{name}").text
    assert written == reference.page(name), "run: python -m tests.docs"


def test_every_page_of_the_folder_is_generated() -> None:
    assert {one.name for one in docs.topics().values() if one.kind == "reference"} == {
        f"reference/{name}" for name in reference.PAGES
    }


def test_nothing_is_missing() -> None:
    text = {name: docs.topic(f"reference/{name}").text for name in reference.PAGES}
    for words, _, _ in reference.all_commands():
        assert f"\n## {words}\n" in text["commands"]
    for setting in settings.SETTINGS:
        assert f"| `PROFSVC_{setting.name.upper()}` |" in text["settings"]
    for view, (_, columns) in store.VIEWS.items():
        assert f"`{view}`" in text["views"]
        if view not in {"v1_counters", "v1_counters_all"} and not view.endswith(("_all", "_history")):
            section = text["views"].partition(f"\n## {view}\n")[2].partition("\n## ")[0]
            assert all(f"| `{column}` |" in section for column in columns), view


def test_every_exit_code_has_its_meaning() -> None:
    assert {one.exit_code for one in error_kinds(ProfsvcError)} | {0, 1, 130} == set(reference.EXIT_CODES)


def test_a_cell_keeps_its_table() -> None:
    assert reference.table(["a"], [["x | y\nz"]]).splitlines()[2] == "| x \\| y z |"


def test_topics_are_found_by_their_last_word(cli: Any) -> None:
    listed = cli("help")
    assert listed.code == 0
    assert all(name in listed.out for name in docs.topics())
    assert cli("help", "settings").out == docs.topic("reference/settings").text
    assert cli("help", "reference/SETTINGS.md").out == docs.topic("reference/settings").text
    wrong = cli("help", "setings")
    assert wrong.code == 3
    assert "did you mean 'settings'" in wrong.err


def test_manual_pages_of_all_commands(cli: Any, tmp_path: Any) -> None:
    written = cli("help", "--man", tmp_path / "man1")
    assert written.code == 0
    names = {words.replace(" ", "-") for words, _, _ in reference.all_commands()}
    assert {path.stem for path in (tmp_path / "man1").iterdir()} >= names | {"profsvc", "profsvc-db"}
    for path in (tmp_path / "man1").iterdir():
        lines = path.read_text(encoding="utf-8").splitlines()
        assert lines[0].startswith(f'.TH "{path.stem.upper()}" 1')
        for line in lines:  # what begins like a request is one
            assert not line.startswith(("'", ".")) or re.match(r"\.(TH|SH|B|PP|TP|nf|fi|RS|RE)\b", line), line
    assert cli("help", "settings", "--man", tmp_path).code == 2

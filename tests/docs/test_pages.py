"""What the pages say can be done, can be done; links lead somewhere; the pages are shipped and short."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml
from markdown_it import MarkdownIt
from sqlalchemy import Engine

from profsvc import docs, specs, store
from profsvc.web.http.state import AppState
from tests.docs import pictures
from tests.docs.console import NAMED, README, ROOT, Shell, blocks, prepare, run_page, with_example
from tests.web.conftest import running

HOWTO = [
    name
    for name, one in docs.topics().items()
    if name.startswith("howto/") or (name.startswith("explanation/") and "```console" in one.text)
    if name != "howto/cookbook"
]
PAGES = {name: one.path for name, one in docs.topics().items()} | {"README": README}
ADDRESS = "postgresql://profsvc@db.lab/profsvc"
MAX_NOT_RUN = 24


@pytest.mark.parametrize("name", [*HOWTO, "README"])
def test_the_commands_of_a_page_run(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    text = PAGES[name].read_text(encoding="utf-8")
    prepare(tmp_path, text)
    monkeypatch.delenv("PROFSVC_URL", raising=False)
    replaced = {ADDRESS: request.getfixturevalue("postgres_whole_url")} if ADDRESS in text else {}
    shell = Shell(tmp_path, replaced)
    _, wrong = run_page(text, shell)
    if name == "README":
        assert text == with_example(text, shell), "run: python -m tests.docs README"
    assert not wrong, "run: python -m tests.docs\n" + "\n".join(wrong)


def test_the_python_of_the_pages_runs(engine: Engine, tmp_path: Path) -> None:
    prepare(tmp_path, "")
    count = 0
    with running(AppState(engine, store.blob_store_of(engine))) as service:
        for path in PAGES.values():
            for block in blocks(path.read_text(encoding="utf-8")):
                if block.info == "python" and not NAMED.match(block.body):
                    count += 1
                    done = subprocess.run(
                        [sys.executable, "-c", block.body], cwd=tmp_path, check=False, capture_output=True, text=True,
                        env=os.environ | {"PROFSVC_URL": service.url, "PYTHONPATH": str(ROOT)},
                    )  # fmt: skip
                    assert done.returncode == 0, done.stderr
    assert count


STATEMENTS = [
    statement.strip()
    for name, path in PAGES.items()
    if name != "howto/cookbook"
    for block in blocks(path.read_text(encoding="utf-8"))
    if block.info == "sql"
    for statement in re.sub(r"--.*", "", block.body).split(";")
    if statement.strip()
]


@pytest.mark.parametrize("statement", STATEMENTS)
def test_the_sql_of_the_pages_gives_rows(demo: Engine, statement: str) -> None:
    assert store.query(demo, statement).rows


def test_the_sql_of_the_pages_runs_on_postgres(postgres_whole_url: str) -> None:
    engine = store.open_store(postgres_whole_url)
    for statement in STATEMENTS:
        assert store.query(engine, statement).columns
    engine.dispose()


KINDS = {"console", "sh", "sql", "python", "toml", "yaml", "csv", "nginx", "text"}


def test_every_block_is_run_or_says_why_not() -> None:
    left_out = 0
    for name, path in PAGES.items():
        for block in blocks(path.read_text(encoding="utf-8")):
            kind, _, reason = block.info.partition(" no-run: ")
            assert kind in {"console", "sh", "sql", "python", "toml", "yaml", "csv", "nginx", "text"}, (
                name,
                block.info,
            )
            assert kind != "yaml" or yaml.safe_load(block.body)
            assert kind != "toml" or tomllib.loads(block.body)
            left_out += bool(reason)
            assert name.startswith("tutorials/") or name in ("howto/cookbook", *HOWTO) or kind != "console", name
    assert 0 < left_out <= MAX_NOT_RUN


def anchors(text: str) -> set[str]:
    """The anchors of a page, as GitHub and the service make them."""
    tokens = MarkdownIt().parse(text)
    titles = [tokens[n + 1].content for n, token in enumerate(tokens) if token.type == "heading_open"]
    return {docs.anchor(title) for title in titles}


@pytest.mark.parametrize("name", PAGES)
def test_links_lead_somewhere(name: str) -> None:
    path = PAGES[name]
    text = re.sub(r"^```.*?^```$", "", path.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"https?://", target):
            continue
        file, _, fragment = target.partition("#")
        to = (path.parent / file).resolve() if file else path
        assert to.is_file(), (name, target)
        assert to.is_relative_to(docs.FOLDER) or name == "README", f"{name} links out of the package: {target}"
        if fragment:
            assert fragment in anchors(to.read_text(encoding="utf-8")), (name, target)


@pytest.mark.parametrize("name", PAGES)
def test_no_two_versions_of_a_passage_are_left_by_a_merge(name: str) -> None:
    assert not re.search(r"^(<{7} |={7}$|>{7} )", PAGES[name].read_text(encoding="utf-8"), re.MULTILINE)


def test_every_page_is_in_the_index() -> None:
    listed = set(re.findall(r"\]\(([\w/-]+)\.md\)", docs.topic("index").text))
    assert listed == set(docs.topics()) - {"index"}


def test_pictures_are_drawn_from_their_source() -> None:
    drawn = pictures.pictures()
    kept = {path.name: path.read_text(encoding="utf-8") for path in (docs.FOLDER / "pictures").glob("*.svg")}
    assert kept == drawn, "run: python -m tests.docs"
    assert set(pictures.CRITERIA) == {one["name"] for one in specs.criteria()["criterion"]}


def test_titles_and_names_are_distinct() -> None:
    titles = [one.title for one in docs.topics().values()]
    assert len(titles) == len(set(titles))
    names = [name.rpartition("/")[2] for name in docs.topics()]
    assert len(names) == len(set(names))

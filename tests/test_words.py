"""Prose that readers stumbled over does not come back: docstrings, comments, messages, pages, tables, documentation.

``words.csv`` has a pattern per line and what to write instead. Code and identifiers are not looked at, only prose:
comments, docstrings, and strings with a space in them.
"""

import ast
import csv
import io
import re
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "profsvc"
PROSE = {".md", ".csv", ".toml", ".html"}
PARTS = sorted(
    {path.relative_to(PACKAGE).parts[0].removesuffix(".py") for path in PACKAGE.rglob("*") if path.is_file()}
    - {"__pycache__", "__init__", "__main__", "_version", "demo", "migrations"}
    | {"README"}
)
CLEAN: set[str] = {
    "README",
    "analysis",
    "api",
    "channels",
    "cli",
    "client",
    "data",
    "docs",
    "errors",
    "formats",
    "formulas",
    "kernel_names",
    "mcp",
    "pipeline",
    "pytest_plugin",
    "recording",
    "reports",
    "scheduler",
    "settings",
    "specs",
    "store",
    "tables",
    "views",
    "web",
    "workers",
}
"""Parts without any listed phrase; the others are still to be rewritten."""


@cache
def listed() -> dict[str, str]:
    with Path(__file__).with_name("words.csv").open(encoding="utf-8", newline="") as file:
        return {row["pattern"]: row["instead"] for row in csv.DictReader(file)}


@cache
def any_listed() -> re.Pattern[str]:
    return re.compile(rf"\b(?:{'|'.join(f'(?:{pattern})' for pattern in listed())})", re.IGNORECASE)


def _python(text: str) -> Iterator[tuple[int, str]]:
    # To tell comments from text takes most of the time, and few lines with a mark of a comment have a phrase at all.
    if any("#" in line and any_listed().search(line) for line in text.split("\n")):
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT:
                yield token.start[0], token.string
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value.strip():
            for number, line in enumerate(node.value.split("\n")):
                yield node.lineno + number, line


def prose(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the lines of a file that a person reads, with their numbers."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        yield from _python(text)
    elif path.suffix in PROSE:
        if path.is_relative_to(PACKAGE / "docs"):  # what commands print is looked at in their messages
            text = re.sub(
                r"^```(?:console|text|sh)\n.*?^```$", lambda found: "\n" * found[0].count("\n"), text, flags=re.S | re.M
            )
        if path.suffix == ".html":
            text = re.sub(r"{[{%#].*?[}%#]}|<[^>]*>", lambda found: "\n" * found[0].count("\n"), text, flags=re.S)
        yield from enumerate(text.split("\n"), start=1)


def found_in(lines: Iterator[tuple[int, str]]) -> Iterator[tuple[int, str, str]]:
    """Yield the line number, the phrase and what to write instead."""
    compiled = [(re.compile(rf"\b(?:{pattern})", re.IGNORECASE), instead) for pattern, instead in listed().items()]
    for number, line in lines:
        if not any_listed().search(line):
            continue
        for pattern, instead in compiled:
            if match := pattern.search(line):
                yield number, match[0], instead


def files_of(part: str) -> list[Path]:
    if part == "README":
        return [ROOT / "README.md", ROOT / "fixtures" / "README.md"]
    if part == "docs":  # what is generated is looked at where it comes from
        pages = [path for path in (PACKAGE / part).rglob("*.*") if path.suffix in PROSE | {".py"}]
        return sorted(path for path in pages if path.parent.name != "reference" and path.stem != "cookbook")
    if (PACKAGE / part).is_dir():
        return sorted(path for path in (PACKAGE / part).rglob("*") if path.suffix in PROSE | {".py"})
    return [PACKAGE / f"{part}.py"]


@pytest.mark.parametrize("part", PARTS)
def test_no_listed_phrase(part: str) -> None:
    found = [
        f"{path.relative_to(ROOT)}:{number}: {phrase!r} -> {instead}"
        for path in files_of(part)
        for number, phrase, instead in found_in(prose(path))
    ]
    if part in CLEAN:
        assert not found, "\n".join(found)
    else:
        assert found, f"{part} has no listed phrase any more: add it to CLEAN"
        pytest.skip(f"{len(found)} phrases to rewrite:\n" + "\n".join(found))


@pytest.mark.parametrize("phrase", ["what it foretold", "a row a launch", "cries wolf", "Beware: hot"])
def test_a_listed_phrase_is_found(phrase: str) -> None:
    text = f'"""Return {phrase}."""\nx = "no-prose"  # {phrase}\n'
    assert len(list(found_in(_python(text)))) == 2

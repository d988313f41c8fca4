"""The layers of the package: imports point down only, and no two modules import each other."""

import ast
import graphlib
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.layers import LAYERS

ROOT = Path(__file__).parent.parent
LAYER = {part: place for place, layer in enumerate(reversed(LAYERS)) for part in layer.parts}
INNER = {  # folders of a package, lowest first
    "store": [
        {"connection", "schema"},
        {"sandbox", "service", "ingest"},
        {"queries"},
        {"results"},
        {"maintenance"},
    ],
}
PATHS = {
    ".".join(p.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): p
    for p in (ROOT / "profsvc").rglob("*.py")
    if p.name != "_version.py"  # written when the package is built
}
OPEN_TO_ALL = {"profsvc"}
PURE = {"formulas": {"numpy", "scipy"}, "errors": set()}


def imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):  # lazy imports count too
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: write profsvc... in full"
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                yield full if full in PATHS else str(node.module)


@cache
def graph() -> dict[str, set[str]]:
    return {m: {i for i in imports(p) if i in PATHS} - OPEN_TO_ALL for m, p in PATHS.items()}


def part(module: str) -> str:
    return module.split(".")[1]


def test_every_part_has_a_layer_in_the_docstring_of_the_package() -> None:
    assert {part(m) for m in graph() if m.count(".") and "__main__" not in m} == set(LAYER)


def test_imports_point_down() -> None:
    wrong = [
        (a, b)
        for a in graph()
        if a.count(".") and "__main__" not in a
        for b in graph()[a]
        if part(a) != part(b) and LAYER[part(a)] <= LAYER[part(b)]
    ]
    assert not wrong


@pytest.mark.parametrize("package", INNER)
def test_folders_of_a_package_import_only_lower_ones(package: str) -> None:
    layers = {folder: n for n, folders in enumerate(INNER[package]) for folder in folders}
    folders = {path.name for path in (ROOT / "profsvc" / package).iterdir() if (path / "__init__.py").is_file()}
    assert folders == set(layers)

    def layer(module: str) -> tuple[str, int] | None:
        _, own, folder, *_ = [*module.split("."), "", ""]
        return (folder, layers[folder]) if own == package and folder in layers else None

    upward = [
        (a, b)
        for a in graph()
        for b in graph()[a]
        if (above := layer(a)) and (below := layer(b)) and above[0] != below[0] and above[1] <= below[1]
    ]
    assert not upward


def test_no_cycles() -> None:
    graphlib.TopologicalSorter(graph()).prepare()


def test_pure_layers_import_only_what_they_may() -> None:
    standard = {
        "collections",
        "dataclasses",
        "difflib",
        "enum",
        "errno",
        "functools",
        "math",
        "re",
        "typing",
        "__future__",
    }
    for module, path in PATHS.items():
        if module.count(".") and part(module) in PURE:
            outside = {i.split(".")[0] for i in imports(path)} - {"profsvc"} - standard - PURE[part(module)]
            assert not outside, f"{module} imports {outside}"


def test_no_folder_is_wide() -> None:
    modules = Counter(path.parent.relative_to(ROOT) for path in PATHS.values())
    assert not {str(folder): n for folder, n in modules.items() if n > 20}


def test_no_module_is_a_giant() -> None:
    big = {m: n for m, p in PATHS.items() if (n := len(p.read_text(encoding="utf-8").splitlines())) > 500}
    assert not big, f"split by noun: {big}"


def test_nothing_else_lies_at_the_top() -> None:
    made = {"build", "dist", "__pycache__"}  # by tools; git ignores them
    found = {path.name for path in ROOT.iterdir() if not path.name.startswith(".") and path.suffix != ".egg-info"}
    assert found - made == {"README.md", "fixtures", "migrations", "profsvc", "pyproject.toml", "tests"}

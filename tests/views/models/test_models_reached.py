"""Every public formula is reached: something outside of the formulas uses it, or a formula that is used does.

Calculators and analyses are what commands, views and pages show; `tests/views/models/test_index.py` holds that each
model names a command, a view and a page that exist.
"""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[3]
PACKAGE = "profsvc.formulas"
PATHS = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for path in (ROOT / "profsvc").rglob("*.py")
}
Name = tuple[str, str]
"""A module and a name in it."""
FORMULAS = tuple(module for module in PATHS if module.startswith(PACKAGE))
USERS = tuple(m for m in PATHS if m not in FORMULAS and PACKAGE in PATHS[m].read_text(encoding="utf-8"))


@cache
def tree(module: str) -> ast.Module:
    return ast.parse(PATHS[module].read_text(encoding="utf-8"))


@cache
def own_names(module: str) -> dict[str, ast.AST]:
    """The functions, classes and constants that a module defines."""
    found: dict[str, ast.AST] = {}
    for node in tree(module).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found[node.name] = node
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found |= {one.id: node for one in targets if isinstance(one, ast.Name)}
    return found


@cache
def imported(module: str) -> dict[str, Name]:
    """What each imported name of a module is: a name of a formula's module, or such a module (with an empty name)."""
    found: dict[str, Name] = {}
    for node in ast.walk(tree(module)):
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("profsvc"):
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                own = alias.asname or alias.name
                if full.startswith(PACKAGE) and full in PATHS:
                    found[own] = (full, "")
                elif str(node.module).startswith(PACKAGE):
                    found[own] = resolved(str(node.module), alias.name)
    return found


def resolved(module: str, name: str) -> Name:
    """Where a name is defined, behind the imports of packages."""
    if name in own_names(module):
        return module, name
    return imported(module).get(name, (module, name))


def used(module: str, within: ast.AST) -> Iterator[Name]:
    """The formulas that a piece of code names."""
    known = imported(module)
    for node in ast.walk(within):
        if isinstance(node, ast.Name):
            if node.id in known:
                yield known[node.id]
            elif module in FORMULAS and node.id in own_names(module):
                yield module, node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            base, name = known.get(node.value.id, ("", "x"))
            if base and not name:
                yield resolved(base, node.attr)


@cache
def unreached(users: tuple[str, ...] = USERS) -> set[str]:
    """The public functions and classes of formulas that nothing uses."""
    todo = [one for m in users for one in used(m, tree(m))]
    seen: set[Name] = set()
    while todo:
        if (one := todo.pop()) in seen:
            continue
        seen.add(one)
        module, name = one
        if module in PATHS and (node := own_names(module).get(name)) is not None:
            todo += used(module, node)
    public = {
        (module, name)
        for module in FORMULAS
        for name, node in own_names(module).items()
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not name.startswith("_")
    }
    return {f"{module.removeprefix(PACKAGE + '.')}.{name}" for module, name in public - seen}


def test_every_formula_is_reached() -> None:
    assert not unreached(), "give each a calculator or an analysis that shows it, or delete it"


def test_what_nothing_uses_is_told_from_what_is_used() -> None:
    """By name, through a module, behind a package, and inside of the formulas."""
    left = unreached(("profsvc.views.calculators.performance.work_depth",))
    assert "performance.work_depth.brent_time" not in left
    assert "numerics.arrays.flagged" not in left
    assert {"performance.roofline.roofline", "mwp_cwp.execution.exec_cycles"} <= left
    assert resolved(f"{PACKAGE}.mwp_cwp", "exec_cycles") == (f"{PACKAGE}.mwp_cwp.execution", "exec_cycles")

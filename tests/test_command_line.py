"""Every program below `tests` explains itself before it does anything."""

import logging
import runpy
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent
BENCHMARKS = sorted(path.stem for path in (FOLDER / "benchmarks").glob("*.py"))
# It is started by `tests.benchmarks.detection` in another Python, and reads arrays.
STARTED_BY_ANOTHER = {"peers"}
PROGRAMS = [f"tests.benchmarks.{name}" for name in BENCHMARKS if name not in STARTED_BY_ANOTHER]


@pytest.mark.parametrize(
    "program", [*PROGRAMS, "tests.robustness.durability", "tests.robustness.fuzzing", "tests.robustness.sanitized"]
)
def test_help_is_the_docstring_and_nothing_is_run(program, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", [program, "--help"])
    monkeypatch.delitem(sys.modules, program, raising=False)
    with pytest.raises(SystemExit) as ended:
        runpy.run_module(program, run_name="__main__", alter_sys=True)
    printed = capsys.readouterr()
    assert ended.value.code == 0
    assert printed.out.startswith(f"usage: python -m {program} ")
    docstring = (FOLDER.parent / f"{program.replace('.', '/')}.py").read_text().split('"""')[1].strip()
    assert docstring.splitlines()[0] in printed.out
    assert not printed.err
    assert logging.root.manager.disable == logging.NOTSET

"""Every program below `tests` explains itself before it does anything."""

import logging
import runpy
import sys
from pathlib import Path

import pytest

from tests.benchmarks.__main__ import SUBJECTS

FOLDER = Path(__file__).parent
BENCHMARKS = sorted(path.stem for path in (FOLDER / "benchmarks").glob("*.py") if path.stem != "__main__")
# It is started by `tests.benchmarks.detection` in another Python, and reads arrays.
STARTED_BY_ANOTHER = {"peers"}
TO_RUN = [name for name in BENCHMARKS if name not in STARTED_BY_ANOTHER]
PROGRAMS = [
    *(f"tests.benchmarks.{name}" for name in ("__main__", *TO_RUN)),
    *(f"tests.robustness.{name}" for name in ("durability", "fuzzing", "sanitized")),
]


def test_every_benchmark_has_a_subject():
    assert sorted(name for names in SUBJECTS.values() for name in names) == TO_RUN


@pytest.mark.parametrize("program", PROGRAMS)
def test_help_is_the_docstring_and_nothing_is_run(program, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", [program, "--help"])
    monkeypatch.delitem(sys.modules, program, raising=False)
    with pytest.raises(SystemExit) as ended:
        runpy.run_module(program, run_name="__main__", alter_sys=True)
    printed = capsys.readouterr()
    assert ended.value.code == 0
    assert printed.out.startswith(f"usage: python -m {program.removesuffix('.__main__')} ")
    docstring = (FOLDER.parent / f"{program.replace('.', '/')}.py").read_text().split('"""')[1].strip()
    assert docstring.splitlines()[0] in printed.out
    assert not printed.err
    assert logging.root.manager.disable == logging.NOTSET

"""A month of nights in which nothing happens, and what tests do with it."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from sqlalchemy import Engine

from profsvc import store
from tests.conftest import MakeOnce
from tests.inputs.nights import put, quantities, report

QUIET = 30  # nights before anything happens
GEMM, SAXPY = "gemm", "saxpy"


def season(engine: Engine, rng: np.random.Generator, count: int, **options: object) -> list[dict]:
    """Put nights after the quiet ones, and report each; an option that is a list has a value a night."""
    made = []
    for number in range(count):
        own = {name: value[number] if isinstance(value, list) else value for name, value in options.items()}
        put(engine, QUIET + number, rng, **own)
        made.append(report(engine, QUIET + number))
    return made


def found(documents: list[dict]) -> list[tuple[str, str]]:
    return [pair for document in documents for pair in quantities(document["findings"])]


@pytest.fixture(scope="session")
def quiet_file(made_once: MakeOnce) -> Path:
    """The file of a store with a month of nights in which only the weather changes."""

    def fill(engine: Engine) -> None:
        rng = np.random.default_rng(11)
        for night in range(QUIET):
            put(engine, night, rng, temperature_c=40 + rng.standard_normal(), commit="a" * 7)

    return made_once("quiet month", fill)


@pytest.fixture(scope="session")
def regressed_file(made_once: MakeOnce, quiet_file: Path) -> Path:
    """The same after three nights in which one kernel takes 5 % longer, each with its report."""

    def fill(engine: Engine) -> None:
        season(engine, np.random.default_rng(5), 3, slower=(1.05, 1.0))

    quiet = store.connect(str(quiet_file))
    file = made_once("regressed month", fill, quiet)
    quiet.dispose()
    return file


@contextmanager
def copied(file: Path, folder: Path) -> Iterator[Engine]:
    shutil.copy(file, folder / "store.sqlite")
    engine = store.open_store(str(folder / "store.sqlite"), pooled=True)
    yield engine
    engine.dispose()


@pytest.fixture
def quiet_month(tmp_path: Path, quiet_file: Path) -> Iterator[Engine]:
    with copied(quiet_file, tmp_path) as engine:
        yield engine


@pytest.fixture
def regressed(tmp_path: Path, regressed_file: Path) -> Iterator[Engine]:
    with copied(regressed_file, tmp_path) as engine:
        yield engine


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(5)

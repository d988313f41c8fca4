"""Stores and files for work in bulk."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine

from profsvc import store
from profsvc.scale.work import Opened
from tests.benchmarks.cluster import opened
from tests.environment.postgres import Server

Open = Callable[[str], Opened]


@pytest.fixture
def opening(tmp_path: Path) -> Iterator[Open]:
    """Open stores, each with its own folder for kept bytes, and close them at the end."""
    made: list[Opened] = []

    def open_one(url: str) -> Opened:
        made.append(opened(url, tmp_path / f"kept{len(made)}"))
        return made[-1]

    yield open_one
    for one in made:
        one.engine.dispose()


@pytest.fixture
def engine(postgres_whole_url: str, opening: Open) -> Engine:
    return opening(postgres_whole_url).engine


@pytest.fixture
def loader(postgres_server: Server, engine: Engine) -> Iterator[str]:
    """The URL of a role that may only load files, which is gone after the test: roles are the server's."""
    url = postgres_server.admin.set(drivername="postgresql+psycopg", database=engine.url.database)
    superuser = store.connect(url.render_as_string(hide_password=False))
    made = store.create_loader(superuser, f"loader_{engine.url.database}")
    superuser.dispose()
    yield made.url
    with postgres_server.session(engine.url.database) as session:
        session.execute(f"DROP OWNED BY {made.name}; DROP ROLE {made.name}")


@pytest.fixture
def place(tmp_path: Path, empty: Path) -> Iterator[Opened]:
    file = tmp_path / "store.sqlite"
    file.write_bytes(empty.read_bytes())
    engine = store.open_store(str(file), pooled=True)
    yield Opened(engine, store.blob_store_of(engine))
    engine.dispose()

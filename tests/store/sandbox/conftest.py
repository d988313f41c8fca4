"""Roles of a Postgres server that a test may make."""

from collections.abc import Iterator

import pytest
from sqlalchemy import Engine

from profsvc import store
from tests.environment.postgres import Server


@pytest.fixture
def as_superuser(postgres_server: Server, engine: Engine) -> Engine:
    url = postgres_server.admin.set(drivername="postgresql+psycopg", database=engine.url.database)
    return store.connect(url.render_as_string(hide_password=False))


@pytest.fixture
def role(postgres_server: Server, engine: Engine) -> Iterator[str]:
    """A name for a role, which is gone after the test: roles are the server's, not the database's."""
    name = f"role_of_{engine.url.database}"
    yield name
    with postgres_server.session(engine.url.database) as session:
        if session.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", (name,)).fetchone():
            session.execute(f"DROP OWNED BY {name}; DROP ROLE {name}")

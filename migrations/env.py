"""Runs the migrations: on the connection handed over by the program, else on the store named by hand.

By hand, in a checkout: ``alembic -x url=lab.sqlite upgrade head``, or with PROFSVC_STORE set.
"""

import os

from alembic import context
from sqlalchemy import Connection

from profsvc.errors import UsageError
from profsvc.store.connection.engine import make_engine
from profsvc.store.connection.urls import url_of
from profsvc.store.maintenance.migrations import changing_schema
from profsvc.store.schema.tables import metadata


def run(connection: Connection) -> None:
    sqlite = connection.dialect.name == "sqlite"
    context.configure(connection=connection, target_metadata=metadata, render_as_batch=sqlite, transactional_ddl=True)
    with context.begin_transaction():
        context.run_migrations()


handed_over = context.config.attributes.get("connection")
if handed_over is not None:
    run(handed_over)
else:
    url = context.get_x_argument(as_dictionary=True).get("url") or os.environ.get("PROFSVC_STORE")
    if not url:
        raise UsageError("say which store: alembic -x url=PATH_OR_URL, or PROFSVC_STORE")
    with changing_schema(make_engine(url_of(str(url)))) as connection:
        run(connection)

"""The store: the only place with SQL.

``open_store`` gives the engine that every function here takes. Files go in with ``write_upload``, results with
``save_results``; questions are answered by the functions of `profsvc.store.read` and, for a user's own SQL, ``query``.
"""

from collections.abc import Iterable

from sqlalchemy import Engine

from profsvc.errors import ServiceError, StoreVersionError
from profsvc.store.engine import file_of, make_engine, set_journal, url_of
from profsvc.store.load import RunInfo, Stored, UploadInfo, find_upload, write_upload
from profsvc.store.migrate import current, head, state, upgrade
from profsvc.store.read import (
    characterizations,
    counters,
    criteria,
    device_attributes,
    find_run,
    launches,
    metrics,
    models,
    potential,
    rules,
    runs,
    select,
    sensors,
    table,
    upload,
    uploads,
)
from profsvc.store.results import delete_run, delete_upload, describe_device, save_results
from profsvc.store.sandbox import Answer, query
from profsvc.store.views import FLAGS, VIEWS
from profsvc.store.wide import wide_values

__all__ = [
    "FLAGS",
    "VIEWS",
    "Answer",
    "RunInfo",
    "Stored",
    "UploadInfo",
    "characterizations",
    "connect",
    "counters",
    "criteria",
    "current",
    "delete_run",
    "delete_upload",
    "describe_device",
    "device_attributes",
    "find_run",
    "find_upload",
    "head",
    "launches",
    "metrics",
    "models",
    "open_store",
    "potential",
    "query",
    "rules",
    "runs",
    "save_results",
    "select",
    "sensors",
    "table",
    "upgrade",
    "upload",
    "uploads",
    "wide_values",
    "write_upload",
]


def connect(url: str | None = None) -> Engine:
    """Return the engine of a store whatever its schema is; nothing is made or changed, except the default folder."""
    engine = make_engine(url_of(url))
    file = file_of(engine)
    if file is not None and not file.absolute().parent.is_dir():
        raise ServiceError(f"{file}: there is no folder {file.absolute().parent}; make it, or give another --store")
    return engine


def open_store(url: str | None = None, counter_names: Iterable[str] | None = None) -> Engine:
    """Return the engine of a store, a path or a database URL; by default a SQLite file in the user's data folder.

    A new SQLite file gets this program's schema, an older one is copied and brought up to date. A server's schema is
    only changed when asked. ``counter_names`` are the columns of ``v1_counters``, by default those of the program.
    """
    engine = connect(url)
    file = file_of(engine)
    if file is not None and file.exists():
        set_journal(engine)
    if file is None and state(engine) != "current":
        where = engine.url.render_as_string(hide_password=True)
        raise StoreVersionError(
            f"{where} has not the schema {head()} of this program; run: profsvc --store URL db upgrade"
        )
    upgrade(engine, counter_names)
    return engine

"""The store: the only place with SQL.

``open_store`` gives the engine that every function here takes. Files go in with ``write_upload``, results with
``save_results``; questions are answered by the functions of `profsvc.store.read` and, for a user's own
SQL, ``query`` and ``export``.
"""

import shlex
from collections.abc import Callable, Iterable

from sqlalchemy import Engine

from profsvc.errors import ServiceError, StoreVersionError
from profsvc.store import reader_role
from profsvc.store.arrival import Arrival, arriving, write_out
from profsvc.store.belonging import RunInfo, Stored, UploadInfo, describe_run, find_upload, read_at
from profsvc.store.big import (
    count,
    kernels_by_time,
    launch_numbers,
    longest_launches,
    select_of,
    transfers_by_kind,
)
from profsvc.store.board_power import power_of_board
from profsvc.store.compared import clocks_of_run, kernels_of_run
from profsvc.store.deleted import (
    aged_runs,
    delete_run,
    delete_upload,
    deleted_upload,
    deleted_uploads,
    read_age,
    rereading,
    restoring,
)
from profsvc.store.deliveries import Delivered, keep_delivery
from profsvc.store.engine import address, file_of, make_engine, on_kept_connections, one_state, set_journal, url_of
from profsvc.store.finished import OF_POWER, changes_of, unfinished
from profsvc.store.health import Check, examine, must_be_writable
from profsvc.store.history import (
    criterion_of_kernel,
    durations_of_kernel,
    kernels_alike,
    kernels_named,
    no_kernel,
    potential_of_kernel,
    powers_of_load,
    recent_kernels,
)
from profsvc.store.kept import Files, files_of, keeping, kept_bytes, room_of, spool_of
from profsvc.store.kernel_metrics import kernel_metrics, kernel_shapes, kernel_times
from profsvc.store.kernel_power import mean_counters, powers_of_loads
from profsvc.store.launch_list import LAUNCH_ORDERS, list_launches
from profsvc.store.lists import (
    FILTERS,
    JSON_COLUMNS,
    MOST_ROWS,
    Condition,
    Page,
    key_of,
    kinds_of,
    list_view,
    statement_of,
    with_objects,
)
from profsvc.store.load import write_upload
from profsvc.store.memory_traces import StoredTrace, save_trace, traces_of_run
from profsvc.store.migrate import current, head, is_current, is_ready, state, upgrade
from profsvc.store.nights import (
    BY_PEOPLE,
    Move,
    Night,
    findings_of_series,
    keep_night,
    known_findings,
    later_report,
    note_refusal,
    report_before,
    series_of_finding,
    set_finding,
    states_of,
    states_said,
)
from profsvc.store.power import (
    Readings,
    last_samples,
    launch_times,
    marks_of_run,
    save_power,
    sensor_readings,
    sensors_of_run,
)
from profsvc.store.prediction_shapes import BOUND, PART, PARTS
from profsvc.store.predictions import (
    MOST_PREDICTIONS,
    UNCHANGED,
    criteria_of_kernels,
    foretold,
    save_predictions,
    scored_predictions,
    sources_of_predictions,
    traits_of_kernels,
    work_of_kernels,
)
from profsvc.store.read import (
    characterizations,
    counters,
    criteria,
    device_attributes,
    find_run,
    has_size,
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
from profsvc.store.results import describe_device, save_results
from profsvc.store.run_list import COUNTED, ORDERS, RunFilter, RunPage, list_runs
from profsvc.store.sandbox import Answer, export, query
from profsvc.store.sandbox_rules import Rows, names_in
from profsvc.store.schedules import (
    ASKED,
    Slot,
    add_schedule,
    enable_schedule,
    end_slot,
    list_schedules,
    note_deliveries,
    note_next,
    put_off_slot,
    read_time,
    remove_schedule,
    renew_slot,
    take_over_slot,
    take_slot,
)
from profsvc.store.series import (
    BINARY,
    figures_of_runs,
    predictions_of_runs,
    projects,
    refusals_between,
    runs_of_nights,
    uploads_between,
)
from profsvc.store.server import repeated
from profsvc.store.shapes import FLAGS
from profsvc.store.timelines import timeline
from profsvc.store.tokens import EVERYTHING, SCOPES, Grant, create_token, grant_of, is_closed, list_tokens, revoke_token
from profsvc.store.traces import measured_launches, time_without
from profsvc.store.upkeep import Backup, Waste, backup, forget, holding, sweep, vacuum, waste
from profsvc.store.views import VIEWS, column_kinds, quoted
from profsvc.store.wide import wide_values

__all__ = [
    "ASKED",
    "BINARY",
    "BOUND",
    "BY_PEOPLE",
    "COUNTED",
    "EVERYTHING",
    "FILTERS",
    "FLAGS",
    "JSON_COLUMNS",
    "LAUNCH_ORDERS",
    "MOST_PREDICTIONS",
    "MOST_ROWS",
    "OF_POWER",
    "ORDERS",
    "PART",
    "PARTS",
    "SCOPES",
    "UNCHANGED",
    "VIEWS",
    "Answer",
    "Arrival",
    "Backup",
    "Check",
    "Condition",
    "Delivered",
    "Files",
    "Grant",
    "Move",
    "Night",
    "Page",
    "Readings",
    "Rows",
    "RunFilter",
    "RunInfo",
    "RunPage",
    "Slot",
    "Stored",
    "StoredTrace",
    "UploadInfo",
    "Waste",
    "add_schedule",
    "address",
    "aged_runs",
    "arriving",
    "backup",
    "changes_of",
    "characterizations",
    "clocks_of_run",
    "column_kinds",
    "connect",
    "count",
    "counters",
    "create_reader",
    "create_token",
    "criteria",
    "criteria_of_kernels",
    "criterion_of_kernel",
    "current",
    "delete_run",
    "delete_upload",
    "deleted_upload",
    "deleted_uploads",
    "describe_device",
    "describe_run",
    "device_attributes",
    "durations_of_kernel",
    "enable_schedule",
    "end_slot",
    "examine",
    "export",
    "figures_of_runs",
    "files_of",
    "find_run",
    "find_upload",
    "findings_of_series",
    "foretold",
    "forget",
    "grant_of",
    "has_size",
    "head",
    "holding",
    "is_closed",
    "is_current",
    "is_server",
    "is_server_of",
    "keep_delivery",
    "keep_night",
    "keeping",
    "kept_bytes",
    "kernel_metrics",
    "kernel_shapes",
    "kernel_times",
    "kernels_alike",
    "kernels_by_time",
    "kernels_named",
    "kernels_of_run",
    "key_of",
    "kinds_of",
    "known_findings",
    "last_samples",
    "later_report",
    "launch_numbers",
    "launch_times",
    "launches",
    "list_launches",
    "list_runs",
    "list_schedules",
    "list_tokens",
    "list_view",
    "longest_launches",
    "marks_of_run",
    "mean_counters",
    "measured_launches",
    "metrics",
    "models",
    "must_be_writable",
    "names_in",
    "no_kernel",
    "note_deliveries",
    "note_next",
    "note_refusal",
    "on_kept_connections",
    "one_state",
    "open_store",
    "potential",
    "potential_of_kernel",
    "power_of_board",
    "powers_of_load",
    "powers_of_loads",
    "predictions_of_runs",
    "projects",
    "put_off_slot",
    "query",
    "quoted",
    "read_age",
    "read_at",
    "read_time",
    "recent_kernels",
    "refusals_between",
    "remove_schedule",
    "renew_slot",
    "repeated",
    "report_before",
    "rereading",
    "restoring",
    "revoke_token",
    "room_of",
    "rules",
    "runs",
    "runs_of_nights",
    "save_power",
    "save_predictions",
    "save_results",
    "save_trace",
    "scored_predictions",
    "select",
    "select_of",
    "sensor_readings",
    "sensors",
    "sensors_of_run",
    "series_of_finding",
    "set_finding",
    "sources_of_predictions",
    "spool_of",
    "state",
    "statement_of",
    "states_of",
    "states_said",
    "sweep",
    "table",
    "take_over_slot",
    "take_slot",
    "time_without",
    "timeline",
    "traces_of_run",
    "traits_of_kernels",
    "transfers_by_kind",
    "unfinished",
    "upgrade",
    "upload",
    "uploads",
    "uploads_between",
    "vacuum",
    "waste",
    "wide_values",
    "with_objects",
    "work_of_kernels",
    "write_out",
    "write_upload",
]


def is_server(url: str | None = None) -> bool:
    """Tell whether a store is asked for that a server keeps, not a file."""
    return url_of(url).get_backend_name() != "sqlite"


def is_server_of(engine: Engine) -> bool:
    """Tell whether a server keeps this store."""
    return file_of(engine) is None


def connect(url: str | None = None) -> Engine:
    """Return the engine of a store whatever its schema is; nothing is made or changed, except the default folder."""
    engine = make_engine(url_of(url))
    file = file_of(engine)
    if file is not None and not file.absolute().parent.is_dir():
        raise ServiceError(f"{file}: there is no folder {file.absolute().parent}; make it, or give another --store")
    return engine


def open_store(
    url: str | None = None, counter_names: Iterable[str] | None = None, tell: Callable[[str], None] | None = None
) -> Engine:
    """Return the engine of a store, a path or a database URL; by default a SQLite file in the user's data folder.

    A new SQLite file gets this program's schema, an older one is copied and brought up to date. A server's schema is
    only changed when asked. ``counter_names`` are the columns of ``v1_counters``, by default those of the program.
    What takes long says by ``tell`` how far it is.
    """
    engine = connect(url)
    file = file_of(engine)
    counters = None if counter_names is None else list(counter_names)
    if file is not None and not file.exists():
        upgrade(engine, counters, tell=tell)
    elif not is_ready(engine, counters):
        if file is None:
            _must_be_current(engine)
        set_journal(engine)
        upgrade(engine, counters, tell=tell)
    return engine


def _must_be_current(engine: Engine) -> None:
    if state(engine) != "current":
        raise StoreVersionError(
            f"the database has not the schema {head()} of this program; run, with the password: "
            f"profsvc --store {shlex.quote(address(engine))} db upgrade"
        )


def create_reader(engine: Engine, name: str, *, rotate: bool = False) -> reader_role.Reader:
    """Make a role of Postgres that may only read the views, or set it right; with ``rotate`` give it a new password."""
    if file_of(engine) is None:
        _must_be_current(engine)
    return reader_role.create_reader(engine, name, rotate=rotate)

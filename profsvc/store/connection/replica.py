"""Reading from a replica: a standby server that follows a Postgres store and answers what only reads.

A question goes to the replica as soon as that holds everything that was committed before the question, so whoever
writes and then asks sees what was written. A replica that is behind or unreachable is not asked: the main store
answers, and a warning says why. Where the main store is unreachable, the replica answers what it holds and says how old
that is.
"""

import time
from typing import Any, NamedTuple

from profsvc.errors import ProfsvcError, StoreLostError, UsageError
from profsvc.store.connection.errors import translate_errors
from profsvc.store.connection.sql import Connection, Engine, text
from profsvc.store.connection.urls import address, file_of, url_of

CATCH_UP_SECONDS = 0.5
"""Time that a question waits for the replica to hold what was committed before it."""
POLL_SECONDS = 0.01
CONNECT_SECONDS = 3
PAUSE_SECONDS = {"behind": 1.0, "unreachable": 10.0}
"""Time after which a replica that was behind or unreachable is tried again."""
MAIN_OPTION = "profsvc_main"
"""The option of the engine of a replica that holds the engine of its main store."""
REFUSED = "PROFSVC_READ_STORE {}: {}"

# The position that is safe on disk: what a standby can have at most. No role needs a right for these functions.
_MAIN = """
    SELECT CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_flush_lsn() END::text,
           (pg_control_system()).system_identifier::text || '/' || current_database()
"""
_REPLICA = """
    SELECT pg_is_in_recovery(), pg_last_wal_replay_lsn() >= CAST(:position AS pg_lsn),
           CAST(extract(epoch FROM clock_timestamp() - pg_last_xact_replay_timestamp()) AS float8),
           (pg_control_system()).system_identifier::text || '/' || current_database(),
           EXISTS (SELECT 1 FROM pg_stat_wal_receiver)
"""


class Place(NamedTuple):
    """Where to read: the replica is ``ok``, ``behind`` or ``unreachable``, or the main store is ``alone``."""

    engine: Engine
    state: str = "ok"
    warning: str = ""
    age_s: float | None = None
    """Seconds since the newest change that the replica holds; it may be the newest there is."""


class _State(NamedTuple):
    is_standby: bool
    has_all: bool | None
    age_s: float | None
    cluster: str
    is_fed: bool


class Replica:
    """A replica and its main store."""

    def __init__(self, main: Engine, url: str, *, pooled: bool = False) -> None:
        """Take the main store and the address of the replica; nothing is accessed yet. See `connect` for ``pooled``."""
        from profsvc.store.connection.engine import make_engine

        at = url_of(url)
        if file_of(main) is not None or at.get_backend_name() == "sqlite":
            raise UsageError(
                "PROFSVC_READ_STORE names a replica of a Postgres store; a SQLite store is read where it is written"
            )
        if "connect_timeout" not in at.query:
            at = at.update_query_dict({"connect_timeout": str(CONNECT_SECONDS)})
        self.main = main
        self.engine = make_engine(at, pooled=pooled).execution_options(**{MAIN_OPTION: main})
        self._paused = Place(main), 0.0

    @property
    def address(self) -> str:
        """Its address for messages."""
        return address(self.engine).partition("?")[0]

    def place(self, *, strict: bool = False) -> Place:
        """Return where to read now; with ``strict`` raise `UsageError` for what is no replica of the store."""
        paused, until = self._paused
        if time.monotonic() < until and not strict:
            return paused
        found = self._place(strict)
        self._paused = found, time.monotonic() + PAUSE_SECONDS.get(found.state, 0.0)
        return found

    def _place(self, strict: bool) -> Place:
        try:
            position, cluster = self._ask_main()
        except StoreLostError as error:
            return self._alone(error)
        try:
            state = self._caught_up(position, cluster)
        except ProfsvcError as error:
            if strict and isinstance(error, UsageError):
                raise
            return Place(self.main, "unreachable", f"the replica cannot answer, so the main store did ({error})")
        if state.has_all:
            return Place(self.engine, age_s=state.age_s)
        why = "" if state.is_fed else ", and it receives nothing from the main store"
        said = f"the replica {self.address} is behind: {_newest(state)}{why}; the main store answered"
        return Place(self.main, "behind", said, state.age_s)

    def _alone(self, lost: StoreLostError) -> Place:
        """Return the replica where the main store is unreachable; raise the error of that where both are."""
        try:
            state = self._ask_replica(None)
        except ProfsvcError:
            raise lost from None
        said = f"the main store is unreachable, so the replica {self.address} answered: {_newest(state)} ({lost})"
        return Place(self.engine, "alone", said, state.age_s)

    def _ask_main(self) -> tuple[str, str]:
        with translate_errors(self.main), self.main.connect() as connection:
            position, cluster = _row(connection, _MAIN)
            return position, cluster

    def _caught_up(self, position: str, cluster: str) -> _State:
        """Return the state of the replica when it holds all up to a position, or after some time without that."""
        until = time.monotonic() + CATCH_UP_SECONDS
        with translate_errors(self.engine), self.engine.connect() as connection:
            while True:
                state = _State(*_row(connection, _REPLICA, position=position))
                if state.cluster != cluster:
                    raise UsageError(REFUSED.format(self.address, f"not a replica of {address(self.main)}"))
                if not state.is_standby:
                    raise UsageError(
                        REFUSED.format(self.address, "no standby server; a promoted one no longer follows the store")
                    )
                if state.has_all or time.monotonic() > until:
                    return state
                time.sleep(POLL_SECONDS)

    def _ask_replica(self, position: str | None) -> _State:
        with translate_errors(self.engine), self.engine.connect() as connection:
            return _State(*_row(connection, _REPLICA, position=position))

    def dispose(self) -> None:
        """Close what is open."""
        self.engine.dispose()


def main_of(engine: Engine) -> Engine:
    """Return the main store of a replica; of any other store the store itself."""
    main: Engine = engine.get_execution_options().get(MAIN_OPTION, engine)
    return main


def _row(connection: Connection, query: str, **values: Any) -> Any:
    connection.rollback()
    return connection.execute(text(query), values).one()


def _newest(state: _State) -> str:
    if state.age_s is None:
        return "the age of what it holds is unknown"
    return f"its newest change is {state.age_s:.0f} s old"

"""Rows of a query to Postgres as Arrow tables: the server writes CSV and Arrow reads it, faster than rows in Python.

A COPY sends every row as a message. They are taken from libpq itself, because what psycopg does for each message takes
longer than reading its row.
"""

import io
import select
from collections.abc import Iterator
from contextlib import closing, suppress
from typing import Any

import psycopg
import pyarrow as pa
from psycopg.pq import ExecStatus
from pyarrow import csv

from profsvc.store.connection.sql import Connection

BLOCK_BYTES = 8 << 20


def copied(connection: Connection, query: str, schema: Any) -> Iterator[Any]:
    """Yield the rows of a query without parameters as tables of this schema, some megabytes at a time.

    An empty text is written with quotes and NULL without, so they stay apart; numbers keep every bit.
    """
    driver: psycopg.Connection[Any] = connection.connection.driver_connection  # type: ignore[assignment]
    with closing(_Copy(driver, query)) as copy:
        stream = io.BufferedReader(copy, BLOCK_BYTES)
        if not stream.peek(1):
            return
        yield from (
            pa.Table.from_batches([batch], schema=schema)
            for batch in csv.open_csv(
                stream,
                csv.ReadOptions(use_threads=False, block_size=BLOCK_BYTES, column_names=schema.names),
                csv.ParseOptions(newlines_in_values=True),
                csv.ConvertOptions(
                    column_types=schema, null_values=[""], strings_can_be_null=True, quoted_strings_can_be_null=False
                ),
            )
        )


class _Copy(io.RawIOBase):
    """The rows of a query as a CSV file that is read; to be closed, so that the connection is usable again."""

    def __init__(self, driver: psycopg.Connection[Any], query: str) -> None:
        self._server, self._left, self._running = driver.pgconn, b"", False
        found = self._server.exec_(f"COPY ({query}) TO STDOUT (FORMAT csv)".encode())
        if found.status != ExecStatus.COPY_OUT:
            raise psycopg.errors.error_from_result(found)
        self._running = True

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        most = len(buffer)
        parts, size, received = [self._left], len(self._left), self._server.get_copy_data
        while size < most and self._running:
            length, row = received(1)
            if length > 0:
                parts.append(bytes(row))
                size += length
            elif length == 0:
                select.select([self._server.socket], [], [])  # here Ctrl-C is answered
                self._server.consume_input()
            else:
                self._finish()
        found = b"".join(parts)
        buffer[: min(size, most)] = found[:most]
        self._left = found[most:]
        return min(size, most)

    def _finish(self) -> None:
        """Read the result of the command, which is behind its rows; raise its error."""
        self._running = False
        while found := self._server.get_result():
            if found.status != ExecStatus.COMMAND_OK:
                raise psycopg.errors.error_from_result(found)

    def close(self) -> None:
        """Cancel the query if its rows were not all read."""
        super().close()
        if not self._running:
            return
        self._server.get_cancel().cancel()
        with suppress(psycopg.errors.QueryCanceled):
            while self._server.get_copy_data(0)[0] > 0:
                pass
            self._finish()

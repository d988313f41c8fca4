"""Results of launches that stay when another file comes to their run: the file tells nothing of these launches.

The transaction that stores a file deletes the results of the launches that it does tell of. What stands in the store is
kept only if the last analysis of launches had the same basis: its version, and all that it takes from elsewhere than
from the files of a launch. An analysis notes its basis as a finished part, with the change count of the run.
"""

from typing import NamedTuple

import pandas as pd

from profsvc.store.connection.sql import Engine, text
from profsvc.store.connection.transactions import reading
from profsvc.store.queries.frames import typed_frame
from profsvc.store.results.finished_parts import BASIS_PART, LAUNCHES_PART
from profsvc.store.schema.column_types import WHOLE_RUN_ID

_VERSION = text(f"""
    SELECT r.version_id FROM runs r
    JOIN texts v ON v.text_id = r.version_id AND v.text = :version
    JOIN finished_parts l ON l.run_id = r.run_id AND l.part = '{LAUNCHES_PART}' AND l.version_id = r.version_id
    JOIN finished_parts b ON b.run_id = r.run_id AND b.part = '{BASIS_PART}' AND b.changes = l.changes
    JOIN texts t ON t.text_id = b.version_id AND t.text = :basis
    WHERE r.run_id = :run_id
""")
_DEVICE = text("""
    SELECT d.name, d.compute_capability FROM runs r JOIN devices d ON d.device_id = r.device_id WHERE r.run_id = :run_id
""")
_OF_LAUNCHES = f"c.run_id = :run_id AND c.version_id = :number AND c.launch_id <> {WHOLE_RUN_ID}"
_POTENTIAL = dict.fromkeys(("launch_id", "ceiling_flags", "flags"), "int")
_POTENTIAL |= dict.fromkeys(("bound", "ideal_bound", "reason"), "text")
_POTENTIAL |= dict.fromkeys(
    (
        *("mem_throughput_ratio", "arith_throughput_ratio", "speedup", "speedup_as_published", "speedup_ceiling"),
        *("ideal_ns", "duration_ns"),
    ),
    "float",
)
_CRITERIA = {"launch_id": "int", "criterion": "text", "value": "float", "share": "float", "speedup": "float"}
_CRITERIA |= {"value_conditional": "float"}


class KeptResults(NamedTuple):
    """What is kept of launches, and what the results of the whole run need of it: their potential and criteria."""

    potential: pd.DataFrame
    criteria: pd.DataFrame


def kept_results(engine: Engine, run_id: int, version: str, basis: str) -> KeptResults | None:
    """Return the results of launches of a run that are not outdated; None if the last analysis had another basis."""
    with reading(engine) as connection:
        values = {"run_id": run_id, "version": version, "basis": basis}
        number = connection.execute(_VERSION, values).scalar()
        if number is None:
            return None
        found = []
        for table, kinds in (("potential", _POTENTIAL), ("criteria", _CRITERIA)):
            columns = ", ".join(_column(name, kind) for name, kind in kinds.items())
            query = f"SELECT {columns} FROM {table} c WHERE {_OF_LAUNCHES} ORDER BY c.launch_id"
            known = {"run_id": run_id, "number": number}
            rows = connection.execute(text(query), known).all()
            frame = typed_frame(rows, list(kinds), kinds)
            found.append(frame.astype({name: "int64" for name, kind in kinds.items() if kind == "int"}))
    return KeptResults(*found)


def device_of_run(engine: Engine, run_id: int) -> tuple[str, str | None] | None:
    """Return name and compute capability of the device of a run, which launches without a device of their own have."""
    with reading(engine) as connection:
        row = connection.execute(_DEVICE, {"run_id": run_id}).first()
    return None if row is None else (row.name, row.compute_capability)


def _column(name: str, kind: str) -> str:
    return f"(SELECT t.text FROM texts t WHERE t.text_id = c.{name}_id)" if kind == "text" else f"c.{name}"

"""Source pages as people look at them: which launches have one, and the samples of lines per stall reason."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from profsvc.store.connection.sql import Engine, bindparam, dicts_of, text
from profsvc.store.connection.transactions import reading
from profsvc.store.schema.column_types import IDS_PER_UPLOAD
from profsvc.store.schema.contents.source import KIND_BITS

if TYPE_CHECKING:
    import pandas as pd

LINES_PER_QUERY = LAUNCHES_PER_QUERY = 500
_LAUNCHES = text("""
    SELECT k.source_id, k.launch_id, coalesce(l.launch_index, k.source_id - k.upload_id * :step - 1) AS launch_index,
           k.kernel, k.kernel_short, k.samples, k.rows, k.reason, k.upload_id
    FROM v1_source_kernels k LEFT JOIN v1_launches l ON l.launch_id = k.launch_id
    WHERE k.run_id = :run_id ORDER BY k.source_id
""")
_STALLS = text("""
    SELECT s.line_id, x.text AS reason, s.samples FROM source_stalls s JOIN texts x ON x.text_id = s.reason_id
    WHERE s.line_id IN :lines AND s.samples > 0 ORDER BY s.line_id, s.samples DESC, x.text
""").bindparams(bindparam("lines", expanding=True))

# Lanes at random places of shared memory take 2.1 to 3.6 times the passes of adjacent ones, by the width of an access
# and the size of the table, and no whole number of passes on average, as those at a regular stride do.
RANDOM_PERCENT = {"least": 205, "most": 365, "off": 3, "on": 97}
_EXECUTED = text("""
    SELECT g.launch_id, o.text AS opcode, a.text AS access_size, g.instructions, g.thread_instructions_on,
           g.lone_instructions, g.extra_wavefronts, g.lookup_wavefronts
    FROM (SELECT k.launch_id, e.opcode_id, e.access_size_id,
                 CASE WHEN count(*) = count(e.instructions) THEN CAST(sum(e.instructions) AS DOUBLE PRECISION) END
                   AS instructions,
                 CASE WHEN count(*) = count(e.thread_instructions_on)
                   THEN CAST(sum(e.thread_instructions_on) AS DOUBLE PRECISION) END AS thread_instructions_on,
                 CASE WHEN count(*) = count(e.thread_instructions)
                   THEN CAST(sum(CASE WHEN e.thread_instructions = e.instructions THEN e.instructions ELSE 0 END)
                             AS DOUBLE PRECISION) END AS lone_instructions,
                 CAST(sum(e.shared_wavefronts - e.ideal_shared_wavefronts) AS DOUBLE PRECISION) AS extra_wavefronts,
                 CAST(sum(CASE WHEN 100 * e.shared_wavefronts > :least * e.ideal_shared_wavefronts
                                AND 100 * e.shared_wavefronts < :most * e.ideal_shared_wavefronts
                                AND 100 * (e.shared_wavefronts % nullif(e.instructions, 0)) > :off * e.instructions
                                AND 100 * (e.shared_wavefronts % nullif(e.instructions, 0)) < :on * e.instructions
                          THEN e.shared_wavefronts - e.ideal_shared_wavefronts ELSE 0 END) AS DOUBLE PRECISION)
                   AS lookup_wavefronts
          FROM source_kernels k JOIN source_lines e ON e.source_id = k.source_id
          WHERE k.launch_id IN :launches AND e.kind = :kind AND k.repeats & e.kind = 0 AND e.repeated = 0
          GROUP BY k.launch_id, e.opcode_id, e.access_size_id) g
    LEFT JOIN source_texts o ON o.text_id = g.opcode_id LEFT JOIN source_texts a ON a.text_id = g.access_size_id
    ORDER BY g.launch_id, o.text, a.text
""").bindparams(bindparam("launches", expanding=True), kind=KIND_BITS["instruction"], **RANDOM_PERCENT)
_EXECUTED_KINDS = {
    "launch_id": "int", "opcode": "text", "access_size": "text", "instructions": "float",
    "thread_instructions_on": "float", "lone_instructions": "float", "extra_wavefronts": "float",
    "lookup_wavefronts": "float",
}  # fmt: skip

_CODE = text("""
    SELECT k.launch_id, e.address, t.text AS sass, a.text AS access_size, e.instructions, e.thread_instructions_on,
           e.thread_instructions, e.l2_sectors, e.ideal_l2_sectors, e.ideal_shared_wavefronts,
           s.samples AS long_scoreboard
    FROM source_kernels k JOIN source_lines e ON e.source_id = k.source_id
    JOIN source_texts t ON t.text_id = e.sass_id LEFT JOIN source_texts a ON a.text_id = e.access_size_id
    LEFT JOIN source_stalls s
      ON s.line_id = e.line_id AND s.reason_id = (SELECT text_id FROM texts WHERE text = 'Long Scoreboard')
    WHERE k.launch_id IN :launches AND e.kind = :kind AND k.repeats & e.kind = 0 AND e.repeated = 0
      AND e.address IS NOT NULL
    ORDER BY k.launch_id, k.source_id, e.line_id
""").bindparams(bindparam("launches", expanding=True), kind=KIND_BITS["instruction"])


def launches_with_source(engine: Engine, run_id: int) -> list[dict[str, Any]]:
    """Return the launches of the source pages of a run, in the order of the pages.

    ``launch_index`` of one that is no known launch is its ordinal in its page.
    """
    with reading(engine) as connection:
        values = {"run_id": run_id, "step": IDS_PER_UPLOAD}
        return dicts_of(connection.execute(_LAUNCHES, values))


def stalls_of_lines(engine: Engine, lines: Sequence[int]) -> dict[int, dict[str, int]]:
    """Return the samples per stall reason of rows of ``v1_source_lines``, most first."""
    found: dict[int, dict[str, int]] = {}
    with reading(engine) as connection:
        for begin in range(0, len(lines), LINES_PER_QUERY):
            some = {"lines": list(lines[begin : begin + LINES_PER_QUERY])}
            for line_id, reason, samples in connection.execute(_STALLS, some):
                found.setdefault(line_id, {})[reason] = samples
    return found


def executed_by_opcode(engine: Engine, launch_ids: Sequence[int]) -> "pd.DataFrame":
    """Return how often launches executed each opcode, with its modifiers, as their source pages count it.

    ``lone_instructions`` are those that a single thread of the warp executed; ``extra_wavefronts`` the passes through
    shared memory beyond those of adjacent data, ``lookup_wavefronts`` those of them at random places.
    """
    from profsvc.store.queries.frames import typed_frame

    found: list[Sequence[Any]] = []
    with reading(engine) as connection:
        for begin in range(0, len(launch_ids), LAUNCHES_PER_QUERY):
            some = {"launches": list(launch_ids[begin : begin + LAUNCHES_PER_QUERY])}
            found += [tuple(row) for row in connection.execute(_EXECUTED, some)]
    return typed_frame(found, list(_EXECUTED_KINDS), _EXECUTED_KINDS)


def machine_code(engine: Engine, launch_ids: Sequence[int]) -> dict[int, list[dict[str, Any]]]:
    """Return the instructions of launches with a source page, in the order of their addresses.

    Each has ``address, sass, access_size, instructions, thread_instructions, thread_instructions_on, l2_sectors,
    ideal_l2_sectors, ideal_shared_wavefronts`` and ``long_scoreboard``, the samples of that stall reason.
    """
    found: dict[int, dict[int, dict[str, Any]]] = {}
    with reading(engine) as connection:
        for begin in range(0, len(launch_ids), LAUNCHES_PER_QUERY):
            some = {"launches": list(launch_ids[begin : begin + LAUNCHES_PER_QUERY])}
            for row in connection.execute(_CODE, some).mappings():
                place = row["address"]
                found.setdefault(row["launch_id"], {}).setdefault(place, dict(row) | {"address": hex(place)})
    return {launch: [rows[place] for place in sorted(rows)] for launch, rows in found.items()}


def has_source(engine: Engine, launch_id: int) -> bool:
    """Return whether a source page shows a launch."""
    query = text("SELECT 1 FROM source_kernels WHERE launch_id = :launch_id LIMIT 1")
    with reading(engine) as connection:
        return connection.execute(query, {"launch_id": launch_id}).first() is not None

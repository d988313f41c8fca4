"""What the launches of a run can be filtered by, and the launches behind the causes that cost most."""

from collections.abc import Sequence
from typing import Any

from profsvc.store.connection.sql import Engine, text
from profsvc.store.queries.time_limit import reading_with_timeout
from profsvc.store.schema.column_types import IDS_PER_UPLOAD

MAX_FACET_VALUES = 100
_PLACES = "JOIN place_totals t ON t.upload_id = u.upload_id JOIN places a ON a.place_id = t.place_id"
# Facet -> its value, its title, its number of launches, and the joins that these need.
_FACETS = {
    "device": ("a.device_id", "coalesce(NULLIF(max(d.name), ''), max(d.compute_capability))", "t.launches",
               f"{_PLACES} JOIN devices d ON d.device_id = a.device_id"),
    "stream": ("a.stream", "CAST(a.stream AS TEXT)", "t.launches", _PLACES),
    "source": ("u.upload_id", "max(u.file_name)", "u.launches", ""),
}  # fmt: skip
_LONGEST = """
    SELECT launch_id, launch_id - (launch_id / {ids}) * {ids} - 1 AS launch_index, kernel_id, q.cause, saving_ns,
           saving_fraction FROM (
        SELECT c.launch_id, h.kernel_id, c.cause_id, c.saving_ns, c.saving_fraction,
               row_number() OVER (PARTITION BY h.kernel_id, c.cause_id ORDER BY c.saving_ns DESC, c.launch_id) AS place
        FROM runs r JOIN causes c ON c.run_id = r.run_id AND c.version_id = r.version_id AND c.kernel_id = 0
        JOIN launches l ON l.launch_id = c.launch_id JOIN shapes h ON h.shape_id = l.shape_id
        WHERE r.run_id = :run_id AND h.kernel_id IN ({kernels}) AND c.saving_ns IS NOT NULL
        AND c.cause_id IN (SELECT n.cause_id FROM cause_names n WHERE n.cause IN ({causes}))
    ) t JOIN cause_names q ON q.cause_id = t.cause_id WHERE place <= :most ORDER BY kernel_id, q.cause, place
"""


def launch_facets(engine: Engine, run_id: int, *, seconds: float = 10.0) -> dict[str, list[dict[str, Any]]]:
    """Return devices, streams and files of the launches of a run, each with its number of launches.

    At most `MAX_FACET_VALUES` of each, those with most launches first.
    """
    found = {}
    with reading_with_timeout(engine, seconds) as connection:
        for name, (value, title, launches, joins) in _FACETS.items():
            query = text(
                f"SELECT {value} AS value, {title} AS title, CAST(sum({launches}) AS BIGINT) AS launches"
                f" FROM uploads u {joins} WHERE u.run_id = :run_id AND u.same_as IS NULL AND u.launches > 0"
                f" AND {value} IS NOT NULL GROUP BY {value} ORDER BY 3 DESC, 1 LIMIT :most"
            )
            rows = connection.execute(query, {"run_id": run_id, "most": MAX_FACET_VALUES}).mappings()
            found[name] = [dict(row) for row in rows]
    return found


def costly_launches(
    engine: Engine, run_id: int, pairs: Sequence[tuple[int, str]], limit: int
) -> dict[tuple[int, str], list[dict[str, Any]]]:
    """Return for each pair of kernel and cause the launches in which the cause costs most."""
    found: dict[tuple[int, str], list[dict[str, Any]]] = {}
    if not pairs:
        return found
    names = sorted({cause for _, cause in pairs})
    kernels = ", ".join(str(int(number)) for number in {kernel_id for kernel_id, _ in pairs})
    query = _LONGEST.format(
        ids=IDS_PER_UPLOAD, kernels=kernels, causes=", ".join(f":cause_{number}" for number in range(len(names)))
    )
    values = {f"cause_{number}": name for number, name in enumerate(names)}
    with reading_with_timeout(engine, 10.0) as connection:
        for row in connection.execute(text(query), {"run_id": run_id, "most": limit, **values}).mappings():
            found.setdefault((row["kernel_id"], row["cause"]), []).append(dict(row))
    return found

"""Averages of nvprof tell the device of their run, and findings of an unknown device the one that is known now."""

import hashlib
import json
import re

import sqlalchemy as sa
from alembic import op

revision = "0042"
down_revision = "0041"
branch_labels = None
depends_on = None

STEP = 1_000_000_000
IDENTITY = ("project", "kernel", "subject", "device", "sensor", "quantity")
NAME_AND_ORDINAL = re.compile(r"(.+) \(([0-9]{1,9})\)")
AVERAGES = f"""
    SELECT DISTINCT u.upload_id, n.section FROM uploads u
    JOIN metrics m ON m.launch_ref = u.upload_id * {STEP} JOIN metric_names n ON n.metric_id = m.metric_id
    WHERE u.tool = 'nvprof' AND m.kernel_id IS NOT NULL AND n.section IS NOT NULL ORDER BY 1, 2
"""
OF_FILES = """
    SELECT DISTINCT d.name FROM uploads u JOIN upload_devices x ON x.upload_id = u.upload_id
    JOIN devices d ON d.device_id = x.device_id WHERE u.run_id = :run_id AND d.name <> '' ORDER BY 1
"""
OF_LOGS = f"""
    SELECT DISTINCT s.device FROM uploads u
    JOIN sensors s ON s.sensor_id BETWEEN u.upload_id * {STEP} AND u.upload_id * {STEP} + {STEP - 1}
    WHERE u.run_id = :run_id AND s.device IS NOT NULL
"""
OF_RUN = "SELECT d.name FROM runs r JOIN devices d ON d.device_id = r.device_id WHERE r.run_id = :run_id"
GIVEN = "SELECT 1 FROM uploads WHERE run_id = :run_id AND facts LIKE '%\"given_device\"%' LIMIT 1"


def ask(query: str, **values: object) -> list[sa.Row]:
    return list(op.get_bind().execute(sa.text(query), values))


def tell(query: str, **values: object) -> None:
    op.get_bind().execute(sa.text(query), values)


def name_devices_of_averages() -> None:
    for upload_id, section in ask(AVERAGES):
        if not (match := NAME_AND_ORDINAL.fullmatch(section)):
            continue
        key = {"name": match[1]}
        if not ask("SELECT 1 FROM devices WHERE name = :name AND compute_capability = ''", **key):
            tell("INSERT INTO devices (name, compute_capability) VALUES (:name, '')", **key)
        device = ask("SELECT device_id FROM devices WHERE name = :name AND compute_capability = ''", **key)[0][0]
        pair = {"upload_id": upload_id, "device_id": device}
        if not ask("SELECT 1 FROM upload_devices WHERE upload_id = :upload_id AND device_id = :device_id", **pair):
            tell("INSERT INTO upload_devices (upload_id, device_id) VALUES (:upload_id, :device_id)", **pair)
        run_id = ask("SELECT run_id FROM uploads WHERE upload_id = :upload_id", upload_id=upload_id)[0][0]
        if ask(GIVEN, run_id=run_id):
            continue
        if len(ask(OF_FILES, run_id=run_id)) > 1:
            tell("UPDATE runs SET device_id = NULL WHERE run_id = :run_id", run_id=run_id)
        else:
            tell(
                "UPDATE runs SET device_id = :device_id WHERE run_id = :run_id AND device_id IS NULL",
                run_id=run_id, device_id=device,
            )  # fmt: skip


def device_of(run_id: int) -> str | None:
    own = [name for (name,) in ask(OF_RUN, run_id=run_id) if name]
    of_files = [name for (name,) in ask(OF_FILES, run_id=run_id)]
    logged = [name for (name,) in ask(OF_LOGS, run_id=run_id)]
    if own or len(of_files) > 1:
        return own[0] if own else " + ".join(of_files)
    return logged[0] if len(logged) == 1 else None


def digest(identity: list[str | None]) -> str:
    return hashlib.sha256(json.dumps(identity, ensure_ascii=False).encode("utf-8", "backslashreplace")).hexdigest()


def name_devices_of_findings() -> None:
    known: dict[int, str | None] = {}
    for table, number in (("findings", "finding_id"), ("kernel_renames", "rename_id")):
        rows = op.get_bind().execute(sa.text(f"SELECT * FROM {table} WHERE device IS NULL")).mappings().all()
        for row in map(dict, rows):
            run_id = row["run_id"]
            device = known[run_id] if run_id in known else known.setdefault(run_id, device_of(run_id))
            if device is None:
                continue
            tell(f"UPDATE {table} SET device = :device WHERE {number} = :number", device=device, number=row[number])
            if table == "findings":
                branch = [row["branch"]] if row["branch"] else []
                series = digest([*((row | {"device": device})[name] for name in IDENTITY), *branch])
                tell(
                    "UPDATE findings SET series = :series WHERE finding_id = :number", series=series, number=row[number]
                )


def upgrade() -> None:
    name_devices_of_averages()
    name_devices_of_findings()


def downgrade() -> None:
    """Keep what is known: no earlier version needs a device to be unknown."""

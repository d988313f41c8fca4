"""The device of a run: the one that its launches ran on, or that the user named; none where there are several."""

from sqlalchemy import Connection, text

_NAMED = text("""
    SELECT d.name, max(d.device_id) AS device_id FROM uploads u
    JOIN upload_devices x ON x.upload_id = u.upload_id JOIN devices d ON d.device_id = x.device_id
    WHERE u.run_id = :run_id AND d.name <> '' GROUP BY d.name
""")
_GIVEN = text("SELECT 1 FROM uploads WHERE run_id = :run_id AND facts LIKE '%\"given_device\"%' LIMIT 1")
_ASSIGN = "UPDATE runs SET device_id = :device_id WHERE run_id = :run_id"


def settle_device(connection: Connection, run_id: int) -> None:
    """Take the device off a run whose launches ran on several, and give it back where one is left.

    What the user named stays.
    """
    found = connection.execute(_NAMED, {"run_id": run_id}).all()
    if not found or connection.execute(_GIVEN, {"run_id": run_id}).first() is not None:
        return
    if len(found) > 1:
        connection.execute(text(_ASSIGN), {"run_id": run_id, "device_id": None})
    else:
        query = text(f"{_ASSIGN} AND device_id IS NULL")
        connection.execute(query, {"run_id": run_id, "device_id": found[0].device_id})

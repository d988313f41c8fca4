"""One table of settings: name, default, help. Each is read from the environment as ``PROFSVC_<NAME>``.

The rest of the program gets values as arguments; only the front doors read this table.
"""

import importlib.metadata
import math
import os
from collections.abc import Mapping
from typing import NamedTuple

from profsvc.errors import UsageError


class Setting(NamedTuple):
    """A setting; the type of the default is the type of the setting."""

    name: str
    default: str | bool | int | float
    help: str


SETTINGS = (
    Setting("store", "", "Store to use: a path or a database URL. Empty: a SQLite file in your data folder."),
    Setting("keep", True, "Keep the bytes of uploads, so that they can be read again and deletions undone; 1 or 0."),
    Setting("files", "", "Folder for the kept bytes of a store on a server. Empty: a folder in your data folder."),
    Setting(
        "free_bytes", 1 << 30, "Refuse uploads with less free disk, in bytes, or 5 % of a disk under 20 times that."
    ),
    Setting("sql_seconds", 10.0, "Time limit of a query given by a user, in seconds."),
    Setting("sql_export_seconds", 600.0, "Time limit of a query whose whole result is written, in seconds."),
    Setting("url", "", "Address of a service; commands that ask and upload then speak to it instead of a store."),
    Setting("token", "", "Token for that service, made there with: profsvc token create."),
    Setting("spool", "", "Folder for uploads while the service is away. Empty: a folder in your state folder."),
    Setting("upload_bytes", 4 << 30, "Largest upload that the service takes, in bytes."),
    Setting("unpacked_bytes", 16 << 30, "Most that an upload to the service may hold when decompressed, in bytes."),
    Setting("uploads_at_once", 2, "Uploads that the service reads at the same time; others wait."),
    Setting("sql_at_once", 2, "Queries that the service answers at the same time; others wait."),
    Setting("channels", "", "TOML file that names where reports are sent: mail, Slack, Teams, Mattermost, folders."),
    Setting("sql_rows", 10000, "Row limit of a query given by a user; a longer result is cut, loudly."),
)


def version() -> str:
    """Return the version of this program; 0 where it is imported from a checkout without being installed."""
    try:
        return importlib.metadata.version("profsvc")
    except importlib.metadata.PackageNotFoundError:
        return "0"


def load(environment: Mapping[str, str] | None = None) -> dict[str, str | bool | int | float]:
    """Return every setting by name, from ``environment`` (default: the process's) or, unset or empty, its default.

    >>> load({"PROFSVC_SQL_ROWS": "5"})["sql_rows"]
    5
    """
    environment = os.environ if environment is None else environment
    values: dict[str, str | bool | int | float] = {}
    for name, default, _ in SETTINGS:
        variable = f"PROFSVC_{name.upper()}"
        text = environment.get(variable, "")
        try:
            values[name] = _read(text, default) if text else default
        except (ValueError, KeyError):
            kind = "a whole number above 0" if isinstance(default, int) else "a number above 0"
            allowed = "1 or 0" if isinstance(default, bool) else f"{kind}, such as {default}"
            raise UsageError(f"{variable} is {text!r} but must be {allowed}") from None
    return values


def _read(text: str, default: str | bool | int | float) -> str | bool | int | float:
    """Read a setting as the type of its default; every number is a limit, so it is finite and above 0."""
    if isinstance(default, str):
        return text
    if isinstance(default, bool):
        return {"1": True, "0": False}[text]
    value = type(default)(text)
    if not 0 < value < math.inf:
        raise ValueError(text)
    return value

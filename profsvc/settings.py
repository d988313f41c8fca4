"""The settings: name, default and help of each; read from the environment, else from a file, else the default.

The environment variable of a setting is ``PROFSVC_<NAME>``. In the TOML file the key is the name itself; PROFSVC_CONFIG
names the file, by default ``config.toml`` in the user's configuration folder. Only the command line and the service
read this table; the rest of the program gets values as arguments.
"""

import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from profsvc.errors import UsageError, nearest_names, without_password

Value = str | bool | int | float


class Setting(NamedTuple):
    """A setting; the type of the default is the type of the setting."""

    name: str
    default: Value
    help: str

    @property
    def variable(self) -> str:
        """Its environment variable."""
        return f"PROFSVC_{self.name.upper()}"


class SettingValue(NamedTuple):
    """The value of a setting, and where it comes from: environment, file or default."""

    setting: Setting
    value: Value
    source: str


SETTINGS = (
    Setting("store", "", "Store: a path or a database URL. Empty: a SQLite file in your data folder."),
    Setting("read_store", "", "Replica of the Postgres store, for what only reads. Empty: the store answers."),
    Setting("keep", True, "Keep the bytes of uploads, so that they can be read again and deletions undone; 1 or 0."),
    Setting("files", "", "Folder for the kept bytes of a store on a server. Empty: a folder in your data folder."),
    Setting("archive", "", "Folder or URL for archived months. Empty: a folder beside a SQLite store."),
    Setting(
        "free_bytes", 1 << 30, "Refuse uploads with less free disk, in bytes, or 5 % of a disk under 20 times that."
    ),
    Setting("sql_seconds", 10.0, "Time limit of a user's query, in seconds."),
    Setting("sql_export_seconds", 600.0, "Time limit of a query whose whole result is written, in seconds."),
    Setting("url", "", "Address of a service; commands then use it instead of a store."),
    Setting("token", "", "Token for that service, created there with: profsvc token create."),
    Setting("spool", "", "Folder for uploads while the service is unreachable. Empty: a folder in your state folder."),
    Setting("upload_bytes", 4 << 30, "Largest upload that the service accepts, in bytes."),
    Setting("unpacked_bytes", 16 << 30, "Largest decompressed size of an upload to the service, in bytes."),
    Setting("uploads_at_once", 2, "Uploads that the service reads at the same time; others wait."),
    Setting("sql_at_once", 2, "Queries that the service runs at the same time; others wait."),
    Setting("channels", "", "TOML file that lists where reports are sent: mail, Slack, Teams, Mattermost, folders."),
    Setting("sql_rows", 10000, "Row limit of a user's query; a longer result is cut with a message."),
)
CONFIG_VARIABLE = "PROFSVC_CONFIG"
SECRETS = {"token"}


def version() -> str:
    """Return the version of this program; 0 where it is imported from a checkout without being installed."""
    try:
        from profsvc._version import VERSION  # written when the package is built; the metadata takes longer to read
    except ModuleNotFoundError:
        import importlib.metadata
    else:
        return str(VERSION)
    try:
        return importlib.metadata.version("profsvc")
    except importlib.metadata.PackageNotFoundError:
        return "0"


def load(environment: Mapping[str, str] | None = None) -> dict[str, Value]:
    """Return every setting by name, from ``environment`` (default: the process's), the file, or its default.

    >>> load({"PROFSVC_SQL_ROWS": "5"})["sql_rows"]
    5
    """
    return {one.setting.name: one.value for one in resolve(environment)}


def resolve(environment: Mapping[str, str] | None = None) -> list[SettingValue]:
    """Return every setting with its value and source. An empty variable counts as unset.

    An ``environment`` that is given names its file with PROFSVC_CONFIG, or has none.
    """
    file = config_file(environment)
    environment = os.environ if environment is None else environment
    in_file = {} if file is None else _read_file(file)
    found = []
    for setting in SETTINGS:
        if text := environment.get(setting.variable, ""):
            found.append(SettingValue(setting, _parse(setting, text), "environment"))
        elif setting.name in in_file:
            found.append(SettingValue(setting, in_file[setting.name], "file"))
        else:
            found.append(SettingValue(setting, setting.default, "default"))
    return found


def config_file(environment: Mapping[str, str] | None = None) -> Path | None:
    """Return the configuration file that is read; None where there is none."""
    if named := (os.environ if environment is None else environment).get(CONFIG_VARIABLE, ""):
        return Path(named)
    usual = default_config_file()
    return usual if environment is None and usual.is_file() else None


def default_config_file() -> Path:
    """Return where the configuration file is looked for without PROFSVC_CONFIG."""
    from platformdirs import user_config_path

    return Path(user_config_path("profsvc", appauthor=False)) / "config.toml"


SCHEMA_TYPES = {str: "string", bool: "boolean", int: "integer", float: "number"}


def schema() -> dict[str, Any]:
    """Return the JSON Schema of the configuration file, by which editors check it while it is written.

    >>> schema()["properties"]["sql_rows"]["type"], schema()["additionalProperties"]
    ('integer', False)
    """
    keys = {
        setting.name: {
            "type": SCHEMA_TYPES[type(setting.default)],
            "description": setting.help,
            "default": setting.default,
            **({} if isinstance(setting.default, str | bool) else {"exclusiveMinimum": 0}),
        }
        for setting in SETTINGS
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Configuration of profsvc",
        "type": "object",
        "properties": keys,
        "additionalProperties": False,
    }


def shown(one: SettingValue) -> Value:
    """Return a value for printing: secrets and passwords are masked.

    >>> shown(SettingValue(SETTINGS[0], "postgresql://lab:s3cret@db/profsvc", "file"))
    'postgresql://lab:***@db/profsvc'
    """
    if one.setting.name in SECRETS:
        return "***" if one.value else ""
    return without_password(one.value) if isinstance(one.value, str) else one.value


def _read_file(file: Path) -> dict[str, Value]:
    """Return the settings in a file; raise `UsageError` for an unknown key or a wrong value."""
    import tomllib

    try:
        table = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror}; check {CONFIG_VARIABLE}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{file} is not valid TOML: {error}") from None
    known = {setting.name: setting for setting in SETTINGS}
    values: dict[str, Value] = {}
    for name, value in table.items():
        if name not in known:
            near = nearest_names(name.lower().removeprefix("profsvc_"), known, most=1)
            hint = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(known)}"
            raise UsageError(f"{file}: unknown setting {name!r}; {hint}")
        default = known[name].default
        if isinstance(default, float) and type(value) is int:
            value = float(value)
        if type(value) is not type(default) or not _is_in_range(value):
            raise UsageError(f"{file}: {name} is {value!r} but must be {_allowed(default, in_file=True)}")
        values[name] = value
    return values


def _parse(setting: Setting, text: str) -> Value:
    """Return the text of a variable as the type of the setting's default."""
    default = setting.default
    try:
        if isinstance(default, bool):
            return {"1": True, "0": False}[text]
        value = type(default)(text)
        if _is_in_range(value):
            return value
    except (ValueError, KeyError):
        pass
    raise UsageError(f"{setting.variable} is {text!r} but must be {_allowed(default)}")


def _is_in_range(value: Value) -> bool:
    """Tell whether a value is allowed: every number is a limit, so it is finite and above 0."""
    return isinstance(value, str | bool) or 0 < value < math.inf


def _allowed(default: Value, *, in_file: bool = False) -> str:
    if isinstance(default, bool):
        return "true or false" if in_file else "1 or 0"
    if isinstance(default, str):
        return "a text in quotes"
    return f"{'a whole number' if isinstance(default, int) else 'a number'} above 0, such as {default}"

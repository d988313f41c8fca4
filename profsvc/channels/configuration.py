"""The file of channels: a table a channel, the options of each kind as a table, secrets in files of their own.

::

    [team]
    kind = "smtp"
    host = "mail.lab.example"
    user = "profsvc"
    password_file = "/run/secrets/mail"
    sender = "profsvc@lab.example"
    to = ["gpu@lab.example"]
    site = "https://profsvc.lab.example"

    [chat]
    kind = "slack"
    url_env = "SLACK_WEBHOOK"
"""

import ipaddress
import os
import re
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from profsvc.errors import UsageError, nearest_names

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,39}")
ADDRESS = re.compile(r"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@[A-Za-z0-9.-]{1,255}")
FORMS = ("html", "md", "txt", "json")
SECURITY = ("starttls", "tls", "none")
MAX_SECRET_CHARS = 4096


class Channel(NamedTuple):
    """A channel: its name, its kind, and the options of that kind, every one of them."""

    name: str
    kind: str
    options: Mapping[str, Any]

    def secret(self, option: str) -> str:
        """Read a secret where the file of channels says that it is, now: it may have been changed."""
        file, variable = self.options[f"{option}_file"], self.options[f"{option}_env"]
        where = f"the file {file}" if file else f"the environment variable {variable}"
        try:
            said = Path(file).read_text(encoding="utf-8")[:MAX_SECRET_CHARS] if file else os.environ.get(variable, "")
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"channel {self.name}: {where} of its {option} cannot be read: {error}") from None
        if not said.strip():
            raise UsageError(f"channel {self.name}: {where} of its {option} is empty")
        return said.strip()


class Option(NamedTuple):
    """An option of a kind: what it is without being given (None: it must be given), what it must be, and in words."""

    default: Any
    is_right: Callable[[Any], bool]
    words: str


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value) < 1000 and value.isprintable()


def _is_site(value: Any) -> bool:
    return _is_text(value) and urlsplit(value).scheme in {"http", "https"} and bool(urlsplit(value).hostname)


def _is_list_of(is_right: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, list) and 0 < len(value) <= 100 and all(map(is_right, value))


def _is_address(value: Any) -> bool:
    return isinstance(value, str) and ADDRESS.fullmatch(value) is not None


SITE = Option("", _is_site, "the address of the service, for links: https://profsvc.lab.example")
SECRET = Option("", _is_text, "a text")
WEBHOOK = {"url_file": SECRET, "url_env": SECRET, "site": SITE}
KINDS: Mapping[str, Mapping[str, Option]] = {
    "smtp": {
        "host": Option(None, _is_text, "the name of the mail server"),
        "port": Option(587, lambda value: type(value) is int and 0 < value < 65536, "a number below 65536"),
        "security": Option("starttls", lambda value: value in SECURITY, f"one of {', '.join(SECURITY)}"),
        "user": Option("", _is_text, "a text"),
        "password_file": SECRET,
        "password_env": SECRET,
        "sender": Option(None, _is_address, "an address such as profsvc@lab.example"),
        "to": Option(None, _is_list_of(_is_address), 'a list of addresses such as ["gpu@lab.example"]'),
        "site": SITE,
    },
    "slack": WEBHOOK,
    "teams": WEBHOOK,
    "mattermost": WEBHOOK,
    "webhook": {"url_file": SECRET, "url_env": SECRET, "secret_file": SECRET, "secret_env": SECRET},
    "file": {
        "folder": Option(None, _is_text, "a folder"),
        "forms": Option(list(FORMS), _is_list_of(lambda value: value in FORMS), f"a list of {', '.join(FORMS)}"),
    },
}
# An option of a kind that must come from elsewhere, and the kinds that cannot do without it.
SECRETS = {
    "url": {"slack", "teams", "mattermost", "webhook"},
    "secret": {"webhook"},
    "password": set[str](),
}


def load(path: str | Path) -> dict[str, Channel]:
    """Return the channels of a file by name; none where no file is named. Raise `UsageError` for what is wrong."""
    if not str(path):
        return {}
    try:
        tables = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(
            f"the file of channels {path} cannot be read: {error.strerror}; see PROFSVC_CHANNELS"
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"the file of channels {path} is not valid TOML: {error}") from None
    return {name: _parse_channel(f"{path}: channel {name!r}", name, table) for name, table in tables.items()}


def _parse_channel(where: str, name: str, table: Any) -> Channel:
    if not NAME.fullmatch(name):
        raise UsageError(f"{where} must be named by up to 40 letters, digits, - and _")
    if not isinstance(table, dict):
        raise UsageError(f"{where} must be a table: [{name}] and its options below it")
    kind = str(table.get("kind", ""))
    if kind not in KINDS:
        raise UsageError(f"{where} has the kind {kind!r}; it must be one of {', '.join(KINDS)}")
    known = KINDS[kind]
    for option, value in table.items():
        if option in SECRETS and f"{option}_file" in known:
            raise UsageError(
                f"{where}: {option} is a secret; give {option}_file or {option}_env, where it is read from"
            )
        if option != "kind" and option not in known:
            near = nearest_names(option, known, most=1)
            hint = f"; did you mean {near[0]}?" if near else f"; there is {', '.join(known)}"
            raise UsageError(f"{where} has no option {option!r}{hint}")
        if option != "kind" and not known[option].is_right(value):
            raise UsageError(f"{where}: {option} is {value!r} but must be {known[option].words}")
    options = {option: table.get(option, rule.default) for option, rule in known.items()}
    for option, value in options.items():
        if value is None:
            raise UsageError(f"{where}: {option} is missing; it must be {known[option].words}")
    _check_secrets(where, kind, options)
    return Channel(name, kind, options)


def _check_secrets(where: str, kind: str, options: Mapping[str, Any]) -> None:
    for option, kinds in SECRETS.items():
        given = [name for name in (f"{option}_file", f"{option}_env") if options.get(name)]
        if len(given) > 1 or (kind in kinds and not given):
            raise UsageError(f"{where}: give one of {option}_file and {option}_env")
    if kind == "smtp":
        has_password = bool(options["password_file"] or options["password_env"])
        if has_password != bool(options["user"]):
            raise UsageError(f"{where}: a user needs a password, and a password a user")
        if has_password and options["security"] == "none" and not is_loopback(options["host"]):
            raise UsageError(f'{where}: a password is never sent unencrypted; set security = "starttls" or "tls"')


def is_loopback(host: str) -> bool:
    """Tell whether a host is this machine, which nothing leaves on the way to.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("10.0.0.1")
    (True, True, False)
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"

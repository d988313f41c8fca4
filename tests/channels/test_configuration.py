from pathlib import Path

import pytest

from profsvc.channels import Channel, load, select_channels
from profsvc.errors import NotFoundError, UsageError

GOOD = """
[team]
kind = "smtp"
host = "mail.lab.example"
user = "profsvc"
password_file = "/run/secrets/mail"
sender = "profsvc@lab.example"
to = ["gpu@lab.example", "boss@lab.example"]
site = "https://profsvc.lab.example"
[chat]
kind = "slack"
url_env = "CHAT_HOOK"
[archive]
kind = "file"
folder = "/srv/reports"
"""
MAIL = 'kind = "smtp"\nhost = "mail.lab"\nsender = "a@lab.example"\nto = ["b@lab.example"]\n'


def written(tmp_path: Path, text: str) -> dict[str, Channel]:
    (tmp_path / "channels.toml").write_text(text, encoding="utf-8")
    return load(tmp_path / "channels.toml")


def test_a_file_names_channels(tmp_path: Path) -> None:
    channels = written(tmp_path, GOOD)
    assert {name: channel.kind for name, channel in channels.items()} == {
        "team": "smtp",
        "chat": "slack",
        "archive": "file",
    }
    assert (channels["team"].options["port"], channels["team"].options["security"]) == (587, "starttls")
    assert channels["archive"].options["forms"] == ["html", "md", "txt", "json"]
    assert [channel.name for channel in select_channels(channels, ["chat", "team", "chat"])] == ["chat", "team"]
    with pytest.raises(NotFoundError, match=r"did you mean 'chat'.; channels are named in the file"):
        select_channels(channels, ["chatt"])
    assert load("") == {}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[a", "is not valid TOML"),
        ("a = 1", "must be a table"),
        ("[a]", "has the kind ''; it must be one of smtp, slack"),
        ('[a]\nkind = "irc"', "has the kind 'irc'"),
        ('["a b"]\nkind = "file"', "must be named by"),
        ('[a]\nkind = "file"', "folder is missing; it must be a folder"),
        ('[a]\nkind = "file"\nfolder = "x"\nform = ["md"]', "no option 'form'; did you mean forms?"),
        ('[a]\nkind = "file"\nfolder = "x"\nforms = ["pdf"]', "must be a list of html"),
        (f"[a]\n{MAIL}port = 99999", "port is 99999 but must be a number below 65536"),
        (f"[a]\n{MAIL}port = true", "port is True but must be"),
        (f'[a]\n{MAIL}security = "ssl"', "security is 'ssl' but must be one of starttls"),
        (f'[a]\n{MAIL}user = "x"', "a user needs a password"),
        (f'[a]\n{MAIL}password = "x"', "password is a secret; give password_file or password_env"),
        (f'[a]\n{MAIL}user="x"\npassword_env="P"\nsecurity="none"', "never sent unencrypted"),
        (MAIL.replace("b@lab.example", "b@lab.example\\nBcc: c@d.example").join(["[a]\n", ""]), "to is .* but must be"),
        (MAIL.replace("a@lab", "a b@lab").join(["[a]\n", ""]), "sender is .* but must be an address"),
        ('[a]\nkind = "slack"', "give one of url_file and url_env"),
        ('[a]\nkind = "slack"\nurl_file = "x"\nurl_env = "X"', "give one of url_file and url_env"),
        ('[a]\nkind = "slack"\nurl = "https://x"', "url is a secret"),
        ('[a]\nkind = "webhook"\nurl_env = "X"', "give one of secret_file and secret_env"),
        ('[a]\nkind = "webhook"\nurl_env = "X"\nsecret = "x"', "secret is a secret; give secret_file or secret_env"),
        ('[a]\nkind = "slack"\nurl_env = "X"\nsite = "javascript:1"', "site is .* but must be the address"),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said) as refused:
        written(tmp_path, text)
    assert "channels.toml" in str(refused.value)


def test_a_file_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read: No such file"):
        load(tmp_path / "nothing.toml")


def test_secrets_are_read_when_they_are_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    channels = written(tmp_path, f'[a]\nkind="slack"\nurl_file="{tmp_path}/url"\n[b]\nkind="teams"\nurl_env="HOOK"')
    with pytest.raises(UsageError, match=r"channel a: the file .*/url of its url cannot be read"):
        channels["a"].secret("url")
    (tmp_path / "url").write_text("https://one\n")
    assert channels["a"].secret("url") == "https://one"
    monkeypatch.setenv("HOOK", " ")
    with pytest.raises(UsageError, match="the environment variable HOOK of its url is empty"):
        channels["b"].secret("url")
    assert "https" not in repr(channels["a"])

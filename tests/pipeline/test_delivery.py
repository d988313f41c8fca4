"""A nightly report with names that would rather be more than names, through every kind of channel."""

import base64
import re
from pathlib import Path

import pytest

from profsvc.channels import deliver, load
from profsvc.pipeline import delivery
from tests.channels.sinks import mail_server, web_server
from tests.reports.nightly.test_formats import HOSTILE, Page, document

CHATS = ("slack", "teams", "mattermost")


@pytest.fixture
def made():
    return document(HOSTILE, report_id=7, project="lab", night="2026-03-29")


def test_a_report_becomes_a_message(made) -> None:
    message = delivery.message_of(made)
    assert (message.stem, message.path, message.key) == ("lab-2026-03-29", "/reports/7", "report 7 of lab")
    assert message.lines[0] == made["one_line"]
    assert set(message.forms) == {"txt", "md", "html", "json"}
    assert len(message.lines) == 1 + len(made["findings"]) + len(made["open"])


def test_hostile_names_stay_names_in_every_channel(made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with mail_server() as box, web_server() as hook:
        monkeypatch.setenv("HOOK", hook.url)
        text = "".join(f'[{kind}]\nkind = "{kind}"\nurl_env = "HOOK"\n' for kind in CHATS)
        text += f'[folder]\nkind = "file"\nfolder = "{tmp_path}/out"\n[mail]\nkind = "smtp"\nhost = "127.0.0.1"\n'
        text += f'port = {box.port}\nsecurity = "none"\nsender = "a@lab.example"\nto = ["b@lab.example"]\n'
        (tmp_path / "c.toml").write_text(text)
        done = deliver(delivery.message_of(made), load(tmp_path / "c.toml").values())
    assert [one.delivered for one in done] == [True] * 5, done
    (mail,) = box.mails()
    assert mail["subject"].isprintable()
    assert (mail["to"], "bcc" in mail) == ("b@lab.example", False)
    page = mail.get_body(("html",))
    assert page is not None
    assert not {"script", "iframe", "a"} & set(Page(page.get_content()).tags)
    pictures = [part for part in mail.walk() if part.get_content_type() == "image/png"]
    assert len(pictures) == len(re.findall(r'src="cid:', page.get_content())) > 0
    slack, teams, mattermost = hook.bodies
    for block in slack["blocks"]:
        assert not re.search(r"[<>]", block["text"]["text"])
    assert slack["blocks"][1]["text"]["text"].count("```") == 2
    assert {block["type"] for block in teams["attachments"][0]["content"]["body"]} == {"RichTextBlock"}
    assert mattermost["text"].count("```") == 2
    assert not re.search(r"@(?!\u200b)", mattermost["text"])
    names = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert names == [f"lab-2026-03-29.{form}" for form in ("html", "json", "md", "txt")]
    whole = (tmp_path / "out" / "lab-2026-03-29.html").read_text()
    assert base64.b64encode(pictures[0].get_content()).decode()[:100] in whole

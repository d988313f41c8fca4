"""Messages through each kind of channel to servers on this machine, with texts that would rather be more than text."""

import base64
import hmac
import re
import socketserver
import threading
import time
from contextlib import suppress
from email import message_from_bytes
from email.header import decode_header, make_header
from pathlib import Path

import pytest

from profsvc.channels import Channel, Delivery, Message, deliver, load, posting, trial_message
from profsvc.channels.mail import EXPECTED_HEADERS, _require_expected_headers, compose_mail
from profsvc.errors import ServiceError, UsageError
from tests.channels.sinks import Hook, Mailbox, mail_server, web_server

PNG = b"\x89PNG not really"
HOSTILE = (
    "<!channel> <@U1> <https://evil.example|here> @channel @all *b* _i_ `c` ```d``` [x](https://evil.example) "
    "</code></pre><script>alert(1)</script> &amp; \u202egnp.exe\u0007\r\nBcc: x@evil.example"
)
HTML = f'<!doctype html><p>x</p><img src="data:image/png;base64,{base64.b64encode(PNG).decode()}">'
MESSAGE = Message(
    f"lab: 1 finding in {HOSTILE}",
    [f"worse: {HOSTILE}", "second \ud800 line", *(f"line {n}" for n in range(30))],
    {"txt": "whole\ud800 text\n", "md": "# whole\n", "html": HTML, "json": "{}\n"},
    "../../lab/2026-03-29",
    "report 7",
    "/reports/7",
)


@pytest.fixture
def box():
    with mail_server() as box:
        yield box


@pytest.fixture
def hook():
    with web_server() as hook:
        yield hook


def mail_to(box: Mailbox, tmp_path: Path, more: str = "") -> Channel:
    text = f'[team]\nkind="smtp"\nhost="127.0.0.1"\nport={box.port}\nsecurity="none"\nsender="p@lab.example"\n'
    (tmp_path / "c.toml").write_text(f'{text}to=["a@lab.example", "b@lab.example"]\nsite="https://p.lab/x/"\n{more}')
    return load(tmp_path / "c.toml")["team"]


def chat_to(kind: str, url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Channel:
    monkeypatch.setenv("HOOK", url)
    (tmp_path / "c.toml").write_text(f'[c]\nkind = "{kind}"\nurl_env = "HOOK"\nsite = "https://p.lab"')
    return load(tmp_path / "c.toml")["c"]


def sent(channel: Channel, retry_delays_s: tuple[float, ...] = ()) -> Delivery:
    (done,) = deliver(MESSAGE, [channel], retry_delays_s)
    assert done.channel == channel.name
    return done


def test_a_mail_has_text_page_and_picture(box: Mailbox, tmp_path: Path) -> None:
    done = sent(mail_to(box, tmp_path))
    assert (done.delivered, done.outcome) == (True, "mail to a@lab.example, b@lab.example")
    (mail,) = box.mails()
    assert (mail["to"], mail["from"]) == ("a@lab.example, b@lab.example", "p@lab.example")
    text, page = mail.get_body(("plain",)), mail.get_body(("html",))
    assert text is not None
    assert page is not None
    assert text.get_content().split() == ["whole?", "text", "https://p.lab/x/reports/7"]
    (picture,) = [part for part in mail.walk() if part.get_content_type() == "image/png"]
    assert picture.get_content() == PNG
    assert f'src="cid:{picture["content-id"][1:-1]}"' in page.get_content()
    assert "data:" not in page.get_content()


def test_no_head_comes_from_what_is_said(box: Mailbox, tmp_path: Path) -> None:
    assert sent(mail_to(box, tmp_path)).delivered
    (mail,) = box.mails()
    assert set(map(str.lower, mail.keys())) == {
        *("subject", "from", "to", "date", "message-id", "auto-submitted", "mime-version", "content-type")
    }
    assert mail["subject"].startswith("lab: 1 finding in <!channel>")
    assert len(mail["subject"]) <= 200
    assert mail["subject"].isprintable()
    # Pythons differ in the case of commands, which mean the same.
    assert [line.lower() for line in box.commands if line.lower().startswith("rcpt")] == [
        "rcpt to:<a@lab.example>",
        "rcpt to:<b@lab.example>",
    ]
    assert b"\nBcc" not in box.raw[0]


ENCODED = [
    "=?utf-8?q?a=0ABcc:_x@y?=",
    "=?utf-8?q?a=0D=0ABcc:_x@y?= =?utf-8?b?Cgo8aDE+?=",
    "=?utf-8?b?YQpCY2M6IHhAeQ==?=",
    "\u00e9 =?utf-8?q?a=0ABcc:_x@y?=" + " long name" * 12,
    "=?=?utf-8?q?utf-8?q?a=0ABcc:_x@y?=?=",
    "=?utf-8?q?=3D=3Futf-8=3Fq=3Fa=0ABcc:_x=3F=3D?=",
]


@pytest.mark.parametrize("name", ENCODED)
def test_a_name_that_is_encoded_as_a_head_stays_a_name(name: str, box: Mailbox, tmp_path: Path) -> None:
    channel = mail_to(box, tmp_path)
    mail = compose_mail(MESSAGE._replace(subject=f"lab: {name}"), channel)
    head = mail.as_bytes().partition(b"\r\n\r\n")[0]
    assert not re.search(rb"(?m)^bcc", head, re.IGNORECASE)
    raw = message_from_bytes(mail.as_bytes())
    assert sorted(key.lower() for key in raw) == sorted(EXPECTED_HEADERS)
    # As a reader of mails decodes it, which must find no end of a line in it either.
    shown = str(make_header(decode_header(raw["subject"])))
    assert "\n" not in shown.replace("\r\n ", " ")
    assert "Bcc: x@y" not in shown


def test_a_mail_with_another_head_than_is_meant_is_not_sent(box: Mailbox, tmp_path: Path) -> None:
    channel = mail_to(box, tmp_path)
    mail = compose_mail(MESSAGE, channel)
    mail["Bcc"] = "x@y"
    with pytest.raises(ServiceError, match="the mail was not sent: its head would also have bcc"):
        _require_expected_headers(mail)


def test_all_channels_together_have_one_deadline(box: Mailbox, monkeypatch, tmp_path: Path) -> None:
    """One that drips an answer byte by byte never passes a limit of a socket; it takes its share and no other's."""

    class Drip(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            with suppress(OSError):
                for _ in range(600):
                    self.request.sendall(b"H")
                    time.sleep(0.05)

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Drip) as server:
        server.daemon_threads = server.block_on_close = False
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        slow = chat_to("slack", f"http://127.0.0.1:{server.server_address[1]}/x", monkeypatch, tmp_path)
        began = time.monotonic()
        done = deliver(MESSAGE, [slow, mail_to(box, tmp_path), slow], (0.1, 0.1), seconds=3.0)
        assert time.monotonic() - began < 5
        server.shutdown()
    assert [one.delivered for one in done] == [False, True, False]
    assert "was not done within 1 s; it may have been delivered" in done[0].outcome
    assert [type(one.outcome) for one in done] == [str] * 3


def test_the_same_report_is_the_same_mail(box: Mailbox, tmp_path: Path) -> None:
    channel = mail_to(box, tmp_path)
    first, again, other = (compose_mail(message, channel) for message in (MESSAGE, MESSAGE, MESSAGE._replace(key="8")))
    assert first["message-id"] == again["message-id"] != other["message-id"]


def test_a_mail_is_tried_again_where_that_may_do(box: Mailbox, tmp_path: Path) -> None:
    channel = mail_to(box, tmp_path)
    box.answers = {"MAIL": ["451 come back", "hang up", "250 ok"]}
    assert sent(channel, (0.01, 0.01)).delivered
    box.answers = {"MAIL": ["451 come back", "451 come back"]}
    assert sent(channel, (0.01,)).outcome == "the mail server refuses it: 451 come back"
    box.answers, box.commands = {"MAIL": ["550 no such sender"]}, []
    done = sent(channel, (0.01, 0.01))
    assert (done.delivered, done.outcome) == (False, "the mail server refuses it: 550 no such sender")
    assert sum(line.lower().startswith("mail from") for line in box.commands) == 1
    box.answers = {"RCPT": ["250 ok", "550 unknown"]}
    assert sent(channel).outcome == "mail to a@lab.example; refused for b@lab.example"
    box.answers = {"RCPT": ["550 unknown", "550 unknown"]}
    assert sent(channel).outcome == "the mail server refuses it: 550 unknown"


def test_a_mail_waits_for_no_server_that_is_away_or_lacks_what_it_needs(box: Mailbox, tmp_path: Path) -> None:
    away = mail_to(box, tmp_path)._replace(name="away")
    away = away._replace(options={**away.options, "port": 9})
    assert "the mail server 127.0.0.1 does not answer" in sent(away).outcome
    plain = mail_to(box, tmp_path)
    open_one = plain._replace(options={**plain.options, "security": "starttls"})
    assert "STARTTLS" in sent(open_one).outcome
    both = deliver(MESSAGE, [away, plain], ())
    assert [(done.channel, done.delivered) for done in both] == [("away", False), ("team", True)]


@pytest.mark.parametrize("kind", ["slack", "teams", "mattermost"])
def test_a_chat_gets_text_and_nothing_that_acts(kind, hook: Hook, monkeypatch, tmp_path) -> None:
    done = sent(chat_to(kind, hook.url, monkeypatch, tmp_path))
    assert (done.delivered, done.outcome) == (True, f"{kind} at 127.0.0.1")
    (body,) = hook.bodies
    texts = list(strings(body))
    assert not [text for text in texts if "\u202e" in text or "\u0007" in text or "\r" in text]
    assert any("and 12 more lines in the report" in text for text in texts)
    assert any("https://p.lab/reports/7" in text for text in texts)
    if kind == "slack":
        inert = [text.replace("<https://p.lab/reports/7|the whole report>", "") for text in texts]
        assert not [text for text in inert if "<" in text or ">" in text]
        head, section, _ = body["blocks"]
        assert len(head["text"]["text"]) <= 150
        assert (section["text"]["text"].count("```"), len(section["text"]["text"]) <= 3000) == (2, True)
    if kind == "mattermost":
        assert "@channel" not in body["text"]
        assert body["text"].count("```") == 2
        assert r"\[x\]\(https\://evil\.example\)" in body["text"].splitlines()[0]
    if kind == "teams":
        card = body["attachments"][0]["content"]
        assert {block["type"] for block in card["body"]} == {"RichTextBlock"}  # a TextBlock would read Markdown
        assert "entities" not in card["msteams"]


def strings(value):
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from strings(inner)


def test_a_chat_is_tried_again_where_that_may_do(hook: Hook, monkeypatch, tmp_path) -> None:
    channel = chat_to("slack", hook.url, monkeypatch, tmp_path)
    hook.answers = [(503, {}, b"away"), (429, {"retry-after": "0"}, b"")]
    assert sent(channel, (0.01, 0.01)).delivered
    hook.answers = [(503, {}, b"a\nway"), (503, {}, b"a\nway")]
    assert sent(channel, (0.01,)).outcome == "127.0.0.1 answered 503: a way"
    hook.answers, hook.bodies = [(400, {}, b"invalid_payload")], []
    assert sent(channel, (0.01, 0.01)).outcome == "127.0.0.1 answered 400: invalid_payload"
    assert len(hook.bodies) == 1


def test_a_chat_is_followed_nowhere_and_its_address_is_told_nobody(hook: Hook, monkeypatch, tmp_path) -> None:
    channel = chat_to("slack", hook.url, monkeypatch, tmp_path)
    hook.answers = [(302, {"location": "http://169.254.169.254/"}, b"")]
    assert sent(channel).outcome == "127.0.0.1 answered 302; redirects are not followed"
    assert len(hook.bodies) == 1
    hook.answers = [(200, {}, b"x" * (1 << 20))]
    assert sent(channel).delivered
    away = chat_to("slack", "http://127.0.0.1:9/hooks/s3cret", monkeypatch, tmp_path)
    assert sent(away).outcome == "127.0.0.1 does not answer (ConnectError)"
    for url in ("http://chat.lab.example/s3cret", "ftp://127.0.0.1/s3cret", "https:///s3cret", "http://[::1/s3cret"):
        with pytest.raises(UsageError, match="must begin with https://") as refused:
            posting.require_safe_url(url, "c")
        assert "s3cret" not in str(refused.value)
        assert not sent(chat_to("slack", url, monkeypatch, tmp_path)).delivered


def test_a_webhook_gets_the_report_signed_and_the_same_id_at_each_try(hook: Hook, monkeypatch, tmp_path) -> None:
    secret = "whsec_" + base64.b64encode(b"k" * 24).decode()
    monkeypatch.setenv("HOOK", hook.url)
    (tmp_path / "secret").write_text(f"{secret}\n")
    text = f'[w]\nkind = "webhook"\nurl_env = "HOOK"\nsecret_file = "{tmp_path}/secret"\n'
    (tmp_path / "c.toml").write_text(text)
    channel = load(tmp_path / "c.toml")["w"]
    hook.answers = [(503, {}, b"away")]
    done = sent(channel, (0.01,))
    assert (done.delivered, done.outcome) == (True, "webhook at 127.0.0.1")
    assert hook.bodies == [{}, {}]
    (first, _), (headers, body) = hook.raw
    assert first["webhook-id"] == headers["webhook-id"]
    assert abs(int(headers["webhook-timestamp"]) - time.time()) < 60
    told = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    own = base64.b64encode(hmac.digest(b"k" * 24, told, "sha256")).decode()
    assert headers["webhook-signature"] == f"v1,{own}"
    assert headers["content-type"] == "application/json"
    for wrong, said in (("whsec_?", "is not base64"), ("short", "has 5 bytes"), ("", "is empty")):
        (tmp_path / "secret").write_text(wrong)
        refused = sent(channel)
        assert (refused.delivered, said in refused.outcome, "short" in refused.outcome) == (False, True, False)
    assert len(hook.bodies) == 2


def test_a_folder_gets_every_form_once(tmp_path: Path) -> None:
    channel = Channel("f", "file", {"folder": str(tmp_path / "out" / "reports"), "forms": ["html", "txt"]})
    for _ in range(2):
        assert sent(channel).outcome.endswith("out/reports: lab-2026-03-29.html, lab-2026-03-29.txt")
    files = sorted((tmp_path / "out" / "reports").iterdir())
    assert [file.name for file in files] == ["lab-2026-03-29.html", "lab-2026-03-29.txt"]
    assert files[1].read_text() == "whole? text\n"
    (tmp_path / "file").write_text("")
    refused = sent(channel._replace(options={**channel.options, "folder": str(tmp_path / "file")}))
    assert (refused.delivered, "cannot store the report" in refused.outcome) == (False, True)


def test_a_trial_says_that_it_is_one(tmp_path: Path) -> None:
    message = trial_message("a<b")
    channel = Channel("f", "file", {"folder": str(tmp_path), "forms": ["html"]})
    assert deliver(message, [channel])[0].delivered
    assert "a test of the channel 'a&lt;b'" in (tmp_path / "test-of-a-b.html").read_text()

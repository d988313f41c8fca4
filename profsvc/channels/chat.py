"""Chats as channels: one POST to the address of a webhook, in the form that each chat takes.

A name of a kernel must not become a mention, a link or markup. Slack decodes three characters and knows no other
escape, so lines stand in a block of code there; Mattermost's too. In a card of Teams a `TextRun` knows no markup.
"""

from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

import httpx

from profsvc.channels.configuration import Channel, is_loopback
from profsvc.channels.message import Message, PassingError, lines_of, one_line, whole
from profsvc.errors import ServiceError, UsageError

TIMEOUT = httpx.Timeout(10.0, connect=5.0)
MOST_ANSWER = 64 << 10
LONGEST_WAIT = 30.0
# Slack's own limits of a head and of a section.
HEAD, SECTION = 150, 2900
MARKDOWN = str.maketrans({sign: f"\\{sign}" for sign in "\\`*_{}[]()#+-.!|~<>&:"} | {"@": "@\u200b"})
IN_CODE = str.maketrans({"`": "\u02cb"})


def slack(message: Message, link: str) -> dict[str, Any]:
    """Return what a webhook of Slack takes."""
    lines = _entities("\n".join(lines_of(message)).translate(IN_CODE))
    while len(lines) > SECTION:
        lines = lines.rpartition("\n")[0]
    blocks: list[dict[str, Any]] = [
        {"type": "header", "text": {"type": "plain_text", "text": _head(message.subject), "emoji": False}},
        {"type": "section", "text": {"type": "mrkdwn", "text": f"```\n{lines}\n```", "verbatim": True}},
    ]
    if link:
        text = {"type": "mrkdwn", "text": f"<{_entities(link)}|the whole report>", "verbatim": True}
        blocks.append({"type": "section", "text": text})
    fallback = _entities(one_line(message.subject))
    return {"text": fallback, "mrkdwn": False, "unfurl_links": False, "unfurl_media": False, "blocks": blocks}


def _head(subject: str) -> str:
    head = _entities(one_line(subject, HEAD))
    return head if len(head) <= HEAD else _entities(one_line(subject, HEAD // 5))  # an escape has up to 5 signs


def _entities(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def teams(message: Message, link: str) -> dict[str, Any]:
    """Return what a workflow of Teams takes: an adaptive card."""

    def run(text: str, **more: Any) -> dict[str, Any]:
        return {"type": "RichTextBlock", "inlines": [{"type": "TextRun", "text": text, **more}]}

    body = [run(one_line(message.subject), weight="Bolder", size="Medium")]
    body += [run(line, fontType="Monospace") for line in lines_of(message) if line]
    card: dict[str, Any] = {
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.4",
        "msteams": {"width": "Full"},
        "body": body,
    }
    if link:
        card["actions"] = [{"type": "Action.OpenUrl", "title": "The whole report", "url": link}]
    attachment = {"contentType": "application/vnd.microsoft.card.adaptive", "contentUrl": None, "content": card}
    return {"type": "message", "attachments": [attachment]}


def mattermost(message: Message, link: str) -> dict[str, Any]:
    """Return what a webhook of Mattermost takes."""
    lines = "\n".join(lines_of(message)).translate(IN_CODE | {ord("@"): "@\u200b"})
    text = f"#### {one_line(message.subject).translate(MARKDOWN)}\n```text\n{lines}\n```"
    return {"text": text + (f"\n[the whole report](<{link}>)" if link else "")}


FORMS: Mapping[str, Callable[[Message, str], dict[str, Any]]] = {
    "slack": slack,
    "teams": teams,
    "mattermost": mattermost,
}


def send(message: Message, channel: Channel) -> str:
    """Post a message and return where to; raise `PassingError` where another try may do, else `ServiceError`."""
    url = checked(channel.secret("url"), channel.name)
    host, site = str(urlsplit(url).hostname), channel.options["site"].rstrip("/")
    body = FORMS[channel.kind](_whole(message), f"{site}{message.path}" if site and message.path else "")
    try:
        with (
            httpx.Client(timeout=TIMEOUT, follow_redirects=False) as http,
            http.stream("POST", url, json=body, headers={"user-agent": "profsvc"}) as answer,
        ):
            said = _beginning(answer)
    except (httpx.TransportError, httpx.DecodingError) as error:  # the words of some errors hold the address: a secret
        raise PassingError(f"{host} does not answer ({type(error).__name__})") from None
    except httpx.InvalidURL:
        raise UsageError(f"channel {channel.name}: its url is no address") from None
    if answer.is_success:
        return f"{channel.kind} at {host}"
    if answer.status_code == 429 or answer.status_code >= 500:
        passing = PassingError(f"{host} answered {answer.status_code}: {said}")
        after = answer.headers.get("retry-after", "")
        passing.wait_s = min(float(after), LONGEST_WAIT) if after.isdecimal() and after.isascii() else 0.0
        raise passing
    more = "; redirects are not followed" if answer.is_redirect else f": {said}"
    raise ServiceError(f"{host} answered {answer.status_code}{more}")


def _whole(message: Message) -> Message:
    return message._replace(subject=whole(message.subject), lines=[whole(line) for line in message.lines])


def _beginning(answer: httpx.Response) -> str:
    """Read an answer as far as it is worth it, and return what it says first."""
    said = b""
    for piece in answer.iter_raw(4096):
        said += piece
        if len(said) >= MOST_ANSWER:
            break
    return one_line(said.decode("utf-8", "replace"), 200)


def checked(url: str, name: str) -> str:
    """Return the address of a webhook: https, or http on this machine alone."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        host, parts = "", urlsplit("")
    if not host or not (parts.scheme == "https" or (parts.scheme == "http" and is_loopback(host))):
        raise UsageError(f"channel {name}: its url must begin with https:// (or be http:// on this machine)")
    return url

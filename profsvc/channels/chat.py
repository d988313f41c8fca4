"""Chats as channels: one POST to the address of a webhook, in the form that each chat takes.

A name of a kernel must not become a mention, a link or markup. Slack decodes three characters and knows no other
escape, so lines stand in a block of code there; Mattermost's too. In a card of Teams a `TextRun` knows no markup.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any

from profsvc.channels.configuration import Channel
from profsvc.channels.message import Message, chat_lines, link_to, one_line, to_valid_unicode
from profsvc.channels.posting import post

# Slack's own limits of a head and of a section.
MAX_SLACK_HEADER_CHARS, MAX_SLACK_SECTION_CHARS = 150, 2900
MARKDOWN_ESCAPES = str.maketrans({sign: f"\\{sign}" for sign in "\\`*_{}[]()#+-.!|~<>&:"} | {"@": "@\u200b"})
CODE_ESCAPES = str.maketrans({"`": "\u02cb"})


def slack(message: Message, link: str) -> dict[str, Any]:
    """Return what a webhook of Slack takes."""
    lines = _escape_entities("\n".join(chat_lines(message)).translate(CODE_ESCAPES))
    while len(lines) > MAX_SLACK_SECTION_CHARS:
        lines = lines.rpartition("\n")[0]
    blocks: list[dict[str, Any]] = [
        {"type": "header", "text": {"type": "plain_text", "text": _slack_header(message.subject), "emoji": False}},
        {"type": "section", "text": {"type": "mrkdwn", "text": f"```\n{lines}\n```", "verbatim": True}},
    ]
    if link:
        text = {"type": "mrkdwn", "text": f"<{_escape_entities(link)}|the whole report>", "verbatim": True}
        blocks.append({"type": "section", "text": text})
    fallback = _escape_entities(one_line(message.subject))
    return {"text": fallback, "mrkdwn": False, "unfurl_links": False, "unfurl_media": False, "blocks": blocks}


def _slack_header(subject: str) -> str:
    head = _escape_entities(one_line(subject, MAX_SLACK_HEADER_CHARS))
    return (
        head
        if len(head) <= MAX_SLACK_HEADER_CHARS
        else _escape_entities(one_line(subject, MAX_SLACK_HEADER_CHARS // 5))
    )  # an escape has up to 5 signs


def _escape_entities(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def teams(message: Message, link: str) -> dict[str, Any]:
    """Return what a workflow of Teams takes: an adaptive card."""

    def run(text: str, **more: Any) -> dict[str, Any]:
        return {"type": "RichTextBlock", "inlines": [{"type": "TextRun", "text": text, **more}]}

    body = [run(one_line(message.subject), weight="Bolder", size="Medium")]
    body += [run(line, fontType="Monospace") for line in chat_lines(message) if line]
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
    lines = "\n".join(chat_lines(message)).translate(CODE_ESCAPES | {ord("@"): "@\u200b"})
    text = f"#### {one_line(message.subject).translate(MARKDOWN_ESCAPES)}\n```text\n{lines}\n```"
    return {"text": text + (f"\n[the whole report](<{link}>)" if link else "")}


FORMATTERS: Mapping[str, Callable[[Message, str], dict[str, Any]]] = {
    "slack": slack,
    "teams": teams,
    "mattermost": mattermost,
}


def send(message: Message, channel: Channel) -> str:
    """Post a message and return where to; raise `TransientError` where another try may do, else `ServiceError`."""
    body = FORMATTERS[channel.kind](_to_valid_message(message), link_to(message, channel))
    return post(channel, json.dumps(body).encode(), {"content-type": "application/json"})


def _to_valid_message(message: Message) -> Message:
    return message._replace(
        subject=to_valid_unicode(message.subject), lines=[to_valid_unicode(line) for line in message.lines]
    )

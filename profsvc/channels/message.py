"""What is sent, whatever the channel, and how texts that others wrote are kept from being more than text."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from profsvc.channels.configuration import Channel
from profsvc.errors import counted

MAX_LINE_CHARS = 300
MAX_LINES = 20


class Message(NamedTuple):
    """What is sent: short for a chat, whole for a mail and a folder.

    ``lines`` are plain texts; ``forms`` are whole documents by their suffix: txt, md, html, json. ``key`` is the same
    for the same message, so that who gets it twice can tell; ``path`` is where it is found on the service.
    """

    subject: str
    lines: Sequence[str]
    forms: Mapping[str, str]
    stem: str
    key: str
    path: str = ""


def link_to(message: Message, channel: Channel) -> str:
    """Return the address of a message on the service, empty where the channel does not know it."""
    site = str(channel.options["site"]).rstrip("/")
    return f"{site}{message.path}" if site and message.path else ""


class TransientError(Exception):
    """A failure to send that may pass: another try may do, not before ``wait_s``. It stays among the channels."""

    wait_s = 0.0


def one_line(text: str, most: int = MAX_LINE_CHARS) -> str:
    r"""Return a text as one line that is shown as it is: no line ends, nothing that acts or turns the direction.

    >>> one_line("a\r\nBcc: x\u202e"), one_line("abcdef", 5)
    ('a  Bcc: x ', 'ab...')
    """
    shown = "".join(sign if sign.isprintable() else " " for sign in text[: most + 1])
    return shown if len(shown) <= most else shown[: most - 3] + "..."


def chat_lines(message: Message) -> list[str]:
    """Return the lines for a chat: few enough, and each short enough."""
    shown = [one_line(line) for line in message.lines[:MAX_LINES]]
    more = len(message.lines) - len(shown)
    return [*shown, *([f"and {counted(more, 'more line')} in the report"] if more else [])]


def to_valid_unicode(text: str) -> str:
    r"""Return a text that every encoding of Unicode can hold.

    >>> to_valid_unicode("a\udc80b")
    'a?b'
    """
    return text.encode("utf-8", "replace").decode("utf-8")

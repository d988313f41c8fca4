"""Where reports are sent: channels that the operator names in a file, and that users only choose by name.

`load` reads the file, `deliver` sends one message to some of them and says of each what became of it. A channel is of
one of the kinds of `SINKS`; what a message says, such as the name of a kernel, is only ever text there.
"""

import random
import re
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from queue import Empty, Queue
from typing import NamedTuple

from profsvc.channels import chat, folder, mail
from profsvc.channels.configuration import Channel, load
from profsvc.channels.message import Message, PassingError
from profsvc.errors import NotFoundError, ProfsvcError, ServiceError

__all__ = ["WAITS", "Channel", "Delivery", "Message", "Time", "chosen", "deliver", "load", "told", "trial"]

ADDRESS = re.compile(r"[^\s,;:<>()\"']+@[^\s,;:<>()\"']+")
WAITS = (1.0, 4.0)
"""Seconds between one try and the next."""
SECONDS = 120.0
"""For all channels of a message, with all tries."""
SINKS: Mapping[str, Callable[[Message, Channel], str]] = {
    "smtp": mail.send,
    "slack": chat.send,
    "teams": chat.send,
    "mattermost": chat.send,
    "file": folder.send,
}


class Delivery(NamedTuple):
    """What became of a message to a channel: whether it was delivered, when that was known, and where to or why not.

    ``said`` is for who runs the program: it may name addresses.
    """

    channel: str
    delivered: bool
    at: str
    said: str
    kind: str


def told(done: Delivery) -> str | None:
    """Return what whoever reads the store may know of a delivery: why it failed, or for how many; no address.

    >>> told(Delivery("team", False, "", "the mail server refuses it: 550 no such user a@lab.example", "smtp"))
    'the mail server refuses it: 550 no such user (an address)'
    >>> told(Delivery("team", True, "", "mail to a@lab.example; refused for b@lab.example", "smtp"))
    'refused for (an address)'
    >>> told(Delivery("team", True, "", "mail to a@lab.example", "smtp"))
    """
    said = ADDRESS.sub("(an address)", done.said)
    if done.delivered:
        said = said.partition(mail.BUT)[2] if done.kind == "smtp" else ""
    return said or None


def chosen(channels: Mapping[str, Channel], names: Iterable[str]) -> list[Channel]:
    """Return the channels of these names."""
    for name in (names := list(names)):
        if name not in channels:
            error = NotFoundError.near("channel", name, channels)
            raise NotFoundError(f"{error}; channels are named in the file of PROFSVC_CHANNELS")
    return [channels[name] for name in dict.fromkeys(names)]


class Time:
    """The time for so many sendings together: each gets its share of what is left, and leaves what it does not need."""

    def __init__(self, sendings: int, seconds: float | None = None) -> None:
        """Begin now."""
        self._end = time.monotonic() + (SECONDS if seconds is None else seconds)
        self._left = sendings

    def share(self) -> float:
        """Return the seconds of the next sending."""
        share = max(self._end - time.monotonic(), 0.0) / max(self._left, 1)
        self._left -= 1
        return share


def deliver(
    message: Message, channels: Iterable[Channel], waits: Sequence[float] = WAITS, seconds: float | None = None
) -> list[Delivery]:
    """Send a message to each channel, again after a failure that may pass; that one fails keeps it from no other.

    All of it takes ``seconds`` at most, `SECONDS` by default.
    """
    wanted = list(channels)
    left = Time(len(wanted), seconds)
    return [_sent(message, channel, waits, left.share()) for channel in wanted]


def _in_time(message: Message, channel: Channel, seconds: float) -> str:
    """Send once. What answers a byte now and then never passes a limit of its own, so it is left to itself."""
    answers: Queue[str | BaseException] = Queue()

    def send() -> None:
        try:
            answers.put(SINKS[channel.kind](message, channel))
        except BaseException as error:  # it is raised where it was asked for
            answers.put(error)

    threading.Thread(target=send, name=f"sends to {channel.name}", daemon=True).start()
    try:
        said = answers.get(timeout=seconds)
    except Empty:
        raise ServiceError(f"it was not done within {seconds:.0f} s; it may have come all the same") from None
    if isinstance(said, BaseException):
        raise said
    return said


def _sent(message: Message, channel: Channel, waits: Sequence[float], seconds: float) -> Delivery:
    delivered, said, end = False, "", time.monotonic() + seconds
    for wait in (*waits, None):
        try:
            delivered, said = True, _in_time(message, channel, max(end - time.monotonic(), 0.0))
            break
        except PassingError as error:
            said = str(error)
            pause = 0.0 if wait is None else max(wait * random.uniform(0.5, 1.5), error.wait_s)
            if wait is None or time.monotonic() + pause >= end:
                break
            time.sleep(pause)
        except ProfsvcError as error:
            said = str(error)
            break
    return Delivery(channel.name, delivered, datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"), said, channel.kind)


def trial(name: str) -> Message:
    """Return a message that says that a channel works."""
    line = f"This is a test of the channel {name!r} of profsvc. It holds no report."
    html = f"<!doctype html><html lang=en><meta charset=utf-8><title>profsvc</title><p>{line.replace('<', '&lt;')}</p>"
    forms = {"txt": line + "\n", "md": line + "\n", "html": html, "json": "{}\n"}
    return Message(f"profsvc: a test of the channel {name}", [line], forms, f"test-of-{name}", f"{time.time_ns()}")

"""Sending one message to channels: retries within a time budget, and the outcome of each."""

import random
import re
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from queue import Empty, Queue
from typing import NamedTuple

from profsvc.channels import chat, folder, mail, webhook
from profsvc.channels.configuration import Channel
from profsvc.channels.message import Message, TransientError
from profsvc.errors import NotFoundError, ProfsvcError, ServiceError

ADDRESS = re.compile(r"[^\s,;:<>()\"']+@[^\s,;:<>()\"']+")
RETRY_DELAYS_S = (1.0, 4.0)
"""Seconds between one try and the next."""
MAX_DELIVERY_S = 120.0
"""For all channels of a message, with all tries."""
SENDERS: Mapping[str, Callable[[Message, Channel], str]] = {
    "smtp": mail.send,
    "slack": chat.send,
    "teams": chat.send,
    "mattermost": chat.send,
    "webhook": webhook.send,
    "file": folder.send,
}


class Delivery(NamedTuple):
    """The outcome of a message to a channel: whether it was delivered, when, and where to or why not.

    ``outcome`` is for who runs the program: it may name addresses.
    """

    channel: str
    delivered: bool
    at: str
    outcome: str
    kind: str


def public_outcome(done: Delivery) -> str | None:
    """Return what whoever reads the store may know of a delivery: why it failed, or for how many; no address.

    >>> public_outcome(Delivery("team", False, "", "the server refuses it: 550 no user a@lab.example", "smtp"))
    'the server refuses it: 550 no user (an address)'
    >>> public_outcome(Delivery("team", True, "", "mail to a@lab.example; refused for b@lab.example", "smtp"))
    'refused for (an address)'
    >>> public_outcome(Delivery("team", True, "", "mail to a@lab.example", "smtp"))
    """
    said = ADDRESS.sub("(an address)", done.outcome)
    if done.delivered:
        said = said.partition(mail.REFUSED_SEPARATOR)[2] if done.kind == "smtp" else ""
    return said or None


def select_channels(channels: Mapping[str, Channel], names: Iterable[str]) -> list[Channel]:
    """Return the channels of these names."""
    for name in (names := list(names)):
        if name not in channels:
            error = NotFoundError.near("channel", name, channels)
            raise NotFoundError(f"{error}; channels are named in the file of PROFSVC_CHANNELS")
    return [channels[name] for name in dict.fromkeys(names)]


class TimeBudget:
    """A time budget for several deliveries: each gets an equal share of what is left."""

    def __init__(self, sendings: int, seconds: float | None = None) -> None:
        """Begin now."""
        self._end = time.monotonic() + (MAX_DELIVERY_S if seconds is None else seconds)
        self._left = sendings

    def share(self) -> float:
        """Return the seconds of the next sending."""
        share = max(self._end - time.monotonic(), 0.0) / max(self._left, 1)
        self._left -= 1
        return share


def deliver(
    message: Message,
    channels: Iterable[Channel],
    retry_delays_s: Sequence[float] = RETRY_DELAYS_S,
    seconds: float | None = None,
) -> list[Delivery]:
    """Send a message to each channel, again after a failure that may pass; that one fails keeps it from no other.

    All of it takes ``seconds`` at most, `MAX_DELIVERY_S` by default.
    """
    wanted = list(channels)
    left = TimeBudget(len(wanted), seconds)
    return [_deliver_to(message, channel, retry_delays_s, left.share()) for channel in wanted]


def _send_within(message: Message, channel: Channel, seconds: float) -> str:
    """Send once. What answers a byte now and then never passes a limit of its own, so it is left to itself."""
    answers: Queue[str | BaseException] = Queue()

    def send() -> None:
        try:
            answers.put(SENDERS[channel.kind](message, channel))
        except BaseException as error:  # it is raised where it was asked for
            answers.put(error)

    threading.Thread(target=send, name=f"sends to {channel.name}", daemon=True).start()
    try:
        said = answers.get(timeout=seconds)
    except Empty:
        raise ServiceError(f"it was not done within {seconds:.0f} s; it may have been delivered") from None
    if isinstance(said, BaseException):
        raise said
    return said


def _deliver_to(message: Message, channel: Channel, retry_delays_s: Sequence[float], seconds: float) -> Delivery:
    delivered, said, end = False, "", time.monotonic() + seconds
    for wait in (*retry_delays_s, None):
        try:
            delivered, said = True, _send_within(message, channel, max(end - time.monotonic(), 0.0))
            break
        except TransientError as error:
            said = str(error)
            pause = 0.0 if wait is None else max(wait * random.uniform(0.5, 1.5), error.wait_s)
            if wait is None or time.monotonic() + pause >= end:
                break
            time.sleep(pause)
        except ProfsvcError as error:
            said = str(error)
            break
    return Delivery(channel.name, delivered, datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"), said, channel.kind)


def trial_message(name: str) -> Message:
    """Return a message that says that a channel works."""
    line = f"This is a test of the channel {name!r} of profsvc. It contains no report."
    html = f"<!doctype html><html lang=en><meta charset=utf-8><title>profsvc</title><p>{line.replace('<', '&lt;')}</p>"
    forms = {"txt": line + "\n", "md": line + "\n", "html": html, "json": "{}\n"}
    return Message(f"profsvc: a test of the channel {name}", [line], forms, f"test-of-{name}", f"{time.time_ns()}")

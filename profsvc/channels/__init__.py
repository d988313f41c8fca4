"""Channels for reports: mail, chats and folders that the operator lists in a file; users choose them by name.

`load` reads the file, `deliver` sends one message to some channels and returns the outcome of each.
"""

from profsvc.channels.configuration import Channel, load
from profsvc.channels.delivery import (
    RETRY_DELAYS_S,
    Delivery,
    TimeBudget,
    deliver,
    public_outcome,
    select_channels,
    trial_message,
)
from profsvc.channels.message import Message

__all__ = [
    "RETRY_DELAYS_S",
    "Channel",
    "Delivery",
    "Message",
    "TimeBudget",
    "deliver",
    "load",
    "public_outcome",
    "select_channels",
    "trial_message",
]

"""What became of each report that was sent to a channel; the newest of a report come last."""

from typing import NamedTuple

from sqlalchemy import Engine, text

from profsvc.store.engine import writing

_KEEP = text(
    "INSERT INTO deliveries (report_id, channel, kind, delivered, message, sent_by, sent_at)"
    " VALUES (:report_id, :channel, :kind, :delivered, :message, :sent_by, :sent_at)"
)


class Delivered(NamedTuple):
    """A report and a channel: whether it was delivered, what to know of it, who sent it, and when (UTC)."""

    report_id: int
    channel: str
    kind: str
    delivered: bool
    message: str | None
    sent_by: str
    sent_at: str


def keep_delivery(engine: Engine, delivery: Delivered) -> None:
    """Keep what became of a report that was sent to a channel."""
    with writing(engine) as connection:
        connection.execute(_KEEP, delivery._asdict() | {"delivered": int(delivery.delivered)})

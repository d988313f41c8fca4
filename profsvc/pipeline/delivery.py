"""A report to its channels."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from profsvc import channels, store
from profsvc.channels import Channel, Delivery, Message
from profsvc.reports import nightly
from profsvc.reports.rows import plain

if TYPE_CHECKING:
    from sqlalchemy import Engine


def message_of(document: Mapping[str, Any]) -> Message:
    """Return a nightly report as it is sent."""
    import json

    forms = {
        "txt": nightly.text(document),
        "md": nightly.markdown(document),
        "html": nightly.html(document),
        "json": json.dumps(plain(document), ensure_ascii=False, indent=1) + "\n",
    }
    scope = document["project"] or "all"
    number = document["report_id"]
    lines = [str(document["one_line"]), *nightly.short(document)]
    return Message(
        nightly.subject(document), lines, forms, f"{scope}-{document['night']}", f"report {number} of {scope}",
        f"/reports/{number}",
    )  # fmt: skip


def deliver(
    engine: "Engine", document: Mapping[str, Any], to: Iterable[Channel], by: str, seconds: float | None = None
) -> list[Delivery]:
    """Send a nightly report that is stored to channels, and keep and say of each what became of it."""
    message, wanted, done = message_of(document), list(to), list[Delivery]()
    left = channels.Time(len(wanted), seconds)
    for channel in wanted:
        (one,) = channels.deliver(message, [channel], seconds=left.share())
        kept = store.Delivered(
            document["report_id"], one.channel, one.kind, one.delivered, channels.told(one), by, one.at
        )
        store.keep_delivery(engine, kept)
        done.append(one)
    return done

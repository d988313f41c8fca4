"""A report to its channels."""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from profsvc import channels, store
from profsvc.channels import Channel, Delivery, Message
from profsvc.reports.nightly import formats as nightly_formats
from profsvc.reports.rows import plain

if TYPE_CHECKING:
    from sqlalchemy import Engine


def message_of(document: Mapping[str, Any]) -> Message:
    """Return a nightly report as it is sent."""
    import json

    forms = {
        "txt": nightly_formats.text(document),
        "md": nightly_formats.markdown(document),
        "html": nightly_formats.html(document),
        "json": json.dumps(plain(document), ensure_ascii=False, indent=1) + "\n",
    }
    scope = document["project"] or "all"
    number = document["report_id"]
    lines = [str(document["one_line"]), *nightly_formats.short(document)]
    return Message(
        nightly_formats.subject(document), lines, forms, f"{scope}-{document['night']}", f"report {number} of {scope}",
        f"/reports/{number}",
    )  # fmt: skip


def deliver(
    engine: "Engine", document: Mapping[str, Any], to: Iterable[Channel], by: str, seconds: float | None = None,
    keep: Callable[[store.Delivery], None] | None = None,
) -> list[Delivery]:  # fmt: skip
    """Send a nightly report that is stored to channels, store each outcome, or ``keep`` it, and return it."""
    message, wanted, done = message_of(document), list(to), list[Delivery]()
    keep = keep or partial(store.save_delivery, engine)
    left = channels.TimeBudget(len(wanted), seconds)
    for channel in wanted:
        (one,) = channels.deliver(message, [channel], seconds=left.share())
        kept = store.Delivery(
            document["report_id"], one.channel, one.kind, one.delivered, channels.public_outcome(one), by, one.at
        )
        keep(kept)
        done.append(one)
    return done

"""A report to its channels."""

from collections.abc import Iterable, Mapping
from typing import Any

from profsvc import channels
from profsvc.channels import Channel, Delivery, Message
from profsvc.reports import nightly
from profsvc.reports.rows import plain


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


def deliver(document: Mapping[str, Any], to: Iterable[Channel]) -> list[Delivery]:
    """Send a nightly report to channels; say of each what became of it."""
    return channels.deliver(message_of(document), to)

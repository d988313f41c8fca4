"""The formats that the program reads."""

from profsvc import formats


def readers() -> list[dict[str, str]]:
    """Return the supported formats, with one line each."""
    return [{"format": r.NAME, "what": r.PAGE.strip().splitlines()[0]} for r in formats.READERS]


def reader(name: str) -> str:
    """Return the page of one format: its command, its content and an example."""
    return str(formats.by_name(name).PAGE)

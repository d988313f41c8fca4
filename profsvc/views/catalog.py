"""Criteria, devices and formats that the program and the store know."""

from typing import TYPE_CHECKING, Any

from profsvc import specs, store
from profsvc.errors import NotFoundError

if TYPE_CHECKING:
    from sqlalchemy import Engine


def titles_and_hints() -> dict[str, dict[str, Any]]:
    """Return titles and hints of the criteria, the units of the joint bound and latency, by name."""
    domain = specs.criteria()
    named = {entry["name"]: entry for entry in [*domain["criterion"], *domain["unit"]]}
    return named | {"latency": {"name": "latency", **domain["latency"]}}


def in_order(rows: list[dict[str, Any]], column: str) -> list[dict[str, Any]]:
    """Return rows of criteria or units in the order of criteria.toml, with titles."""
    words = titles_and_hints()
    place = {name: number for number, name in enumerate(words)}
    ordered = sorted(rows, key=lambda row: place[row[column]])
    return [row | {"title": words[row[column]]["title"]} for row in ordered]


def devices(engine: "Engine") -> list[dict[str, Any]]:
    """Return the devices of the runs in the store."""
    return store.select(engine, "v1_devices")


def catalogue() -> list[dict[str, Any]]:
    """Return the devices of the catalogue."""
    return [
        {
            "name": d.name,
            "compute_capability": d.compute_capability,
            "sms": d.sms,
            "boost_clock_ghz": None if d.boost_clock_hz is None else d.boost_clock_hz / 1e9,
            "dram_peak_gb_per_s": None if d.dram_peak_bytes_per_s is None else d.dram_peak_bytes_per_s / 1e9,
            "tdp_w": d.tdp_w,
        }
        for d in specs.devices().values()
    ]


def readers() -> list[dict[str, str]]:
    """Return the supported formats, with one line each."""
    return [{"format": name, "what": page.partition("\n")[0]} for name, page in specs.format_pages().items()]


def reader(name: str) -> str:
    """Return the page of one format: its command, its content and an example."""
    pages = specs.format_pages()
    if name not in pages:
        raise NotFoundError.near("format", name, list(pages))
    return pages[name]

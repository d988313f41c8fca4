"""The account of one imported file: what its reader recognized, stored and rejected, for pages, commands and tests."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

from profsvc import store
from profsvc.pipeline.ingestion.reading_options import OPTION_OF_FACT, ReadOptions
from profsvc.specs.files.formats import PHASE_MARKS

if TYPE_CHECKING:
    from sqlalchemy import Engine

Progress = Callable[[int], None]


@dataclass
class ImportResult:
    """What a reader made of a file, whether it was stored or only checked.

    ``run_changed``: what was written on the run of a file that is ``known``, as its options say.
    """

    file_name: str
    sha256: str = ""
    format: str = ""
    known: bool = False
    upload_id: int | None = None
    run_id: int | None = None
    run: str = ""
    launches: int = 0
    metrics: int = 0
    samples: int = 0
    phases: int = 0
    summaries: int = 0
    transfers: int = 0
    lines: int = 0
    lines_stored: int = 0
    lines_skipped: int = 0
    lines_rejected: int = 0
    message: str = ""
    facts: dict[str, str] = field(default_factory=dict)
    characterized: set[str] = field(default_factory=set)
    warnings: list[str] = field(default_factory=list)
    run_changed: list[str] = field(default_factory=list)
    implausible: list[str] = field(default_factory=list)


def result_from_store(
    engine: "Engine", verdict: ImportResult, how: ReadOptions, device: str | None = None
) -> ImportResult:
    """Fill a verdict on bytes that are stored already from what was stored then."""
    row = store.upload(engine, cast("int", verdict.upload_id))
    for name in ("format", "lines", "lines_stored", "lines_skipped", "lines_rejected", "message"):
        setattr(verdict, name, row[name])
    verdict.launches = int(row["launches"])
    verdict.facts = json.loads(row["facts"])
    on_a_clock = row["samples"] > 0 or row["format"] == PHASE_MARKS
    if kept := _describe_reading(verdict, how, device, on_a_clock=on_a_clock):
        verdict.message = f"{verdict.message}; {kept}" if verdict.message else kept
    return verdict


def _describe_reading(verdict: ImportResult, how: ReadOptions, device: str | None, *, on_a_clock: bool) -> str:
    """Say how a stored file was read, and that it stays so where it is given with other options now."""
    then, now = (
        {option: facts.get(n, "") for n, option in OPTION_OF_FACT.items()} for facts in (verdict.facts, how.said())
    )
    # Without samples or marks there is nothing that these options act on.
    other = [option for option in OPTION_OF_FACT.values() if now[option] != then[option] and on_a_clock]
    for option, given, was in (
        ("--format", how.form, verdict.format),
        ("--device", device, verdict.facts.get("given_device", "")),
    ):
        if given not in (None, was):
            other.append(option)
            then[option] = was
    if not other:
        return ""
    said = ", ".join(f"{option} {then[option]}" if then[option] else f"no {option}" for option in other)
    return (
        f"it was read with {said} and stays as it was read; to read it differently, delete it with: "
        f"profsvc delete id:{verdict.run_id} --upload {verdict.upload_id}, and upload it again"
    )

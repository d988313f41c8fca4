"""``demo``: the main job on bundled exports, in a fresh store; on the command line or in a browser."""

import threading
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from profsvc.cli.common import describe, say
from profsvc.cli.serve import web_part
from profsvc.errors import ProfsvcError

if TYPE_CHECKING:
    from sqlalchemy import Engine


def demo(
    keep: Annotated[Path | None, typer.Option(help="Folder for the store and the report; default: a new one.")] = None,
    serve: Annotated[bool, typer.Option("--serve", help="Show it in a browser, with its power and a report.")] = False,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to serve it on; 0: any that is free.")] = 0,
) -> None:
    """Load real exports of an NVIDIA H200 into a fresh store and print their criteria and speedups.

    With --serve they are shown in a browser, with logs of that board's power, a second profile, and a nightly report.

    Examples:

      profsvc demo

      profsvc demo --serve
    """
    import tempfile

    from profsvc import store

    service = web_part() if serve else None
    folder = keep or Path(tempfile.mkdtemp(prefix="profsvc-demo-"))
    folder.mkdir(parents=True, exist_ok=True)
    engine = store.open_store(str(folder / "demo.sqlite"))
    if service is None:
        _print(engine, folder)
        return
    stop = threading.Event()
    loader = threading.Thread(target=_load, args=(engine, stop))
    loader.start()
    try:
        service.serve(engine, store.files_of(engine), service.Place(port=port), service.Limits.as_set(), say)
    finally:
        stop.set()
        loader.join()


def _load(engine: "Engine", stop: threading.Event) -> None:
    """Load everything while it can be looked at already, and make the report of the night."""
    from profsvc import pipeline, store
    from profsvc.pipeline.night import report_of_night

    files = store.files_of(engine)
    try:
        for run, file in pipeline.demo_runs():
            if stop.is_set():
                return
            info = store.RunInfo(project="demo", name=run)
            with file.open("rb") as stream:  # the clock of the board's host was UTC
                verdict = pipeline.ingest(engine, stream, file.name, info, pipeline.Reading(zone="UTC"), files=files)
            say(describe(verdict, checked=False).partition("\n")[0])
        report = report_of_night(engine, "demo")
        say(f"report {report['report_id']}: {report['one_line']}\nthe demo is whole: look at the page again")
    except ProfsvcError as error:
        say(f"Error: {error}")


def _print(engine: "Engine", folder: Path) -> None:
    """Load the profile, print its answers and write its page."""
    from profsvc import pipeline, store, views
    from profsvc.reports import page, text

    path = folder / "demo.sqlite"
    info = store.RunInfo(project="demo", name="h200")
    for file in pipeline.demo_files():
        with file.open("rb") as stream:
            say(describe(pipeline.ingest(engine, stream, file.name, info, files=store.files_of(engine)), checked=False))
    view = views.run(engine, "h200")
    typer.echo(text.run(view, 160))
    typer.echo("criteria of each launch, 1 is nothing to gain")
    typer.echo(text.criteria(view))
    slowest = max(view["launches"], key=lambda r: (r["duration_us"] or 0) * (1 - 1 / (r["potential"] or 1)))
    opened = views.launch(engine, "h200", str(slowest["launch"]))
    typer.echo(text.launches(opened))
    report = folder / "report.html"
    every = [views.launch(engine, "h200", str(r["launch"]))["launches"][0] for r in view["launches"]]
    report.write_text(page.run(view, every), encoding="utf-8")
    say(f"report: {report}\nstore:  {path}\ntry:    profsvc --store {path} sql "
        '"select kernel_short, criterion, value, speedup from v1_criteria"')  # fmt: skip


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.command()(demo)

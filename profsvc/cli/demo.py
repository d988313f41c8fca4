"""``demo``: the main job on bundled exports, in a fresh store."""

from pathlib import Path
from typing import Annotated

import typer

from profsvc.cli.common import describe, say


def demo(
    keep: Annotated[Path | None, typer.Option(help="Folder for the store and the report; default: a new one.")] = None,
) -> None:
    """Load real exports of an NVIDIA H200 into a fresh store and print their criteria and speedups.

    Example:

      profsvc demo
    """
    import tempfile

    from profsvc import pipeline, store, views
    from profsvc.reports import page, text

    folder = keep or Path(tempfile.mkdtemp(prefix="profsvc-demo-"))
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "demo.sqlite"
    engine = store.open_store(str(path))
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

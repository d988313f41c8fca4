"""``demo``: the main job on bundled exports, in a fresh store; on the command line or in a browser."""

import threading
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from click import Context

from profsvc.cli.console.common import describe_upload, print_message
from profsvc.cli.console.declaration import Group, Option
from profsvc.cli.console.terminal import print_lines, program_in_shell, table_width
from profsvc.cli.service.serve import load_web_service
from profsvc.errors import ProfsvcError, UsageError

if TYPE_CHECKING:
    from sqlalchemy import Engine


def demo(
    context: Context,
    keep: Annotated[Path | None, Option(help="Folder for the store and the report; default: a new one.")] = None,
    serve: Annotated[bool, Option("--serve", help="Show it in a browser, with power and a report.")] = False,
    port: Annotated[int, Option(min=0, max=65535, help="Port to serve it on; 0 means any free port.")] = 0,
    exports: Annotated[
        Path | None, Option(help="Only copy the exports into this folder, to upload them yourself.")
    ] = None,
) -> None:
    """Load real exports of an NVIDIA H200 into a new store and show where time can be saved.

    With --serve they are shown in a browser, with logs of that board's power, a second profile, and a nightly report.

    Examples:

      profsvc demo

      profsvc demo --serve

      profsvc demo --exports .
    """
    import tempfile

    from profsvc import store

    if exports is not None:
        _copy_exports(exports)
        return
    if context.obj["store"]:
        raise UsageError("the demo makes a store of its own; choose the folder for it with --keep FOLDER")
    service = load_web_service() if serve else None
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
        endpoint, limits = service.Endpoint(port=port), service.Limits.from_settings()
        service.serve(engine, store.blob_store_of(engine), endpoint, limits, print_message)
    finally:
        stop.set()
        loader.join()


def _copy_exports(folder: Path) -> None:
    """Copy the bundled exports into a folder; refuse to replace another file."""
    import shutil

    from profsvc import pipeline

    folder.mkdir(parents=True, exist_ok=True)
    files = {folder / file.name: file for _, file in pipeline.demo_runs()}
    others = [path.name for path, file in files.items() if path.exists() and not _is_same(path, file)]
    if others:
        raise UsageError(f"{folder} already has another file {others[0]!r}; choose another folder")
    for path, file in files.items():
        shutil.copyfile(file, path)
        print_message(f"{path.name}: {path.stat().st_size} bytes")


def _is_same(path: Path, file: Path) -> bool:
    """Tell whether a path holds the bytes of a file, as after an earlier copy."""
    return path.is_file() and path.read_bytes() == file.read_bytes()


def _load(engine: "Engine", stop: threading.Event) -> None:
    """Load everything while pages are already served, and create the nightly report."""
    from profsvc import pipeline, store
    from profsvc.pipeline.nightly import report_of_night

    files = store.blob_store_of(engine)
    try:
        for run, file in pipeline.demo_runs():
            if stop.is_set():
                return
            info = store.RunInfo(project="demo", name=run)
            with file.open("rb") as stream:  # the clock of the board's host was UTC
                verdict = pipeline.ingest(
                    engine, stream, file.name, info, pipeline.ReadOptions(zone="UTC"), files=files
                )
            print_message(describe_upload(verdict, checked=False).partition("\n")[0])
        report = report_of_night(engine, "demo")
        print_message(f"report {report['report_id']}: {report['one_line']}\ndemo loaded: reload the page")
    except ProfsvcError as error:
        print_message(f"Error: {error}")


def _print(engine: "Engine", folder: Path) -> None:
    """Load the profile, print the first screen and write the HTML report."""
    from profsvc import pipeline, store, views
    from profsvc.reports import run_page
    from profsvc.reports.text.runs.overview import overview

    path = folder / "demo.sqlite"
    info = store.RunInfo(project="demo", name="h200")
    for file in pipeline.demo_files():
        with file.open("rb") as stream:
            verdict = pipeline.ingest(engine, stream, file.name, info, files=store.blob_store_of(engine))
            print_message(describe_upload(verdict, checked=False), only_verbose=True)
    view = views.run(engine, "h200")
    print_lines(overview(view, table_width(), program_in_shell(str(path))))
    report = folder / "report.html"
    launches = [views.launch(engine, "h200", str(row["launch"]))["launches"][0] for row in view["launches"]]
    report.write_text(run_page.run(view, launches), encoding="utf-8")
    print_message(f"Report: {report}")


def register(app: Group) -> None:
    """Add the commands of this file."""
    app.function()(demo)

"""``doctor``: checks of the store and its machine."""

import shutil
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated

from click import Context

from profsvc.cli.console.common import OutputOption, open_engine, open_files, print_message, print_rows
from profsvc.cli.console.declaration import Group, Option
from profsvc.cli.console.terminal import with_store
from profsvc.errors import ProfsvcError, ServiceError

if TYPE_CHECKING:
    from sqlalchemy import Engine


def doctor(
    context: Context,
    deep: Annotated[bool, Option("--deep/--no-deep", help="Read the whole database and all kept bytes.")] = False,
    output: OutputOption = "table",
) -> None:
    """Check the store: versions, disk, schema, damage and unfinished work, each with what to do.

    Interrupted analyses are finished; nothing else is changed.

    Exit code 5 if a check fails.

    Example:

      profsvc doctor
    """
    from profsvc import analysis, store

    engine = open_engine(context, as_it_is=True)
    _finish(engine)
    checks = store.run_checks(engine, lambda: open_files(engine), deep, analysis.VERSION)
    checks += [store.Check(*told) for told in [*_report_readers(), *_compiled()]]
    print_rows(store.Check._fields, [check._replace(fix=with_store(check.fix))._asdict() for check in checks], output)
    if failed := [check.check for check in checks if check.state == "fail"]:
        raise ServiceError(f"{len(failed)} of {len(checks)} checks failed: {', '.join(failed)}")


def _report_readers() -> list[tuple[str, str, str, str]]:
    """Return a check of each program that reads a tool's own report; both are optional."""
    from profsvc.formats.ncu.report import package_folder
    from profsvc.formats.nsys.report import COMMAND

    package, program = package_folder(), shutil.which(COMMAND)
    return [
        (
            "ncu-report",
            "ok",
            f"{'installed' if package else 'not installed'}; this package reads .ncu-rep reports of Nsight Compute",
            "" if package else "pip install 'profsvc[ncu]', or upload pages",
        ),
        (
            "nsys",
            "ok",
            f"{program or 'not on PATH'}; this program reads .nsys-rep reports of Nsight Systems",
            "" if program else "install Nsight Systems, or upload an SQLite export",
        ),
    ]


def _compiled() -> list[tuple[str, str, str, str]]:
    """Return the checks of the compiled modules, which are optional."""
    from profsvc import store
    from profsvc.formats.splitter import rows

    again = "install a C compiler, then profsvc again"
    todo = {"available": "", "off": f"unset {rows.OFF_VARIABLE}", "missing": again, "outdated": "install profsvc again"}
    modules = {
        "splitter": (rows.state(), "reads"),
        "pages": (store.state_of_pages(), "stores"),
        "copies": (store.state_of_copies(), "stores"),
    }
    return [
        (name, "ok", f"{state}; this compiled module {does} long exports faster", todo[state])
        for name, (state, does) in modules.items()
    ]


def _finish(engine: "Engine") -> None:
    """Finish interrupted analyses; the checks report a store where that fails."""
    from profsvc import pipeline, store

    with suppress(ProfsvcError):
        if not store.is_current(engine) or not store.unfinished(engine):
            return  # mostly: then nothing is imported that analyses
        for run_id, parts in pipeline.analyze_unfinished(engine, open_files(engine)).items():
            print_message(f"run {run_id}: the analysis was interrupted; {' and '.join(parts)} done now")


def register(app: Group) -> None:
    """Add the command of this file."""
    app.function()(doctor)

"""``export``: runs as files for other programs."""

import os
import sys
import tempfile
from pathlib import Path
from typing import Annotated, BinaryIO, cast

from click import Context

from profsvc.cli.console.common import open_engine, open_service, print_message
from profsvc.cli.console.declaration import Argument, Group, Option
from profsvc.errors import UsageError

group = Group(help="Runs as files for other programs.")


@group.function()
def perfetto(
    context: Context,
    run: Annotated[str, Argument(help="Run by name or id.")],
    out: Annotated[Path | None, Option(help="File of the trace; default: RUN.pftrace; - is stdout.")] = None,
) -> None:
    """Write the timeline of a run as a trace that opens in Perfetto (ui.perfetto.dev).

    Kernels and copies by stream, API calls and ranges by thread, and the sensor readings of that time.
    It needs: pip install 'profsvc[perfetto]'.

    Example:

      profsvc export perfetto today --out today.pftrace
    """
    from profsvc.reports.perfetto import report
    from profsvc.views.traces.export import write_perfetto

    if open_service(context):
        raise UsageError("traces are written from a store: unset PROFSVC_URL, and give --store")
    target = out or Path(f"{run.replace('/', '-')}.pftrace")
    engine = open_engine(context, only_reads=True)
    if str(target) == "-":
        view = write_perfetto(engine, run, cast(BinaryIO, sys.stdout.buffer))
    else:
        # A trace that fails on its way leaves no file.
        with tempfile.NamedTemporaryFile(dir=target.parent, delete=False) as stream:
            try:
                view = write_perfetto(engine, run, cast(BinaryIO, stream))
            except BaseException:
                stream.close()
                Path(stream.name).unlink()
                raise
        os.replace(stream.name, target)  # noqa: PTH105
        print_message(f"written: {target}")
    for line in report(view["written"], view["untimed"], view["readings"]):
        print_message(line)


def register(app: Group) -> None:
    """Add the commands of this file."""
    app.add_group(group, "export")

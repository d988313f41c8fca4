"""``serve``: the store over HTTP."""

from contextlib import nullcontext
from types import ModuleType
from typing import Annotated

import typer

from profsvc.cli.common import channels_of, engine_of, files_of, say
from profsvc.cli.schedule import stopping, timer_part
from profsvc.errors import ServiceError

EXTRA = {"fastapi", "starlette", "uvicorn", "httptools", "prometheus_client"}


def web_part() -> ModuleType:
    """Return what serves; raise `ServiceError` where what it needs is not installed."""
    try:
        from profsvc.web import serve as service
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] not in EXTRA:
            raise
        raise ServiceError(f"the service needs more ({error}); run: pip install 'profsvc[server]'") from None
    return service


def serve(
    context: typer.Context,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0: any that is free.")] = 8765,
    root_path: Annotated[str, typer.Option(help="Path that a proxy serves it under, such as /tools/profsvc.")] = "",
    allowed_host: Annotated[
        list[str], typer.Option(help="Name that it answers to besides its own; * is any; repeatable.")
    ] = [],
    trusted_proxy: Annotated[
        list[str], typer.Option(help="Address of a proxy whose X-Forwarded-For is believed; repeatable.")
    ] = [],
    no_schedule: Annotated[
        bool, typer.Option("--no-schedule", help="Leave the schedules to others, such as profsvc scheduler.")
    ] = False,
) -> None:
    """Serve the store over HTTP: uploads, the views, SQL, comparisons; /openapi.json describes it.

    The schedules of the store are worked off beside it; PROFSVC_CHANNELS names where reports are sent.

    On 127.0.0.1 nobody needs a token. Where others reach it, by its address, a proxy or a name, everybody does.

    Limits: PROFSVC_UPLOAD_BYTES, PROFSVC_UNPACKED_BYTES, PROFSVC_UPLOADS_AT_ONCE, PROFSVC_SQL_AT_ONCE,
    PROFSVC_SQL_SECONDS, PROFSVC_SQL_EXPORT_SECONDS and PROFSVC_SQL_ROWS.

    Examples:

      profsvc serve

      profsvc --store lab.sqlite serve --host 0.0.0.0 --allowed-host profsvc.lab
    """
    service = web_part()
    from profsvc.web.memory import share_arenas

    share_arenas()  # before any thread is there
    engine = engine_of(context)
    place = service.Place(host, port, root_path, tuple(allowed_host), tuple(trusted_proxy))
    files = files_of(engine)
    schedules = nullcontext() if no_schedule else timer_part().running(engine, files, channels_of(), say)
    with stopping(), schedules:  # what ends the service must not end the process while a slot is at work
        service.serve(engine, files, place, service.Limits.as_set(), say)


def register(app: typer.Typer) -> None:
    """Add the command of this file."""
    app.command()(serve)

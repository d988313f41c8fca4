"""``serve``: the store over HTTP."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from types import ModuleType
from typing import Annotated

from click import Context

from profsvc.cli.console.common import load_channels, open_engine, open_files, print_message, read_store
from profsvc.cli.console.declaration import Group, Option
from profsvc.cli.service.schedule import load_scheduler, stop_on_signal
from profsvc.errors import ServiceError

EXTRA = {"fastapi", "markdown_it", "starlette", "uvicorn", "httptools", "prometheus_client"}


def load_web_service() -> ModuleType:
    """Return the web server module; raise `ServiceError` where its dependencies are missing."""
    try:
        from profsvc.web import server as service
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] not in EXTRA:
            raise
        raise ServiceError(f"the service needs more ({error}); run: pip install 'profsvc[server]'") from None
    return service


def serve(
    context: Context,
    host: Annotated[str, Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, Option(min=0, max=65535, help="Port to listen on; 0 means any free port.")] = 8765,
    root_path: Annotated[str, Option(help="Path prefix behind a proxy, such as /tools/profsvc.")] = "",
    allowed_host: Annotated[list[str], Option(help="Further host name to answer to; * means any; repeatable.")] = [],
    trusted_proxy: Annotated[
        list[str], Option(help="Address of a proxy whose X-Forwarded-For is trusted; repeatable.")
    ] = [],
    workers: Annotated[int, Option(min=1, max=64, help="Processes that answer requests; one per core is useful.")] = 1,
    no_schedule: Annotated[
        bool, Option("--no-schedule", help="Do not run scheduled jobs; leave them to profsvc scheduler.")
    ] = False,
) -> None:
    """Serve the store over HTTP: web pages, uploads, views and SQL; /openapi.json describes the API.

    It also runs the scheduled jobs of the store, in one process however many answer. PROFSVC_CHANNELS lists where
    reports are sent.

    With PROFSVC_READ_STORE pages and questions are answered by that replica of a Postgres store.

    On 127.0.0.1 no token is needed. Any other address, proxy or host name requires tokens.

    Limits: PROFSVC_UPLOAD_BYTES, PROFSVC_UNPACKED_BYTES, PROFSVC_UPLOADS_AT_ONCE, PROFSVC_SQL_AT_ONCE,
    PROFSVC_SQL_SECONDS, PROFSVC_SQL_EXPORT_SECONDS and PROFSVC_SQL_ROWS.

    Examples:

      profsvc serve

      profsvc serve --workers 4

      profsvc --store lab.sqlite serve --host 0.0.0.0 --allowed-host profsvc.lab
    """
    service = load_web_service()
    from profsvc.pipeline.malloc import limit_arenas
    from profsvc.web import workers as several

    limit_arenas()  # before any thread is there
    engine = open_engine(context)
    place = service.Endpoint(host, port, root_path, tuple(allowed_host), tuple(trusted_proxy))
    files = open_files(engine)
    schedules: Callable[[], AbstractContextManager[object]] = nullcontext
    if not no_schedule:
        schedules = partial(load_scheduler().running, engine, files, load_channels(), print_message)
    with stop_on_signal() as stop:
        limits = service.Limits.from_settings()
        if workers > 1:
            given = None if no_schedule else schedules
            several.serve(engine, files, place, limits, print_message, workers, read_store(context), stop, given)
            return
        with schedules():  # a signal to the service must not end the process while a job is running
            service.serve(engine, files, place, limits, print_message, read_store(context), stop)


def register(app: Group) -> None:
    """Add the command of this file."""
    app.function()(serve)

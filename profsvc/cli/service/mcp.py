"""``mcp``: tools for assistants over the Model Context Protocol."""

from types import ModuleType
from typing import Annotated

from click import Context

from profsvc.cli.console.common import open_engine, open_files, open_service, print_message, read_store
from profsvc.cli.console.declaration import Group, Option
from profsvc.errors import ServiceError

EXTRA = {"mcp", "mcp_types", "pydantic", "starlette", "uvicorn"}


def load_tools() -> ModuleType:
    """Return the server of the tools; raise `ServiceError` where its dependencies are missing."""
    try:
        from profsvc.mcp import server
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] not in EXTRA:
            raise
        raise ServiceError(f"the tools need more ({error}); run: pip install 'profsvc[mcp]'") from None
    return server


def mcp(
    context: Context,
    http: Annotated[bool, Option("--http", help="Serve over HTTP instead of stdio.")] = False,
    host: Annotated[str, Option(help="With --http: address to listen on.")] = "127.0.0.1",
    port: Annotated[int, Option(min=1, max=65535, help="With --http: port to listen on.")] = 8766,
    allowed_host: Annotated[list[str], Option(help="With --http: further host name to answer to; repeatable.")] = [],
    write: Annotated[bool, Option("--write", help="Also let assistants upload files.")] = False,
) -> None:
    """Serve tools for assistants: list, show, what to change, did it help, explain, SQL and documentation.

    Without --write no tool changes anything. With PROFSVC_URL the tools use that service and PROFSVC_TOKEN.

    Over stdio the assistant starts this command and acts as its user. Over HTTP every call acts with the token of its
    own request: scopes read, sql and upload, as for the service.

    Examples:

      profsvc mcp

      profsvc --store lab.sqlite mcp --write

      profsvc mcp --http --port 8766
    """
    server = load_tools()
    from profsvc import settings, store
    from profsvc.api import LocalStore
    from profsvc.mcp.access import Access

    service = open_service(context)
    if service is None:
        engine = open_engine(context)
        seconds = float(settings.load()["sql_seconds"])
        url = read_store(context)
        replica = store.Replica(engine, url) if url else None
        target = LocalStore(engine, open_files(engine), seconds=seconds, replica=replica)
    access = Access(service or target, over_http=http, is_public=http and not server.is_loopback(host))
    if not http:
        server.make_server(access, write=write).run("stdio")
        return
    print_message(f"tools at http://{host}:{port}/mcp; Ctrl-C stops them")
    server.run_http(access, host, port, tuple(allowed_host), write=write)


def register(app: Group) -> None:
    """Add the command of this file."""
    app.function()(mcp)

"""The server of the tools: over stdio for one assistant, over streamable HTTP for many."""

import functools
import ipaddress
from collections.abc import Callable
from typing import Any

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.tools import Tool
from mcp.server.transport_security import TransportSecuritySettings
from mcp_types import ToolAnnotations

from profsvc import settings, store
from profsvc.api import LocalStore
from profsvc.errors import AccessError, ProfsvcError
from profsvc.mcp import answers, tools
from profsvc.mcp.access import Access, guarded
from profsvc.reports.rows import plain

INSTRUCTIONS = """\
profsvc stores GPU profiles and says what limits each kernel. A tuning loop:
1. upload_profile (or list_runs), 2. what_to_change: the first cause, its evidence and first step,
3. change that, profile again, upload to a new run, 4. did_it_help: achieved speedup, noise, what changed.
Stop when what_to_change answers stop_here. Names of numbers end with their units. Runs go by name or id.
"""
Context_ = Context[Any, Any]
READS = ToolAnnotations(read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False)
WRITES = ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=True, open_world_hint=False)


def make_server(access: Access, *, write: bool = False) -> MCPServer:
    """Return the server with its tools; without ``write`` none of them changes anything."""
    made: list[Tool] = []

    def add(needs: str, *functions: Callable[..., Any], name: str | None = None, writes: bool = False) -> None:
        """Add tools that need a scope."""
        for function in functions:
            tool = Tool.from_function(
                _guarded_tool(access, needs, function), name, annotations=WRITES if writes else READS,
                structured_output=False,
            )  # fmt: skip
            made.append(_only_known_arguments(tool))

    add("read", tools.list_runs, tools.show_run, tools.what_to_change)
    # Over HTTP a token that only reads must not write, so predictions are not recorded.
    add("read", tools.comparing(record=write and not access.over_http), writes=write)
    add("read", tools.explain_number)
    add("sql", tools.ask_sql)
    add("read", tools.read_docs)
    if write:
        # Over stdio the files are of this machine.
        upload = tools.upload_text if access.over_http else tools.upload_file
        add("upload", upload, name="upload_profile", writes=True)
    return MCPServer("profsvc", instructions=INSTRUCTIONS, version=settings.version(), tools=made, log_level="ERROR")


def _only_known_arguments(tool: Tool) -> Tool:
    """Return a tool that refuses arguments it does not have, which would otherwise be ignored silently."""
    arguments = tool.fn_metadata.arg_model
    arguments.model_config["extra"] = "forbid"
    arguments.model_rebuild(force=True)
    tool.parameters = arguments.model_json_schema(by_alias=True)
    return tool


def _guarded_tool(access: Access, needs: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a tool that gets its target by the token of the call, and whose errors reach the assistant as text."""
    import inspect

    signature = inspect.signature(function)
    own = list(signature.parameters.values())[1:]
    context = inspect.Parameter("context", inspect.Parameter.KEYWORD_ONLY, annotation=Context_)

    @functools.wraps(function)
    def call(*, context: Context_, **given: Any) -> Any:
        try:
            target = access.for_call(context.headers, needs)
            try:
                return plain(answers.rounded(function(target, **given)))
            finally:
                if target is not access.target and not isinstance(target, LocalStore):
                    target.close()
        except ProfsvcError as error:
            raise ToolError(f"{error.code()}: {error}") from None

    call.__signature__ = signature.replace(parameters=[*own, context])  # type: ignore[attr-defined]
    call.__annotations__ = {one.name: one.annotation for one in (*own, context)} | {"return": Any}
    del call.__wrapped__
    return call


def http_app(access: Access, host: str, port: int, allowed_hosts: tuple[str, ...] = (), *, write: bool = False) -> Any:
    """Return the ASGI application with the tools under ``/mcp``."""
    names = ["127.0.0.1", "localhost", "[::1]", *([] if host in ("0.0.0.0", "::") else [host]), *allowed_hosts]
    known = [text for name in dict.fromkeys(names) for text in (name, f"{name}:{port}")]
    security = TransportSecuritySettings(
        allowed_hosts=known, allowed_origins=[f"{scheme}://{one}" for one in known for scheme in ("http", "https")]
    )
    server = make_server(access, write=write)
    inner = server.streamable_http_app(stateless_http=True, json_response=True, transport_security=security, host=host)
    return guarded(inner, access)


def is_loopback(host: str) -> bool:
    """Tell whether only this machine reaches an address.

    >>> is_loopback("127.0.0.1"), is_loopback("0.0.0.0"), is_loopback("lab.example")
    (True, False, False)
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def check_listening(access: Access, host: str) -> None:
    """Raise `AccessError` where others would reach a store without tokens."""
    if is_loopback(host) or not isinstance(access.target, LocalStore):
        return
    if not any(token["active"] for token in store.list_tokens(access.target.engine)):
        raise AccessError(
            f"refusing to listen on {host} without authentication: no active token exists; create one first: "
            "profsvc token create NAME --scope read"
        )


def run_http(access: Access, host: str, port: int, allowed_hosts: tuple[str, ...], *, write: bool) -> None:
    """Serve the tools over HTTP until the process is stopped."""
    import uvicorn

    check_listening(access, host)
    uvicorn.run(
        http_app(access, host, port, allowed_hosts, write=write), host=host, port=port, log_level="warning",
    )  # fmt: skip

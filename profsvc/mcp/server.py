"""The tools and their server: over stdio for one assistant, over streamable HTTP for many."""

import functools
import io
import ipaddress
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.transport_security import TransportSecuritySettings
from mcp_types import ToolAnnotations
from pydantic import BeforeValidator, Field, WithJsonSchema

from profsvc import docs, settings, store
from profsvc.api import LocalStore
from profsvc.errors import AccessError, ProfsvcError
from profsvc.mcp import answers
from profsvc.mcp.access import Access, Target, guarded
from profsvc.reports.rows import plain

INSTRUCTIONS = """\
profsvc stores GPU profiles and says what limits each kernel. A tuning loop:
1. upload_profile (or list_runs), 2. what_to_change: the first cause, its evidence and first step,
3. change that, profile again, upload to a new run, 4. did_it_help: achieved speedup, noise, what changed.
Stop when what_to_change answers stop_here. Names of numbers end with their units. Runs go by name or id.
"""
MAX_DOC_CHARS = 8_000
MAX_ROWS = 200
MAX_CONTENT_CHARS = 4_000_000


def _text_or_number(description: str, number: str) -> Any:
    """Return what makes an argument a text that may be given as a whole number, written as ``number`` then."""
    return (
        BeforeValidator(lambda given: number.format(given) if type(given) is int else given),
        WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "integer"}], "description": description}),
    )


# A run_id of an answer is the number of a run, even if another run has digits for a name.
Run = Annotated[str, *_text_or_number("run, by name, project/name or id", "id:{}")]
Kernel = Annotated[
    str, *_text_or_number("launch number, or a part of the kernel name; empty: where most is to save", "{}")
]
Context_ = Context[Any, Any]
READS = ToolAnnotations(read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False)
WRITES = ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=True, open_world_hint=False)


def make_server(access: Access, *, write: bool = False) -> MCPServer:
    """Return the server with its tools; without ``write`` none of them changes anything."""
    server: MCPServer = MCPServer("profsvc", instructions=INSTRUCTIONS, version=settings.version(), log_level="ERROR")

    def tool(needs: str, annotations: ToolAnnotations = READS) -> Callable[[Callable[..., Any]], None]:
        """Add a tool that needs a scope; its first argument is the store or service that the call may use."""

        def add(function: Callable[..., Any]) -> None:
            server.add_tool(_guarded_tool(access, needs, function), annotations=annotations, structured_output=False)

        return add

    @tool("read")
    def list_runs(target: Target, project: str = "", limit: Annotated[int, Field(ge=1, le=100)] = 20) -> Any:
        """List the newest runs."""
        return answers.runs(target, project, limit)

    @tool("read")
    def show_run(target: Target, run: Run, limit: Annotated[int, Field(ge=1, le=50)] = 10) -> Any:
        """Show where a run can save most time: causes by time saved, and its longest launches."""
        return answers.run(target, run, limit)

    @tool("read")
    def what_to_change(target: Target, run: Run, kernel: Kernel = "") -> Any:
        """Say what to change in a kernel: causes of lost time with evidence, cost, first step and source lines."""
        return answers.what_to_change(target, run, kernel)

    @tool("read", WRITES if write else READS)
    def did_it_help(
        target: Target,
        before: Run,
        after: Run,
        renamed: Annotated[dict[str, str] | None, Field(description="old kernel name to new name")] = None,
    ) -> Any:
        """Say whether a change made kernels faster: speedup, noise, causes, and warnings such as other clocks."""
        return answers.did_it_help(target, before, after, renamed or {}, record=write and _may_record(access))

    @tool("read")
    def explain_number(target: Target, name: str, run: Run = "", kernel: Kernel = "") -> Any:
        """Say what a criterion, counter, metric or model means; with a run, from which file and line it comes."""
        view = target.explain(name, run or None, kernel or None)
        kept = ("name", "kind", "title", "unit", "meaning", "formula", "source", "hint", "trace")
        return {key: view[key][:20] if key == "trace" else view[key] for key in kept if view.get(key)}

    @tool("sql")
    def ask_sql(
        target: Target,
        query: Annotated[str, Field(description="one SELECT over the v1_ views; read_docs('views') lists them")],
        parameters: Annotated[dict[str, str | float | None] | None, Field(description="values of :name")] = None,
        limit: Annotated[int, Field(ge=1, le=MAX_ROWS)] = 50,
    ) -> Any:
        """Run a read-only SQL query over the documented views."""
        found = target.ask(query, parameters or {}, limit=limit)
        rows = [list(row.values()) for row in found["rows"]]
        return {"columns": found["columns"], "rows": rows, "truncated": found["truncated"]}

    @tool("read")
    def read_docs(
        _target: Target, topic: str = "", start: Annotated[int, Field(ge=0, description="first character")] = 0
    ) -> Any:
        """Read a page of the documentation; without a topic, list the pages."""
        if not topic:
            return {"topics": {name: one.summary for name, one in docs.topics().items()}}
        page = docs.topic(topic)
        text, end = page.text, start + MAX_DOC_CHARS
        return {"topic": page.name, "text": text[start:end], "next_start": end if end < len(text) else None}

    if write:
        _add_upload(access, tool)
    return server


def _add_upload(access: Access, tool: Callable[..., Callable[[Callable[..., Any]], None]]) -> None:
    """Add the tool that uploads: files of this machine over stdio, given text over HTTP."""

    def stored(target: Target, source: Any, name: str, run: str, project: str, commit: str) -> Any:
        asked = {"run": run, "project": project, "commit": commit}
        given: dict[str, Any] = {key: value for key, value in asked.items() if value}
        said = target.submit(source, file_name=name, **given)
        kept = ("run_id", "run", "upload_id", "format", "known", "launches", "lines_rejected", "message", "warnings")
        return {key: said[key] for key in kept} | {"see": answers.link(target, said["run_id"])}

    if access.over_http:

        @tool("upload", WRITES)
        def upload_profile(
            target: Target,
            content: Annotated[str, Field(description="text of the export", max_length=MAX_CONTENT_CHARS)],
            run: str,
            file_name: str = "profile.csv",
            project: str = "",
            commit: str = "",
        ) -> Any:
            """Store the text of a profiler export or power log in a run, and analyze it."""
            return stored(target, io.BytesIO(content.encode()), file_name, run, project, commit)

    else:

        @tool("upload", WRITES)
        def upload_profile(
            target: Target,
            path: Annotated[str, Field(description="file of this machine")],
            run: str,
            project: str = "",
            commit: str = "",
        ) -> Any:
            """Store a profiler export or power log in a run, and analyze it."""
            return stored(target, path, Path(path).name, run, project, commit)


def _may_record(access: Access) -> bool:
    """Tell whether predictions are recorded: over HTTP a token that only reads must not write."""
    return not access.over_http


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

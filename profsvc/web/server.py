"""Starting the service: the address it listens on, who may access it, and its start message."""

import ipaddress
import os
import resource
import socket
import threading
from collections.abc import Callable, Sequence
from types import FrameType
from typing import NamedTuple

import uvicorn
from sqlalchemy import Engine

from profsvc import store
from profsvc.errors import AccessError, ServiceError, UsageError
from profsvc.web.http.connection_limits import protocol_with_limits
from profsvc.web.http.json_log import LOG, log_to_stderr
from profsvc.web.http.state import LOCAL_HOST_NAMES, AppState, Limits

ANY_ADDRESS = ("0.0.0.0", "::", "")
BACKLOG = 1024
# Open files reserved for the store and its uploads.
RESERVED_FILES = 200
MAX_CONNECTIONS = 4000
SECOND_SIGNAL_SECONDS = 1.0


class Endpoint(NamedTuple):
    """The address of a service, and for a proxy its host names, path and address."""

    host: str = "127.0.0.1"
    port: int = 8765
    root_path: str = ""
    allowed_hosts: tuple[str, ...] = ()
    trusted_proxies: tuple[str, ...] = ()

    def validated(self) -> "Endpoint":
        """Return the normalized endpoint; raise `UsageError` for an invalid one."""
        path = self.root_path.rstrip("/")
        if path and (not path.startswith("/") or "//" in path or not path.isascii() or not path.isprintable()):
            raise UsageError(f"--root-path {self.root_path!r} is not a path such as /tools/profsvc")
        for host in self.allowed_hosts:
            if "/" in host or not host.strip() or ("*" in host and host != "*"):
                raise UsageError(
                    f"--allowed-host {host!r} is not a host name such as profsvc.lab, without port and scheme"
                )
        for proxy in self.trusted_proxies:
            try:
                ipaddress.ip_network(proxy)
            except ValueError:
                raise UsageError(
                    f"--trusted-proxy {proxy!r} is not an IP address or network such as 10.0.0.2"
                ) from None
        return self._replace(root_path=path)

    @property
    def is_local(self) -> bool:
        """Tell whether only this machine can reach the service, and no proxy forwards to it."""
        others = self.allowed_hosts or self.trusted_proxies or self.root_path
        return not others and is_loopback(self.host)


def is_loopback(host: str) -> bool:
    """Tell whether an address can be reached from this machine only.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0"), is_loopback("lab.example")
    (True, True, False, False)
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def app_state_for(
    engine: Engine, files: store.BlobStore, endpoint: Endpoint, limits: Limits, read_url: str = ""
) -> AppState:
    """Return the state of a service; raise `AccessError` where others would reach a store without tokens."""
    endpoint = endpoint.validated()
    if not endpoint.is_local and not any(token["active"] for token in store.list_tokens(engine)):
        raise AccessError(
            f"refusing to listen on {endpoint.host} without authentication: no active token exists; create one first: "
            f"profsvc --store {store.address(engine)} token create NAME --scope upload --scope read"
        )
    own = {endpoint.host.lower(), f"[{endpoint.host.lower()}]", socket.gethostname().lower(), socket.getfqdn().lower()}
    hosts = LOCAL_HOST_NAMES | set(endpoint.allowed_hosts) | (set() if is_loopback(endpoint.host) else own)
    state = AppState(
        engine, files, hosts=hosts, any_address=not is_loopback(endpoint.host), is_public=not endpoint.is_local,
        root_path=endpoint.root_path, limits=limits, read_url=read_url,
    )  # fmt: skip
    if state.replica is not None:
        try:
            state.replica.place(strict=True)  # what is no replica is refused now, and later not asked
        finally:
            state.replica.dispose()
    return state


def listening_socket(host: str, port: int) -> socket.socket:
    """Return a listening socket; raise `ServiceError` if the address is not available."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except (OSError, UnicodeError) as error:
        raise UsageError(f"--host {host!r} is not an address of this machine: {error}") from None
    line = socket.socket(family, kind, protocol)
    try:
        line.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        line.bind(address)
        line.listen(BACKLOG)
    except OSError as error:
        line.close()
        raise ServiceError(f"cannot listen on {host} port {port}: {error.strerror}; choose another --port") from None
    return line


def max_connections() -> int:
    """Raise the limit of open files as far as allowed; return how many connections it permits."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MAX_CONNECTIONS + RESERVED_FILES
    most = wanted if hard == resource.RLIM_INFINITY else min(hard, wanted)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
        soft = most
    return max(10, (most if soft == resource.RLIM_INFINITY else min(soft, wanted)) - RESERVED_FILES)


class Server(uvicorn.Server):
    """A server that stops in time: running work is aborted at the deadline, and nothing is partially stored."""

    def __init__(self, config: uvicorn.Config, grace_seconds: float) -> None:
        """Set how long running requests may take after the signal to stop."""
        super().__init__(config)
        self.stop = threading.Event()
        """Set by a signal that came before this server listened to signals."""
        self._grace_seconds = grace_seconds
        self._forced_exit: threading.Timer | None = None

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Start to stop; a second signal stops at once."""
        again = self.should_exit
        super().handle_exit(sig, frame)
        # A working thread can only be ended with its process.
        last = threading.Timer(SECOND_SIGNAL_SECONDS if again else self._grace_seconds, _force_exit, (sig,))
        last.daemon = True
        last.start()
        self._forced_exit = self._forced_exit or last

    async def main_loop(self) -> None:
        """Serve until a signal, unless one came while the server was starting."""
        self.should_exit = self.should_exit or self.stop.is_set()
        await super().main_loop()

    def cancel_forced_exit(self) -> None:
        """Cancel the forced exit, because all running work is done."""
        if self._forced_exit is not None:
            self._forced_exit.cancel()


def _force_exit(number: int) -> None:
    LOG.error("aborted", extra={"fields": {"why": "running requests did not finish in time"}})
    os._exit(128 + number)


def server_for(state: AppState, endpoint: Endpoint, connections: int, kind: type[Server] = Server) -> Server:
    """Return the server of a service, not started."""
    from profsvc.web.app import create_app  # 80 MB that the parent of several processes does not need

    config = uvicorn.Config(
        create_app(state),
        http=protocol_with_limits(state.limits.header_seconds, connections),
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=bool(endpoint.trusted_proxies),
        forwarded_allow_ips=list(endpoint.trusted_proxies),
        backlog=BACKLOG,
    )
    return kind(config, state.limits.grace_seconds)


def startup_lines(state: AppState, endpoint: Endpoint, port: int) -> Sequence[str]:
    """Return the lines of the start message."""
    name = socket.gethostname() if endpoint.host in ANY_ADDRESS else endpoint.host
    host, reached = (f"[{one}]" if ":" in one else one for one in (endpoint.host, name))
    if state.is_public or store.requires_token(state.engine):
        access = "authentication is on; see: profsvc token list"
    else:
        access = (
            "no token needed (localhost only); creating the first token turns authentication on: profsvc token create"
        )
    replica = f", read from {state.replica.address}" if state.replica else ""
    return (
        f"profsvc serves {store.address(state.engine)}{replica} at "
        f"http://{host}:{port}{endpoint.validated().root_path}/",
        access,
        f"to use it from the command line: export PROFSVC_URL=http://{reached}:{port}{endpoint.validated().root_path}",
        f"Ctrl-C: finish running uploads (up to {state.limits.grace_seconds:g} s) and stop; twice: stop now",
    )


def serve(
    engine: Engine,
    files: store.BlobStore,
    endpoint: Endpoint,
    limits: Limits,
    say: Callable[[str], None] = print,
    read_url: str = "",
    stop: threading.Event | None = None,
) -> None:
    """Serve until interrupted, or until ``stop`` is set before that; running uploads are finished first."""
    state = app_state_for(engine, files, endpoint, limits, read_url)
    connections = max_connections()
    with listening_socket(endpoint.host, endpoint.port) as line:
        server = server_for(state, endpoint, connections)  # first, so that who reads the address does not wait
        say("\n".join(startup_lines(state, endpoint, line.getsockname()[1])))
        log_to_stderr()
        server.stop = stop or server.stop
        try:
            server.run(sockets=[line])
        except KeyboardInterrupt:
            say("stopped")
        finally:
            server.cancel_forced_exit()
            state.close()

"""How the service is started: where it listens, who may reach it, and what it says about that."""

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
from profsvc.web.app import create_app
from profsvc.web.log import LOG, to_stderr
from profsvc.web.protocol import patient
from profsvc.web.site import LOCAL_NAMES, Limits, Site

EVERY_ADDRESS = ("0.0.0.0", "::", "")
BACKLOG = 1024
# Of the files that the process may open, so many are for the store and its uploads.
OWN_FILES = 200
MOST_CONNECTIONS = 4000
AT_ONCE_SECONDS = 1.0


class Place(NamedTuple):
    """Where a service listens and is reached: behind a proxy by other names, under a path, from its address."""

    host: str = "127.0.0.1"
    port: int = 8765
    root_path: str = ""
    allowed_hosts: tuple[str, ...] = ()
    trusted_proxies: tuple[str, ...] = ()

    def checked(self) -> "Place":
        """Return it as it is meant; raise `UsageError` for what cannot be."""
        path = self.root_path.rstrip("/")
        if path and (not path.startswith("/") or "//" in path or not path.isascii() or not path.isprintable()):
            raise UsageError(f"--root-path {self.root_path!r} must be a path such as /tools/profsvc")
        for host in self.allowed_hosts:
            if "/" in host or not host.strip() or ("*" in host and host != "*"):
                raise UsageError(f"--allowed-host {host!r} must be a name such as profsvc.lab, without port and scheme")
        for proxy in self.trusted_proxies:
            try:
                ipaddress.ip_network(proxy)
            except ValueError:
                raise UsageError(f"--trusted-proxy {proxy!r} must be an address such as 10.0.0.2 or a net") from None
        return self._replace(root_path=path)

    @property
    def is_local(self) -> bool:
        """Tell whether only this machine reaches it, and no proxy on it passes others on."""
        others = self.allowed_hosts or self.trusted_proxies or self.root_path
        return not others and is_loopback(self.host)


def is_loopback(host: str) -> bool:
    """Tell whether an address to listen on is reached from this machine alone.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0"), is_loopback("lab.example")
    (True, True, False, False)
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def site_for(engine: Engine, files: store.Files, place: Place, limits: Limits) -> Site:
    """Return the service at a place; raise `AccessError` where others would reach a store without tokens."""
    place = place.checked()
    if not place.is_local and not any(token["holds"] for token in store.list_tokens(engine)):
        raise AccessError(
            "others than this machine would reach the service, and the store has no token that holds, so it is not "
            f"started; make one first: profsvc --store {store.address(engine)} token create NAME --scope upload "
            "--scope read"
        )
    own = {place.host.lower(), f"[{place.host.lower()}]", socket.gethostname().lower(), socket.getfqdn().lower()}
    hosts = LOCAL_NAMES | set(place.allowed_hosts) | (set() if is_loopback(place.host) else own)
    return Site(
        engine, files, hosts=hosts, any_address=not is_loopback(place.host), is_public=not place.is_local,
        root_path=place.root_path, limits=limits,
    )  # fmt: skip


def listening(host: str, port: int) -> socket.socket:
    """Return a socket that listens; raise `ServiceError` where it cannot."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except (OSError, UnicodeError) as error:
        raise UsageError(f"--host {host!r} is no address of this machine: {error}") from None
    line = socket.socket(family, kind, protocol)
    try:
        line.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        line.bind(address)
        line.listen(BACKLOG)
    except OSError as error:
        line.close()
        raise ServiceError(f"cannot listen on {host} port {port}: {error.strerror}; give another --port") from None
    return line


def connections_at_most() -> int:
    """Raise the limit of open files as far as the system lets; return how many connections that leaves."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_CONNECTIONS + OWN_FILES
    most = wanted if hard == resource.RLIM_INFINITY else min(hard, wanted)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
        soft = most
    return max(10, (most if soft == resource.RLIM_INFINITY else min(soft, wanted)) - OWN_FILES)


class Server(uvicorn.Server):
    """A server that ends in time when it is told to, whatever is under way: what is broken off leaves nothing half."""

    def __init__(self, config: uvicorn.Config, grace_seconds: float) -> None:
        """Take how long what is under way may take."""
        super().__init__(config)
        self._grace_seconds = grace_seconds
        self._last: threading.Timer | None = None

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begin to end; a second signal ends at once."""
        again = self.should_exit
        super().handle_exit(sig, frame)
        # A thread that is at work cannot be ended but with its process.
        last = threading.Timer(AT_ONCE_SECONDS if again else self._grace_seconds, _break_off, (sig,))
        last.daemon = True
        last.start()
        self._last = self._last or last

    def settle(self) -> None:
        """All that was under way is done: nothing is to be broken off, unless it was asked for."""
        if self._last is not None:
            self._last.cancel()


def _break_off(number: int) -> None:
    LOG.error("broken off", extra={"fields": {"why": "what was under way did not end in time"}})
    os._exit(128 + number)


def server_for(site: Site, place: Place, most_connections: int) -> Server:
    """Return the server of a service, not yet started."""
    config = uvicorn.Config(
        create_app(site),
        http=patient(site.limits.header_seconds, most_connections),
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=bool(place.trusted_proxies),
        forwarded_allow_ips=list(place.trusted_proxies),
        backlog=BACKLOG,
    )
    return Server(config, site.limits.grace_seconds)


def told(site: Site, place: Place, port: int) -> Sequence[str]:
    """Return what is said at the start."""
    name = socket.gethostname() if place.host in EVERY_ADDRESS else place.host
    host, reached = (f"[{one}]" if ":" in one else one for one in (place.host, name))
    if site.is_public or store.is_closed(site.engine):
        who = "tokens are needed: profsvc token list"
    else:
        who = "no token is needed, for only this machine reaches it; the first profsvc token create changes that"
    return (
        f"profsvc serves {store.address(site.engine)} at http://{host}:{port}{place.checked().root_path}/",
        who,
        f"point the command line at it with: export PROFSVC_URL=http://{reached}:{port}{place.checked().root_path}",
        f"Ctrl-C ends it when uploads under way are done, in {site.limits.grace_seconds:g} s at most; a second at once",
    )


def serve(engine: Engine, files: store.Files, place: Place, limits: Limits, say: Callable[[str], None] = print) -> None:
    """Serve until it is interrupted; uploads under way are finished first."""
    site = site_for(engine, files, place, limits)
    most_connections = connections_at_most()
    with listening(place.host, place.port) as line:
        say("\n".join(told(site, place, line.getsockname()[1])))
        to_stderr()
        server = server_for(site, place, most_connections)
        try:
            server.run(sockets=[line])
        except KeyboardInterrupt:
            say("ended")
        finally:
            server.settle()

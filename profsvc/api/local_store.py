"""A store with the methods of the client, and which of the two a program is given."""

import warnings
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, BinaryIO, Self

from profsvc import settings
from profsvc.errors import AccessError, UsageError

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from profsvc.client import Client
    from profsvc.store import BlobStore, Replica

MAX_ROWS = 10_000


class LocalStore:
    """A store with the methods of the client that programs share; the answers have the same shape."""

    def __init__(
        self,
        engine: "Engine",
        files: "BlobStore | None" = None,
        *,
        seconds: float = 10.0,
        project: str | None = None,
        replica: "Replica | None" = None,
    ) -> None:
        """Use a store that is open; ``files`` keeps the bytes of uploads, ``seconds`` limits a query.

        With a ``project`` only its runs are seen, and files are stored there alone. What only reads goes to the
        ``replica`` if that can answer.
        """
        self.engine, self.files, self.seconds, self.project = engine, files, seconds, project
        self.replica = replica

    @property
    def _reader(self) -> "Engine":
        """Where to read now."""
        if self.replica is None:
            return self.engine
        place = self.replica.place()
        if place.warning:
            warnings.warn(place.warning, stacklevel=3)
        return place.engine

    def _run_id(self, name: str | int) -> int:
        from profsvc import store

        return store.find_run(self._reader, name, self.project)

    def __enter__(self) -> Self:
        """Give the store itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close its connections."""
        self.close()

    def close(self) -> None:
        """Close its connections."""
        self.engine.dispose()

    def submit(self, source: str | Path | BinaryIO, *, file_name: str | None = None, **options: Any) -> dict[str, Any]:
        """Store a file and return the verdict on it; ``options`` are those of ``POST /v1/uploads``, such as ``run``."""
        from profsvc import pipeline, store
        from profsvc.client import protocol

        tags = dict(text.partition("=")[::2] for text in options.get("tag", ()))
        project = options.get("project", self.project or "default")
        if self.project not in (None, project):
            raise AccessError(f"your token is limited to the project {self.project!r} and cannot upload to {project!r}")
        run = store.RunInfo(
            project=project,
            name=options.get("run") or None,
            run_id=self._run_id(int(options["run_id"])) if options.get("run_id") else None,
            device=options.get("device"),
            commit_id=options.get("commit"),
            tags=tags,
            at=store.parse_measured_at(options["at"]) if options.get("at") else None,
        )
        how = pipeline.ReadOptions(options.get("format"), options.get("timezone"), options.get("clock_offset", 0.0))
        with protocol.rewindable(source) as (stream, name):
            verdict = pipeline.ingest(self.engine, stream, file_name or name, run, how, files=self.files)
        return vars(verdict) | {"characterized": sorted(verdict.characterized), "url": f"/v1/runs/{verdict.run_id}"}

    def ask(
        self, query: str, params: Mapping[str, Any] | None = None, *, limit: int = 10_000, seconds: float | None = None
    ) -> dict[str, Any]:
        """Run a query; return ``columns``, ``rows`` and whether they are ``truncated``."""
        from profsvc import store
        from profsvc.reports.rows import distinct

        allowed = min(seconds or self.seconds, self.seconds)
        found = store.query(self._reader, query, params, max_rows=limit, seconds=allowed)
        columns = distinct(found.columns)
        rows = [dict(zip(columns, row, strict=True)) for row in found.rows]
        return {"columns": columns, "rows": rows, "truncated": found.truncated}

    def rows(self, view: str, **only: Any) -> list[dict[str, Any]]:
        """Return rows of a view: ``run_id=1``, ``duration_ns__gt=1e6``, ``order="-run_id"``, ``limit=10``."""
        from profsvc import store

        name = f"v1_{view.removeprefix('v1_')}"
        limit, order = int(only.pop("limit", MAX_ROWS)), only.pop("order", "")
        conditions = [store.Condition(*key.partition("__")[::2], str(value)) for key, value in only.items()]
        page = store.list_view(
            self._reader, name, conditions, order=[order] if order else (), limit=limit, project=self.project,
            seconds=self.seconds,
        )  # fmt: skip
        return store.parse_json_columns(name, page.rows)

    def run(self, name: str | int, *, limit: int | None = None) -> dict[str, Any]:
        """Return everything about a run."""
        from profsvc import views

        return views.run(self._reader, self._run_id(name), views.LIMIT if limit is None else limit)

    def launch(self, run: str | int, kernel: str, *, limit: int | None = None) -> dict[str, Any]:
        """Open the launches of a kernel of a run."""
        from profsvc import views

        return views.launch(self._reader, self._run_id(run), kernel, views.LIMIT if limit is None else limit)

    def source(self, run: str | int, kernel: str = "", *, limit: int | None = None) -> dict[str, Any]:
        """Return the source lines of a launch with their instructions, those where most can be saved first."""
        from profsvc.views.launches import source_lines

        most = source_lines.LINES if limit is None else limit
        return source_lines.source_lines(self._reader, self._run_id(run), kernel, most)

    def compare(
        self,
        before: str | int,
        after: str | int,
        mapped: Mapping[str, str] | None = None,
        fail_on: str | Sequence[str] = (),
        *,
        record: bool = False,
    ) -> dict[str, Any]:
        """Compare two runs; ``failures`` are what goes beyond ``fail_on``. ``record`` saves predictions."""
        from profsvc.views.comparison import two_runs as compare
        from profsvc.views.models import predictions

        limits = [fail_on] if isinstance(fail_on, str) else list(fail_on)
        compare.check_limits(limits)
        view = compare.compare(self._reader, self._run_id(before), self._run_id(after), mapped)
        if record:
            view["predictions"] = predictions.record(self.engine, view)
        return view | {"failures": compare.failures(view, limits), "unjudged": compare.unjudged(view, limits)}

    def explain(self, name: str, run: str | int | None = None, kernel: str | None = None) -> dict[str, Any]:
        """Say what a number means and where it comes from."""
        from profsvc.views.explain import numbers

        return numbers.explain(self._reader, name, None if run is None else self._run_id(run), kernel)


def connect(store: str = "", url: str = "", token: str = "") -> "LocalStore | Client":
    """Return a service or a store: the given one, else the one of PROFSVC_URL, PROFSVC_TOKEN and PROFSVC_STORE."""
    if store and url:
        raise UsageError("give a store or the address of a service, not both")
    known = settings.load()
    address = url or (str(known["url"]) if not store else "")
    if address:
        from profsvc.client import Client

        return Client(address, token or str(known["token"]) or None, spool=str(known["spool"]) or None)
    from profsvc import store as stores

    engine = stores.open_store(store or str(known["store"]) or None, pooled=True)
    files = stores.blob_store_of(engine, str(known["files"]), int(known["free_bytes"]), bool(known["keep"]))
    url = "" if store else str(known["read_store"])
    replica = stores.Replica(engine, url) if url else None
    found = LocalStore(engine, files, seconds=float(known["sql_seconds"]), replica=replica)
    weakref.finalize(found, engine.dispose)  # a program that asks for a while need not close it
    return found

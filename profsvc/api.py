"""A store with the methods of `profsvc.client.Client`, for programs that work with a store or with a service.

`open` gives the same results as frames for both, as a notebook needs them::

    import profsvc
    results = profsvc.open("profsvc.sqlite")  # or "https://profsvc.lab"
    results.run("today").causes
    results.compare("monday", "tuesday").kernels

`connect` gives the methods of the client::

    from profsvc import api
    with api.connect() as target:  # as PROFSVC_URL and PROFSVC_STORE say
        target.submit("ncu_raw.csv", run="nightly")
        target.compare("monday", "tuesday", fail_on="duration=5%")
"""

import warnings
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, BinaryIO, Self

from profsvc import settings
from profsvc.errors import AccessError, UsageError

if TYPE_CHECKING:
    import pandas as pd
    from sqlalchemy import Engine

    from profsvc.client import Client
    from profsvc.store import BlobStore, Replica

MAX_ROWS = 10_000
MAX_SHOWN = 20
"""Rows of a table in a notebook."""
MAX_CAUSES = 1000
CAUSE_COLUMNS = (
    "kernel_id", "kernel", "kernel_short", "cause", "title", "first_step", "saving_ns", "launches",
)  # fmt: skip
SHOWN_OF_KERNELS = (
    "kernel_before", "kernel_after", "effect_us", "change", "outcome", "mean_before_us", "mean_after_us",
)  # fmt: skip
MAX_BASELINE_RUNS = 1000
"""Newest runs of a project that are searched for a baseline."""


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
            name=options.get("run"),
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
        """Return the source lines of a launch with their instructions, most samples first."""
        from profsvc.views import source_lines

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
        from profsvc.views import compare
        from profsvc.views.models import predictions

        limits = [fail_on] if isinstance(fail_on, str) else list(fail_on)
        compare.failures({"kernels": [], "criteria": []}, limits)  # a wrong limit is reported before any work
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

    engine = stores.open_store(store or str(known["store"]) or None)
    files = stores.blob_store_of(engine, str(known["files"]), int(known["free_bytes"]), bool(known["keep"]))
    url = "" if store else str(known["read_store"])
    replica = stores.Replica(engine, url) if url else None
    return LocalStore(engine, files, seconds=float(known["sql_seconds"]), replica=replica)


class Run:
    """A run; its tables are frames, each read when it is asked for."""

    def __init__(self, results: "Results", name: str | int) -> None:
        """Find the run by number, name or project/name."""
        self._results = results
        self.info: dict[str, Any] = results.target.run(name, limit=1)["run"]
        """Its row of ``v1_runs``."""

    def table(self, view: str, **only: Any) -> "pd.DataFrame":
        """Return the rows of a view about the run, such as ``counters``; filters as in ``Client.rows``."""
        return self._results.table(view, run_id=self.info["run_id"], **only)

    @property
    def launches(self) -> "pd.DataFrame":
        """The launches (``v1_launches``)."""
        return self.table("launches")

    @property
    def criteria(self) -> "pd.DataFrame":
        """The criteria of the launches and of the run (``v1_criteria``)."""
        return self.table("criteria")

    @property
    def potential(self) -> "pd.DataFrame":
        """The potential speedups (``v1_potential``)."""
        return self.table("potential")

    @property
    def causes(self) -> "pd.DataFrame":
        """Kernels and causes with the time that removing the cause would save [ns], largest first."""
        found = self._results.target.run(self.info["run_id"], limit=MAX_CAUSES)["causes"]
        return _frame(found, CAUSE_COLUMNS)

    @property
    def models(self) -> "pd.DataFrame":
        """The quantities of the performance models (``v1_models``)."""
        return self.table("models")

    @property
    def power(self) -> "pd.DataFrame":
        """Power and energy of the windows (``v1_power``)."""
        return self.table("power")

    def __repr__(self) -> str:
        """Return name, project and device."""
        return (
            f"<Run {self.info['name']!r} of {self.info['project']!r} on {self.info['device'] or 'an unknown device'}>"
        )

    def _repr_html_(self) -> str:
        causes = self.causes[["kernel_short", "title", "launches", "saving_ns", "first_step"]]
        return f"<h4>{escape(repr(self))}</h4>{causes.head(MAX_SHOWN).to_html(index=False)}"


class Comparison:
    """Two runs side by side, as frames."""

    def __init__(self, view: Mapping[str, Any]) -> None:
        """Take the answer of ``Client.compare``."""
        self.view = {name: value for name, value in view.items() if name != "ok"}
        self.kernels = _frame(view["kernels"])
        self.criteria = _frame(view["criteria"])
        self.only_before = _frame(view["only_before"])
        self.only_after = _frame(view["only_after"])

    def __repr__(self) -> str:
        """Return the two runs and the mean speedup."""
        mean = self.view["geometric_mean_speedup"]
        names = " and ".join(repr(self.view[when]["name"]) for when in ("before", "after"))
        return f"<Comparison of {names}: {'no common kernel' if mean is None else f'{mean:.3g}x as fast'}>"

    def _repr_html_(self) -> str:
        known = [name for name in SHOWN_OF_KERNELS if name in self.kernels]
        return f"<h4>{escape(repr(self))}</h4>{self.kernels[known].head(MAX_SHOWN).to_html(index=False)}"


class Results:
    """A store or a service, whose answers are frames."""

    def __init__(self, target: "LocalStore | Client") -> None:
        """Use the methods of the client."""
        self.target = target

    def __enter__(self) -> Self:
        """Give the object itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close its connections."""
        self.target.close()

    def runs(self, **only: Any) -> "pd.DataFrame":
        """Return the runs (``v1_runs``), newest first; filters as in ``Client.rows``, such as ``project="lab"``."""
        return self.table("runs", **{"order": "-run_id", **only})

    def run(self, name: str | int) -> Run:
        """Return a run by number, name or project/name."""
        return Run(self, name)

    def table(self, view: str, **only: Any) -> "pd.DataFrame":
        """Return the rows of a view, such as ``launches``; filters as in ``Client.rows``."""
        return _frame(self.target.rows(view, **only), _columns_of(view))

    def sql(self, query: str, params: Mapping[str, Any] | None = None) -> "pd.DataFrame":
        """Run a query and return its rows; raise `UsageError` where there are more than the limit."""
        found = self.target.ask(query, params)
        if found["truncated"]:
            raise UsageError(f"the query has more than {len(found['rows'])} rows; narrow it, or use LIMIT")
        return _frame(found["rows"], found["columns"])

    def compare(self, before: str | int, after: str | int, mapped: Mapping[str, str] | None = None) -> Comparison:
        """Compare two runs; ``mapped`` has renamed kernels (old name -> new name)."""
        return Comparison(self.target.compare(before, after, mapped))

    def explain(self, name: str, run: str | int | None = None, kernel: str | None = None) -> dict[str, Any]:
        """Say what a number means and where it comes from."""
        found = self.target.explain(name, run, kernel)
        return {key: value for key, value in found.items() if key != "ok"}

    def upload(self, source: str | Path | BinaryIO, **options: Any) -> dict[str, Any]:
        """Store a file and return the verdict on it; ``options`` are those of ``POST /v1/uploads``, such as ``run``."""
        found = self.target.submit(source, **options)
        return {key: value for key, value in found.items() if key != "ok"}

    def __repr__(self) -> str:
        """Return the address of the service or of the store."""
        if isinstance(self.target, LocalStore):
            from profsvc import store

            return f"<profsvc: {store.address(self.target.engine)}>"
        return f"<profsvc: {self.target.url}>"

    def _repr_html_(self) -> str:
        newest = self.runs(limit=MAX_SHOWN)[["run_id", "project", "name", "device", "launches", "gpu_time_ns"]]
        return f"<h4>{escape(repr(self))}</h4>{newest.to_html(index=False)}"


def open(path_or_url: str | Path = "", token: str = "") -> Results:  # noqa: A001
    """Open a store or a service: a path, a database URL, or an address that begins with http:// or https://.

    Without one, that of PROFSVC_URL or PROFSVC_STORE.
    """
    where = str(path_or_url)
    if where.startswith(("http://", "https://")):
        return Results(connect(url=where, token=token))
    if token:
        raise UsageError("a token is for a service; a store is opened with the rights of its file")
    return Results(connect(store=where))


def _columns_of(view: str) -> list[str]:
    from profsvc import store

    return list(store.column_kinds_of(f"v1_{view.removeprefix('v1_')}"))


def _frame(rows: Sequence[Mapping[str, Any]], columns: Sequence[str] | None = None) -> "pd.DataFrame":
    """Return rows as a frame, with its columns even without a row."""
    import pandas as pd

    from profsvc.reports.rows import plain

    return pd.DataFrame([plain(row) for row in rows], columns=None if columns is None else list(columns))


def matching_runs(
    target: "LocalStore | Client",
    project: str,
    tags: Mapping[str, str] | None = None,
    commits: Sequence[str] = (),
    before: int | None = None,
) -> list[dict[str, Any]]:
    """Return runs of a project that may be a baseline, best first.

    They have all the ``tags``. With ``commits`` they are of one of these, in this order; of one commit the newest is
    first. Only runs older than the run ``before`` count.
    """
    return best_matches(
        target.rows("runs", project=project, order="-run_id", limit=MAX_BASELINE_RUNS), tags, commits, before
    )


def best_matches(
    rows: Sequence[Mapping[str, Any]],
    tags: Mapping[str, str] | None = None,
    commits: Sequence[str] = (),
    before: int | None = None,
) -> list[dict[str, Any]]:
    """Return the runs among ``rows`` that `matching_runs` wants, best first.

    >>> rows = [{"run_id": n, "commit_id": commit, "tags": {"branch": "main"}} for n, commit in enumerate("abca")]
    >>> [row["run_id"] for row in best_matches(rows, {"branch": "main"}, ["b", "a"])]
    [1, 3, 0]
    """
    place = {commit: number for number, commit in reversed(list(enumerate(commits)))}
    wanted = (tags or {}).items()
    found = [
        dict(row)
        for row in rows
        if (before is None or row["run_id"] < before)
        and wanted <= (row["tags"] or {}).items()
        and (not place or row["commit_id"] in place)
    ]
    return sorted(found, key=lambda row: (place.get(row["commit_id"], 0), -row["run_id"]))

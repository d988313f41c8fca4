"""Runs and comparisons of a store or a service, as frames."""

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, BinaryIO, Self

from profsvc.api.local_store import LocalStore, connect
from profsvc.errors import UsageError

if TYPE_CHECKING:
    import pandas as pd

    from profsvc.client import Client

MAX_SHOWN = 20
"""Rows of a table in a notebook."""
MAX_CAUSES = 1000
CAUSE_COLUMNS = (
    "kernel_id", "kernel", "kernel_short", "cause", "title", "first_step", "saving_ns", "launches",
)  # fmt: skip
SHOWN_OF_KERNELS = (
    "kernel_before", "kernel_after", "effect_us", "change", "outcome", "mean_before_us", "mean_after_us",
)  # fmt: skip


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

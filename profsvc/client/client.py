"""The HTTP client: one method per question."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import httpx

from profsvc.client import protocol
from profsvc.client.administration import Administration
from profsvc.client.connection import Params
from profsvc.client.uploads import Uploads
from profsvc.errors import UsageError

if TYPE_CHECKING:
    import pandas as pd

PAGE_ROWS = 10_000


class Client(Uploads, Administration):
    """A service at an address; ``token`` authenticates, ``spool`` queues uploads while it is unreachable."""

    def sql(self, query: str, params: Params | None = None, *, limit: int | None = None) -> "pd.DataFrame":
        """Run a query and return the rows; raise `UsageError` where there are more than the limit."""
        found = self.ask(query, params, limit=limit)
        if found["truncated"]:
            raise UsageError(f"the query has more than {len(found['rows'])} rows; narrow it, or use ask() or export()")
        return protocol.to_frame(found)

    def ask(
        self, query: str, params: Params | None = None, *, limit: int | None = None, seconds: float | None = None
    ) -> dict[str, Any]:
        """Run a query; return ``columns``, ``rows`` and whether they are ``truncated``."""
        body = {"q": query, "params": dict(params or {}), "limit": limit, "seconds": seconds}
        given = {name: value for name, value in body.items() if value is not None}
        return self._request("POST", "/v1/sql", {}, lambda: {"json": given})

    @contextmanager
    def export(
        self, query: str, params: Params | None = None, *, form: str = "csv", raw: bool = False
    ) -> Iterator[Any]:
        """Give the bytes of a whole result as they come; a result that broke off raises `ServerAwayError`."""
        values = {f"p.{name}": value for name, value in (params or {}).items()}
        asked = {"q": query, "formula": "raw" if raw else "safe"} | values
        with (
            protocol.translate_network_errors(self.url),
            self._http.stream("GET", f"{self.url}/v1/sql.{form}", params=asked) as answer,
        ):
            if answer.status_code != 200:
                answer.read()
                raise protocol.error_from_response(answer, self.url)
            yield answer.iter_bytes()

    def table(self, view: str, **only: Any) -> "pd.DataFrame":
        """Return the rows of a view, such as ``launches``, as a frame; filters as in `rows`."""
        return protocol.to_frame(self._all_rows(view, only))

    def rows(self, view: str, **only: Any) -> list[dict[str, Any]]:
        """Return the rows of a view: ``run_id=1``, ``duration_ns__gt=1e6``, ``order="-run_id"``.

        All of them, unless there is a ``limit``. A value of None means that the column has none.
        """
        found: list[dict[str, Any]] = self._all_rows(view, only)["rows"]
        return found

    def _all_rows(self, view: str, only: Params) -> dict[str, Any]:
        """Return all pages of a view as one."""
        path, params = f"/v1/{view.removeprefix('v1_')}", dict[str, Any]()
        for key, value in only.items():
            params |= {f"{key}__null": "1"} if value is None else {key: value}
        most = params.get("limit")
        page = whole = self._request("GET", path, {"limit": PAGE_ROWS} | params)
        while page["next"] and most is None:
            place = httpx.URL(page["next"]).params["after"]
            page = self._request("GET", path, {"limit": PAGE_ROWS} | params | {"after": place})
            whole["rows"] += page["rows"]
        return whole

    def run(self, name: str | int, *, limit: int | None = None) -> dict[str, Any]:
        """Return everything about a run."""
        return self._request("GET", f"/v1/runs/{protocol.quote_path(name)}", {} if limit is None else {"limit": limit})

    def launch(self, run: str | int, kernel: str, *, limit: int | None = None) -> dict[str, Any]:
        """Open the launches of a kernel of a run."""
        params = {"kernel": kernel} | ({} if limit is None else {"limit": limit})
        return self._request("GET", f"/v1/runs/{protocol.quote_path(run)}", params)

    def source(self, run: str | int, kernel: str = "", *, limit: int | None = None) -> dict[str, Any]:
        """Return the source lines of a launch with their instructions, those where most can be saved first."""
        params = {"kernel": kernel} | ({} if limit is None else {"limit": limit})
        return self._request("GET", f"/v1/runs/{protocol.quote_path(run)}/source", params)

    def launch_metrics(self, run: str | int, kernel: str, **options: Any) -> dict[str, Any]:
        """Return all metrics of a launch; ``options`` are ``search``, ``baseline_run`` and ``baseline`` (a launch)."""
        params = {"kernel": kernel, **protocol.encode_request(options)}
        return self._request("GET", f"/v1/runs/{protocol.quote_path(run)}/metrics", params)

    def power(self, run: str | int, **options: Any) -> dict[str, Any]:
        """Return power and energy of a run; ``options`` are those of ``/v1/runs/{run}/power``, such as ``draw``."""
        return self._request("GET", f"/v1/runs/{protocol.quote_path(run)}/power", protocol.encode_request(options))

    def unit_powers(self, run: str | int) -> dict[str, Any]:
        """Return the power of each unit for the kernels of a run, beside their measured power."""
        return self._request("GET", f"/v1/runs/{protocol.quote_path(run)}/unit-power", {})

    def power_series(self, run: str | int, sensor: str | None = None, *, begin_s: float | None = None,
                     end_s: float | None = None) -> dict[str, Any]:  # fmt: skip
        """Return power and temperature over time as the plots draw them, over all time or the seconds of a span."""
        asked = protocol.encode_request({"sensor": sensor, "from": begin_s, "to": end_s})
        return self._request("GET", f"/v1/runs/{protocol.quote_path(run)}/power-series", asked)

    def timeline(self, run: str | int, from_ns: int | None = None, to_ns: int | None = None,
                 columns: int | None = None) -> dict[str, Any]:  # fmt: skip
        """Return the events and sensors of a run on one time axis; a span is since its first event."""
        asked = protocol.encode_request({"from": from_ns, "to": to_ns, "columns": columns})
        return self._request("GET", f"/v1/runs/{protocol.quote_path(run)}/timeline", asked)

    def find_event(self, run: str | int, text: str, match: int | None = None,
                   from_ns: int | None = None) -> dict[str, Any]:  # fmt: skip
        """Return how many events of the timeline of a run have a text in their name, and one of them."""
        asked = protocol.encode_request({"text": text, "match": match, "from": from_ns})
        return self._request("GET", f"/v1/runs/{protocol.quote_path(run)}/timeline/search", asked)

    def sm_counts(self, run: str | int, **options: Any) -> dict[str, Any]:
        """Return power and savings on several numbers of SMs; ``options`` are ``sensor`` and ``kernel``."""
        return self._request("GET", f"/v1/runs/{protocol.quote_path(run)}/sm-counts", protocol.encode_request(options))

    def heat_map(self, run: str | int, **options: Any) -> dict[str, Any]:
        """Return the map of the thermocouples on the die; ``options`` such as ``minus`` and ``draw``."""
        return self._request("GET", f"/v1/runs/{protocol.quote_path(run)}/heat-map", protocol.encode_request(options))

    def rotated(self, run: str | int, second: str | int, **options: Any) -> dict[str, Any]:
        """Say whether two runs, of the spacer as it was and turned, show the same chip."""
        return self._request(
            "GET",
            f"/v1/runs/{protocol.quote_path(run)}/rotated",
            {"second": second, **protocol.encode_request(options)},
        )

    def thermal(self, run: str | int, **options: Any) -> dict[str, Any]:
        """Return the temperature under planned loads; ``options`` are ``load``, ``duration``, ``start`` and so on."""
        return self._request("GET", f"/v1/runs/{protocol.quote_path(run)}/thermal", protocol.encode_request(options))

    def cores(self, runs: Sequence[str | int], **options: Any) -> dict[str, Any]:
        """Compare runs with known active cores; ``options`` are ``idle``, ``calibration``, ``tpcs`` and ``active``."""
        return self._request("GET", "/v1/cores", {"run": [*runs], **protocol.encode_request(options)})

    def components(self, device: str | None = None) -> dict[str, Any]:
        """Return the power consumption of each unit of a device."""
        return self._request("GET", "/v1/components", protocol.encode_request({"device": device}))

    def compare(
        self,
        before: str | int | None,
        after: str | int,
        mapped: Mapping[str, str] | None = None,
        fail_on: str | Sequence[str] = (),
        *,
        record: bool = False,
    ) -> dict[str, Any]:
        """Compare two runs; ``failures`` are what goes beyond ``fail_on``. ``record`` saves predictions.

        ``before`` None means the run before of the same project, device and branch.
        """
        pairs = [f"{old}={new}" for old, new in (mapped or {}).items()]
        limits = [fail_on] if isinstance(fail_on, str) else list(fail_on)
        params = protocol.encode_request({"before": before}) | {"after": after, "map": pairs, "fail_on": limits}
        return self._request("POST" if record else "GET", "/v1/compare", params)

    def compare_several(self, runs: Sequence[str | int], baseline: str | int | None = None) -> dict[str, Any]:
        """Return the mean time of each kernel in several runs, beside the first of them or another baseline."""
        given: dict[str, Any] = {"run": [*runs], **protocol.encode_request({"baseline": baseline})}
        return self._request("GET", "/v1/compare/runs", given)

    def accuracy(
        self,
        project: str | None = None,
        source: str | None = None,
        *,
        acted: bool = False,
        best: bool = False,
        unchanged: bool = False,
    ) -> dict[str, Any]:
        """Return how well speedups were predicted."""
        chosen = {"acted": int(acted), "best": int(best), "unchanged": int(unchanged)}
        asked = {"project": project, "source": source, **chosen}
        return self._request("GET", "/v1/accuracy", {name: value for name, value in asked.items() if value})

    def what_if(
        self,
        run: str | int,
        kernel: str | None = None,
        axes: Mapping[str, str | Sequence[str]] | None = None,
        device: str | None = None,
    ) -> dict[str, Any]:
        """Say what a launch would take otherwise; ``axes`` are values of sms, blocks, block_size, warps and so on."""
        asked = {**(axes or {}), "kernel": kernel, "device": device}
        given = {name: value for name, value in asked.items() if value}
        return self._request("GET", f"/v1/runs/{protocol.quote_path(run)}/whatif", given)

    def antipatterns(self, run: str | int, kernel: str | None = None) -> dict[str, Any]:
        """Return the anti-parallel patterns of a launch, or of a run."""
        given = {"kernel": kernel} if kernel else {}
        return self._request("GET", f"/v1/runs/{protocol.quote_path(run)}/antipatterns", given)

    def graph(self, run: str | int, show: str = "nodes", limit: int | None = None) -> dict[str, Any]:
        """Return the work-flow graph of a run: its nodes, arcs, or the average warps of its longest launches."""
        asked = protocol.encode_request({"show": show, "limit": limit})
        return self._request("GET", f"/v1/runs/{protocol.quote_path(run)}/graph", asked)

    def versions(self, runs: Sequence[str | int], kernel: str | None = None) -> dict[str, Any]:
        """Return the speedups along a series of runs, or of the launches of one."""
        given: dict[str, Any] = {"run": list(runs)} | ({"kernel": kernel} if kernel else {})
        return self._request("GET", "/v1/versions", given)

    def plot(self, run: str | int, kind: str, kernel: str | None = None, limit: int | None = None) -> dict[str, Any]:
        """Return the data of a plot of models."""
        asked = {"kernel": kernel, "limit": limit}
        given = {name: value for name, value in asked.items() if value is not None}
        return self._request("GET", f"/v1/runs/{protocol.quote_path(run)}/plots/{protocol.quote_path(kind)}", given)

    def models(self, run: str | int | None = None) -> dict[str, Any]:
        """Return every model, and with a run whether it can answer."""
        return self._request("GET", "/v1/models/list", protocol.encode_request({"run": run}))

    def model(self, name: str, values: Params) -> dict[str, Any]:
        """Return the answer of a model to inputs: `work-depth` with `work`, `depth` and so on; a table as its text."""
        return self._request(
            "POST", f"/v1/models/{protocol.quote_path(name)}", {}, lambda: {"json": {"inputs": dict(values)}}
        )

    def history(self, kernel: str, quantity: str = "duration", **more: str | int | None) -> dict[str, Any]:
        """Return a kernel over runs; ``more`` are project, device, points and before."""
        params = {"kernel": kernel, "quantity": quantity} | {key: v for key, v in more.items() if v is not None}
        return self._request("GET", "/v1/history", params)

    def explain(self, name: str, run: str | int | None = None, kernel: str | None = None) -> dict[str, Any]:
        """Say what a number means and where it comes from."""
        params = {key: value for key, value in (("run", run), ("kernel", kernel)) if value is not None}
        return self._request("GET", f"/v1/explain/{protocol.quote_path(name)}", params)

    def findings(self, **only: Any) -> dict[str, Any]:
        """Return the findings; ``only`` are project, state (several), quantity, kernel, device, worse, limit."""
        return self._request("GET", "/v1/findings/list", protocol.encode_request(only))

    def finding(self, number: int) -> dict[str, Any]:
        """Return a finding, its status history and its series."""
        return self._request("GET", f"/v1/findings/{number}", {})

    def set_finding(self, number: int, state: str, because: str) -> dict[str, Any]:
        """Set the state of a finding; return it."""
        said = {"json": {"state": state, "because": because}}
        found: dict[str, Any] = self._request("POST", f"/v1/findings/{number}", {}, lambda: said)["finding"]
        return found

    def renames(self, project: str | None = None) -> dict[str, Any]:
        """Return the renamed kernels: found by reports, linked or refused by people."""
        return self._request("GET", "/v1/renames", protocol.encode_request({"project": project}))

    def decide_rename(
        self, act: str, kernel_before: str, kernel: str, because: str, *, project: str | None = None
    ) -> dict[str, Any]:
        """Link two kernel names as one series, refuse or undo it (``act``); return the decision."""
        body = {"act": act, "kernel_before": kernel_before, "kernel": kernel, "because": because}
        body |= {} if project is None else {"project": project}
        path = "/v1/renames"
        found: dict[str, Any] = self._request("POST", path, {}, lambda: {"json": protocol.encode_request(body)},
                                              once=True)["rename"]  # fmt: skip
        return found

    def reports(self, project: str | None = None) -> dict[str, Any]:
        """Return the newest nightly reports and their deliveries."""
        return self._request("GET", "/v1/reports/list", protocol.encode_request({"project": project}))

    def nightly(self, **options: Any) -> dict[str, Any]:
        """Make the report of a night and return it; ``options`` are project, date, zone and dry_run."""
        said = {"json": protocol.encode_request(options)}
        made: dict[str, Any] = self._request("POST", "/v1/reports", {}, lambda: said)["report"]
        return made

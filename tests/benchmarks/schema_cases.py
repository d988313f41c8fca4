"""Made-up requests to a service: none is answered with a 5xx, none otherwise than its description says.

    python -m tests.benchmarks.schema_cases [CASES OF A ROUTE, default 85]

prints how many were sent, and what broke; 85 are more than 10,000 in all.
"""

import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import httpx
from hypothesis import HealthCheck, Phase, given, seed, settings

from tests.command_line import parser_of

SEED = 20261121


class Done(NamedTuple):
    """How many requests were sent, and what each breach was."""

    cases: int
    breaches: list[str]


def cases(url: str, most: int, wanted: Callable[[str], bool] = lambda path: True) -> Done:
    """Send ``most`` made-up requests to each wanted route."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import schemathesis
        from schemathesis.checks import not_a_server_error
        from schemathesis.specs.openapi import checks

    described = httpx.get(f"{url}/openapi.json", timeout=60).json()
    described["paths"] = {path: said for path, said in described["paths"].items() if wanted(path)}
    schema = schemathesis.openapi.from_dict(described)
    schema.config.update(base_url=url)
    held = [not_a_server_error, checks.status_code_conformance, checks.content_type_conformance]
    held += [checks.response_schema_conformance]
    sent, breaches = 0, []
    for one in schema.get_all_operations():
        operation = one.ok()
        quick = settings(
            max_examples=most, deadline=None, database=None, phases=[Phase.generate], derandomize=False,
            suppress_health_check=list(HealthCheck),
        )  # fmt: skip

        @seed(SEED)
        @quick
        @given(case=operation.as_strategy())
        def ask(case: schemathesis.Case) -> None:
            nonlocal sent
            sent += 1
            try:
                case.validate_response(case.call(), checks=held)
            except (Exception, BaseExceptionGroup) as breach:  # one shows up as a group of several
                breaches.append(f"{case.method} {case.formatted_path} {case.query} {case.body!r:.200}: {breach}")

        ask()
    return Done(sent, breaches)


def main() -> None:
    """Serve the demo and ask it."""
    from profsvc import pipeline, store
    from profsvc.web.http.state import AppState
    from tests.conftest import DEMO
    from tests.web.conftest import running

    parser = parser_of(__doc__)
    parser.add_argument("cases", nargs="?", type=int, default=85, help="requests of each route at most [%(default)s]")
    most = parser.parse_args().cases
    with tempfile.TemporaryDirectory() as folder:
        engine = store.open_store(str(Path(folder) / "store.sqlite"))
        with DEMO.open("rb") as stream:
            pipeline.ingest(engine, stream, DEMO.name, store.RunInfo(name="h200", project="demo"))
        with running(AppState(engine, store.blob_store_of(engine))) as service:
            began = time.monotonic()
            done = cases(service.url, most)
        engine.dispose()
    print(f"{done.cases} requests in {time.monotonic() - began:.0f} s, {len(done.breaches)} breaches")
    for breach in done.breaches[:20]:
        print("--", breach)


if __name__ == "__main__":
    main()

"""What an analysis keeps when files come to a run one by one: the stored rows are those of one analysis of all."""

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, text

from profsvc import pipeline, store
from profsvc.store.connection.transactions import reading, writing
from profsvc.store.schema.results.launch_results import RESULT_TOTALS, RESULTS
from profsvc.store.schema.tables import POWER
from tests.store.conftest import mostly_on_sqlite
from tests.store.queries.told import One, details, program, raw, trace

FIXTURES = Path(__file__).parents[3] / "fixtures"
TABLES = (*RESULTS, *RESULT_TOTALS, *POWER, "counters", "wall_time", "finished_parts", "devices")
ALL = program(12)
# Files of a CI job: a process each, with one launch of its own.
SINGLE = [raw([One(f"kernel_{n % 3}(float *)", ns=1_000 + 37 * n, process=600 + n)]) for n in range(5)]
PAGES = [details([One(f"kernel_{n % 3}(float *)", ns=1_000 + 37 * n, process=600 + n)]) for n in range(5)]
UNNAMED = raw([One("unnamed(float *)", process=900)]).replace("NVIDIA H200", "")
H200 = FIXTURES / "ncu_raw" / "h200_three_launches.csv.gz"
SOURCE = FIXTURES / "ncu_source" / "h200_lines_and_instructions.csv"
BASE = FIXTURES / "ncu_raw" / "h200_three_launches_base.csv.gz"
SESSION, METER = FIXTURES / "ncu_session" / "h200.csv", FIXTURES / "nvidia_smi" / "units.csv"
MEASURED = FIXTURES / "characterization" / "plain.csv"
MEANS, TRACES = FIXTURES / "nvprof" / "events_and_metrics.csv", FIXTURES / "nsys_stats" / "several_reports.csv"
Files = Sequence[str | Path]
COURSES: dict[str, Files] = {
    "single launches": SINGLE,
    "a second page with less in the middle": [*SINGLE[:2], PAGES[1], SINGLE[3]],
    "a second page with more in the middle": [PAGES[0], SINGLE[1], SINGLE[0], SINGLE[3]],
    "a page of a part, then all": [raw(ALL[:5]), SINGLE[0], raw(ALL), SINGLE[1], details(ALL)],
    "a trace at the end": [raw(ALL[:5]), SINGLE[0], details(ALL[:5]), trace(ALL)],
    "a trace at the beginning": [trace(ALL), raw(ALL[:5]), SINGLE[0], details(ALL[:5]), SINGLE[1]],
    "a longer trace": [raw(ALL[:5]), trace(ALL[:7]), SINGLE[0], trace(ALL), SINGLE[1]],
    "a source page in the middle": [H200, SINGLE[0], SOURCE, SINGLE[1]],
    "a source page at the beginning": [SOURCE, SINGLE[0], H200, SINGLE[1]],
    "two reports of the same launches": [BASE, SINGLE[0], H200, SINGLE[1]],
    "a source page that fits two files": [SOURCE, H200, SINGLE[0], BASE],
    "a session page in the middle": [UNNAMED, SINGLE[0], SESSION, SINGLE[1]],
    "a power log of before": [H200, SINGLE[0], METER, SINGLE[1]],
    "a characterization in the middle": [*SINGLE[:2], MEASURED, SINGLE[2]],
    "the same bytes again": [*SINGLE[:2], SINGLE[1], SINGLE[3], SINGLE[0]],
    "a device that is named later": [UNNAMED, UNNAMED.replace("900", "901"), SINGLE[0], SINGLE[1]],
    "means of kernels in the middle": [SINGLE[0], MEANS, SINGLE[1], TRACES, SINGLE[2]],
}  # fmt: skip
# What is kept is decided in Python; on Postgres are those that write and delete the most kinds of rows.
ON_BOTH = ("a page of a part, then all", "two reports of the same launches", "a characterization in the middle",
           "means of kernels in the middle")  # fmt: skip


def put(engine: Engine, file: str | Path, number: int) -> None:
    data = file.encode() if isinstance(file, str) else file.read_bytes()
    pipeline.ingest(engine, io.BytesIO(data), f"{number}.csv", store.RunInfo(name="r"))


def rows(engine: Engine) -> dict[str, list[tuple[Any, ...]]]:
    with reading(engine) as connection:
        return {
            table: sorted(map(tuple, connection.execute(text(f"SELECT * FROM {table}")).all()), key=repr)
            for table in TABLES
        }


@pytest.fixture
def computed(monkeypatch: pytest.MonkeyPatch) -> list[int | None]:
    """How many launches each analysis computed; None for all of the run."""
    counts: list[int | None] = []
    save = store.save_results

    def noted(*given: Any) -> bool:
        *_, scope = given
        counts.append(None if scope.launches is None else len(scope.launches))
        return save(*given)

    monkeypatch.setattr(store, "save_results", noted)
    return counts


@mostly_on_sqlite("course", COURSES, ON_BOTH)
def test_one_by_one_is_all_at_once(engine: Engine, computed: list[int | None], course: str) -> None:
    for number, file in enumerate(COURSES[course]):
        put(engine, file, number)
    kept, found = [one for one in computed if one is not None], rows(engine)
    pipeline.analyze(engine, 1)
    assert rows(engine) == found
    assert computed[-1] is None
    assert kept, "every upload had the whole run computed"


def test_a_further_file_has_only_what_it_tells_of_computed(engine: Engine, computed: list[int | None]) -> None:
    """Its own launches, a second page those of both pages, and a characterization the whole run."""
    files = [*SINGLE[:3], PAGES[0], PAGES[2], MEASURED, SINGLE[3]]
    for number, file in enumerate(files):
        put(engine, file, number)
    assert computed == [None, 1, 1, 2, 2, None, 1]


def test_nothing_is_kept_of_another_version(
    engine: Engine, computed: list[int | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    put(engine, SINGLE[0], 0)
    monkeypatch.setattr(pipeline.analysis.analysis, "VERSION", "another")
    put(engine, SINGLE[1], 1)
    assert computed == [None, None]


def test_nothing_is_kept_where_the_last_analysis_noted_no_basis(engine: Engine, computed: list[int | None]) -> None:
    put(engine, SINGLE[0], 0)
    with writing(engine) as connection:
        connection.execute(text("UPDATE finished_parts SET changes = 0 WHERE part = 'basis'"))
    put(engine, SINGLE[1], 1)
    assert computed == [None, None]

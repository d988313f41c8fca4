"""The whole way, upload to counters and potential, on real exports that are too large to ship."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from sqlalchemy import Engine

from profsvc import pipeline, specs, store
from profsvc.analysis.counters.from_metrics import metric_values
from profsvc.errors import InputError

SHARED = Path(__file__).parents[4] / "shared"
CAPTURES = SHARED / "captures" / "h200"
CORPUS = SHARED / "corpus"
PAGES = ("ncu_raw", "ncu_raw_base", "ncu_details", "ncu_details_min")

pytestmark = pytest.mark.skipif(not CAPTURES.is_dir(), reason=f"the captures are not at {CAPTURES}")


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    engine = store.open_store(str(tmp_path_factory.mktemp("pages") / "store.sqlite"), pooled=True)
    for page in PAGES:
        path = CAPTURES / f"{page}.csv.gz"
        with path.open("rb") as stream:
            pipeline.ingest(engine, stream, path.name, store.RunInfo(name=page))
    yield engine
    engine.dispose()


def counters(engine: Engine, page: str) -> pd.DataFrame:
    return store.counters(engine, store.find_run(engine, page)).reset_index(drop=True)


def metrics(engine: Engine, page: str) -> dict[str, NDArray[np.float64]]:
    run_id = store.find_run(engine, page)
    ids = [one["launch_id"] for one in store.select(engine, "v1_launches", run_id=run_id)]
    every = store.table(engine, "v1_metrics", run_id=run_id).dropna(subset=["launch_id"])
    return {name: own.copy() for name, own in metric_values(every, ids, "ncu", "9.0").items()}


def test_pages_of_one_report_hold_the_same_launches(pages: Engine) -> None:
    seen = [
        [
            (one["kernel"], one["grid_x"], one["block_x"], one["source_id"])
            for one in store.select(pages, "v1_launches", run_id=n)
        ]
        for n in range(1, 5)
    ]
    assert len(seen[0]) == 34
    assert all(other == seen[0] for other in seen)


def test_scaled_and_base_units_give_the_same_counters(pages: Engine) -> None:
    scaled, base = (metrics(pages, page) for page in ("ncu_raw", "ncu_raw_base"))
    assert set(scaled) == set(base)
    cells = same = 0
    for name in scaled:
        # One page or the other prints small numbers to two decimals: such a cell says too little to compare.
        # (tests/formats holds that every cell agrees within half of its last digit.)
        alike = abs(scaled[name] - base[name]) <= 1e-3 * abs(base[name])
        cells, same = cells + len(alike), same + alike.sum()
        scaled[name][~alike] = base[name][~alike] = np.nan
    assert same > 0.9 * cells
    ours, theirs = (specs.derive_counters("ncu", "9.0", values)[0] for values in (scaled, base))
    assert set(ours) == set(theirs)
    assert len(ours) > 300
    for name, values in ours.items():
        known = ~np.isnan(values)
        assert (known == ~np.isnan(theirs[name])).all(), name
        # A counter is a product of at most three metrics.
        assert (abs(values - theirs[name])[known] <= 3e-3 * abs(theirs[name])[known]).all(), name


@pytest.mark.parametrize("page", ["ncu_details", "ncu_details_min"])
def test_the_details_page_gives_the_counters_of_the_raw_page(pages: Engine, page: str) -> None:
    base, details = counters(pages, "ncu_raw_base"), counters(pages, page)
    assert len(details.columns) > 75
    for name in details:
        a, b = base[name], details[name]
        known = b.notna() & a.notna()
        assert (abs(a - b)[known] <= 6e-3 * np.maximum(abs(a), abs(b))[known]).all(), name


def test_the_details_page_with_all_metrics_gives_the_same_potential(pages: Engine) -> None:
    speedups = [
        np.array([p["speedup"] for p in store.select(pages, "v1_potential", run_id=store.find_run(pages, page))[1:]])
        for page in ("ncu_raw_base", "ncu_details")
    ]
    assert np.median(abs(np.log(speedups[0] / speedups[1]))) < 0.05


def test_a_page_that_lacks_counts_has_no_potential_and_says_what_to_collect(pages: Engine) -> None:
    full, least = (
        pd.DataFrame(store.select(pages, "v1_potential", run_id=store.find_run(pages, page))[1:])
        for page in ("ncu_raw_base", "ncu_details_min")
    )
    flags = least["flags"].fillna("").str.split().map(set)
    assert not full["flags"].any()
    assert flags.map(len).all()
    # What such a page tells of a kernel that can be 7 times as fast is that it may be 1.04 times as fast, or more.
    assert least["speedup"].isna().all()
    assert least["reason"].str.startswith("useful work of the limiting unit was not counted").all()
    assert (
        least["reason"]
        .str.endswith("; the raw page of the report may contain them: ncu -i REPORT --csv --page raw")
        .all()
    )
    assert full["reason"].isna().all()
    assert least["speedup_ceiling"].isna().all()


def test_a_live_run_holds_three_launches(engine: Engine) -> None:
    with (CAPTURES / "ncu_live_stdout.csv").open("rb") as stream:
        verdict = pipeline.ingest(engine, stream, "live.csv", store.RunInfo())
    assert verdict.launches == 3
    assert verdict.lines == len((CAPTURES / "ncu_live_stdout.csv").read_text(encoding="utf-8").splitlines())


# A list of time stamps and nothing else: there is no quantity to read.
REFUSED = {"JimZeyuYang__GPU_Power_Benchmark__5050_3090_timestamps.csv"}
EMPTY = "it contains nothing to store"


@pytest.mark.parametrize("path", sorted(CORPUS.glob("*/*")) if CORPUS.is_dir() else [], ids=lambda p: p.name[:60])
def test_every_file_found_in_public_goes_all_the_way(engine: Engine, path: Path) -> None:
    with path.open("rb") as stream:
        if path.name in REFUSED:
            with pytest.raises(InputError, match="unrecognized format"):
                pipeline.ingest(engine, stream, path.name, store.RunInfo())
            return
        try:
            verdict = pipeline.ingest(engine, stream, path.name, store.RunInfo())
        except InputError as error:
            said = str(error)
        else:
            said = ""
    if said:  # such as of a profiler that met an error
        assert EMPTY in said
        assert store.select(engine, "v1_uploads") == []
        return
    assert verdict.lines_stored + verdict.lines_skipped + verdict.lines_rejected == verdict.lines > 0
    assert verdict.lines_stored
    criteria = pd.DataFrame(store.select(engine, "v1_criteria"))
    potential = store.select(engine, "v1_potential")
    if verdict.launches:
        assert criteria["value"].dropna().between(0, 1).all()
        assert (criteria["speedup"].dropna() >= 1).all()
        assert all(p["speedup"] is None or p["speedup"] >= 1 for p in potential)
        assert all(p["speedup"] is not None or p["reason"] for p in potential)

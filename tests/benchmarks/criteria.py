"""Which criteria rise when one known problem is removed, by the definitions and by other forms of them.

Run it with ``python -m tests.benchmarks.criteria``. Of every pair of `tests.benchmarks.ledger` whose flaw one of the
criteria is about, the criteria of the version with the flaw are held against those of the version without it: whether
one of the flaw's own rises by `LEAST_RISE`, and whether none of the others rises by more than `MOST_RISE`. First
stands each form, then the definitions by set and by flaw, with the others that rise. The forms differ in one criterion
each::

    grid      throughput_occupancy with the warps that the grid gives an SM, where those are fewer
    achieved  throughput_occupancy with the achieved occupancy
    timeless  throughput_occupancy without the throughput: the occupancy alone
    ideal     L1 and L2 granularity as ideal over actual sectors of the lanes that are on
    waits     load_balance_warp without the warps that wait at a barrier

Nothing is fitted, but the forms were chosen with the first eight sets in sight.
"""

import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

from profsvc import pipeline, store
from tests.benchmarks.causes import EXCLUDED, FILES, FOLDERS, cases
from tests.benchmarks.ledger import SETS, table_of

LEAST_RISE, MOST_RISE = 1e-3, 0.1
THROUGHPUT, WARPS, SMS = "throughput_occupancy", "load_balance_warp", "load_balance_sm"
GRANULARITIES = ("l1_granularity", "l2_granularity")
LIMITS_OF_OCCUPANCY = ("registers", "shared_memory", "block_size", "barriers")
# Idle SMs of a small grid are those of the balance too: either may rise.
FLAWS = {
    ("shared_efficiency",): ("bank_conflicts",),
    ("device_sync",): ("barriers",),
    ("divergence",): ("thread_divergence", "partly_filled_warps", "predicated_off_threads"),
    (THROUGHPUT,): ("few_loads_in_flight", *(f"occupancy_{one}" for one in LIMITS_OF_OCCUPANCY)),
    (THROUGHPUT, SMS): ("grid_too_small",),
    (SMS,): ("sm_imbalance", "tail_wave"),
    (WARPS,): ("warp_imbalance",),
    GRANULARITIES: ("uncoalesced_loads", "uncoalesced_stores"),
}
OWN = {flaw: list(criteria) for criteria, flaws in FLAWS.items() for flaw in flaws}
FORMS = ((), ("grid",), ("achieved",), ("timeless",), ("ideal",), ("waits",), ("grid", "ideal"), ("achieved", "ideal"))


def stored(folder: Path) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Upload the profile to a fresh store; return its counters and its criteria by column, in launch order."""
    with tempfile.TemporaryDirectory() as place:
        engine = store.open_store(str(Path(place) / "store.sqlite"))
        for name in FILES:
            if (folder / name).exists():
                with (folder / name).open("rb") as stream:
                    run = pipeline.ingest(engine, stream, name, store.RunInfo(name="criteria")).run_id
        counters = pd.DataFrame(store.select(engine, "v1_counters", run_id=run)).set_index("launch_id").sort_index()
        found = pd.DataFrame(store.select(engine, "v1_criteria", run_id=run)).dropna(subset=["launch_id"])
        engine.dispose()
    criteria = found.pivot_table(index="launch_id", columns="criterion", values="value").reindex(counters.index)
    return counters.reset_index(drop=True), criteria.reset_index(drop=True)


def in_form(c: pd.DataFrame, criteria: pd.DataFrame, form: tuple[str, ...]) -> pd.DataFrame:
    """Return the criteria of launches, those that ``form`` names computed another way from the counters ``c``."""
    found, occupancy = criteria.copy(), c["theoretical_occupancy_fraction"]
    memory = c["dram_throughput_fraction"].clip(0, 1)
    of_grid = np.ceil(c["grid_blocks"] / c["sm_count"]) * c["warps_per_block"] / c["max_warps_per_sm"]
    for name in form:
        if name == "grid":
            found[THROUGHPUT] = 1 - (1 - np.fmin(occupancy, of_grid)) * (1 - memory)
        elif name == "achieved":
            achieved = (c["active_warps_per_sm_avg"] / c["max_warps_per_sm"]).clip(0, 1)
            found[THROUGHPUT] = 1 - (1 - achieved) * (1 - memory)
        elif name == "timeless":
            found[THROUGHPUT] = occupancy
        elif name == "ideal":
            sectors = c["global_theoretical_sectors"]
            share = (c["global_theoretical_sectors_ideal"] / sectors).where(sectors > 0, 1.0).clip(0, 1)
            found[list(GRANULARITIES)] = np.column_stack([share] * len(GRANULARITIES))
        else:
            waits = c["stall_barrier_cycles_per_issue"] / c["warp_cycles_per_issued_inst"]
            found[WARPS] = criteria[WARPS] * (1 - waits.fillna(0.0))
    return found


def rises(known: list[dict[str, str]], criteria: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each pair: how far its own criterion rises, and the other that rises most."""
    place = {(case["work"], case["variant"]): launch for launch, case in enumerate(known)}
    rows = []
    for launch, case in enumerate(known):
        if case["flaw"] in OWN and case.get("set") != EXCLUDED:
            rise = criteria.loc[place[case["work"], "b"]] - criteria.loc[launch]
            others = rise.drop(OWN[case["flaw"]], errors="ignore")
            row = {"flaw": case["flaw"], "own": rise.reindex(OWN[case["flaw"]]).max(), "other": others.max()}
            rows.append(row | {"which": others.idxmax() if others.notna().any() else None})
    table = pd.DataFrame(rows)
    alone = ~(table["other"] > MOST_RISE)
    return table.assign(rises=table["own"] > LEAST_RISE, alone=alone, both=(table["own"] > LEAST_RISE) & alone)


def main() -> pd.DataFrame:
    """Print the tables; return the pairs by the definitions."""
    of_sets = {name: (cases(FOLDERS[name]), *stored(FOLDERS[name])) for name in SETS}
    tables = {
        form: pd.concat(
            [rises(known, in_form(c, found, form)).assign(set=name) for name, (known, c, found) in of_sets.items()],
            ignore_index=True,
        )
        for form in FORMS
    }
    head = ["pairs", "its own rises", f"no other by {MOST_RISE}", "both"]
    print(table_of(["form", *head], ([" and ".join(form) or "default", *_counts(own)] for form, own in tables.items())))
    default = tables[()]
    print("\n" + table_of(["set", *head], ([name, *_counts(own)] for name, own in default.groupby("set", sort=False))))
    by_flaw = ([flaw, *_counts(own), _others(own)] for flaw, own in default.groupby("flaw"))
    print("\n" + table_of(["flaw", *head, "others that rise"], by_flaw))
    return default


def _counts(table: pd.DataFrame) -> list[int]:
    return [len(table), *(int(table[name].sum()) for name in ("rises", "alone", "both"))]


def _others(table: pd.DataFrame) -> str:
    return ", ".join(f"{name} {count}" for name, count in table.loc[~table["alone"], "which"].value_counts().items())


if __name__ == "__main__":
    main()

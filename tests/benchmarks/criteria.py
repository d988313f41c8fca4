"""Which criteria rise when one known problem is removed, by the definitions and by other forms of them.

Run it with ``python -m tests.benchmarks.criteria``. Of every pair of `tests.benchmarks.ledger` whose flaw one of the
criteria is about, the criteria of the version with the flaw are held against those of the version without it: whether
one of the flaw's own rises by `LEAST_RISE`, and whether none of the others rises by more than `MOST_RISE`. First
stand all sets in each form, then the default and the conditional form by set, and both by flaw, with the others that
rise. ``conditional`` is that of ``v1_criteria``; the other forms differ from the default in one criterion each::

    theoretical  throughput_occupancy with the occupancy that a profiler prints, which does not know the grid
    achieved     throughput_occupancy with the achieved occupancy
    timeless     throughput_occupancy without the throughput: the occupancy alone
    memory       throughput_occupancy as in the conditional form
    ideal        L1 and L2 granularity as in the conditional form
    waits        load_balance_warp without the warps that wait at a barrier

Nothing is fitted, but the forms were chosen with the first eight sets in sight, and ``memory`` with nine. The
tenth set was scored after all of them.
"""

import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

from profsvc import pipeline, store
from tests.benchmarks.causes import EXCLUDED, FOLDERS, PAGES, cases
from tests.benchmarks.ledger import SETS, table_of
from tests.command_line import parser_of

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
FORMS = ("default", "theoretical", "achieved", "timeless", "memory", "ideal", "waits", "conditional")


def stored(folder: Path) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Upload the profile to a fresh store; return counters, criteria and their conditional form, in launch order."""
    with tempfile.TemporaryDirectory() as place:
        engine = store.open_store(str(Path(place) / "store.sqlite"))
        for name in PAGES:
            if (folder / name).exists():
                with (folder / name).open("rb") as stream:
                    run = pipeline.ingest(engine, stream, name, store.RunInfo(name="criteria")).run_id
        counters = pd.DataFrame(store.select(engine, "v1_counters", run_id=run)).set_index("launch_id").sort_index()
        found = pd.DataFrame(store.select(engine, "v1_criteria", run_id=run)).dropna(subset=["launch_id"])
        engine.dispose()
    criteria, conditional = (
        found.pivot_table(index="launch_id", columns="criterion", values=one).reindex(counters.index)
        for one in ("value", "value_conditional")
    )
    return counters.reset_index(drop=True), criteria.reset_index(drop=True), conditional.reset_index(drop=True)


def in_form(c: pd.DataFrame, criteria: pd.DataFrame, conditional: pd.DataFrame, form: str) -> pd.DataFrame:
    """Return the criteria of launches in a form, from their counters ``c`` and the forms that are stored."""
    found, occupancy = criteria.copy(), c["theoretical_occupancy_fraction"]
    memory = c["dram_throughput_fraction"].clip(0, 1)
    if form == "conditional":
        found = conditional.copy()
    elif form == "theoretical":
        found[THROUGHPUT] = 1 - (1 - occupancy) * (1 - memory)
    elif form == "achieved":
        achieved = (c["active_warps_per_sm_avg"] / c["max_warps_per_sm"]).clip(0, 1)
        found[THROUGHPUT] = 1 - (1 - achieved) * (1 - memory)
    elif form == "timeless":
        of_grid = np.ceil(c["grid_blocks"] / c["sm_count"]) * c["warps_per_block"] / c["max_warps_per_sm"]
        found[THROUGHPUT] = np.fmin(occupancy, of_grid)
    elif form == "memory":
        found[THROUGHPUT] = conditional[THROUGHPUT]
    elif form == "ideal":
        found[list(GRANULARITIES)] = conditional[list(GRANULARITIES)]
    elif form == "waits":
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


def main() -> dict[str, pd.DataFrame]:
    """Print the tables; return the pairs of all sets by form."""
    of_sets = {name: (cases(FOLDERS[name]), *stored(FOLDERS[name])) for name in SETS}
    tables = {
        form: pd.concat(
            [rises(known, in_form(*found, form)).assign(set=name) for name, (known, *found) in of_sets.items()],
            ignore_index=True,
        )
        for form in FORMS
    }
    head = ["pairs", "its own rises", f"no other by {MOST_RISE}", "both"]
    print(table_of(["form", *head], ([form, *_counts(own)] for form, own in tables.items())))
    for form in ("default", "conditional"):
        of_form = tables[form]
        by_set = ([name, *_counts(own)] for name, own in of_form.groupby("set", sort=False))
        print(f"\n{form}\n\n" + table_of(["set", *head], by_set))
        by_flaw = ([flaw, *_counts(own), _others(own)] for flaw, own in of_form.groupby("flaw"))
        print("\n" + table_of(["flaw", *head, "others that rise"], by_flaw))
    return tables


def _counts(table: pd.DataFrame) -> list[int]:
    return [len(table), *(int(table[name].sum()) for name in ("rises", "alone", "both"))]


def _others(table: pd.DataFrame) -> str:
    return ", ".join(f"{name} {count}" for name, count in table.loc[~table["alone"], "which"].value_counts().items())


if __name__ == "__main__":
    parser_of(__doc__).parse_args()
    main()

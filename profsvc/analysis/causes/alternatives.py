"""What else the evidence of an answer may mean, where only the user knows the fact that decides."""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from profsvc.analysis.counters.arrays import Counts
from profsvc.analysis.potential.access_patterns import SECTOR_BYTES
from profsvc.analysis.potential.matrix_products import instructions_of_type, multiplies_single_precision
from profsvc.analysis.potential.special_functions import conversions
from profsvc.specs.advice.causes import ALTERNATIVE, alternatives, least_shares

Flags = NDArray[np.bool_]
WARP_LANES = 32
LEAST_BEFORE = 0.02
"""Share of the time from which on a cause that does not stand out comes before what lifts a limit on a condition."""


@np.errstate(all="ignore")
def _unused_of_loads(c: Counts) -> Flags:
    unused = [
        np.nan_to_num(SECTOR_BYTES * c[f"global_{way}_sectors"] - c[f"global_{way}_bytes_requested"])
        for way in ("load", "store")
    ]
    return np.asarray(unused[0] >= unused[1], dtype=np.bool_)


@np.errstate(all="ignore")
def _mostly_doubles(c: Counts) -> Flags:
    double, single = (np.nan_to_num(instructions_of_type(c, kind)) for kind in ("fp64", "fp32"))
    return np.asarray(double > single, dtype=np.bool_)


def _converts(c: Counts) -> Flags:
    return np.asarray(np.nan_to_num(conversions(c)) > 0, dtype=np.bool_)


@np.errstate(all="ignore")
def _half_of_lanes_off(c: Counts) -> Flags:
    return np.asarray(2 * c["thread_inst_executed_pred_on"] <= WARP_LANES * c["inst_executed_warp"], dtype=np.bool_)


NEEDS: Mapping[str, Callable[[Counts], Flags]] = MappingProxyType(
    {
        "unused bytes of loads": _unused_of_loads,
        "mostly doubles": _mostly_doubles,
        "products of tiles in single precision": multiplies_single_precision,
        "conversions": _converts,
        "half of the lanes off": _half_of_lanes_off,
    }
)
"""What counters can show -> which launches have it."""


def with_alternatives(rows: pd.DataFrame, counters: pd.DataFrame, units: Sequence[str | None]) -> pd.DataFrame:
    """Return causes with what else the answer of each launch may mean, as ``causes.toml`` has it.

    ``rows`` are those of `profsvc.analysis.causes.rows.launch_causes`, by launch and rank; ``units`` has for each
    launch of ``counters`` the unit that its ideal time depends on. The alternative of a flaw stands behind the causes
    that stand out, that of a limit behind the causes that cost at least `LEAST_BEFORE`. A cause that has a row gets
    another rank. One that has none gets a row of kind ``alternative``: it saves nothing beside the answer, ``high`` is
    what it saves in its place; NaN for a limit.
    """
    answers = rows.loc[rows["rank"] == 1]
    answers = answers.assign(other=_meant(answers, counters, units), of_limit=answers["kind"] == "limit")
    other, of_limit = (rows["launch_id"].map(answers.set_index("launch_id")[name]) for name in ("other", "of_limit"))
    own = (rows["cause"] == other).to_numpy()
    share, least = rows["saving_fraction"], {name: one.share for name, one in least_shares().items()}
    enough = np.where(of_limit, LEAST_BEFORE, rows["cause"].map(least))
    before = (rows["rank"] == 1) | ((rows["kind"] == "flaw") & (share >= enough))
    # The answer and what comes before its alternative, the alternative, the others.
    place = np.where(before, 0, np.where(own, 1, 2))
    added = answers.loc[answers["other"].notna() & ~answers["launch_id"].isin(rows.loc[own, "launch_id"])]
    new = {
        "launch_id": added["launch_id"], "rank": 0, "cause": added["other"], "kind": ALTERNATIVE, "saving_ns": 0.0,
        "saving_fraction": 0.0, "low": 0.0, "high": added["saving_fraction"].mask(added["of_limit"]), "place": 1,
    }  # fmt: skip
    every = pd.concat([rows.assign(place=place), pd.DataFrame(new)], ignore_index=True)
    of_launch = counters.index.get_indexer(pd.Index(every["launch_id"]))
    every = every.iloc[np.lexsort((every["rank"], every["place"], of_launch))].reset_index(drop=True)
    return every.assign(rank=every.groupby("launch_id", sort=False).cumcount() + 1)[list(rows.columns)]


def _meant(answers: pd.DataFrame, counters: pd.DataFrame, units: Sequence[str | None]) -> pd.Series:
    """Return the cause that each answer may mean as well; None without one."""
    shown = {name: dict(zip(counters.index, has(Counts(counters)), strict=True)) for name, has in NEEDS.items()}
    unit_of = dict(zip(counters.index, units, strict=True))
    return pd.Series(
        [
            next(
                (
                    one.cause
                    for one in alternatives().get(answer, ())
                    if (not one.units or unit_of[launch] in one.units) and (not one.needs or shown[one.needs][launch])
                ),
                None,
            )
            for launch, answer in zip(answers["launch_id"], answers["cause"], strict=True)
        ],
        answers.index,
        dtype=object,
    )


def condition_of(answer: str, cause: str) -> str:
    """Return the condition on which an answer means another cause.

    >>> condition_of("arithmetic_limit", "accidental_double")
    'if single precision is accurate enough'
    """
    return next(other.condition for other in alternatives()[answer] if other.cause == cause)

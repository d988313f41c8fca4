"""What an exact potential would score on the pairs, where the version without the flaw still has something to gain.

Run it with ``python -m tests.benchmarks.mended``. The potential is about all waste, a pair about one flaw, so

    ln(potential / achieved) = ln(potential of the mended version) + ln(ideal time mended / ideal time flawed)

but for the clock, which differs between the profile and the timing. The first term is right where that potential is
right, the second should be 0. Printed are, for all pairs of `tests.benchmarks.ledger`: the potential; what achieved
times the potential of the mended version would score, which is exact if that potential is; the same for pairs chosen by
either term, and for other predictions from the same results. Then steps of walks alone, whose later steps remove what
an earlier one leaves: held against their own mend and against the fastest version of the walk.
"""

import re

import numpy as np
import pandas as pd

from tests.benchmarks.causes import EXCLUDED, FOLDERS, NO_FLAW, cases, stored
from tests.benchmarks.ledger import SETS, score, table_of
from tests.command_line import parser_of

STEP = re.compile(r"(?P<walk>.+)_\d")
SAME_IDEAL, AT_LIMIT, MUCH_LEFT = 0.1, 1.1, 1.5


def pairs(name: str) -> pd.DataFrame:
    """Return a row for each pair of a set: what was achieved and could be, and what both versions are promised."""
    known, bounds = cases(FOLDERS[name]), stored(FOLDERS[name]).bounds
    us = {(case["work"], case["variant"]): float(case["median_us"]) for case in known}
    of = {(case["work"], case["variant"]): bound for case, bound in zip(known, bounds, strict=True)}
    fastest: dict[str, float] = {}
    for (work, _), time in us.items():
        fastest[_walk(work) or work] = min(fastest.get(_walk(work) or work, np.inf), time)
    rows = []
    for case in known:
        work = case["work"]
        if case["flaw"] in NO_FLAW or case.get("set") == EXCLUDED:
            continue
        flawed, mended, walk = of[work, "a"], of[work, "b"], _walk(work)
        achieved = us[work, "a"] / us[work, "b"]
        times = {
            "achieved": achieved,
            "best": us[work, "a"] / fastest[walk] if walk else achieved,
            "potential": flawed["speedup"],
            "rest": mended["speedup"],
            "ideal_ratio": mended["ideal_ns"] / flawed["ideal_ns"],
        }
        rows.append({"set": name, "work": work, "is_step": walk is not None} | times)
    return pd.DataFrame(rows)


def main() -> pd.DataFrame:
    """Print the tables; return the pairs."""
    t = pd.concat([pairs(name) for name in SETS], ignore_index=True)
    same = np.abs(np.log(t["ideal_ratio"])) < SAME_IDEAL
    everywhere = pd.Series(True, t.index)
    lines = [
        ("potential", "achieved", t["potential"], everywhere),
        ("exact, if the rest is", "achieved", t["achieved"] * t["rest"], everywhere),
        ("potential without the rest", "achieved", t["potential"] / t["rest"], everywhere),
        ("potential, ideal times within 10 %", "achieved", t["potential"], same),
        (f"potential, rest below {AT_LIMIT}", "achieved", t["potential"], t["rest"] < AT_LIMIT),
        (f"potential, rest above {MUCH_LEFT}", "achieved", t["potential"], t["rest"] > MUCH_LEFT),
        ("potential, steps of walks", "achieved", t["potential"], t["is_step"]),
        ("potential, steps of walks", "best", t["potential"], t["is_step"]),
        ("potential", "best", t["potential"], everywhere),
    ]
    cells = [
        (title, against, int(chosen.sum()), score(predicted[chosen], t.loc[chosen, against]))
        for title, against, predicted, chosen in lines
    ]
    print(table_of(["prediction", "held against", "pairs", "rank, factor (worst)"], cells))
    return t


def _walk(work: str) -> str | None:
    match = STEP.fullmatch(work)
    return match["walk"] if match else None


if __name__ == "__main__":
    parser_of(__doc__).parse_args()
    main()

"""How well the timing models predict run times, on kernels of an H200 none of whose numbers they were fitted to.

Run it with ``python -m tests.benchmarks.model_times``. Five sets: the captures of an H200, where they are at hand, the
61 kernels of ``fixtures/held_out``, the sweeps of few and many warps, blocks and threads of ``fixtures/sweep``, the
pairs of ``fixtures/mended``, and those of ``fixtures/flaws_seventh`` with what their source page counts. For each
kernel it prints the time that Nsight Compute measured and that of MWP-CWP, of the benefits and of the throughput model
over it; then, a model and set, the geometric mean of the absolute error, as the sources quote theirs (5.4 % for
micro-benchmarks, 13.3 % for the Merge suite, of MWP-CWP on devices without caches). It makes much of kernels that a
model happens to hit: so the typical factor, exp(mean |ln(predicted / measured)|), and the share of kernels within 25 %
stand beside it. The inputs are what `profsvc.specs.model_inputs` says: counters, the device table, and what is assumed,
which is printed. Beside it stand a
constant guess, the median time, and the models with the latencies of the sources' devices.
"""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from profsvc import specs
from profsvc.analysis.models import evaluation as models
from profsvc.analysis.models.agreement import value_of
from profsvc.analysis.models.answer import TIME_MODELS
from profsvc.analysis.models.inputs import Inputs, model_inputs
from tests.benchmarks.models import counters_of
from tests.benchmarks.potential import CAPTURE, HELD_OUT, SHARED

PUBLISHED = {"mwp_cwp": "5.4 % on micro-benchmarks, 13.3 % on Merge, printed by the source for four devices of 2008"}
LATENCIES = ("arithmetic_latency_cycles", "l1_latency_cycles", "l2_latency_cycles")
CLOSE = 1.25
# Class of kernels by the beginning of their names -> why models miss it, or what they get right.
CLASSES = {
    "reduce": "streams of memory: latency, departure and bandwidth are what the models are about",
    "saxpy": "the same; no attained bandwidth is distinguished from the peak",
    "strided": "scattered requests: transactions are counted, that DRAM fetches 64 bytes at a time is not",
    "gemm": "the pipe of L1 and shared memory is the limit, and no model counts it; the naive one overlaps its hits",
    "divergent": "instructions are counted as warps issued them, so all paths are in",
    "shared": "bank conflicts: only the benefits count them",
    "sfu": "special functions overlap with the rest: MWP-CWP adds them up, the benefits take most for hidden",
    "fp64": "half the lanes: only MWP-CWP has a factor for them",
    "fp32": "issue bound, as the models take it",
    "int": "half of the rate for multiply-adds of integers, which no counter of this export tells apart",
    "barrier": "waiting at barriers: the export has no count of them",
}


class Scored(NamedTuple):
    """Predictions over measured times, a column a model, and the inputs behind them."""

    ratios: pd.DataFrame
    measured_us: NDArray[np.float64]
    inputs: Inputs


def predicted(counters: pd.DataFrame, figures: Mapping[str, object], memory: Mapping[str, float]) -> Scored:
    """Return what the timing models say over what was measured, in both forms of each."""
    inputs = model_inputs(counters, figures, memory)
    found = models.model_answers(inputs.values, figures)
    measured = counters["duration_ns"].to_numpy(dtype="float64")
    columns = {name: value_of(found, name, "time_ns") / measured for name in TIME_MODELS}
    for name in TIME_MODELS:
        printed = next(one.value for one in found[name] if one.quantity == "time_ns" and one.form == "as_published")
        columns[f"{name}_as_published"] = np.asarray(printed) / measured
    return Scored(pd.DataFrame(columns), measured / 1e3, inputs)


def score(ratios: NDArray[np.float64]) -> tuple[float, float, float]:
    """Geometric mean of the absolute error, the typical factor, and the share within `CLOSE`.

    >>> [round(x, 3) for x in score(np.array([1.1, 0.8]))]
    [0.141, 1.173, 1.0]
    """
    known = ratios[np.isfinite(ratios) & (ratios > 0)]
    error = np.maximum(np.abs(known - 1), 1e-4)
    off = np.abs(np.log(known))
    return (
        float(np.exp(np.log(error).mean())),
        float(np.exp(off.mean())),
        float((off <= np.log(CLOSE) + 1e-12).mean()),
    )


def report(title: str, exports: Sequence[Path], names: Sequence[str] | None) -> None:
    """Print the predictions for one set of kernels, and how good they are."""
    counters, kernels = counters_of(*exports)
    ours, old = both(counters)
    labels = list(names or kernels)
    print(f"\n{title}: {len(labels)} kernels; predicted over measured time")
    print(f"{'kernel':34}{'us':>9}" + "".join(f"{name:>12}" for name in TIME_MODELS))
    for label, us, row in zip(labels, ours.measured_us, ours.ratios[list(TIME_MODELS)].to_numpy(), strict=True):
        print(f"{label:34}{us:9.1f}" + "".join(f"{ratio:12.2f}" for ratio in row))
    print(f"\n{'':44}{'geometric mean error':>22}{'typical factor':>16}{'within 25 %':>13}")
    for name, (error, factor, close) in scores(ours, old).items():
        print(f"{name:44}{100 * error:20.1f} %{factor:15.2f}x{100 * close:11.0f} %")
    for name, said in PUBLISHED.items():
        print(f"{name} in print: {said}")
    if names:
        _classes(labels, ours.ratios)
    _origins(ours.inputs)


def scores(ours: Scored, old: Scored) -> dict[str, tuple[float, float, float]]:
    """Return the score of each model in both forms, of the models with other latencies, and of simple guesses."""
    table = {
        **{name: ours.ratios[name] for name in ours.ratios},
        **{f"{name}, latencies of the sources": old.ratios[name] for name in TIME_MODELS},
        "all three, their geometric mean": np.exp(np.log(ours.ratios[list(TIME_MODELS)]).mean(axis=1)),
        "constant guess": pd.Series(np.median(ours.measured_us) / ours.measured_us),
    }
    return {name: score(np.asarray(ratios, dtype="float64")) for name, ratios in table.items()}


def both(counters: pd.DataFrame) -> tuple[Scored, Scored]:
    """Return the predictions with what is known of the device, and with the latencies of the sources' devices."""
    figures = specs.figures("NVIDIA H200", "9.0")
    bare = {name: value for name, value in figures.items() if name not in LATENCIES}
    return predicted(counters, figures, specs.memory_table("H200")), predicted(counters, bare, {})


def _classes(labels: Sequence[str], ratios: pd.DataFrame) -> None:
    print("\nby class of kernel, geometric mean of predicted over measured")
    for name, why in CLASSES.items():
        mine = [label.startswith(name) for label in labels]
        means = np.exp(np.log(ratios.loc[mine, list(TIME_MODELS)]).mean())
        print(f"{name:10}" + "".join(f"{one:8.2f}" for one in means) + f"  {why}")


def _origins(inputs: Inputs) -> None:
    """Print where the inputs of the timing models came from, for the first kernel."""
    groups: dict[str, list[str]] = {}
    for name, one in specs.model_inputs().items():
        if {"mwp_cwp", "benefit", "machine", "throughput"} & set(one.models):
            groups.setdefault(str(inputs.origin(name)[0]), []).append(name)
    print()
    for origin, names in groups.items():
        print(f"{origin}: {', '.join(names)}")


def main() -> None:
    """Print every set that is at hand."""
    export = SHARED / "ncu_raw_base.csv.gz"
    if export.exists():
        report("captures", [export], CAPTURE)
    else:
        print(f"{SHARED} is absent: the 34 kernels of the capture are left out", file=sys.stderr)
    report("held out", [HELD_OUT / "ncu_raw_base.csv.gz"], None)
    report("sweep", [HELD_OUT.parent / "sweep" / "ncu_raw_base.csv.gz"], None)
    report("mended", [HELD_OUT.parent / "mended" / "ncu_raw_base.csv.gz"], None)
    seventh = HELD_OUT.parent / "flaws_seventh"
    report("seventh set", [seventh / name for name in ("ncu_raw_base.csv.gz", "ncu_source.csv.gz")], None)


if __name__ == "__main__":
    main()

"""How well the timing models predict run times of kernels of an H200.

Run it with ``python -m tests.benchmarks.model_times [SET...]``. SET is ``captures``, ``held_out``, ``sweep``,
``mended`` or a folder of fixtures with a profile and its source page, such as ``flaws_seventh``; default: all of these
and the sets of kernels with one known flaw. For each kernel it prints the time that Nsight Compute measured,
and that of MWP-CWP, of the benefits and of the throughput model over it; then, a model and set, the geometric mean
of the absolute error, as the sources quote theirs (5.4 % for micro-benchmarks, 13.3 % for the Merge suite, of MWP-CWP
on devices without caches). It makes much of kernels that a model happens to hit: so the typical factor, exp(mean
|ln(predicted / measured)|), and the share of kernels within 25 % stand beside it. The inputs are what
`profsvc.specs.models.inputs` says: counters, the device table, and what is assumed, which is printed. Beside it stand a
constant guess, the median time, and the models with the latencies of the sources' devices. The last tables say what
each set would have without one measured unit or one input.
"""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from profsvc import specs
from profsvc.analysis.models import evaluation as models
from profsvc.analysis.models.agreement import value_of
from profsvc.analysis.models.answer import TIME_MODELS
from profsvc.analysis.models.inputs import Inputs, input_names, model_inputs
from tests.benchmarks.causes import LATER, PAGES
from tests.benchmarks.models import counters_of
from tests.benchmarks.potential import CAPTURE, HELD_OUT, SHARED
from tests.command_line import parser_of

PUBLISHED = {"mwp_cwp": "5.4 % on micro-benchmarks, 13.3 % on Merge, printed by the source for four devices of 2008"}
LATENCIES = ("arithmetic_latency_cycles", "l1_latency_cycles", "l2_latency_cycles")
CLOSE = 1.25
FIXTURES = HELD_OUT.parent
FLAWS = ("flaws", "flaws_second", *(f"flaws_{name}" for name in LATER))
SETS = ("captures", "held_out", "sweep", "mended", *FLAWS)
# Class of kernels by the beginning of their names -> why models miss it, or what they get right.
CLASSES = {
    "reduce": "streams of memory: latency, departure and bandwidth are what the models are about",
    "saxpy": "the same; no attained bandwidth is distinguished from the peak",
    "strided": "scattered requests: transactions are counted, that DRAM fetches 64 bytes at a time is not",
    "gemm": "the passes through shared memory are the limit; the naive one overlaps its hits",
    "divergent": "instructions are counted as warps issued them, so all paths are in",
    "shared": "bank conflicts: the passes through shared memory",
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


def predicted(
    counters: pd.DataFrame,
    figures: Mapping[str, object],
    memory: Mapping[str, float],
    given: Mapping[str, Any] | None = None,
) -> Scored:
    """Return what the timing models say over what was measured, in both forms of each; ``given`` replaces inputs."""
    inputs = model_inputs(counters, figures, memory, None, given)
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


def report(title: str, exports: Sequence[Path], names: Sequence[str] | None) -> dict[str, tuple[float, float, float]]:
    """Print the predictions for one set of kernels, and how good they are; return the scores."""
    counters, kernels = counters_of(*exports)
    ours, old = both(counters)
    labels = list(names or kernels)
    print(f"\n{title}: {len(labels)} kernels; predicted over measured time")
    print(f"{'kernel':34}{'us':>9}" + "".join(f"{name:>12}" for name in TIME_MODELS))
    for label, us, row in zip(labels, ours.measured_us, ours.ratios[list(TIME_MODELS)].to_numpy(), strict=True):
        print(f"{label[:33]:34}{us:9.1f}" + "".join(f"{ratio:12.2f}" for ratio in row))
    print(f"\n{'':44}{'geometric mean error':>22}{'typical factor':>16}{'within 25 %':>13}")
    found = scores(ours, old)
    for name, (error, factor, close) in found.items():
        print(f"{name:44}{100 * error:20.1f} %{factor:15.2f}x{100 * close:11.0f} %")
    for name, said in PUBLISHED.items():
        print(f"{name} in print: {said}")
    if names:
        _classes(labels, ours.ratios)
    _origins(ours.inputs)
    _without(counters, ours.inputs)
    return found


def _without(counters: pd.DataFrame, inputs: Inputs) -> None:
    """Print the errors without each unit of the least time, and with the inputs that were assumed before."""
    figures, memory = specs.figures("NVIDIA H200", "9.0"), specs.memory_table("H200")
    others: dict[str, dict[str, Any]] = {f"without {name}": {name: np.nan} for name in input_names("peak_time")}
    others["without any of these"] = dict.fromkeys(input_names("peak_time"), np.nan)
    others["Gamma 64"] = {"Gamma": 64.0}
    others["one request a warp at a time"] = {"mlp": 1.0, "mstr": 1.0, "N_pw": inputs.values["N"]}
    print(f"\n{'geometric mean error':44}" + "".join(f"{name:>12}" for name in TIME_MODELS))
    for title, given in others.items():
        ratios = predicted(counters, figures, memory, given).ratios
        print(f"{title:44}" + "".join(f"{100 * score(ratios[name].to_numpy())[0]:10.1f} %" for name in TIME_MODELS))


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


def main(arguments: Sequence[str]) -> None:
    """Print the named sets, or all, and a line each at the end."""
    parser = parser_of(__doc__)
    parser.add_argument("sets", nargs="*", metavar="SET", help="sets of kernels [all]")
    found = {}
    for name in parser.parse_args(arguments).sets or SETS:
        if name == "captures" and not SHARED.exists():
            print(f"{SHARED} is absent: the 34 kernels of the capture are left out", file=sys.stderr)
            continue
        folder = SHARED if name == "captures" else FIXTURES / name
        pages = [folder / page for page in PAGES if "details" not in page]
        exports = [page for page in pages if page.exists()]
        found[name] = report(name, exports, CAPTURE if name == "captures" else None)
    print(f"\n{'geometric mean error, typical factor':44}" + "".join(f"{name:>18}" for name in TIME_MODELS))
    for name, of_set in found.items():
        cells = (f"{100 * of_set[model][0]:8.1f} % {of_set[model][1]:6.2f}x" for model in TIME_MODELS)
        print(f"{name:44}" + "".join(f"{cell:>18}" for cell in cells))


if __name__ == "__main__":
    main(sys.argv[1:])

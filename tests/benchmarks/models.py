"""How fast all models answer for very many launches.

Run it with ``python -m tests.benchmarks.models``: a million launches (``--launches`` takes another number), made from
those of the captures of an H200 (of the bundled demonstration where they are absent), again and again with every
counter changed by up to 20 %. Printed are, for inputs and answers of every model in blocks, and with the rows that the
store takes, the seconds of one process, the launches a second and the peak memory; then the same formulas over whole
columns at once, on a part of the launches (``--whole``), as a ratio.
"""

import resource
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from profsvc import specs, store
from profsvc.analysis.models import evaluation as models
from profsvc.analysis.models.agreement import agreement
from profsvc.analysis.models.inputs import model_inputs
from tests.command_line import parser_of
from tests.inputs.uploads import ingest_all

ROOT = Path(__file__).parents[2]
CAPTURE = ROOT.parent / "shared" / "captures" / "h200" / "ncu_raw_base.csv.gz"
DEMO = ROOT / "fixtures" / "demo" / "ncu_raw.csv.gz"
LAUNCHES_PER_BLOCK = 16_384  # without rows, more launches fit the caches
MADE_AT_ONCE = 8 * LAUNCHES_PER_BLOCK
JITTER = 0.2
REPEATS = 3


def counters_of(*paths: Path) -> tuple[pd.DataFrame, list[str]]:
    """Return the counters of the launches of exports of one profile, and the kernel of each."""
    with tempfile.TemporaryDirectory() as folder:
        engine = store.open_store(str(Path(folder) / "store.sqlite"))
        contents = [(path.read_bytes(), path.name) for path in paths]
        run_id = int(ingest_all(engine, contents, store.RunInfo(name="models")).run_id or 0)
        counters = store.counters(engine, run_id)
        kernels = {one["launch_id"]: str(one["kernel_short"]) for one in store.select(engine, "v1_launches")}
        engine.dispose()
    return counters.astype("float64"), [kernels[launch] for launch in counters.index]


def measured(path: Path) -> pd.DataFrame:
    """Return the counters of the launches of an export that models are computed from."""
    used = {n for one in specs.model_inputs().values() for n in one.expression.names if n.startswith("@")}
    counters = counters_of(path)[0]
    return counters[[name for name in counters if f"@{name}" in used]].reset_index(drop=True)


def tiled(real: pd.DataFrame, launches: int, seed: int = 1) -> Iterator[pd.DataFrame]:
    """Yield so many launches, a part at a time: the real ones, each counter of each changed a little."""
    rng = np.random.default_rng(seed)
    for begin in range(0, launches, MADE_AT_ONCE):
        ids = np.arange(begin, min(begin + MADE_AT_ONCE, launches))
        factor = 1 + JITTER * (rng.random((len(ids), real.shape[1])) - 0.5)
        yield pd.DataFrame(real.to_numpy()[ids % len(real)] * factor, index=ids, columns=real.columns)


def answered(counters: pd.DataFrame, machine: models.Machine, block: int) -> float:
    """Compute the inputs and the answers of all models in blocks; return a sum over all of them."""
    total = 0.0
    for begin in range(0, len(counters), block):
        part = counters.iloc[begin : begin + block]
        inputs = model_inputs(part, machine.figures, machine.memory, machine.measured)
        found = models.model_answers(inputs.values, machine.figures)
        found["agreement"] = agreement(found, inputs.values)
        total += sum(float(np.nansum(one.value)) for answers in found.values() for one in answers[:1])
    return total


def timed(parts: Iterator[pd.DataFrame], work: Callable[[pd.DataFrame], object]) -> float:
    """Seconds that ``work`` takes over all parts, without making them."""
    seconds = 0.0
    for part in parts:
        begin = time.perf_counter()
        work(part)
        seconds += time.perf_counter() - begin
    return seconds


def main() -> None:
    """Print the table."""
    parser = parser_of(__doc__)
    parser.add_argument("--launches", type=int, default=1_000_000)
    parser.add_argument("--whole", type=int, default=500_000)
    parser.add_argument("--rows", type=int, default=100_000, help="launches whose rows are made too")
    given = parser.parse_args()
    real = measured(CAPTURE if CAPTURE.exists() else DEMO)
    figures = specs.figures("NVIDIA H200", "9.0")
    machine = models.Machine(figures, specs.memory_table("H200"), {}, "ncu", "9.0")
    report(real, machine, given.launches, given.rows, given.whole)


def report(real: pd.DataFrame, machine: models.Machine, launches: int, with_rows: int, whole: int) -> None:
    """Measure and print: all models over ``launches``, rows for some of them, and whole columns of others."""
    names = {name: len(answers) for name, answers in models.model_answers(
        model_inputs(real, machine.figures, machine.memory).values, machine.figures).items()}  # fmt: skip
    print(f"{len(real)} real launches, {real.shape[1]} counters; {len(specs.model_inputs())} inputs, "
          f"{len(names)} models with {sum(names.values())} quantities, blocks of {LAUNCHES_PER_BLOCK}")  # fmt: skip
    seconds = timed(tiled(real, launches), lambda part: answered(part, machine, LAUNCHES_PER_BLOCK))
    print(f"all models     {launches:>9} launches {seconds:8.2f} s {launches / seconds:>10.0f} launches/s {_peak()}")
    seconds = timed(tiled(real, with_rows), lambda part: _rows(part, machine))
    print(f"and their rows {with_rows:>9} launches {seconds:8.2f} s {with_rows / seconds:>10.0f} launches/s {_peak()}")
    everything = pd.concat(tiled(real, whole))
    ours, theirs = (
        min(timed(iter([everything]), partial(answered, machine=machine, block=block)) for _ in range(REPEATS))
        for block in (LAUNCHES_PER_BLOCK, whole)
    )
    print(f"whole columns  {whole:>9} launches {theirs:8.2f} s, in blocks {ours:.2f} s: "
          f"{theirs / ours:.2f} times as fast {_peak()}")  # fmt: skip


def _rows(counters: pd.DataFrame, machine: models.Machine) -> int:
    bounds = pd.DataFrame({"speedup": 1.5, "bound": "dram"}, index=counters.index)
    return sum(len(rows) for rows in models.model_rows(counters, machine, bounds))


def _peak() -> str:
    return f"(peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10:.0f} MiB)"


if __name__ == "__main__":
    main()

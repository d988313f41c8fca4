"""Events that nights of other people hold, through the command line: what each of them is in the reports.

Run it with ``python -m tests.benchmarks.night_events [EVENT ...]``; ``--seed`` gives other noise, ``--nights`` prints
what every night says. A suite of 14 kernels runs for 26 nights, with five launches of each kernel a night and 0.5 % of
noise between nights; every night its trace is uploaded and reported. `EVENTS` says what happens.
"""

import json
import tempfile
from collections.abc import Callable, Mapping
from datetime import date, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from click.testing import CliRunner

from profsvc.cli.application import app
from tests.benchmarks.night_record import TRACE
from tests.command_line import parser_of

SEED = 20261209
FIRST = date(2026, 3, 2)
NIGHTS, WATCHED = 26, 9  # the first night with a report
KERNELS = 14
LAUNCHES, NOISE, WITHIN = 5, 0.005, 0.003
Factors = dict[str, float]


class Night(NamedTuple):
    """What a night runs: the time of each kernel in units of its usual one, launches of each, and tags."""

    factors: Factors
    launches: Mapping[str, int]
    tags: Mapping[str, str]


Event = Callable[[int, Night, np.random.Generator], Night | None]


def kernel(number: int) -> str:
    """Return the name of a kernel."""
    return f"step_{'abcdefghijklmnopqrstuvwxyz'[number]}"


def slower(night: Night, number: int, by: float) -> Night:
    """Return the night with a kernel that takes longer by a share."""
    name = kernel(number)
    return night._replace(factors=night.factors | {name: night.factors[name] * (1.0 + by)})


def driver(at: int, night: Night, rng: np.random.Generator) -> Night:
    """A new driver makes all kernels 1 % slower from night 16 on."""
    if at < 16:
        return night._replace(tags={"driver": "575"})
    return night._replace(factors=dict.fromkeys(night.factors, 1.01), tags={"driver": "580"})


def first_night(at: int, night: Night, rng: np.random.Generator) -> Night:
    """The first night has a kernel that is 8 % slower."""
    return slower(night, 3, 0.08) if at == 0 else night


def last_night(at: int, night: Night, rng: np.random.Generator) -> Night:
    """The last night has a kernel that is 8 % slower."""
    return slower(night, 3, 0.08) if at == NIGHTS - 1 else night


def over_gap(at: int, night: Night, rng: np.random.Generator) -> Night | None:
    """A kernel is 8 % slower from night 14 on; nights 17 to 20 are missing, and since 21 it is as before."""
    if 17 <= at <= 20:
        return None
    return slower(night, 3, 0.08) if 14 <= at < 17 else night


def in_gap(at: int, night: Night, rng: np.random.Generator) -> Night | None:
    """Nights 14 to 17 are missing; a kernel is 8 % slower in 18 to 20, and since 21 as before."""
    if 14 <= at <= 17:
        return None
    return slower(night, 3, 0.08) if 18 <= at < 21 else night


def twice(at: int, night: Night, rng: np.random.Generator) -> Night:
    """A kernel is 8 % slower from night 14 on, and another 6 % from 17 on."""
    night = slower(night, 3, 0.08) if at >= 14 else night
    return slower(night, 3, 0.06) if at >= 17 else night


def up_and_half_down(at: int, night: Night, rng: np.random.Generator) -> Night:
    """A kernel is 8 % slower from night 14 on, and half of it is taken back in 17."""
    night = slower(night, 3, 0.08) if at >= 14 else night
    return slower(night, 3, -0.037) if at >= 17 else night


def renamed(at: int, night: Night, rng: np.random.Generator) -> Night:
    """A kernel has another name from night 15 on, and is 5 % slower from 20 on."""
    if at < 15:
        return night
    night = slower(night, 3, 0.05) if at >= 20 else night
    return night._replace(factors={name.replace("step_d", "step_d_v2"): one for name, one in night.factors.items()})


def new_kernel(at: int, night: Night, rng: np.random.Generator) -> Night:
    """A kernel is new in night 12, and 8 % slower from 20 on."""
    if at < 12:
        return night
    return night._replace(factors=night.factors | {"fused_z": 1.08 if at >= 20 else 1.0})


def vanished(at: int, night: Night, rng: np.random.Generator) -> Night:
    """A kernel is gone from night 16 on, and back in 22."""
    return night._replace(factors={name: one for name, one in night.factors.items()
                                   if name != kernel(3) or not 16 <= at < 22})  # fmt: skip


def launches(at: int, night: Night, rng: np.random.Generator) -> Night:
    """Each kernel is launched 1 to 12 times, another number each night."""
    return night._replace(launches={name: int(rng.integers(1, 13)) for name in night.factors})


def more_launches(at: int, night: Night, rng: np.random.Generator) -> Night:
    """A kernel is launched three times as often from night 16 on."""
    return night._replace(launches=dict.fromkeys([kernel(3)], 15 if at >= 16 else LAUNCHES))


def sizes(at: int, night: Night, rng: np.random.Generator) -> Night:
    """A kernel has launches of two sizes, of which each night has other shares."""
    return night._replace(launches={f"{kernel(3)} small": int(rng.integers(1, 9)), kernel(3): int(rng.integers(1, 9))})


def another_board(at: int, night: Night, rng: np.random.Generator) -> Night:
    """Nights 5, 6, 12, 13, 17 and 18 run on another board of the model, on which each kernel takes 0 to 4 % longer."""
    if at not in (5, 6, 12, 13, 17, 18):
        return night
    return night._replace(factors=_of_board(night))


def board_replaced(at: int, night: Night, rng: np.random.Generator) -> Night:
    """From night 16 on all runs are on another board of the model, on which each kernel takes 0 to 4 % longer."""
    return night._replace(factors=_of_board(night)) if at >= 16 else night


def _of_board(night: Night) -> Factors:
    return {name: one * (1.0 + 0.04 * (7 * number % 13) / 13)
            for number, (name, one) in enumerate(night.factors.items())}  # fmt: skip


EVENTS: dict[str, Event] = {
    function.__name__: function
    for function in (
        driver, first_night, last_night, over_gap, in_gap, twice, up_and_half_down, renamed, new_kernel, vanished,
        launches, more_launches, sizes, another_board, board_replaced,
    )
}  # fmt: skip


def trace(night: Night, levels_ns: Mapping[str, float], rng: np.random.Generator) -> str:
    """Return the launches of a night as a trace of Nsight Systems."""
    rows, start = [], 0
    for name, factor in night.factors.items():
        mean = levels_ns.get(name.removesuffix("_v2"), 4e5) * factor * (1.0 + NOISE * rng.standard_normal())
        small = night.launches.get(f"{name} small", 0)
        for number in range(night.launches.get(name, LAUNCHES) + small):
            share = 0.25 if number < small else 1.0
            time = round(mean * share * (1.0 + WITHIN * rng.standard_normal()))
            grid = 64 if number < small else 256
            rows.append(f"{start},{time},{len(rows) + 1},{grid},1,1,256,1,1,32,0,0,,,,,NVIDIA H200 (0),1,7,{name}")
            start += time + 2000
    return "\n".join([TRACE, *rows, ""])


def reports(event: Event, seed: int, folder: Path) -> dict[int, dict[str, Any]]:
    """Return the reports of an event by night."""
    rng, out = np.random.default_rng([seed, len(event.__name__)]), dict[int, dict[str, Any]]()
    levels = {kernel(number): float(one) for number, one in enumerate(rng.uniform(1e5, 2e6, KERNELS))}
    store = ["--store", str(folder / "store.sqlite")]
    for at in range(NIGHTS):
        made = event(at, Night(dict.fromkeys(levels, 1.0), {}, {}), rng)
        if made is None:
            continue
        file, day = folder / f"{at}.csv", FIRST + timedelta(days=at)
        file.write_text(trace(made, levels, rng))
        tags = [part for name, value in made.tags.items() for part in ("--tag", f"{name}={value}")]
        into = ["--run", f"night {at}", "--project", "suite", "--at", f"{day}T02:00:00Z", *tags]
        _call(*store, "upload", str(file), *into)
        if at >= WATCHED:
            out[at] = json.loads(_call(*store, "report", "nightly", "--date", f"{day}", "-o", "json"))
    return out


def _call(*arguments: str) -> str:
    done = CliRunner().invoke(app, list(arguments), prog_name="profsvc")
    assert done.exit_code == 0, done.output
    return done.stdout


def said(document: Mapping[str, Any]) -> list[str]:
    """Return what a report says beside its open findings."""
    out = [f"found {row['subject']} {row['quantity']} {row['change']:+.1%} since {row['changed_at'][:10]}"
           for row in document["findings"]]  # fmt: skip
    out += [event["text"] for event in document["events"]]
    out += [f"{row['subject']} {row['quantity']} is {row['state']}" for row in document["moved"]]
    out += [row["text"] for row in document["kernels"]]
    out += [f"re-run of {row['subject']} {row['quantity']}" for row in document["reruns"]]
    out += [f"{row['subject']} {row['quantity']} told as {row['shape']}" for row in document["told"]]
    return out


def main() -> None:
    """Print what the reports say of each event."""
    parser = parser_of(__doc__)
    parser.add_argument("events", nargs="*", default=list(EVENTS))
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--nights", action="store_true")
    asked = parser.parse_args()
    for name in asked.events:
        print(f"{name}: {EVENTS[name].__doc__}")
        with tempfile.TemporaryDirectory() as folder:
            for at, document in reports(EVENTS[name], asked.seed, Path(folder)).items():
                print(f"  {at:3} {document['one_line']}") if asked.nights else None
                for line in said(document):
                    print(f"  {at:3} {line}", flush=True)


if __name__ == "__main__":
    main()

"""``speedup-chain``, ``amdahl-parts`` and ``application-speedup``: what versions, parts and kernels gain together."""

from typing import Any

from profsvc.errors import UsageError
from profsvc.views.calculators.declaration import Answer, Calculator, Example, Input, Values

CHAIN = ("version", "time_ms", "step", "total", "bandwidth_gb_per_s", "attained", "left")
PARTS = ("part", "share", "speedup", "alone", "at_most", "up_to_here")
APPLICATIONS = ("application", "kernel_speedup", "share_before", "share_after", "application_speedup", "by_amdahl",
                "at_most")  # fmt: skip
GIGA = 1e9


def speedup_chain(values: Values) -> Answer:
    """Return each version's speedup over the one before and the first, and what is left."""
    import numpy as np

    from profsvc.formulas.performance import roofline, speedup

    if (values["table"] is None) == (values["times"] is None):
        raise UsageError("give the times, or a table of versions with their times")
    rows = values["table"] or [{"version": f"{n}", "time": t} for n, t in enumerate(values["times"], 1)]
    times = np.array([row["time"] for row in rows])
    chain = roofline.speedup_chain(times / 1e3)
    bandwidth = attained = left = np.full(times.shape, np.nan)
    notes = ["step: over the version before; total: over the first"]
    if values["bytes"] is not None:
        bandwidth = roofline.effective_bandwidth(values["bytes"], times / 1e3).value
        if values["bandwidth"] is not None:
            attained = speedup.attained_ratio(bandwidth, values["bandwidth"], values["sustained"]).value
            left = 1 / attained
            notes.append("attained: share of the sustained bandwidth; left: the speedup to there")
    if values["potential"] is not None:
        left = speedup.remaining_potential(values["potential"], chain.total)
        notes.append(f"left: what remains of the potential of {values['potential']:g} that the first version had")
        if (left < 1).any():
            notes.append("left below 1: more was reached than the potential")
    names = [str(row["version"]) for row in rows]
    cells: tuple[Any, ...] = (names, times, chain.step, chain.total, bandwidth / GIGA, attained, left)
    found = [dict(zip(CHAIN, row, strict=True)) for row in zip(*cells, strict=True)]
    columns = [name for name in CHAIN if any(not isinstance(row[name], float) or row[name] == row[name]
                                             for row in found)]  # fmt: skip
    figure = {
        "title": "Speedup along the versions", "x": "version", "y": "speedup over the first", "log": "y",
        "series": [{"name": "reached", "x": np.arange(1, len(times) + 1), "y": chain.total}],
    }  # fmt: skip
    return Answer(found, columns, notes, figure)


def amdahl(values: Values) -> Answer:
    """Return the speedup of each part alone, and of all together."""
    import numpy as np

    from profsvc.formulas.performance.speedup import amdahl as alone
    from profsvc.formulas.performance.speedup import disjoint_amdahl

    p, s = np.array(values["shares"]), np.array(values["speedups"])
    if len(p) != len(s):
        raise UsageError(f"there are {len(p)} shares and {len(s)} speedups; give one speedup per share")
    if p.sum() > 1 + 1e-9:
        raise UsageError(f"the shares add up to {p.sum():g}; parts that share no time have at most 1 together")
    single, most = alone(p, 1 / s), alone(p, 0.0)
    so_far = [float(disjoint_amdahl(p[: n + 1], 1 / s[: n + 1])) for n in range(len(p))]
    names = [f"{n}" for n in range(1, len(p) + 1)]
    rows = [dict(zip(PARTS, row, strict=True)) for row in zip(names, p, s, single, most, so_far, strict=True)]
    notes = [
        f"all parts together: {so_far[-1]:.4g}; if they took no time at all: {float(disjoint_amdahl(p, 0 * p)):.4g}",
        "alone: only this part is faster; up_to_here: it and those above",
    ]
    return Answer(rows, PARTS, notes)


def application_speedup(values: Values) -> Answer:
    """Return the speedup of each application by the share of its kernels before and after."""
    import numpy as np

    from profsvc.formulas.performance.peak_estimates import gpu_share_speedup
    from profsvc.formulas.performance.speedup import amdahl as of_law

    table = values["table"]
    p, g, s = (np.array([row[name] for row in table]) / scale
               for name, scale in (("share_before", 100), ("share_after", 100), ("kernel_speedup", 1)))  # fmt: skip
    found = gpu_share_speedup(g, s, p).value
    cells = ([row["application"] for row in table], s, p, g, found, of_law(p, 1 / s), of_law(p, 0.0))
    rows = [dict(zip(APPLICATIONS, row, strict=True)) for row in zip(*cells, strict=True)]
    notes = ["application_speedup: share after x kernel speedup / share before, so with transfers and all else",
             "by_amdahl: by the share before alone"]  # fmt: skip
    return Answer(rows, APPLICATIONS, notes)


REDUCTION = """version,time
"interleaved addressing, divergent branch",8.054
"interleaved addressing, bank conflicts",3.456
sequential addressing,1.722
first add during the global load,0.965
last warp unrolled,0.536
completely unrolled,0.381
several elements per thread,0.268
"""
RYOO = """application,share_before,share_after,kernel_speedup
H.264,35,2.6,20.2
LBM,100,98.3,12.5
RC5-72,100,64.3,17.1
FEM,99,91.4,11.0
RPES,99,37.5,210
PNS,100,98,24.0
SAXPY,100,88,19.4
TPACF,96,34.3,60.2
FDTD,16.4,1.8,10.5
MRI-FHD,100,99,316
CP,100,100,102
"""
VERSIONS = (
    Input("version", "Name of the version", "text"),
    Input("time", "Run time", unit="ms", above=0),
)
KERNELS = (
    Input("application", "Name of the application", "text"),
    Input("share_before", "Share of the old time in the code that became kernels", unit="%", above=0, maximum=100),
    Input("share_after", "Share of the new time in kernels", unit="%", minimum=0, maximum=100),
    Input("kernel_speedup", "Speedup of the kernels", above=0),
)
CALCULATORS = (
    Calculator(
        name="speedup-chain",
        title="Speedups along a series of versions",
        question="What did each version of a program gain, and how much is left?",
        source="Lemeire2017, parallel reduction",
        inputs=(
            Input("table", "Versions in order", "table", default="", columns=VERSIONS),
            Input("times", "Instead of it: the run times in order", "numbers", unit="ms", default="", above=0),
            Input("bytes", "Bytes that the problem has to move, each once", unit="B", default="", above=0),
            Input("bandwidth", "Peak bandwidth of the device", unit="B/s", default="", above=0),
            Input("sustained", "Share of it that a stream reaches", default="1", above=0, maximum=1),
            Input("potential", "Instead of them: potential speedup of the first version", default="", above=0),
        ),
        answer=speedup_chain,
        examples=(
            Example("Reduction of 4 Mi integers: 2.08 to 62.7 GB/s in seven versions.",
                    {"table": REDUCTION, "bytes": "16777216", "bandwidth": "86.4 GB/s"}),
            Example("A potential of 5.8, of which 1.48 was reached.", {"times": "148,100", "potential": "5.8"}),
        ),
        functions=(
            "performance.roofline.speedup_chain", "performance.roofline.effective_bandwidth",
            "performance.speedup.attained_ratio", "performance.speedup.remaining_potential",
        ),
        accuracy="ratios of the times given: no prediction to be wrong",
        has_figure=True,
    ),
    Calculator(
        name="amdahl-parts",
        title="Amdahl's law with several parts",
        question="What does a program gain from parts that become faster, each alone and all together?",
        source="Amdahl1967, the law; Ryoo2008, section 5",
        inputs=(
            Input("shares", "Shares of the time, of parts that share no time", "numbers", minimum=0, maximum=1),
            Input("speedups", "Speedups of the parts, in the same order", "numbers", above=0, minimum=1),
        ),
        answer=amdahl,
        examples=(
            Example("FDTD: 16.4 % of the time can give at most 1.2.", {"shares": "0.164", "speedups": "10.5"}),
            Example("Two parts.", {"shares": "0.5,0.25", "speedups": "2,1000"}),
        ),
        functions=("performance.speedup.amdahl", "performance.speedup.disjoint_amdahl"),
        accuracy="of 5 applications of Ryoo2008, 3 within 2 %; RPES -14 % and TPACF -17 %, whose shares are rounded",
    ),
    Calculator(
        name="application-speedup",
        title="Speedup of an application from that of its kernels",
        question="How much faster is an application, by the share of its kernels in the old and in the new time?",
        source="Ryoo2008, tables 2 and 3",
        inputs=(Input("table", "Applications", "table", columns=KERNELS),),
        answer=application_speedup,
        examples=(Example("The applications of the source.", {"table": RYOO}),),
        functions=("performance.peak_estimates.gpu_share_speedup", "performance.speedup.amdahl"),
        accuracy="9 of 11 applications of Ryoo2008 within 2.1 %; SAXPY and MRI-FHD contradict the printed shares "
        "(45 and 19 %)",
    ),
)  # fmt: skip

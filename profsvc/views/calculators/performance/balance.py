"""``balance`` and ``cache-growth``: whether computation can hide the memory, and what cache a faster device needs."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from profsvc.errors import UsageError
from profsvc.views.calculators.declaration import Answer, Calculator, Example, Input, Values

MATMUL, REDUCTION, NEAR_FIELD, GIVEN = "matrix-product", "reduction", "near-field", "given"
COLUMNS = ("change", "transfers", "intensity", "machine_balance", "kung_slack", "slack", "computation_s", "memory_s",
           "bound")  # fmt: skip
GROWTH = ("device", "faster", "machine_balance", "matrix_product_kib", "near_field_points", "near_field_kib",
          "sm_kib")  # fmt: skip
CHANGES = {"fast memory": "Z", "line": "L", "bandwidth": "beta", "cores": "p", "latency": "alpha"}
FLOP, KIB = 11, 2**10
KAPPA = Input("kappa", "Operations of an interaction of two points", default=str(FLOP), above=0)
CONSTANT = Input("constant", "Factor of the transfers of a matrix product; 3.46 for three square blocks",
                 default="1", above=0)  # fmt: skip
WORD = Input("word", "Size of a word", unit="B", default="4", above=0)


class Machine(NamedTuple):
    """Cores, operations of one per s, words/s, latency in s, words of a line, words of fast memory of a core."""

    p: float
    C_0: float
    beta: float
    alpha: float
    L: float
    Z: float


def balance(values: Values) -> Answer:
    """Return both balances of the machine as it is, and with each of its figures changed."""
    from profsvc.formulas.performance import memory_balance as formulas

    machine, notes = _machine(values)
    rows = []
    changes = [("as it is", machine)]
    for name, symbol in CHANGES.items():
        figure = getattr(machine, symbol)
        changes += [(f"{name} x{x:g}", machine._replace(**{symbol: figure * x})) for x in values["factors"] if figure]
    for change, m in changes:
        work, depth, transfers = _algorithm(values, m)
        sides = formulas.balance(m.p, m.C_0, m.beta, m.alpha, m.L, work, depth, transfers)
        kung = formulas.kung_balance(m.p, m.C_0, m.beta, work, transfers, m.L)
        computation = float(formulas.comp_time(work, depth, m.p, m.C_0).value)
        memory = float(formulas.mem_time(m.alpha, depth, transfers, m.L, m.beta).value)
        cells = (change, transfers, work / (transfers * m.L), float(sides.machine), float(kung.slack),
                 float(sides.slack), computation, memory,
                 "memory" if memory > computation else "computation")  # fmt: skip
        rows.append(dict(zip(COLUMNS, cells, strict=True)))
    work, depth, transfers = _algorithm(values, machine)
    most = float(formulas.transfer_bound(transfers, machine.p, machine.Z, depth, machine.L).value)
    first = rows[0]
    notes += [
        f"slack is computation over memory time: {first['slack']:.3g}; Kung's balance, without latency and with all "
        f"work parallel: {first['kung_slack']:.3g}; 1 or more: computation can hide the memory",
        f"work {work:.4g} operations, depth {depth:.4g}, {first['transfers']:.4g} lines; with work stealing on private "
        f"caches fewer than {most:.4g} lines",
        _needed(values, machine),
    ]
    if not machine.alpha:
        notes.append("no latency was given, so the share of Little's law is left out")
    return Answer(rows, COLUMNS, notes)


def _machine(values: Values) -> tuple[Machine, list[str]]:
    """Return the machine: the figures of a device of the catalogue, and those given in their place."""
    word, notes = values["word"], []
    known: dict[str, float] = {}
    if values["device"]:
        from profsvc import specs

        device = specs.device(values["device"])
        flops = device.fp64_peak_flop_per_s if word >= 8 else device.fp32_peak_flop_per_s
        known = {"cores": device.sms, "core_rate": flops / device.sms, "bandwidth": device.dram_peak_bytes_per_s,
                 "fast_memory": _on_chip_bytes(device)}  # fmt: skip
        notes.append(f"{device.name}: SMs as cores; fast memory is the registers, L1 and shared memory of one")
    for name in ("cores", "core_rate", "bandwidth", "fast_memory"):
        if values[name] is not None:
            known[name] = values[name]
    if missing := [name for name in ("cores", "core_rate", "bandwidth", "fast_memory") if not known.get(name)]:
        raise UsageError(f"{', '.join(missing)}: missing; give each, or a device of: profsvc devices --catalogue")
    machine = Machine(known["cores"], known["core_rate"], known["bandwidth"] / word, values["latency"] or 0.0,
                      values["line"] / word, known["fast_memory"] / word)  # fmt: skip
    return machine, notes


def _on_chip_bytes(device: Any) -> float:
    """Return the bytes of registers, L1 and shared memory of an SM."""
    near = device.shared_mem_per_sm_bytes
    if device.l1_size_bytes:
        near = device.l1_size_bytes if device.l1_unified_with_shared_mem else near + device.l1_size_bytes
    return float(4 * device.registers_per_sm + near)


def _algorithm(values: Values, machine: Machine) -> tuple[float, float, float]:
    """Return work, depth and transfers of lines of the algorithm on a machine."""
    import numpy as np

    from profsvc.formulas.performance import memory_balance as formulas

    kind, n = values["algorithm"], values["n"]
    if kind == GIVEN:
        if missing := [name for name in ("work", "depth", "traffic") if values[name] is None]:
            raise UsageError(f"{', '.join(missing)}: missing; an algorithm that is given needs each")
        return values["work"], values["depth"], values["traffic"] / values["word"] / machine.L
    if n is None:
        raise UsageError(f"n is missing: the size of the {kind}")
    if kind == NEAR_FIELD:
        q = values["points"] or machine.Z / 8
        near = formulas.near_field(q, values["kappa"])
        # A chain of one interaction, and the tree that adds up 27 boxes.
        return float(27 * values["kappa"] * q * n), float(1 + np.log2(27 * q)), float(near.words * n / machine.L)
    if kind == MATMUL:
        found = formulas.matmul_transfers(n, machine.Z, machine.L, values["constant"])
    else:
        found = formulas.reduction_transfers(n, min(machine.Z, n), machine.L)
    return float(found.W), float(1 + np.log2(n)), float(found.Q)


def _needed(values: Values, machine: Machine) -> str:
    """Say how much fast memory Kung's balance asks of the machine."""
    wanted = machine.p * machine.C_0 / machine.beta
    kind, word = values["algorithm"], values["word"]
    if kind == REDUCTION:
        return f"no fast memory balances a reduction: its intensity stays below 1, the machine has {wanted:.3g}"
    if kind == MATMUL:
        needed = _product_words(wanted, values["constant"])
    elif kind == NEAR_FIELD:
        needed = 8 * _points(wanted, values["kappa"], word)
    else:
        return f"the machine makes {wanted:.3g} operations while a word is moved"
    return (
        f"fast memory of a core that Kung's balance needs: {needed * word / KIB:.4g} KiB; it has "
        f"{machine.Z * word / KIB:.4g} KiB"
    )


def _product_words(wanted: float, constant: float) -> float:
    """Return the words of fast memory with which a matrix product makes so many operations per word."""
    from profsvc.formulas.performance.memory_balance import matmul_transfers

    return float((wanted / matmul_transfers(1.0, 1.0, 1.0, constant).intensity) ** 2)


def _points(wanted_per_word: float, kappa: float, word: float) -> float:
    """Return the points of a box with which the near field makes so many operations per word."""
    from profsvc.formulas.performance.memory_balance import near_field

    return float(wanted_per_word / word / near_field(1.0, kappa, word_bytes=word).intensity)


def cache_growth(values: Values) -> Answer:
    """Return the fast memory that keeps each algorithm balanced on devices that get faster at the same bandwidth."""
    from profsvc import specs

    word, rows, series = values["word"], [], []
    for name in str(values["devices"]).split(","):
        device = specs.device(name.strip())
        flops = device.fp64_peak_flop_per_s if word >= 8 else device.fp32_peak_flop_per_s
        if not flops:
            raise UsageError(f"{device.name} has no units for words of {word:g} B; give 4")
        needed = []
        for factor in values["faster"]:
            wanted = factor * flops / (device.dram_peak_bytes_per_s / word)
            product = _product_words(wanted, values["constant"]) * word / KIB
            points = _points(wanted, values["kappa"], word)
            needed.append(product)
            cells = (device.name, factor, wanted, product, points, 8 * points * word / KIB,
                     _on_chip_bytes(device) / KIB)  # fmt: skip
            rows.append(dict(zip(GROWTH, cells, strict=True)))
        series.append({"name": device.name, "x": values["faster"], "y": needed})
    notes = [
        "sm_kib is what an SM has in registers, L1 and shared memory",
        "for each SM on its own: the memory of a matrix product grows with the square of the speedup, that of the near "
        "field with the speedup, and no memory balances a reduction",
    ]
    figure = {"title": "Fast memory that a matrix product needs", "x": "speedup at the same bandwidth",
              "y": "fast memory of an SM (KiB)", "log": "xy", "series": series}  # fmt: skip
    return Answer(rows, GROWTH, notes, figure)


MACHINE: Mapping[str, str] = {"cores": "10", "core_rate": "100e9", "bandwidth": "100 GB/s", "fast_memory": "1e6",
                              "line": "128"}  # fmt: skip
CALCULATORS = (
    Calculator(
        name="balance",
        title="Balance of machine and algorithm",
        question="Can computation hide the time of the memory, and what would more memory, bandwidth or cores change?",
        source="Kim2012, sections 2.3 and 2.4, equations 2.2 to 2.5",
        inputs=(
            Input("algorithm", "What is computed", "choice", default=MATMUL,
                  choices=(MATMUL, REDUCTION, NEAR_FIELD, GIVEN)),
            Input("n", "Rows of the matrices, values or points", default="", above=1),
            Input("work", "Of an algorithm that is given: operations", default="", above=0),
            Input("depth", "Its longest chain of operations", default="", above=0),
            Input("traffic", "Bytes that it moves between the memories", unit="B", default="", above=0),
            Input("points", "Near field: points of a box; default: as many as fit", default="", above=0),
            KAPPA,
            CONSTANT,
            Input("device", "Device of the catalogue", "text", default=""),
            Input("cores", "Cores", default="", above=0),
            Input("core_rate", "Operations of a core per second", default="", above=0),
            Input("bandwidth", "Bandwidth of the memory", unit="B/s", default="", above=0),
            Input("latency", "Latency of the memory", unit="s", default="", minimum=0),
            Input("fast_memory", "Size of the fast memory of a core", unit="B", default="", above=0),
            Input("line", "Size of a transfer", unit="B", default="128", above=0),
            WORD,
            Input("factors", "Factors by which each figure of the machine is changed", "numbers", default="2", above=0),
        ),
        answer=balance,
        examples=(
            Example("Five operations per byte on a machine of 1000 Gop/s and 100 GB/s, which needs ten: Kung's slack "
                    "is one half.",
                    {"algorithm": GIVEN, "work": "5e6", "depth": "1", "traffic": "1e6", "word": "1", "line": "100",
                     "cores": "10", "core_rate": "100e9", "bandwidth": "100 GB/s", "fast_memory": "1e6"}),
            Example("A matrix product on an H200: twice the fast memory saves a factor of 1.41 in transfers, twice the "
                    "line a factor of 2.",
                    {"algorithm": MATMUL, "n": "8192", "device": "H200", "latency": "600 ns"}),
            Example("A reduction of 1024 values through 64 words: 1008 additions.",
                    {"algorithm": REDUCTION, "n": "1024", "word": "4", **MACHINE, "fast_memory": "256", "line": "32"}),
        ),
        functions=tuple(f"performance.memory_balance.{name}" for name in (
            "balance", "kung_balance", "comp_time", "mem_time", "transfer_bound", "matmul_transfers",
            "reduction_transfers", "near_field")),
        accuracy="no error on measurements is on record; needed: counted traffic of one algorithm at several sizes, on"
        " a known fast memory",
    ),
    Calculator(
        name="cache-growth",
        title="Fast memory that a faster device needs",
        question="How much cache keeps an algorithm balanced when a device gets faster at the same bandwidth?",
        source="Kim2012, sections 2.3, 2.4 and 3.3, after Kung1986",
        inputs=(
            Input("devices", "Devices of the catalogue, separated by commas", "text", default="H200"),
            Input("faster", "Speedups of the arithmetic", "numbers", default="1,2,4,8,16", above=0),
            WORD,
            KAPPA,
            CONSTANT,
        ),
        answer=cache_growth,
        examples=(Example("Three generations.", {"devices": "V100-SXM2,A100-SXM-80GB,H200", "faster": "1,2,4"}),),
        functions=("performance.memory_balance.matmul_transfers", "performance.memory_balance.near_field"),
        accuracy="no error on measurements is on record; needed: one algorithm on two devices of equal bandwidth and "
        "unequal peak",
        has_figure=True,
    ),
)  # fmt: skip

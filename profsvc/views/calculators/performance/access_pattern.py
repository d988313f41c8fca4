"""``pattern``: what the addresses of a warp cost in shared and in global memory."""

from typing import Any

from profsvc.errors import UsageError, counted
from profsvc.views.calculators.declaration import Answer, Calculator, Example, Input, Values

BYTES = {"int8": 1, "float16": 2, "float32": 4, "float64": 8, "float32x4": 16}
SHARED, GLOBAL, BOTH = "shared", "global", "both"
OF_SHARED = ("bank_ways", "wavefronts", "least_wavefronts")
OF_GLOBAL = ("sectors", "least_sectors", "bytes_used", "partition_load")
MAX_STRIDE = 2**24
SOA, AOS = "structure of arrays", "array of structures"


def pattern(values: Values) -> Answer:
    """Return the conflicts, sectors and load of partitions of each stride."""
    memory, fields, notes = values["memory"], values["fields"], []
    strides, found = _strides(values)
    notes += found
    layouts = [(SOA, 1), (AOS, fields)] if fields > 1 else [("", 1)]
    columns = ["layout"] if fields > 1 else []
    columns += ["stride", *(OF_SHARED if memory != GLOBAL else ()), *(OF_GLOBAL if memory != SHARED else ())]
    rows = []
    for layout, factor in layouts:
        for stride in strides:
            step = int(stride) * factor * BYTES[values["type"]]
            rows.append({"layout": layout, "stride": int(stride) * factor, **_cost(values, step)})
    if memory != GLOBAL:
        worst = max(rows, key=lambda row: row["bank_ways"])
        notes.append("bank_ways: how often the busiest bank answers; 1 is free of conflicts")
        if worst["bank_ways"] > 1 and (pad := _free_pad(values, worst["stride"])):
            notes.append(f"a stride of {worst['stride'] + pad} elements is free of conflicts")
    if memory != SHARED:
        under_way = counted(values["warps"], "warp")
        notes.append(f"partition_load: busiest of {values['partitions']} partitions over their mean, of {under_way} "
                     "under way; devices that hash addresses spread them better")  # fmt: skip
    return Answer(rows, columns, notes)


def _strides(values: Values) -> tuple[list[float], list[str]]:
    """Return the strides, or that of a chain of loads, and what to say of it."""
    from profsvc.formulas.performance.memory_accesses import chain_stride

    loaded, operand = values["loaded"], values["operand"]
    if loaded is None and operand is None:
        return values["stride"], []
    if loaded is None or operand is None:
        raise UsageError("loaded and operand belong together; give both, or the stride")
    stride = float(chain_stride(loaded, operand, values["operation"]).value)
    if stride > MAX_STRIDE:
        raise UsageError(f"loaded and operand give a stride of {stride:g} elements; allowed: {MAX_STRIDE}")
    return [stride], [f"each load of the chain is {stride:g} elements behind the one before"]


def _cost(values: Values, step: int) -> dict[str, Any]:
    """Return the cost of a step of so many bytes from thread to thread."""
    import numpy as np

    from profsvc.formulas.performance.memory_accesses import partition_load, transactions

    size, lanes = BYTES[values["type"]], values["lanes"]
    first = values["offset"] * size
    address = first + step * np.arange(lanes)
    sectors = float(transactions(address, size, values["segment"], values["rule"]).value)
    # The part of the sectors that some thread asked for; threads that read the same element ask once.
    asked = len(np.unique(address)) * size
    whole = first + step * np.arange(lanes * values["warps"])
    requests = np.unique(whole // values["segment"]) * values["segment"]
    ways, wavefronts = _conflicts(values, address)
    return {
        "bank_ways": ways, "wavefronts": wavefronts,
        "least_wavefronts": -(-lanes * size // (values["banks"] * values["bank_bytes"])),
        "sectors": sectors, "least_sectors": -(-lanes * size // values["segment"]),
        "bytes_used": min(1.0, asked / (sectors * values["segment"])),
        "partition_load": float(partition_load(requests, values["partitions"], values["partition_bytes"]).load),
    }  # fmt: skip


def _conflicts(values: Values, address: Any) -> tuple[float, float]:
    """Return the ways of the worst part of a request, and the wavefronts of all its parts.

    Threads whose elements are together wider than all banks are served in parts, such as half warps of 8 bytes.
    """
    import numpy as np

    from profsvc.formulas.performance.memory_accesses import bank_degree

    size, banks, width = BYTES[values["type"]], values["banks"], values["bank_bytes"]
    lanes = max(1, min(len(address), banks * width // size))
    found = []
    for begin in range(0, len(address), lanes):
        words = address[begin : begin + lanes, np.newaxis] + np.arange(0, size, min(size, width))
        found.append(float(bank_degree(words.ravel(), banks, width).value))
    return max(found), sum(found)


def _free_pad(values: Values, stride: int) -> int | None:
    """Return the fewest elements that, added to a stride, leave no conflict."""
    import numpy as np

    size, lanes = BYTES[values["type"]], values["lanes"]
    for pad in range(1, values["banks"] + 1):
        if _conflicts(values, values["offset"] * size + (stride + pad) * size * np.arange(lanes))[0] == 1:
            return pad
    return None


CALCULATORS = (
    Calculator(
        name="pattern",
        title="Cost of an access pattern",
        question="How many bank conflicts, sectors and requests per memory partition does a stride cause?",
        source="Lemeire2017, local memory banks, memory coalescing, partition camping",
        inputs=(
            Input("stride", "Elements from thread to thread", "numbers", default="1", minimum=0, maximum=MAX_STRIDE),
            Input("loaded", "Instead of it: value of every element of a chain of loads, which gives the next index",
                  "integer", default="", minimum=0, maximum=MAX_STRIDE),
            Input("operand", "With it: what the program adds to the value, or multiplies it by", "integer", default="",
                  minimum=0, maximum=MAX_STRIDE),
            Input("operation", "How the chain uses the operand", "choice", default="add", choices=("add", "multiply")),
            Input("type", "Type of an element", "choice", default="float32", choices=tuple(BYTES)),
            Input("memory", "Memory", "choice", default=BOTH, choices=(SHARED, GLOBAL, BOTH)),
            Input("fields", "Elements of a structure, of which each thread reads one", "integer", default="1",
                  minimum=1, maximum=4096),
            Input("offset", "Element of the first thread", "integer", default="0", minimum=0, maximum=2**31),
            Input("lanes", "Threads that access together", "integer", default="32", minimum=1, maximum=64),
            Input("banks", "Banks of shared memory", "integer", default="32", minimum=1, maximum=64),
            Input("bank_bytes", "Width of a bank", "integer", unit="B", default="4", minimum=1, maximum=8),
            Input("segment", "Bytes of a sector or transaction", "integer", unit="B", default="32", minimum=16,
                  maximum=256),
            Input("rule", "Coalescing: relaxed counts the sectors touched; strict, of compute capability 1.0 and 1.1, "
                  "wants adjacent threads in order", "choice", default="relaxed", choices=("relaxed", "strict")),
            Input("partitions", "Partitions of the memory", "integer", default="8", minimum=1, maximum=256),
            Input("partition_bytes", "Consecutive bytes of a partition", "integer", unit="B", default="256",
                  minimum=32, maximum=2**20),
            Input("warps", "Warps whose requests are under way together", "integer", default="32", minimum=1,
                  maximum=1024),
        ),
        answer=pattern,
        examples=(
            Example("A column of a matrix of 32 doubles per row.", {"stride": "32", "type": "float64"}),
            Example("Half a warp on 16 banks: strides of 1, 2 and 8 words are answered 1, 2 and 8 times.",
                    {"stride": "1,2,8", "memory": "shared", "lanes": "16", "banks": "16"}),
            Example("Rows of 2048 bytes down a column meet one partition of 8; a pad of 256 bytes spreads them.",
                    {"stride": "512,576", "memory": "global", "warps": "1"}),
            Example("A benchmark of bandwidth whose data lead 16384 elements on, Hong2012, figure 117.",
                    {"loaded": "128", "operand": "128", "operation": "multiply", "memory": "global"}),
            Example("A structure of four floats, of which one is read.", {"fields": "4", "memory": "global"}),
        ),
        functions=(
            "performance.memory_accesses.bank_degree", "performance.memory_accesses.transactions",
            "performance.memory_accesses.partition_load", "performance.memory_accesses.chain_stride",
        ),
        accuracy="wavefronts of 6 kernels with 1 to 32 ways and sectors of 6 strides on an H200: worst 0.2 %",
    ),
)  # fmt: skip

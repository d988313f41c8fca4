"""Whether the compiled benchmarks hold the instructions that they are to measure."""

import re
import subprocess
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from profsvc.specs.table_files import rows_of

FILE = "machine_code.csv"
COLUMNS = ("benchmarks", "program", "kernel", "instruction", "times")
FUNCTION = re.compile(r"Function : (\S+)")
INSTRUCTION = re.compile(r"\s+/\*[0-9a-f]+\*/\s+(?:@!?U?P\w+\s+)?([A-Z][\w.]*)")


def count_instructions(lines: Iterable[str]) -> dict[str, Counter[str]]:
    """Return how often each instruction stands in each function of what cuobjdump prints.

    >>> count_instructions(["  Function : f", "   /*0010*/   @!P0 FFMA.FTZ R0, R1 ;   /* 0x1 */"])
    {'f': Counter({'FFMA.FTZ': 1})}
    """
    counts: dict[str, Counter[str]] = {}
    function = ""
    for line in lines:
        if named := FUNCTION.search(line):
            function = named[1]
            counts[function] = Counter()
        elif function and (found := INSTRUCTION.match(line)):
            counts[function][found[1]] += 1
    return counts


def unexpected_code(programs: Mapping[str, Path], cuobjdump: str) -> dict[str, str]:
    """Return the benchmarks whose kernels lack the instruction to measure, with what was seen instead."""
    counts = {name: count_instructions(_disassembled(cuobjdump, path)) for name, path in programs.items()}
    return dict(_lacking(counts))


def _lacking(counts: Mapping[str, Mapping[str, Counter[str]]]) -> Iterator[tuple[str, str]]:
    for row in rows_of(FILE, COLUMNS):
        kernels = [c for name, c in counts.get(row["program"], {}).items() if row["kernel"] in name]
        for kernel in kernels:
            times = sum(n for name, n in kernel.items() if re.match(rf"(?:{row['instruction']})", name))
            if times < row.number("times"):
                most = ", ".join(f"{n} {name}" for name, n in kernel.most_common(3))
                seen = f"{times} of {row['instruction']} instead of {row['times']}; most are {most}"
                yield from ((benchmark, seen) for benchmark in row["benchmarks"].split())


def _disassembled(cuobjdump: str, program: Path) -> Iterator[str]:
    with subprocess.Popen(
        [cuobjdump, "-sass", str(program)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        errors="replace",
    ) as process:
        assert process.stdout is not None
        yield from process.stdout

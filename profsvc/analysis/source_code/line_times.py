"""The share of the time of a launch that each source line causes.

Samples show where a warp waits: at the use of a value, or behind a barrier. The line to change is another: the load,
the barrier, the call of a subroutine or of a function of the toolkit. So waits are moved to the instruction that is
waited for, instructions to the line that called them, and the saving of each cause to the instructions that it lies on.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any

from profsvc.analysis.source_code.addresses import SOURCES_OF_ORIGINS
from profsvc.analysis.source_code.inlined import Line, Texts, calls_of_header, calls_of_short_functions, with_calls
from profsvc.analysis.source_code.lanes import LEAVES, first_lanes_off
from profsvc.analysis.source_code.registers import GUARD, Operands, jumps, last_write, operands, producers
from profsvc.specs.advice.line_evidence import LONG, SHORT, line_evidence, scoreboards

SCOREBOARD_STALLS = {"Long Scoreboard": LONG, "Short Scoreboard": SHORT}
QUEUES = {"LG Throttle": LONG, "Tex Throttle": LONG, "MIO Throttle": SHORT}
"""Stall reasons of instructions that wait for a place in the queue of a unit, by the scoreboard of its results."""
FIXED = ("Wait", "Math Pipe Throttle", "Branch Resolving", "Dispatch Stall")
BARRIER, NO_INSTRUCTION = "Barrier", "No Instruction"
MOVED = (*SCOREBOARD_STALLS, *QUEUES, BARRIER)
# A barrier stands so few instructions before the one at which its warps are sampled.
MAX_BARRIER_DISTANCE = 80
# Headers of the toolkit: where its installers and packages put them, or the names of those with functions of the device
# where the folders are lost. A project may have a folder cuda/include of its own.
TOOLKIT = re.compile(
    r"""/targets/[^/]+-(?:linux|qnx)[^/]*/include/ | ^/usr/(?:local/)?include/
    | ^/(?:usr/local|usr/lib|opt)/cuda[^/]*/(?:.*/)?include/ | /hpc_sdk/(?:.*/)?include/ | /nvidia/cu[^/]*/include/
    | /nvidia\ gpu\ computing\ toolkit/cuda/(?:.*/)?include/
    | (?:^|/)(?:sm_\d+_(?:atomic_functions|intrinsics|rt) | device_(?:atomic_|double_)?functions | cuda_(?:fp\d+|bf16))
      \.hpp$""",
    re.IGNORECASE | re.VERBOSE,
)
NARROW = ("8", "16")
WARP = 32  # lanes
Row = Mapping[str, Any]


def is_of_toolkit(file: str) -> bool:
    """Return whether a source file is a header of the CUDA toolkit, by its path.

    >>> is_of_toolkit("/usr/local/cuda-13.0/targets/x86_64-linux/include/cuda_fp16.hpp")
    True
    >>> is_of_toolkit("/home/me/cuda-fluids/include/advection.cuh")
    False
    """
    return bool(TOOLKIT.search(file.replace("\\", "/")))


NO_TEXTS: Texts = {}


def times_by_cause(
    instructions: Sequence[Row], causes: Sequence[Row], texts: Texts = NO_TEXTS
) -> dict[str | None, dict[Line, float]]:
    """Return for each cause with lines the share of the time that each line causes; all add up to 1.

    None has what no cause with lines saves, divided by samples; empty without samples. ``instructions`` have ``address,
    sass, file, source_line``, the counts of ``v1_source_lines`` and ``stalls``, the samples per stall reason, in the
    order of their addresses. ``causes`` are rows with ``cause`` and ``saving_fraction``. ``texts`` are those of the
    lines, by file and line; without them registers alone show who calls a header.
    """
    code = _Code(instructions, texts)
    samples = sum(code.time)
    if not samples > 0:
        return {}
    every: dict[str | None, list[float]] = {}
    for row in causes:
        saving, found = row["saving_fraction"] or 0.0, code.of_cause(row["cause"])
        if (whole := sum(found)) > 0 and saving > 0:
            every[row["cause"]] = [saving * part / whole for part in found]
    left = max(1.0 - sum(map(sum, every.values())), 0.0)
    every[None] = [left * own / samples for own in code.time]
    whole = sum(map(sum, every.values()))
    lines, calls = code.lines(), calls_of_short_functions(texts)
    executed: dict[Line, int] = {}
    for row in instructions:
        line = row["file"], row["source_line"]
        executed[line] = max(executed.get(line, 0), row["instructions"] or 0)
    return {cause: with_calls(_by_line(shares, lines, whole), calls, executed) for cause, shares in every.items()}


def _by_line(shares: Sequence[float], lines: Sequence[Mapping[Line, float]], whole: float) -> dict[Line, float]:
    total: dict[Line, float] = {}
    for share, parts in zip(shares, lines, strict=True):
        for line, part in parts.items():
            total[line] = total.get(line, 0.0) + share / whole * part
    return total


class _Code:
    """Instructions with their samples and counts, and the waits at what is waited for."""

    def __init__(self, rows: Sequence[Row], texts: Texts = NO_TEXTS) -> None:
        self.rows, self.texts = rows, texts
        self.code = [operands(row["sass"]) for row in rows]
        self.jumps = list(jumps([row["sass"] for row in rows], [row["address"] for row in rows]))
        none = [0.0] * len(rows)
        self.waits, self.tile, self.barrier = {LONG: [*none], SHORT: [*none]}, [*none], [*none]
        branches = ((target, place) for name, place, target in self.jumps if name == "BRA")
        self.loops = [(first, last) for first, last in branches if first <= last]
        by_board = {one: frozenset(k for k, v in scoreboards().items() if v == one) for one in (LONG, SHORT)}
        for place, row in enumerate(rows):
            for reason, samples in row["stalls"].items():
                if board := SCOREBOARD_STALLS.get(reason):
                    found = producers(self.code, self.loops, place, by_board[board]) or [place]
                    for one in found:
                        self.waits[board][one] += samples / len(found)
                        if board == LONG and self.code[place].opcode == "STS":
                            self.tile[one] += samples / len(found)
                elif board := QUEUES.get(reason):
                    self.waits[board][place] += samples
                elif reason == BARRIER:
                    self.barrier[_barrier_before(self.code, place)] += samples
        own = [max((row["samples"] or 0) - _stalled(row, *MOVED), 0) for row in rows]
        parts = (own, self.waits[LONG], self.waits[SHORT], self.barrier)
        self.time = [sum(each) for each in zip(*parts, strict=True)]

    def of_cause(self, cause: str) -> list[float]:
        """What tells the instructions of a cause; empty for one that lies on no line."""
        if (evidence := line_evidence().get(cause)) is None:
            return []
        found = self._counted(evidence.counts)
        is_own = [not evidence.opcodes or one.opcode in evidence.opcodes for one in self.code]
        return [max(count, 0.0) if own else 0.0 for count, own in zip(found, is_own, strict=True)]

    def _counted(self, kind: str) -> list[float]:
        of_instruction = {
            "indexed_waits": self._indexed_waits,
            "memory_waits": lambda: self.waits[LONG],
            "tile_waits": lambda: self.tile,
            "barrier_waits": lambda: self.barrier,
            "result_waits": self._result_waits,
            "lanes_off": self._lanes_off,
            "predicated_off": self._predicated_off,
            "uneven_turns": self._uneven_turns,
            "alone": self._alone,
        }
        return of_instruction[kind]() if kind in of_instruction else [_count(row, kind) for row in self.rows]

    def _indexed_waits(self) -> list[float]:
        indexed = (any(name.startswith("R") for name in one.read) for one in self.code)
        return [time * own for time, own in zip(self.time, indexed, strict=True)]

    def _result_waits(self) -> list[float]:
        return [short + _stalled(row, *FIXED) for short, row in zip(self.waits[SHORT], self.rows, strict=True)]

    def _predicated_off(self) -> list[float]:
        """Return the lanes that are off in each instruction by its predicate, or as only the first of a warp work.

        Half of those by a predicate count for the comparison that made it.
        """
        off = first_lanes_off(self.rows, self.code)
        for place, row in enumerate(self.rows):
            lanes = max((row["thread_instructions"] or 0) - (row["thread_instructions_on"] or 0), 0)
            if lanes and self.code[place].opcode not in LEAVES and (guard := GUARD.match(row["sass"].strip())):
                made = last_write(self.code, self.loops, place, guard[1])
                for one in (place, place if made is None else made):
                    off[one] += lanes / 2
        return off

    def _uneven_turns(self) -> list[float]:
        """Return the time in loops whose warps may take different numbers of turns, at their branches back.

        Those are of an index or a value of memory. Warps that meet at a barrier in each turn take as many.
        """
        differ = [False] * len(self.code)
        known: set[str] = set()
        for _ in range(2):  # what the end of a loop writes, its beginning reads
            for place, one in enumerate(self.code):
                differ[place] = one.opcode in SOURCES_OF_ORIGINS or not known.isdisjoint(one.read)
                known = known | set(one.written) if differ[place] else known - set(one.written)
        out, seen = [0.0] * len(self.code), set[int]()
        for first, last in sorted(self.loops, key=lambda loop: loop[1] - loop[0]):
            body = range(first, last + 1)
            if differ[last] and self.rows[last]["instructions"] and all(self.code[one].opcode != "BAR" for one in body):
                out[last] = sum(self.time[one] for one in body if one not in seen)
                seen.update(body)
        return out

    def _alone(self) -> list[float]:
        """Return the samples of instructions of a single thread; half of those in its loops at their branches back."""
        alone = [row["instructions"] and row["thread_instructions"] == row["instructions"] for row in self.rows]
        branches: dict[int, int] = {}
        for first, last in sorted(self.loops, key=lambda loop: loop[0] - loop[1]):
            if alone[last]:
                branches |= dict.fromkeys(range(first, last + 1), last)
        out = [0.0] * len(self.rows)
        for place, row in enumerate(self.rows):
            if alone[place]:
                for one in (place, branches.get(place, place)):
                    out[one] += (row["samples"] or 0) / 2
        return out

    def _lanes_off(self) -> list[float]:
        """Return the lanes that are off in each instruction, at the branches behind which they went another way."""
        executed = [row["instructions"] or 0 for row in self.rows]
        lanes = [(row["thread_instructions"] or 0) / (row["instructions"] or 1) for row in self.rows]
        on, out = [float(WARP)] * len(self.rows), [0.0] * len(self.rows)
        regions = []
        for name, place, target in self.jumps:
            if name == "BRA" and self.code[place].read and executed[place]:
                first, stop = (place + 1, target) if target > place else (target, place + 1)
                if first < stop:
                    regions.append((stop - first, place, range(first, stop)))
        for _, branch, inside in sorted(regions, key=itemgetter(0), reverse=True):
            level = max(lanes[inside.start : inside.stop])
            for place in inside if level < WARP else ():
                out[branch] += executed[place] * max(on[place] - level, 0.0)
                on[place] = min(on[place], level)
        left = zip(out, executed, on, lanes, strict=True)
        return [own + times * max(before - now, 0.0) for own, times, before, now in left]

    def lines(self) -> list[dict[Line, float]]:
        """Return the lines of each instruction, with its part of each: of subroutines the lines that call them."""
        own = list(self._called())
        found = [{line: 1.0} for line in own]
        callers: dict[int, list[int]] = {}
        for name, place, target in self.jumps:
            if name == "CALL":
                callers.setdefault(target, []).append(place)
        starts = sorted(callers)
        for start, end in zip(starts, [*starts, len(self.rows)][1:], strict=True):
            calls = [place for place in callers[start] if place < starts[0]] or callers[start]
            executed = [self.rows[place]["instructions"] or 0 for place in calls]
            if whole := sum(executed):
                parts: dict[Line, float] = {}
                for place, times in zip(calls, executed, strict=True):
                    parts[own[place]] = parts.get(own[place], 0.0) + times / whole
                found[start:end] = [parts] * (end - start)
        return found

    def _called(self) -> Iterator[Line]:
        """Yield the line of each instruction; of one in a header of the toolkit, that of the user's code before it.

        That is where the registers that it reads were written, or else the instruction before; of the lines that call
        a function of the header, the nearest to it.
        """
        lines = [(row["file"], row["source_line"]) for row in self.rows]
        headers = {file for file, _ in lines if file is not None and is_of_toolkit(file)}
        callers = {file: calls_of_header(file, self.texts) for file in headers}
        own = [line is not None and not is_of_toolkit(file or "") for file, line in lines]
        written: dict[str, int] = {}
        last = None
        for place, code in enumerate(self.code):
            if own[place]:
                yield lines[place]
                last = place
            else:
                before = [written[name] for name in code.read if name in written]
                known = [one for one in before if own[one] and self.code[one].opcode not in ("LDC", "S2R", "ULDC")]
                found = max(known, default=last)
                yield _nearest(lines[place if found is None else found], callers.get(lines[place][0] or "", ()))
            written |= dict.fromkeys(code.written, place)


def _nearest(line: Line, callers: Sequence[Line]) -> Line:
    """Return the one of some lines that is nearest to a line, after it rather than before; itself if there is none."""
    numbered = [one for one in callers if one[1] is not None]
    at = line[1] or 0
    return min(numbered, key=lambda one: (one[0] != line[0], abs((one[1] or 0) - at), at > (one[1] or 0)), default=line)


def _stalled(row: Row, *reasons: str) -> int:
    return sum(row["stalls"].get(one, 0) for one in reasons)


def _count(row: Row, kind: str) -> float:
    """Return what one instruction counts as evidence of a kind."""
    instructions, on = row["instructions"] or 0, row["thread_instructions_on"] or 0
    counts = {
        "threads": on,
        "excess_sectors": (row["l2_sectors"] or 0) - (row["ideal_l2_sectors"] or 0),
        "excess_wavefronts": (row["shared_wavefronts"] or 0) - (row["ideal_shared_wavefronts"] or 0),
        "narrow": instructions * (row["access_size"] in NARROW),
        "no_instruction": _stalled(row, NO_INSTRUCTION),
    }
    return float(counts[kind])


def _barrier_before(code: Sequence[Operands], place: int) -> int:
    """Return the place of the barrier behind which the instruction at ``place`` stands; itself if there is none."""
    before = range(place, max(-1, place - MAX_BARRIER_DISTANCE), -1)
    return next((one for one in before if code[one].opcode == "BAR"), place)

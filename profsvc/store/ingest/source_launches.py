"""Join source pages with the launches of their run.

A source page names kernels in the order of their launches, but prints no launch ids. A kernel is joined with the
launches of a file of Nsight Compute if both have it equally often, in the same order. What more than one file fits, or
what the page has less often than the file, is not joined, and `source_kernels.reason` says why.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from profsvc.errors import first_of
from profsvc.kernel_names import short_kernel_name, without_casts, without_namespaces
from profsvc.store.connection.sql import Connection, bindparam, text
from profsvc.store.ingest.outdated_results import forget_results
from profsvc.store.schema.column_types import IDS_PER_UPLOAD
from profsvc.store.schema.contents.source import KIND_BITS

MAX_LISTED_FILES = 3
KERNELS_PER_QUERY = 500
# From the finest to the coarsest way to tell kernels apart: pages of one report may print names in different ways.
NAME_LEVELS: tuple[Callable[[str], str], ...] = (str, without_casts, without_namespaces, short_kernel_name)
_OF_UPLOAD = f"BETWEEN u.upload_id * {IDS_PER_UPLOAD} AND u.upload_id * {IDS_PER_UPLOAD} + {IDS_PER_UPLOAD - 1}"

_COUNTS = text("""
    SELECT source_id, kind, count(*) AS number, sum(CASE WHEN repeated = 0 THEN samples END) AS samples
    FROM source_lines WHERE line_id > :first AND line_id < :end GROUP BY source_id, kind
""")
_SAVE_COUNTS = text(
    "UPDATE source_kernels SET kinds = :kinds, row_count = :row_count, samples = :samples WHERE source_id = :source_id"
)
_PAGES = text(f"""
    SELECT u.upload_id, k.source_id, n.kernel, k.launch_index, k.kinds, k.row_count, k.samples
    FROM uploads u JOIN source_kernels k ON k.source_id {_OF_UPLOAD} JOIN kernels n ON n.kernel_id = k.kernel_id
    WHERE u.run_id = :run_id ORDER BY k.source_id
""")
_FILES = text("""
    SELECT u.upload_id, u.file_name, t.kernel_id, n.kernel, t.launches
    FROM uploads u JOIN kernel_totals t ON t.upload_id = u.upload_id JOIN kernels n ON n.kernel_id = t.kernel_id
    WHERE u.run_id = :run_id AND u.format LIKE 'ncu%' ORDER BY u.upload_id, t.kernel_id
""")
_LAUNCHES = text("""
    SELECT l.launch_id, s.kernel_id, coalesce(w.first_id, l.launch_id) AS first_id
    FROM launches l JOIN shapes s ON s.shape_id = l.shape_id LEFT JOIN twins w ON w.launch_id = l.launch_id
    WHERE l.launch_id > :first AND l.launch_id < :end AND s.kernel_id IN :kernels ORDER BY l.launch_id
""").bindparams(bindparam("kernels", expanding=True))
_FIRST_ID = text("SELECT first_id FROM twins WHERE launch_id = :launch_id")
_JOINED = text(f"""
    SELECT k.source_id, k.launch_id, k.repeats FROM uploads u JOIN source_kernels k ON k.source_id {_OF_UPLOAD}
    WHERE u.run_id = :run_id
""")
_SAVE = text(
    "UPDATE source_kernels SET launch_id = :launch_id, reason = :reason, repeats = :repeats"
    " WHERE source_id = :source_id"
)


class _Source(NamedTuple):
    """A profiled launch of a source page."""

    upload_id: int
    source_id: int
    kernel: str
    launch_index: int | None
    kinds: int
    row_count: int
    samples: int | None


class _File(NamedTuple):
    """A file of Nsight Compute with launches: its kernels, by number, with their names and counts."""

    upload_id: int
    file_name: str
    kernels: dict[int, tuple[str, int]]

    def __str__(self) -> str:
        """Return the name in messages."""
        return f"{self.file_name} (upload {self.upload_id})"


class _Join(NamedTuple):
    """The launch of each profiled launch of a page, or why it has none."""

    launches: dict[int, int]
    reasons: dict[int, str]


def save_source_counts(connection: Connection, upload_id: int) -> None:
    """Count the rows and samples of each profiled launch of a file."""
    first = upload_id * IDS_PER_UPLOAD
    found: defaultdict[int, dict[int, Any]] = defaultdict(dict)
    for row in connection.execute(_COUNTS, {"first": first, "end": first + IDS_PER_UPLOAD}):
        found[row.source_id][row.kind] = row
    counts = [
        {
            "source_id": source_id,
            "kinds": sum(kinds),
            "row_count": sum(row.number for row in kinds.values()),
            # The sum over source lines counts inlined code several times, so it is the last choice.
            "samples": next(kinds[bit].samples for bit in _total_order() if bit in kinds),
        }
        for source_id, kinds in found.items()
    ]
    if counts:
        connection.execute(_SAVE_COUNTS, counts)


def _total_order() -> tuple[int, ...]:
    return KIND_BITS["instruction"], KIND_BITS["ptx"], KIND_BITS["line"]


def join_source_pages(connection: Connection, run_id: int) -> None:
    """Determine the launches of all source pages of a run, and which of several pages of a launch counts."""
    pages: defaultdict[int, list[_Source]] = defaultdict(list)
    for row in connection.execute(_PAGES, {"run_id": run_id}):
        pages[row.upload_id].append(_Source(*row))
    if not pages:
        return
    kernels: defaultdict[tuple[int, str], dict[int, tuple[str, int]]] = defaultdict(dict)
    for upload_id, name, kernel_id, kernel, count in connection.execute(_FILES, {"run_id": run_id}):
        kernels[upload_id, name][kernel_id] = kernel, count
    files = [_File(upload_id, name, held) for (upload_id, name), held in kernels.items()]
    launches: dict[int, int] = {}
    reasons: dict[int, str] = {}
    for upload_id, sources in pages.items():
        numbered = [source for source in sources if source.launch_index is not None]
        launches |= {source.source_id: _own_launch(connection, source) for source in numbered}
        others = [source for source in sources if source.launch_index is None]
        found = _join(connection, others, [file for file in files if file.upload_id != upload_id])
        launches |= found.launches
        reasons |= found.reasons
    every = [source for sources in pages.values() for source in sources]
    repeats = _repeats(every, launches)
    rows = [
        {
            "source_id": source.source_id,
            "launch_id": launches.get(source.source_id),
            "reason": reasons.get(source.source_id),
            "repeats": repeats[source.source_id],
        }
        for source in every
    ]
    before = {row.source_id: (row.launch_id, row.repeats) for row in connection.execute(_JOINED, {"run_id": run_id})}
    connection.execute(_SAVE, rows)
    for source in every:
        had, has = before[source.source_id], (launches.get(source.source_id), repeats[source.source_id])
        for launch_id in {had[0], has[0]} - {None} if had != has else ():
            forget_results(connection, run_id, "= :launch_id", launch_id=launch_id)


def _own_launch(connection: Connection, source: _Source) -> int:
    launch_id = source.upload_id * IDS_PER_UPLOAD + 1 + (source.launch_index or 0)
    return connection.execute(_FIRST_ID, {"launch_id": launch_id}).scalar() or launch_id


def _join(connection: Connection, sources: Sequence[_Source], files: Iterable[_File]) -> _Join:
    """Join the kernels of one page with the launches of the files that fit."""
    found: dict[int, dict[int, list[_File]]] = {source.source_id: {} for source in sources}
    refused: dict[str, None] = {}
    fewer: dict[int, str] = {}
    for file in files:
        told = _join_with(connection, sources, file) if sources else {}
        if isinstance(told, str):
            refused[told] = None
            continue
        for source_id, launch in told.items():
            if isinstance(launch, str):
                fewer.setdefault(source_id, launch)
            else:
                found[source_id].setdefault(launch, []).append(file)
    why = "; ".join(list(refused)[:MAX_LISTED_FILES]) or "no file of the run has launches of Nsight Compute"
    reasons = {}
    for source_id, launches in found.items():
        if len(launches) > 1:
            known = first_of((str(those[0]) for those in launches.values()), MAX_LISTED_FILES)
            reasons[source_id] = f"its kernels fit {known}"
        elif not launches:
            reasons[source_id] = fewer.get(source_id, why)
    joined = {source_id: next(iter(launches)) for source_id, launches in found.items() if len(launches) == 1}
    return _Join(joined, reasons)


def _join_with(connection: Connection, sources: Sequence[_Source], file: _File) -> dict[int, int | str] | str:
    """Return the launch of each profiled launch in a file, or why it has none; why none has where no kernel fits."""
    name_of = _common_names([source.kernel for source in sources], [name for name, _ in file.kernels.values()])
    if name_of is None:
        lacking = _lacking([source.kernel for source in sources], [name for name, _ in file.kernels.values()])
        return f"{file} has no kernel {lacking[:200]}"
    held: Counter[str] = Counter()
    for name, count in file.kernels.values():
        held[name_of(name)] += count
    own = Counter(name_of(source.kernel) for source in sources)
    for name, count in own.items():
        if count > held[name]:
            return f"the page has {name[:200]} {_times(count)}, {file} {_times(held[name])}"
    wanted = {name for name, count in own.items() if count == held[name]}
    launches = _launches_by_name(connection, file, name_of, wanted)
    places: Counter[str] = Counter()
    joined: dict[int, int | str] = {}
    last = 0
    for source in sources:
        name = name_of(source.kernel)
        if name not in wanted:
            joined[source.source_id] = f"the page has {name[:200]} {_times(own[name])}, {file} {_times(held[name])}"
            continue
        launch_id, first_id = launches[name][places[name]]
        places[name] += 1
        if launch_id < last:
            return f"{file} has the kernels of the page in another order"
        last, joined[source.source_id] = launch_id, first_id
    return joined


def _common_names(own: Sequence[str], held: Sequence[str]) -> Callable[[str], str] | None:
    """Return the finest way to write names by which all kernels of the page are in the file."""
    for name_of in NAME_LEVELS:
        if set(map(name_of, own)) <= set(map(name_of, held)):
            return name_of
    return None


def _lacking(own: Sequence[str], held: Sequence[str]) -> str:
    known = set(map(NAME_LEVELS[-1], held))
    return next(name for name in own if NAME_LEVELS[-1](name) not in known)


def _launches_by_name(
    connection: Connection, file: _File, name_of: Callable[[str], str], wanted: set[str]
) -> Mapping[str, list[tuple[int, int]]]:
    """Return the launches of some kernels of a file in order, each with the one that represents it."""
    names = {number: name_of(name) for number, (name, _) in file.kernels.items() if name_of(name) in wanted}
    first, numbers = file.upload_id * IDS_PER_UPLOAD, list(names)
    found: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
    for begin in range(0, len(numbers), KERNELS_PER_QUERY):
        some = numbers[begin : begin + KERNELS_PER_QUERY]
        for row in connection.execute(_LAUNCHES, {"first": first, "end": first + IDS_PER_UPLOAD, "kernels": some}):
            found[names[row.kernel_id]].append((row.launch_id, row.first_id))
    return {name: sorted(launches) for name, launches in found.items()}


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count:,} times"


def _repeats(sources: Sequence[_Source], launches: Mapping[int, int]) -> dict[int, int]:
    """Return the kinds of rows of each profiled launch that another page shows too, and that count there."""
    groups: defaultdict[tuple[Any, ...], list[_Source]] = defaultdict(list)
    ordinals: Counter[tuple[int, str]] = Counter()
    for source in sources:
        name = without_casts(source.kernel)
        ordinals[source.upload_id, name] += 1
        key: tuple[Any, ...] = (source.source_id,)
        if source.source_id in launches:
            key = ("launch", launches[source.source_id])
        elif source.samples:  # pages of one report have the same samples
            key = ("kernel", name, ordinals[source.upload_id, name], source.samples)
        groups[key].append(source)
    repeats = dict.fromkeys((source.source_id for source in sources), 0)
    for group in groups.values():
        for bit in KIND_BITS.values():
            # Instructions beside their source lines say more than instructions alone.
            showing = sorted(
                (source for source in group if source.kinds & bit),
                key=lambda source: (not source.kinds & KIND_BITS["line"], -source.row_count, source.source_id),
            )
            for source in showing[1:]:
                repeats[source.source_id] |= bit
    return repeats

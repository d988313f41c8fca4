"""Looks for bytes that a reader answers with anything but whole tables or a documented refusal.

Run as ``python -m tests.robustness.fuzzing --minutes 10``. Fixtures are damaged at random and read in a worker process.
Wrong is any exception but `InputError`, a table that is not tidy, lines that are not accounted for, a hang, and too
much memory. Inputs with an answer never seen before are damaged further. What is wrong is made small and kept in
fixtures/fuzz, which tests/formats/invariants/test_fuzz.py reads again for ever.
"""

import csv
import hashlib
import io
import json
import multiprocessing
import os
import random
import re
import resource
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NamedTuple

from click.testing import CliRunner

from profsvc import formats
from profsvc.cli.application import app
from profsvc.errors import InputError
from profsvc.formats.parsing.stream import open_stream
from tests.command_line import parser_of
from tests.formats.conftest import count_lines
from tests.robustness.damage import damaged

FIXTURES = Path(__file__).parents[2] / "fixtures"
SEEDS = FIXTURES / "fuzz"
LIST = SEEDS / "seeds.csv"
COLUMNS = ("file", "format", "expected", "found")
NAMES = [reader.NAME for reader in formats.READERS]
READ, REFUSED = "read", "refused"
SECONDS, MEGABYTES = 20, 600
LARGEST_FIXTURE, POOL = 20_000, 4_000
UPLOADS, FORCED = 0.005, 0.7
SHRINK_TRIES, SHRINK_SECONDS = 2_000, 60
PACKED = (b"\x1f\x8b", b"\x28\xb5\x2f\xfd")


class Answer(NamedTuple):
    """What became of an input: read, refused, or what is wrong; and of which sort the answer is."""

    kind: str
    sort: str


def fixtures() -> list[tuple[bytes, str | None]]:
    """Every file of every reader, as it is inside and not too long, with the reader it is of."""
    known = {name.replace("-", "_"): name for name in NAMES}
    files = [path for path in sorted(FIXTURES.glob("*/*")) if path.parent.name in {*known, SEEDS.name} and path != LIST]
    found: list[tuple[bytes, str | None]] = []
    for path in files:
        if not path.name.endswith((".expected.json", ".error.txt")):
            try:
                data = open_stream(path).read()
            except InputError:
                data = path.read_bytes()
            found.append((data[:LARGEST_FIXTURE], known.get(path.parent.name)))
    return found


class Inputs:
    """Damaged files without end; those that were answered in a new way are damaged again."""

    def __init__(self, seed: int, only: str | None = None) -> None:
        self.rng = random.Random(seed)
        self.only = only
        self.pool = [(data, name) for data, name in fixtures() if only in (None, name)]
        self.data = [data for data, _ in self.pool]

    def next(self) -> tuple[bytes, str | None, str | None]:
        """Return an input, the reader of the file it began as, and the reader that is forced on it."""
        rng = self.rng
        data, name = rng.choice(self.pool)
        data = damaged(rng, data, self.data)
        forced = (rng.choice(NAMES) if rng.random() < 0.2 else name) if rng.random() < FORCED else None
        return data, name, self.only or forced

    def keep(self, data: bytes, name: str | None) -> None:
        """Damage this input again, for a while."""
        if len(data) <= LARGEST_FIXTURE and not data.startswith(PACKED):
            if len(self.pool) >= POOL:
                del self.pool[POOL // 2], self.data[POOL // 2]
            self.pool.append((data, name))
            self.data.append(data)


def _sort(text: str) -> str:
    return re.sub(r"'[^']*'|\"[^\"]*\"|[0-9]+|#+", "#", text)[:200]


def _wrong(error: BaseException) -> str:
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f"profsvc{os.sep}" in f.filename]
    where = f"{Path(frames[-1].filename).name}:{frames[-1].lineno} in {frames[-1].name}" if frames else "?"
    return f"{type(error).__name__} at {where}"


def _batches(data: bytes, name: str | None) -> Iterator[str]:
    """Read ``data``; yield a word for everything the answer says, and `AssertionError` for what cannot be true."""
    reader, batches = formats.read(io.BytesIO(data), name)
    lines = rejected = 0
    yield reader.NAME
    for batch in batches:
        lines += batch.lines_stored + batch.lines_skipped + batch.lines_rejected
        assert min(batch.lines_stored, batch.lines_skipped, batch.lines_rejected) >= 0, "a count below zero"
        rejected += batch.lines_rejected
        for table_name, table in batch.tables.items():
            yield table_name
            if table_name == "rejects":
                rejected -= int(table["lines"].sum())
                yield from map(_sort, table["reason"].unique())
            elif {"value", "reason"} <= {*table}:
                assert not (table["value"].isna() & table["reason"].isna()).any(), f"no reason in {table_name}"
                yield from map(_sort, table["reason"].dropna().unique())
        yield _sort(batch.message)
    assert rejected == 0, "rejected lines that are not among the rejects"
    if not data.startswith((b"SQLite format 3\0", b"TDSm", *PACKED)):
        assert lines == count_lines(data), "lines are not accounted for"


def _upload(data: bytes, name: str | None) -> str:
    with tempfile.NamedTemporaryFile() as file:
        file.write(data)
        file.flush()
        words = ["upload", "--check", file.name, *(["--format", name] if name else [])]
        result = CliRunner().invoke(app, words, env={"PROFSVC_DEBUG": "1"})
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        return _wrong(result.exception)
    return {0: READ, 6: REFUSED}.get(result.exit_code, f"upload: exit code {result.exit_code}")


def answer(data: bytes, name: str | None, upload: bool = False) -> Answer:
    """Tell how ``data`` is answered, read by the reader ``name`` or by the one that knows it."""
    try:
        if upload:
            return Answer(_upload(data, name), "")
        return Answer(READ, " ".join(sorted({word[:60] for word in _batches(data, name)})))
    except InputError as error:
        return Answer(REFUSED, f"{name} {_sort(str(error))}"[:120])
    except AssertionError as error:
        return Answer(f"{str(error) or _wrong(error)}: {name or 'any'}", "")
    except Exception as error:
        return Answer(_wrong(error), "")


def _serve(pipe: Connection) -> None:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    limit = pages * resource.getpagesize() + (MEGABYTES << 20)
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    while True:
        pipe.send(answer(*pipe.recv()))


class Worker:
    """Answers in another process, which may die or be stopped."""

    def __init__(self) -> None:
        self._start()

    def _start(self) -> None:
        self._pipe, other = multiprocessing.Pipe()
        self._process = multiprocessing.get_context("fork").Process(target=_serve, args=(other,), daemon=True)
        self._process.start()
        other.close()

    def answer(self, data: bytes, name: str | None, upload: bool = False) -> Answer:
        """Answer, a hang and a death told as well."""
        self._pipe.send((data, name, upload))
        try:
            if self._pipe.poll(SECONDS):
                seen: Answer = self._pipe.recv()
                return seen
            kind = f"hang of {SECONDS} s: {name or 'any'}"
        except EOFError:
            kind = f"death of the process: {name or 'any'}"
        self.stop()
        self._start()
        return Answer(kind, "")

    def stop(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.join()
        self._pipe.close()


def shrink(worker: Worker, data: bytes, name: str | None, upload: bool, kind: str) -> bytes:
    """Drop lines, then bytes, as long as the same is wrong."""
    tries, end = SHRINK_TRIES, time.monotonic() + SHRINK_SECONDS
    for split in (re.compile(rb"[^\n]*\n|[^\n]+"), re.compile(rb".", re.DOTALL)):
        pieces = split.findall(data)
        size = max(1, len(pieces) // 2)
        while size:
            begin = 0
            while begin < len(pieces) and tries and time.monotonic() < end:
                tries -= 1
                fewer = pieces[:begin] + pieces[begin + size :]
                if worker.answer(b"".join(fewer), name, upload).kind == kind:
                    pieces = fewer
                else:
                    begin += size
            size //= 2
        data = b"".join(pieces)
    return data


def save(data: bytes, name: str | None, kind: str) -> str:
    """Keep an input that was answered wrong; what must become of it is left to the one who repairs the reader."""
    file = f"{name or 'any'}-{hashlib.sha256(data).hexdigest()[:8]}.bin"
    SEEDS.mkdir(exist_ok=True)
    if (SEEDS / file).exists():
        return file
    (SEEDS / file).write_bytes(data)
    new = not LIST.exists()
    with LIST.open("a", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerows([COLUMNS] * new + [(file, name or "", f"{READ} or {REFUSED}", kind)])
    return file


def run(seconds: float, seed: int, only: str | None) -> dict[str, object]:
    """Damage and read for ``seconds``; return the counts and what was wrong, by the seed that shows it."""
    inputs, worker, begin = Inputs(seed, only), Worker(), time.monotonic()
    kinds: Counter[str] = Counter()
    sorts: set[str] = set()
    found: dict[str, str] = {}
    told = 0.0
    while (spent := time.monotonic() - begin) < seconds:
        data, origin, name = inputs.next()
        upload = inputs.rng.random() < UPLOADS
        kind, sort = worker.answer(data, name, upload)
        kinds[kind if kind in (READ, REFUSED) else "wrong"] += 1
        if kind not in (READ, REFUSED):
            if kind not in found:
                found[kind] = save(shrink(worker, data, name, upload, kind), name, kind)
                sys.stderr.write(f"\n{found[kind]}: {kind}\n")
        elif sort not in sorts:
            sorts.add(sort)
            inputs.keep(data, origin)
        if spent - told >= 1:
            told = spent
            sys.stderr.write(
                f"\r{spent:.0f} s, {kinds.total()} inputs, {len(sorts)} sorts of answers, {len(found)} wrong"
            )
    worker.stop()
    sys.stderr.write("\n")
    return {
        "seed": seed,
        "seconds": round(spent),
        "inputs": kinds.total(),
        **kinds,
        "sorts": len(sorts),
        "found": found,
    }


def main() -> int:
    """Run from the command line; exit code 1 if anything was wrong."""
    parser = parser_of(__doc__)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--reader", choices=NAMES, help="only its fixtures, and only this reader")
    parser.add_argument("--json", action="store_true", help="print the counts as JSON on stdout")
    options = parser.parse_args()
    summary = run(options.minutes * 60, options.seed, options.reader)
    if options.json:
        sys.stdout.write(json.dumps(summary) + "\n")
    return 1 if summary["found"] else 0


if __name__ == "__main__":
    raise SystemExit(main())

"""Schedulers that are killed at random, on one store: how often each slot is done, and by how many at a time.

python -m tests.benchmarks.schedule [SLOTS, default 1000] [STORE ...; default: SQLite and a Postgres server of its own]

The time of a year in Berlin goes by as fast as the slots are done: every process reads one shared clock. Whoever
is at work is killed with SIGKILL in one of four cases, at a random moment, and another process is started for it.
Every beginning and end of the work is a line in a file that outlives its process.
"""

import multiprocessing
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from multiprocessing.context import ForkProcess
from pathlib import Path
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from sqlalchemy import Engine, text

from profsvc import store
from profsvc.errors import ProfsvcError
from profsvc.scheduler import jobs
from profsvc.scheduler.cron import Due, parse_cron
from profsvc.scheduler.execution import (
    SchedulerContext,
    is_due,
    owner_name,
    run_job,
    take_slot,
)
from profsvc.scheduler.jobs import Job, JobKind
from profsvc.store.connection.transactions import reading
from tests.command_line import parser_of
from tests.environment import postgres

PROCESSES = 5
KILLED = 0.25
MOST_KILLS = 3
"""Of one slot: it is given up when its owner dies once more, lest it kill every one."""
LONGEST_S = 0.02
ZONE = "Europe/Berlin"
CRONS = ("30 2 * * *", "0 0 * * *", "0 12 * * *")
BEGIN = datetime(2025, 12, 31, 23, 30, tzinfo=ZoneInfo(ZONE))
NIGHTS = ("2026-03-29", "2026-10-25")
LEASE = timedelta(minutes=5)
FORK = multiprocessing.get_context("fork")


class Outcome(NamedTuple):
    """What a year of slots came to; of each list there should be none."""

    slots: int
    kills: int
    taken_over: int
    at_night: dict[str, int]
    missing: list[str]
    twice: list[str]
    at_once: list[str]
    not_done: list[str]
    seconds: float

    def is_right(self) -> bool:
        """Tell whether every slot was done once."""
        return not (self.missing or self.twice or self.at_once or self.not_done)


def crew(url: str, clock: Any, ledger: Path, seed: int) -> None:
    """Run slots until the end of the process."""
    engine, rng = store.connect(url), random.Random(seed)
    _note_kind(ledger, rng)
    owner = owner_name()
    context = SchedulerContext(
        engine, store.blob_store_of(engine), {}, owner, lambda: _at(clock), LEASE, heartbeat_s=3600
    )
    while True:
        try:
            for row in store.list_schedules(engine):
                if is_due(context, row) and (slot := take_slot(context, row)):
                    run_job(context, row, slot)
        except ProfsvcError:
            pass  # the store was busy: as a scheduler, look again
        time.sleep(rng.uniform(0.005, 0.03))


def _at(clock: Any) -> datetime:
    return datetime.fromtimestamp(clock.value, UTC)


def _note_kind(ledger: Path, rng: random.Random) -> None:
    """Make a kind whose work says in a file that it began and that it ended."""

    def work(job: Job) -> str:
        what = f"{job.arguments['name']} {job.due_at:%Y-%m-%dT%H:%M} {os.getpid()} {job.attempts}"
        line(ledger, f"begin {what}")
        time.sleep(rng.uniform(0.0, LONGEST_S))
        line(ledger, f"end {what}")
        return "done"

    name = jobs.Argument(None, str, "a name")
    jobs.KINDS = {**jobs.KINDS, "prove": JobKind("Proves.", work, {"name": name})}


def line(ledger: Path, words: str) -> None:
    """Add a line; a short one is written at once or not at all."""
    with ledger.open("ab", buffering=0) as file:
        file.write(f"{time.monotonic_ns()} {words}\n".encode())


class Crew:
    """The processes at work, and what kills them."""

    def __init__(self, url: str, ledger: Path, clock: Any, seed: int, processes: int) -> None:
        """Start them."""
        self._made = 0
        self.rng = random.Random(seed)
        self._about = (url, clock, ledger)
        self.ledger, self.kills = ledger, 0
        self.processes = [self._start() for _ in range(processes)]

    def _start(self) -> ForkProcess:
        self._made += 1
        process = FORK.Process(target=crew, args=(*self._about, self._made), daemon=True)
        process.start()
        return process

    def lives(self, pid: int) -> bool:
        """Tell whether a process is of the crew, and not killed."""
        return any(process.pid == pid for process in self.processes)

    def kill(self, pid: int) -> None:
        """Kill one and start another."""
        for place, process in enumerate(self.processes):
            if process.pid == pid:
                os.kill(pid, signal.SIGKILL)
                process.join()
                line(self.ledger, f"killed - - {pid} 0")
                self.kills += 1
                self.processes[place] = self._start()

    def stop(self) -> None:
        """Kill them all."""
        for process in self.processes:
            process.kill()
            process.join()


def prove(
    url: str, slots: int, seed: int = 1, processes: int = PROCESSES, begin: datetime = BEGIN, killed: float = KILLED
) -> Outcome:
    """Let schedulers work off so many slots on a store; kill them at random; return what it came to."""
    engine = store.open_store(url)
    since = begin.astimezone(UTC)
    every: dict[str, list[Due]] = {}
    for cron in CRONS:
        times = parse_cron(cron, ZONE)
        store.add_schedule(engine, "prove", cron, ZONE, {"name": cron.replace(" ", "_")}, next_at=None, now=since)
        every[cron] = times.between(since, since + timedelta(days=slots // len(CRONS) + 1))
    due = sorted((one.at, cron, one.key) for cron, found in every.items() for one in found)[:slots]
    clock, began = FORK.Value("d", since.timestamp()), time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        ledger = Path(folder) / "ledger"
        ledger.touch()
        workers = Crew(url, ledger, clock, seed, processes)
        try:
            for count, (at, _, _) in enumerate(due, 1):
                clock.value = at.timestamp() + 1
                _work_off(engine, workers, clock, count, killed)
        finally:
            workers.stop()
        said = ledger.read_text().splitlines()
    return judged(engine, due, said, workers.kills, time.monotonic() - began)


def _work_off(engine: Engine, workers: Crew, clock: Any, count: int, killed: float) -> None:
    """Wait until so many slots have ended; kill who has one, now and then, before, in or after its work."""
    until, tries = time.monotonic() + 60, iter([workers.rng.random() < killed for _ in range(MOST_KILLS)])
    spared = not next(tries)
    while time.monotonic() < until:
        done, owners = _progress(engine)
        if done >= count:
            return
        living = [pid for pid in owners if workers.lives(pid)]
        if living and not spared:
            time.sleep(workers.rng.uniform(0.0, 2 * LONGEST_S))
            workers.kill(living[0])
            spared = not next(tries, False)
        elif owners and not living:
            clock.value += 60  # until the lease of the dead owner has run out
        time.sleep(0.01)


def _progress(engine: Engine) -> tuple[int, list[int]]:
    """Return how many slots have ended, and the processes that have the others."""
    with reading(engine) as connection:
        rows = connection.execute(text("SELECT state, owner FROM slots")).all()
    return sum(row.state == "done" for row in rows), [
        int(row.owner.split(":")[1]) for row in rows if row.state != "done"
    ]


def judged(
    engine: Engine, due: list[tuple[datetime, str, str]], said: list[str], kills: int, seconds: float
) -> Outcome:
    """Hold what the store and the file say against the times that were due."""
    rows = store.select(engine, "v1_slots")
    crons = {row["schedule_id"]: row["cron"] for row in store.list_schedules(engine)}
    found = Counter((crons[row["schedule_id"]], row["slot_key"]) for row in rows)
    expected = {(cron, key) for _, cron, key in due}
    at_night = {night: sum(key.startswith(night) for _, key in found.elements()) for night in NIGHTS}
    return Outcome(
        len(due),
        kills,
        sum(row["attempts"] > 1 for row in rows),
        at_night,
        [f"{one}" for one in expected - found.keys()],
        [f"{one}" for one, count in found.items() if count > 1 or one not in expected] + _ended_twice(said),
        _at_once(said),
        [f"{row['slot_key']}: {row['state']}" for row in rows if row["state"] != "done"],
        seconds,
    )


def _ended_twice(said: list[str]) -> list[str]:
    """Return the slots whose work ended twice, though its first owner lived to say so to the store."""
    ended: dict[str, list[str]] = {}
    killed = {words.split()[4] for words in said if words.split()[1] == "killed"}
    for words in said:
        _, what, name, at, pid, _ = words.split()
        if what == "end":
            ended.setdefault(f"{name} {at}", []).append(pid)
    return [slot for slot, pids in ended.items() if len([pid for pid in pids if pid not in killed]) > 1]


def _at_once(said: list[str]) -> list[str]:
    """Return where somebody began on a slot that another one, who was not dead, was at work on."""
    at_work: dict[str, str] = {}
    wrong = []
    for words in sorted(said, key=lambda words: int(words.split()[0])):
        _, what, name, at, pid, _ = words.split()
        slot = f"{name} {at}"
        if what == "begin":
            wrong += [f"{slot}: {pid} while {at_work[slot]}"] if slot in at_work else []
            at_work[slot] = pid
        elif what == "end":
            at_work.pop(slot, None)
        else:
            at_work = {slot: owner for slot, owner in at_work.items() if owner != pid}
    return wrong


def told(name: str, outcome: Outcome) -> None:
    """Print what it came to."""
    nights = ", ".join(f"{night}: {count} of {len(CRONS)}" for night, count in outcome.at_night.items() if count)
    wrong = {"missing": outcome.missing, "twice": outcome.twice, "by two at once": outcome.at_once}
    counts = ", ".join(f"{what} {len(found)}" for what, found in {**wrong, "not done": outcome.not_done}.items())
    print(
        f"{name}: {outcome.slots} slots, {PROCESSES} processes, {outcome.kills} killed at work, {outcome.taken_over} "
        f"slots taken over; {counts}; slots of the nights {nights}; {outcome.seconds:.0f} s"
    )
    for one in (*outcome.missing, *outcome.twice, *outcome.at_once, *outcome.not_done):
        print(f"  wrong: {one}")


@contextmanager
def stores(asked: list[str]) -> Iterator[dict[str, str]]:
    """Give the stores that were asked for; by default one of each database."""
    if asked:
        yield {url: url for url in asked}
        return
    with tempfile.TemporaryDirectory() as folder, postgres.server() as server:
        name = server.database(postgres.migrated(server))
        url = server.url(name).render_as_string(hide_password=False)
        yield {"SQLite": f"{folder}/store.sqlite", "Postgres": url}


def main() -> int:
    """Prove it on each store; return 1 where it is not so."""
    parser = parser_of(__doc__)
    parser.add_argument("slots", nargs="?", type=int, default=1000, help="number of slots [%(default)s]")
    parser.add_argument("stores", nargs="*", metavar="STORE", help="stores [SQLite and a Postgres server of its own]")
    asked = parser.parse_args()
    right = True
    with stores(asked.stores) as found:
        for name, url in found.items():
            outcome = prove(url, asked.slots)
            told(name, outcome)
            right &= outcome.is_right()
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())

"""The logs of a run side by side: which sensor tells the temperature, the clock and the energy of which power."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
import numpy.typing as npt

from profsvc.errors import NotFoundError, first_of

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

UTC, LOCAL, ELAPSED = "utc", "local", "elapsed"
# What the channel that goes with a power is called, the likeliest first; a name that fits none comes last.
NAME_PATTERNS = {
    "temperature": (r"temperature\.gpu$|^temp_c$|^gpu_?temp|^gtemp$", r"gpu|core|die|junction|edge|hotspot", r"^temp"),
    "clock": (r"clocks?\.(current\.)?(sm|gr|graphics)$|^sclk|^pclk|sm.?clock", r"\bsm\b|graphics|core"),
    "energy": (r"energy",),
    "fan": (r"fan",),
    "utilization": (r"utilization\.gpu$|^gpu_?util(ization)?$|^gputl$|^sm$|^gfx", r"gpu|gr3d|gfx"),
}
# Of these, one that is called by none of its names is something else.
MATCHED_BY_NAME_ONLY = ("utilization",)
# Bits of NVML's clock event reasons that take the clock down from what was asked for.
THROTTLE_BITS = 0x4 | 0x8 | 0x20 | 0x40 | 0x80
REASONS_NAME = re.compile(r"clocks_(event|throttle)_reasons\.active")
THROTTLE_NAMES = re.compile(r"clocks_(event|throttle)_reasons\.(sw_power_cap|(hw|sw)_(slowdown|thermal|power_brake))")


@dataclass(frozen=True, eq=False)
class Log:
    """The readings of a sensor that have a value: when (ns on ``clock``) and what, in the unit of the sensor.

    ``clock`` is ``utc``, ``local`` (the file's own, its zone unknown) or ``elapsed`` (since the file began); where
    ``together`` is above 1, each is the mean of so many readings. ``host`` is None where the file names none.
    """

    sensor_id: int
    upload_id: int
    quantity: str
    name: str
    unit: str
    gpu_index: int | None
    device: str | None
    clock: str
    time_ns: Ints
    value: Floats
    together: int = 1
    host: str | None = None

    def seconds(self, origin_ns: int) -> Floats:
        """Return the times of the readings in seconds since ``origin_ns``."""
        return (self.time_ns - np.int64(origin_ns)) / 1e9


@dataclass(frozen=True)
class SensorChoice:
    """The log that goes with a power log; None with the reason where there is none, or where several might be meant."""

    log: Log | None
    reason: str = ""


def logs_named(logs: Iterable[Log], name: str) -> list[Log]:
    """Return the logs that the user means by a sensor's name or number; raise `NotFoundError` if there are none."""
    logs = list(logs)
    if found := [log for log in logs if name in (log.name, str(log.sensor_id))]:
        return found
    raise NotFoundError.near("sensor", name, {log.name for log in logs})


def matching_sensor(power: Log, logs: Sequence[Log], quantity: str) -> SensorChoice:
    """Choose the log of ``quantity`` that goes with a power log.

    One of the same file and the same GPU is preferred, then the likeliest name. Sensors that are equally likely are
    not guessed between.
    """
    able = [log for log in logs if log.quantity == quantity and len(log.value) and _same_gpu(power, log)]
    if not able:
        return SensorChoice(None, f"no {quantity} sensor with readings matches {power.name}")
    if quantity in MATCHED_BY_NAME_ONLY:
        able = [log for log in able if _name_rank(log.name, quantity) < len(NAME_PATTERNS[quantity])]
    if not able:
        return SensorChoice(None, f"no {quantity} sensor of the whole GPU matches {power.name}")
    ranks = [(log.upload_id != power.upload_id, _name_rank(log.name, quantity)) for log in able]
    best = [log for log, rank in zip(able, ranks, strict=True) if rank == min(ranks)]
    if len(best) > 1:
        called = [log.name for log in best]
        named = sorted(name if called.count(name) == 1 else f"{name} (number {log.sensor_id})"
                       for name, log in zip(called, best, strict=True))  # fmt: skip
        how = "by name" if len(set(called)) == len(called) else "by number"
        words = f"{len(best)} {quantity} sensors could match {power.name}: {first_of(named, 10)}; select one {how}"
        return SensorChoice(None, words)
    return SensorChoice(best[0])


def _same_gpu(power: Log, log: Log) -> bool:
    """Tell whether nothing says that the two are of different GPUs."""
    return None in (power.gpu_index, log.gpu_index) or power.gpu_index == log.gpu_index


def _name_rank(name: str, quantity: str) -> int:
    """How far down in `NAME_PATTERNS` a name stands."""
    patterns = NAME_PATTERNS.get(quantity, ())
    fits = (number for number, pattern in enumerate(patterns) if re.search(pattern, name, re.IGNORECASE))
    return next(fits, len(patterns))


def shares_clock(power: Log, log: Log) -> bool:
    """Tell whether the times of two logs can be compared as they are: one file, or one known clock."""
    return power.upload_id == log.upload_id or (power.clock == log.clock != ELAPSED)


def host_name(text: str) -> str:
    """Return the name of a host as it can be compared; empty for one that names no host, as an address does.

    >>> host_name("Node7.cluster:9400"), host_name("10.0.0.7:9400"), host_name("localhost")
    ('node7.cluster', '', '')
    """
    name = text.partition(":")[0].lower()
    return "" if name.partition(".")[0] in ("", "localhost") or not name.strip(".0123456789") else name


def same_host(one: str, other: str) -> bool:
    """Tell whether two names are of one host, with its domain or without.

    >>> same_host("node7.cluster", "node7"), same_host("node7", "node70")
    (True, False)
    """
    return f"{one}.".startswith(f"{other}.") or f"{other}.".startswith(f"{one}.")


def logged_gpus(powers: Sequence[Log], host: str | None) -> dict[int, list[int]]:
    """Return the numbers of the logged GPUs, each with the uploads that log it under one name at the same time.

    ``host``: where it is known, logs of other hosts are not meant.
    """
    name = host_name(host or "")
    own = [log for log in powers if not name or same_host(name, host_name(log.host or "") or name)]
    found: dict[int, list[int]] = {log.gpu_index: [] for log in own if log.gpu_index is not None}
    known = [log for log in own if log.gpu_index is not None and len(log.time_ns)]
    for one, other in combinations(known, 2):
        same = (one.gpu_index, one.name) == (other.gpu_index, other.name) and one.upload_id != other.upload_id
        if same and shares_clock(one, other) and _overlap(one.time_ns, other.time_ns):
            found[one.gpu_index or 0] = sorted({*found[one.gpu_index or 0], one.upload_id, other.upload_id})
    return found


def _overlap(one: Ints, other: Ints) -> bool:
    return bool(one.min() < other.max() and other.min() < one.max())


def shift_time(log: Log, offset_s: float) -> Log:
    """Return a log with ``offset_s`` taken off its times, which ran ahead by it.

    >>> log = Log(1, 1, "power", "p", "W", None, None, "utc", np.array([10**9]), np.array([1.0]))
    >>> shift_time(log, 0.25).time_ns.tolist()
    [750000000]
    """
    return replace(log, time_ns=log.time_ns - np.int64(round(offset_s * 1e9)))


def throttle_log(power: Log, logs: Sequence[Log]) -> Log | None:
    """Return when something held the clock down (1) or not (0), as the board itself says; None where it is silent."""
    own = [log for log in logs if log.quantity == "state" and _same_gpu(power, log)]
    for log in own:
        if REASONS_NAME.fullmatch(log.name):
            return replace(log, value=((log.value.astype(np.int64) & THROTTLE_BITS) > 0).astype(np.float64))
    single = [log for log in own if THROTTLE_NAMES.match(log.name)]
    if not single or any(len(log.value) != len(single[0].value) for log in single):
        return None
    return replace(single[0], value=np.max([log.value for log in single], axis=0))

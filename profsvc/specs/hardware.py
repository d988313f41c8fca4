"""The GPUs: what each can do at most, and what limits a launch on it.

``profsvc/data/devices`` has a file per generation. ``[capability."9.0"]`` holds what all products of a compute
capability share, ``[device.KEY]`` a product, whose own figures count before the shared ones. ``match`` are the names
that drivers and tools print. A key of ``source`` may name several figures: ``"sms clocks" = "datasheet"``.

Figures that no source supports are absent. Units stand in the names. ``*_lanes_per_sm`` are instructions of one thread
a cycle, a multiply-add counting once; tensor figures are operations without sparsity, a multiply-add counting as 2, and
``tensor_sparsity_factor`` is how many times as fast the pipe is with it. ``boost_clock_hz`` is the highest clock that
the product is specified for; of the oldest cards it is the only one. ``memory_clock_hz`` is the clock that CUDA and
nvidia-smi print, with two transfers a cycle. ``lacks`` names the figures of the capability that a product does not
have, by how they begin.
"""

import dataclasses
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from types import MappingProxyType
from typing import Any

from profsvc.errors import DomainError, NotFoundError
from profsvc.specs.table_files import capability, tables_of, tables_of_folder

FOLDER = "devices"


@dataclass(frozen=True)
class Device:
    """A product. Lanes are thread instructions a cycle, a multiply-add counting once; None means unknown."""

    key: str
    name: str
    match: tuple[str, ...]
    compute_capability: str
    source: Mapping[str, str] = field(hash=False)
    sms: int
    warp_size: int
    schedulers_per_sm: int
    max_warps_per_sm: int
    max_blocks_per_sm: int
    max_threads_per_block: int
    registers_per_sm: int
    register_allocation_unit: int
    register_allocation_scope: str
    warp_allocation_granularity: int
    shared_mem_per_sm_bytes: int
    shared_mem_per_block_max_bytes: int
    shared_mem_reserved_per_block_bytes: int
    shared_mem_allocation_unit_bytes: int
    fp32_lanes_per_sm: int
    fp64_lanes_per_sm: int
    sfu_per_sm: int
    boost_clock_hz: float
    dram_peak_bytes_per_s: float
    base_clock_hz: float | None = None
    memory_clock_hz: float | None = None
    memory_bus_width_bits: int | None = None
    l1_size_bytes: int | None = None
    l1_unified_with_shared_mem: bool | None = None
    l2_size_bytes: int | None = None
    arithmetic_latency_cycles: float | None = None
    l1_latency_cycles: float | None = None
    l2_latency_cycles: float | None = None
    dram_sustained_bytes_per_s: float | None = None
    block_launches_per_s: float | None = None
    tdp_w: float | None = None
    has_fan: bool | None = None
    die_width_mm: float | None = None
    die_height_mm: float | None = None
    tensor_fp16_op_per_s: float | None = None
    tensor_bf16_op_per_s: float | None = None
    tensor_tf32_op_per_s: float | None = None
    tensor_fp8_op_per_s: float | None = None
    tensor_int8_op_per_s: float | None = None
    tensor_fp64_op_per_s: float | None = None
    tensor_fp16_op_per_sm_cycle: float | None = None
    tensor_bf16_op_per_sm_cycle: float | None = None
    tensor_tf32_op_per_sm_cycle: float | None = None
    tensor_fp64_op_per_sm_cycle: float | None = None
    tensor_fp8_op_per_sm_cycle: float | None = None
    tensor_int8_op_per_sm_cycle: float | None = None
    tensor_int4_op_per_sm_cycle: float | None = None
    tensor_int1_op_per_sm_cycle: float | None = None
    tensor_sparsity_factor: float | None = None
    tensor_single_warp_fraction: float | None = None

    @property
    def fp32_peak_flop_per_s(self) -> float:
        """FP32 peak at the boost clock, a multiply-add counting as 2."""
        return 2 * self.sms * self.fp32_lanes_per_sm * self.boost_clock_hz

    @property
    def fp64_peak_flop_per_s(self) -> float:
        """FP64 peak at the boost clock without tensor cores, a multiply-add counting as 2."""
        return 2 * self.sms * self.fp64_lanes_per_sm * self.boost_clock_hz


_KINDS: Mapping[Any, tuple[type, ...]] = {
    int: (int,),
    int | None: (int,),
    float: (int, float),
    float | None: (int, float),
    bool | None: (bool,),
    str: (str,),
}


def _device(key: str, own: Mapping[str, Any], shared: Mapping[str, Any]) -> Device:
    """Join what holds for the product with what holds for its compute capability."""
    lacks = tuple(own.get("lacks", ()))
    kept = {name: value for name, value in shared.items() if not (lacks and name.startswith(lacks))}
    figures: dict[str, Any] = {"key": key, **kept, **{name: own[name] for name in own if name != "lacks"}}
    figures["source"] = {**_sources(shared), **_sources(own)}
    figures["match"] = tuple(own.get("match", ()))
    fields = {known.name: known for known in dataclasses.fields(Device)}
    if unknown := sorted(set(figures) - set(fields)):
        raise DomainError(f"{FOLDER} device {key!r}: no such figures: {unknown}")
    for name, known in fields.items():
        if name not in figures:
            if known.default is dataclasses.MISSING:
                raise DomainError(f"{FOLDER} device {key!r}: {name} is missing")
        elif known.type in _KINDS:
            figures[name] = _checked(f"{FOLDER} device {key!r}: {name}", figures[name], known.type)
    if not figures["match"] or not figures["source"]:
        raise DomainError(f"{FOLDER} device {key!r}: needs match and source")
    return Device(**figures)


def _sources(figures: Mapping[str, Any]) -> dict[str, str]:
    """Return the source of each figure, where a key may name several."""
    return {name: text for names, text in figures.get("source", {}).items() for name in names.split()}


def _checked(where: str, value: object, kind: object) -> object:
    """Return ``value`` if it is of ``kind``; a number must not be negative."""
    wrong = not isinstance(value, _KINDS[kind]) or (isinstance(value, bool) and kind != bool | None)
    if wrong or (isinstance(value, (int, float)) and value < 0):
        raise DomainError(f"{where} must be of {kind} and not negative but is {value!r}")
    return float(value) if isinstance(value, int) and kind in (float, float | None) else value


def read_devices(text: str | None = None) -> dict[str, Device]:
    """Read the catalogue, or ``text`` in its place: key, then `Device`, the newest compute capability first."""
    tables = tables_of_folder(FOLDER) if text is None else tables_of(FOLDER, text)
    if stray := sorted(set(tables) - {"capability", "device"}):
        raise DomainError(f"{FOLDER}: {stray} is neither capability nor device")
    known = {}
    for key, own in tables.get("device", {}).items():
        version = own.get("compute_capability")
        if version not in tables.get("capability", {}):
            raise DomainError(f"{FOLDER} device {key!r}: no table for compute capability {version!r}")
        capability(version)
        known[key] = _device(key, own, tables["capability"][version])
    newest = sorted(known.values(), key=lambda one: capability(one.compute_capability), reverse=True)
    return {one.key: one for one in newest}


@cache
def devices() -> Mapping[str, Device]:
    """Return the known devices by key.

    >>> round(devices()["H200"].fp32_peak_flop_per_s / 1e12, 1)
    66.9
    """
    return MappingProxyType(read_devices())


@cache
def capabilities() -> Mapping[str, Mapping[str, Any]]:
    """Return what the products of each compute capability share.

    >>> capabilities()["9.0"]["fp64_lanes_per_sm"]
    64
    """
    return MappingProxyType(tables_of_folder(FOLDER)["capability"])


@cache
def _names() -> dict[str, Device]:
    """Return the devices by key and product name in small letters, and by the names that tools print."""
    known = devices().values()
    names = {name: one for one in known for name in one.match}
    return {**names, **{name.lower(): one for one in known for name in (one.name, one.key)}}


def find_device(name: str) -> Device | None:
    """Return the device of a product name as tools print it, or of a key; None where the catalogue has none.

    A part of a GPU is not the GPU, and the GPU of a laptop is not the card.

    >>> find_device("NVIDIA A100-SXM4-40GB MIG 1g.5gb"), find_device("NVIDIA GeForce RTX 4090 Laptop GPU")
    (None, None)
    """
    plain = re.sub(r"\s*\(\d+\)$", "", name.strip())
    return _names().get(plain) or _names().get(plain.lower())


def device(name: str) -> Device:
    """Return the device of a product name as tools print it, or of a key; raise `NotFoundError` otherwise.

    >>> device("GeForce GTX 1080 Ti (0)").key, device("h200").sms
    ('GTX1080Ti', 132)
    """
    if (known := find_device(name)) is not None:
        return known
    plain = re.sub(r"\s*\(\d+\)$", "", name.strip())
    raise NotFoundError.near("device", plain, [*devices(), *(other for d in devices().values() for other in d.match)])

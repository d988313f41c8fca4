"""The devices: every entry is whole, and its figures give the rates that makers and databases print.

``printed_rates.csv`` was typed from datasheets, white papers and the TechPowerUp GPU database, apart from the
catalogue, so that a slip in one of the two shows.
"""

import csv
from pathlib import Path

import pytest

from profsvc.errors import DomainError, NotFoundError
from profsvc.specs import device, devices, figures
from profsvc.specs.hardware import capabilities, find_device
from profsvc.specs.table_files import tables_of_folder

with Path(__file__).with_name("printed_rates.csv").open(encoding="utf-8", newline="") as file:
    PRINTED = {row["device"]: row for row in csv.DictReader(file)}

# Shares by which a rate may differ that is printed in two digits, or as an eighth of that of a board.
FP32_ROUNDED = {"B200": 0.01, "B300": 0.03, "GB200": 0.005}
FP64_ROUNDED = {"B200": 0.01, "B300": 0.01, "H800-SXM": 0.05, "H20": 0.1}

# Rates of the pipe at the boost clock, over the printed ones, which are at the clock of its own load.
TENSOR_CLOCKS = (0.97, 1.10)
TENSOR_KINDS = ("fp16", "bf16", "tf32", "fp8", "int8", "fp64")


def of(column: str) -> list[tuple[str, float]]:
    return [(key, float(row[column])) for key, row in PRINTED.items() if row[column]]


def test_every_device_has_printed_rates() -> None:
    assert set(PRINTED) == set(devices())


@pytest.mark.parametrize("key", list(devices()))
def test_devices_are_whole(key: str) -> None:
    known = devices()[key]
    assert known.warp_size == 32
    assert known.registers_per_sm % known.register_allocation_unit == 0
    assert known.register_allocation_scope in ("warp", "block")
    assert known.shared_mem_per_block_max_bytes <= known.shared_mem_per_sm_bytes
    assert known.max_threads_per_block <= known.max_warps_per_sm * known.warp_size
    assert {"limits", "allocation", "lanes", "sms", "clocks", "dram"} <= set(known.source)
    assert (known.l2_size_bytes is None) or "l2" in known.source
    assert (known.l1_size_bytes is None) or "l1" in known.source
    assert (known.tdp_w is None) or "tdp" in known.source
    assert (known.has_fan is None) or "fan" in known.source
    assert (known.tensor_fp16_op_per_s is None) or "tensor" in known.source
    assert (known.die_width_mm is None) == (known.die_height_mm is None)
    assert (known.die_width_mm is None) or "die" in known.source
    assert 1e8 < known.boost_clock_hz < 4e9
    assert 1e10 < known.dram_peak_bytes_per_s < 2e13
    assert known.base_clock_hz is None or known.base_clock_hz < known.boost_clock_hz
    assert known.tdp_w is None or 5 <= known.tdp_w <= 1500
    assert device(known.name) is device(key) is known
    assert all(device(name) is known for name in known.match)


def test_no_two_devices_share_a_name() -> None:
    names = [name for one in devices().values() for name in {one.name, *one.match}]
    assert len(names) == len(set(names))


@pytest.mark.parametrize(("key", "tflops"), of("fp32_tflops"))
def test_fp32_peaks_are_those_printed(key: str, tflops: float) -> None:
    known = devices()[key]
    hertz = known.base_clock_hz if PRINTED[key]["clock"] == "base" else known.boost_clock_hz
    assert hertz is not None
    assert 2 * known.sms * known.fp32_lanes_per_sm * hertz == pytest.approx(
        tflops * 1e12, rel=FP32_ROUNDED.get(key, 0.002)
    )


@pytest.mark.parametrize(("key", "tflops"), of("fp64_tflops"))
def test_fp64_peaks_are_those_printed(key: str, tflops: float) -> None:
    assert devices()[key].fp64_peak_flop_per_s == pytest.approx(tflops * 1e12, rel=FP64_ROUNDED.get(key, 0.005))


@pytest.mark.parametrize(("key", "gigabytes"), of("dram_gb_per_s"))
def test_dram_peaks_are_those_printed(key: str, gigabytes: float) -> None:
    assert devices()[key].dram_peak_bytes_per_s == pytest.approx(gigabytes * 1e9, rel=0.004)


@pytest.mark.parametrize(("key", "tflops"), of("tensor_fp16_tflops"))
def test_tensor_rates_are_those_printed(key: str, tflops: float) -> None:
    known = devices()[key]
    assert known.tensor_fp16_op_per_sm_cycle is not None
    ratio = known.tensor_fp16_op_per_sm_cycle * known.sms * known.boost_clock_hz / (tflops * 1e12)
    assert TENSOR_CLOCKS[0] < ratio < TENSOR_CLOCKS[1]


@pytest.mark.parametrize("key", list(devices()))
def test_rates_of_tensor_cores_per_second_and_per_sm_agree(key: str) -> None:
    known = devices()[key]
    for kind in TENSOR_KINDS:
        second, cycle = (getattr(known, f"tensor_{kind}_op_per_{per}") for per in ("s", "sm_cycle"))
        if second is not None:
            assert cycle is not None, kind
            assert TENSOR_CLOCKS[0] < cycle * known.sms * known.boost_clock_hz / second < TENSOR_CLOCKS[1], kind


def test_dram_peaks_are_two_transfers_a_clock_where_clock_and_bus_are_known() -> None:
    for known in devices().values():
        if known.memory_clock_hz and known.memory_bus_width_bits:
            peak = 2 * known.memory_clock_hz * known.memory_bus_width_bits / 8
            assert known.dram_peak_bytes_per_s == pytest.approx(peak, rel=0.005), known.key


@pytest.mark.parametrize(
    ("printed", "key"),
    [
        ("NVIDIA H200", "H200"),
        ("NVIDIA H100 80GB HBM3", "H100-SXM"),
        ("Tesla K40c (0)", "K40c"),
        ("TITAN Xp (0)", "TITANXp"),
        ("Tesla P100-SXM2-16GB (3)", "P100-SXM2"),
        ("NVIDIA GeForce RTX 4090", "RTX4090"),
        ("gtx950", "GTX950"),
    ],
)
def test_devices_are_found_by_what_tools_print(printed: str, key: str) -> None:
    assert device(printed).key == key


@pytest.mark.parametrize(
    "printed",
    [
        "NVIDIA GeForce RTX 4090 Laptop GPU",
        "NVIDIA GeForce RTX 3080 Laptop GPU",
        "NVIDIA A100-SXM4-40GB MIG 1g.5gb",
        "NVIDIA H100 80GB HBM3 MIG 1g.10gb",
        "GRID A10-4Q",
        "NVIDIA A40-48Q",
        "GRID A100-10C",
        "Orin",
        "Xavier",
        "NVIDIA H2000",
    ],
)
def test_a_part_of_a_gpu_or_a_laptop_is_not_the_device(printed: str) -> None:
    assert find_device(printed) is None
    with pytest.raises(NotFoundError):
        device(printed)


@pytest.mark.parametrize("version", list(capabilities()))
def test_a_device_that_is_not_listed_has_the_limits_of_its_capability(version: str) -> None:
    known = figures("a new board", version)
    assert known["warp_size"] == 32
    assert known["max_warps_per_sm"] in (24, 32, 48, 64)
    assert "sms" not in known
    assert "source" not in known
    assert set(capabilities()[version]["source"])


def test_a_table_stands_in_one_file_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "devices"
    folder.mkdir()
    for name in ("a.toml", "b.toml"):
        (folder / name).write_text("[device.A]\nsms = 1\n", encoding="utf-8")
    monkeypatch.setattr("profsvc.specs.table_files.DATA", tmp_path)
    with pytest.raises(DomainError, match=r"devices/b.toml: device \['A'\] stands in another file"):
        tables_of_folder("devices")

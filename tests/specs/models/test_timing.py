"""timing.toml agrees with the model, with the catalogue of devices and with itself; a wrong entry is named."""

import inspect
import re

import pytest

from profsvc.errors import DomainError, NotFoundError
from profsvc.formulas.mwp_cwp import Execution, exec_cycles, m_factor
from profsvc.specs.hardware import device
from profsvc.specs.models.timing import memory_parameters, memory_table, read_timing, timing
from profsvc.specs.table_files import text_of

TEXT = text_of("models/timing.toml")


def test_parameters_are_those_of_the_model() -> None:
    names = {entry["name"] for entry in timing()["parameter"]}
    arguments = set(inspect.signature(exec_cycles).parameters) - {"N_pw", "rep", "load", "form"}
    assert arguments <= names
    assert names - arguments <= set(Execution._fields) | {"n_mem", "n_total"}


def test_memory_parameters_go_into_the_model() -> None:
    gtx280, fx5600 = memory_parameters("GTX280"), memory_parameters("FX5600")
    assert (gtx280.Mem_LD, gtx280.dep_uncoal, gtx280.dep_coal) == (450, 40, 4)
    assert (fx5600.Mem_LD, fx5600.dep_uncoal, fx5600.dep_coal, fx5600.uncoal_per_mw) == (420, 10, 4, 32)
    assert gtx280.uncoal_per_mw is None  # the print has a citation there
    assert memory_parameters("8800GT").Mem_LD == memory_parameters("8800GTX").Mem_LD == 420
    with pytest.raises(NotFoundError, match="no device with memory parameters named 'T4'"):
        memory_parameters("T4")
    assert memory_table("GTX280") == {"Mem_LD": 450, "dep_uncoal": 40, "dep_coal": 4, "coal_per_mw": 1}
    assert memory_table("H200")["uncoal_per_mw"] == 32
    assert memory_table("T4") == memory_table(None) == {}


def test_factors_follow_from_the_rates_and_are_near_what_was_measured() -> None:
    for entry in timing()["instruction"]:
        if "ops_per_cycle" in entry:
            assert m_factor(entry["ops_per_cycle"]).value == entry["m_factor"]
            assert entry["m_factor_measured"] == pytest.approx(entry["m_factor"], rel=0.1)
    assert {e["name"]: e["m_factor_measured"] for e in timing()["instruction"]}["int_mul"] == 4.3


@pytest.mark.parametrize(
    ("name", "mem", "tolerance"), [("Sepia", 6, 0.05), ("Mat.(naive)", 4001, 0.05), ("SVM", 817, 0.05)]
)
def test_memory_instructions_of_the_benchmarks(name: str, mem: float, tolerance: float) -> None:
    entry = {e["name"]: e for e in timing()["benchmark"]}[name]
    assert entry["comp_max"] / mem == pytest.approx(entry["comp_per_mem"], abs=tolerance)


def test_peaks_and_machines_agree_with_the_catalogue() -> None:
    for entry in timing()["peak"]:
        known = device(entry["device"])
        lanes = known.sms * known.fp32_lanes_per_sm
        peak = lanes * known.boost_clock_hz * entry["flop_per_lane"]
        if entry["device"] == "FX5600":
            assert peak == pytest.approx(345.6e9)  # against the print
        else:
            assert peak == pytest.approx(entry["printed_flop_per_s"], abs=0.5e9)
    gtx580 = next(entry for entry in timing()["machine"] if entry["name"] == "GTX580")
    known = device("GTX580")
    assert (
        gtx580["cores"],
        gtx580["frequency_hz"],
        gtx580["bandwidth_bytes_per_s"],
        gtx580["float_units_per_core"],
    ) == (
        known.sms,
        known.boost_clock_hz,
        known.dram_peak_bytes_per_s,
        known.fp32_lanes_per_sm,
    )


def test_microbenchmarks_get_longer() -> None:
    loops = [(e["mem_per_loop"], e["comp_per_loop"], e["float_per_loop"]) for e in timing()["microbenchmark"]]
    assert [mem for mem, _, _ in loops] == [0, 1, 1, 2, 2, 4, 6]
    assert all(floats <= comp for _, comp, floats in loops)


def test_the_later_model_needs_no_more_cores_with_all_accesses_in_memory() -> None:
    for entry in timing()["cores"]:
        assert entry.get("later_all_dram", 0) <= entry["later_dram"] <= entry["later_l1"] == 16


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("[[peak]]", "[[peaks]]", "needs exactly the tables"),
        ('name = "Mb2"', 'name = "Mb1"', "microbenchmark: ['Mb1'] stand more than once"),
        ("mem_per_loop = 0", 'mem_per_loop = "0"', "microbenchmark 'Mb1': mem_per_loop must be a number of 0 or more"),
        ("Mem_LD = 450", "Mem_LD = -450", "memory 'GTX280': Mem_LD must be a number of 0 or more but is -450"),
        ('device = "GTX280"\nMem', 'device = "GTX290"\nMem', "memory 'GTX290': no such device in the catalogue"),
        ('"Hong2012, table 6"', '"Wong2012, table 6"', "instruction 'float_add': no reference 'Wong2012'"),
        ("dep_coal = 4\n", "", "memory 'FX5600': needs ['Mem_LD'"),
        ("dep_coal = 4\n", "dep_coal = 4\ndepth = 1\n", "memory 'FX5600': needs ['Mem_LD'"),
    ],
)
def test_a_wrong_entry_is_named(old: str, new: str, message: str) -> None:
    assert old in TEXT
    with pytest.raises(DomainError, match=re.escape(message)):
        read_timing(TEXT.replace(old, new, 1) if old != "[[peak]]" else TEXT.replace(old, new))

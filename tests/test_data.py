"""Every row of every table under profsvc/data is well-formed, and the readers refuse what is not."""

import re
from collections.abc import Callable

import pytest

from profsvc.errors import DomainError, NotFoundError, UsageError
from profsvc.specs import counters, device, labels, metrics, references, units
from profsvc.specs.hardware import read_devices
from profsvc.specs.metrics.mapping import read_metrics
from profsvc.specs.metrics.mapping import references as referred
from profsvc.specs.metrics.vocabulary import read_counters, read_labels, read_sections, read_units
from profsvc.specs.published.references import read_references
from profsvc.specs.table_files import ANY, TOOLS, rows_of

NCU_CHIPS = ["7.0", "7.2", "7.5", "8.0", "8.6", "8.7", "8.9", "9.0", "10.0", "12.0"]
NVPROF_CHIPS = ["3.0", "3.5", "3.7", "5.0", "5.2", "6.0", "6.1", "7.0", "7.5"]
METRICS_HEAD = "tool,min_cc,max_cc,counter,expression,confidence\n"


def test_there_is_a_counter_for_every_name_the_metrics_use() -> None:
    assert len(counters()) >= 420
    for tool, rows in read_metrics().items():
        for row in rows:
            assert row.counter in counters(), (tool, row)
            assert referred(row.expression) <= set(counters())


def test_names_of_counters_carry_their_units() -> None:
    suffixes = {"ns": "_ns", "Hz": "_hz", "byte/s": "_bytes_per_s", "flop/s": "_flop_per_s", "W": "_w", "degC": "_c"}
    for name, counter in counters().items():
        if counter.unit in suffixes:
            assert name.endswith(suffixes[counter.unit]), name
        if name.endswith("_fraction"):
            assert counter.unit == "1", name
        if counter.unit == "byte":
            assert "bytes" in name, name


def test_meanings_stand_on_one_short_line() -> None:
    for counter in counters().values():
        assert counter.meaning[0].isupper(), counter
        assert not counter.meaning.endswith("."), counter
        assert 8 <= len(counter.meaning) <= 130, counter


@pytest.mark.parametrize("chip", NCU_CHIPS)
def test_every_chip_of_ncu_has_most_counters(chip: str) -> None:
    known = metrics("ncu", chip)
    assert len(known) > 340
    assert {"duration_ns", "dram_read_bytes", "sol_sm_fraction", "stall_other_fraction"} <= set(known)


@pytest.mark.parametrize("chip", NVPROF_CHIPS)
def test_every_chip_of_nvprof_has_most_counters(chip: str) -> None:
    assert {"duration_ns", "dram_read_bytes", "schedulers_per_sm", "global_load_sectors"} <= set(
        metrics("nvprof", chip)
    )


def test_nvprof_knows_no_chip_from_8_on() -> None:
    assert not metrics("nvprof", "8.0")
    assert not metrics("ncu", "6.1")


def test_a_chip_that_is_not_known_leaves_out_what_depends_on_it() -> None:
    assert "schedulers_per_sm" not in metrics("nvprof")
    assert "l1_writeback_bytes" not in metrics("ncu")
    assert "duration_ns" in metrics("ncu")
    assert metrics("nsys") == metrics("nsys", "9.0")


def test_chips_read_their_own_names() -> None:
    assert "gmma" in metrics("ncu", "9.0")["stall_other_fraction"].text
    assert "gmma" not in metrics("ncu", "10.0")["stall_other_fraction"].text
    assert "dram__bytes_op_read.sum" in metrics("ncu", "12.0")["dram_read_bytes"].text
    assert metrics("nvprof", "6.0")["schedulers_per_sm"].text == "2"
    first = metrics("ncu", "8.0")["tensor_ops_bf16"].alternatives[0]
    assert first.text == "sm__ops_path_tensor_src_bf16_dst_fp32.sum"


def test_expressions_hold_no_percent_and_no_scaled_unit() -> None:
    for rows in read_metrics().values():
        for row in rows:
            assert not re.search(r"/ 100\b|level", row.expression.text), row


@pytest.mark.parametrize("tool", TOOLS)
def test_units_have_a_factor_and_a_unit(tool: str) -> None:
    for token, unit in units(tool).items():
        assert unit.token == token
        assert unit.factor > 0
        assert unit.si_unit
        assert unit.dimension


def test_units_of_the_tools_differ_where_they_should() -> None:
    assert units("ncu")["Gbyte"].factor == 1e9
    assert units("nvprof")["GB"].factor == 2**30
    assert units("nsys")["MB"].factor == 1e6
    assert units("ncu")["Ghz"] == units("ncu")["cycle/nsecond"].__class__("Ghz", 1e9, "Hz", "frequency")
    assert units("ncu")["%"].factor == units("ncu")["%/byte"].factor == 0.01
    assert {row["tool"] for row in rows_of("metrics/units.csv", UNITS_HEAD.strip().split(","))} <= set(TOOLS)


def test_one_dimension_has_one_si_unit() -> None:
    for tool in TOOLS:
        seen: dict[str, set[str]] = {}
        for unit in units(tool).values():
            if unit.dimension != "count":
                seen.setdefault(unit.dimension, set()).add(unit.si_unit)
        assert not {dimension: found for dimension, found in seen.items() if len(found) > 1}


def test_labels_mean_metrics() -> None:
    sections = read_sections()
    assert len(set(sections.values())) == len(sections)
    for section, label, metric, low, high in read_labels():
        assert label == label.strip() != "", (section, metric)
        assert re.fullmatch(r"[A-Za-z_][\w.]*", metric), metric
        assert ANY[0] <= low <= high <= ANY[1]
    assert {section for section, *_ in read_labels()} - set(sections) == {"Nvlink", "C2CLink"}


def test_labels_depend_on_the_section_and_the_chip() -> None:
    assert (
        labels("9.0")["SpeedOfLight", "Memory Throughput"]
        != labels("9.0")["MemoryWorkloadAnalysis", "Memory Throughput"]
    )
    key = ("SpeedOfLight_HierarchicalSingleRooflineChart", "L1/TEX peak local/global writeback cycles")
    assert labels("8.0")[key] == "l1tex__lsu_writeback_active_mem_lg.sum.peak_sustained"
    assert labels("9.0")[key] == "l1tex__lsu_writeback_active_mem_lgds.sum.peak_sustained"
    assert key not in labels()


def test_a_device_that_is_not_known_brings_the_nearest() -> None:
    with pytest.raises(NotFoundError, match=r"did you mean .*H200"):
        device("NVIDIA H2000")
    with pytest.raises(NotFoundError, match="no tool named 'nvproof'"):
        metrics("nvproof", "7.0")
    with pytest.raises(UsageError, match=r"written as 9\.0"):
        metrics("ncu", "sm_90")


def test_references_are_whole() -> None:
    for key, reference in references().items():
        assert re.fullmatch(r"[A-Z][A-Za-z]*\d{4}|NsightCompute", key), key
        assert 1900 < reference.year < 2030
        assert not reference.doi or re.fullmatch(r"10\.\d{4,}/\S+", reference.doi)
        assert reference.title in str(reference)
    assert {"FineGrained2016", "Ryoo2008", "HongKim2009", "HongKim2010", "Sim2012", "Hong2012"} <= set(references())
    assert {"Kim2012", "Lemeire2017", "Williams2009", "Amdahl1967", "NsightCompute"} <= set(references())


UNITS_HEAD = "tool,token,dimension,factor,si_unit,prefixes\n"
COUNTERS_HEAD = "counter,unit,kind,meaning,better,models\n"
LABELS_HEAD = "section,label,metric,min_cc,max_cc\n"


@pytest.mark.parametrize(
    ("read", "text", "message"),
    [
        (read_units, "tool,token\n", "units.csv line 1: needs the columns"),
        (read_units, UNITS_HEAD + "ncu,s,time,1,s\n", "units.csv line 2: needs 6 cells but has 5"),
        (read_units, UNITS_HEAD + "ncu,s,time,one,s,\n", "line 2: factor must be a number"),
        (read_units, UNITS_HEAD + "ncu,s,time,1,s,\nncu,s,time,1,s,\n", "line 3: 's' occurs twice"),
        (read_units, UNITS_HEAD + "ncu,s,time,1,s,60\n", "line 2: prefixes must be one of"),
        (read_counters, COUNTERS_HEAD + "a_b,1,number,Word,up,\n", "line 2: better must be one of"),
        (read_counters, COUNTERS_HEAD + "A,1,number,Word,,\n", "'A' is not a name"),
        (read_counters, COUNTERS_HEAD + "a,,number,Word,,\n", "needs a unit"),
        (read_counters, COUNTERS_HEAD + "a,1,number,Word,,\n" * 2, "line 3: 'a' occurs twice"),
        (read_labels, LABELS_HEAD + "S,L,m,9,\n", "line 2: min_cc must be a compute capability"),
        (read_labels, LABELS_HEAD + "S,L,m,,9.0\nS,L,n,8.0,\n", "line 3: 'L' of 'S' occurs twice"),
        (read_metrics, METRICS_HEAD + "ncu,9.0,8.0,warp_size,a,doc\n", "line 2: min_cc must not be above"),
        (read_metrics, METRICS_HEAD + "ncu,,,warp_size,a +,doc\n", "line 2: cannot read expression"),
        (read_metrics, METRICS_HEAD + "ncu,,,nothing,a,doc\n", "line 2: 'nothing' is not in counters.csv"),
        (read_metrics, METRICS_HEAD + "ncu,,,warp_size,@nothing,doc\n", "line 2: 'nothing' is not in counters.csv"),
        (read_metrics, METRICS_HEAD + "ncu,,,warp_size,a,sure\n", "line 2: confidence must be one of"),
        (
            read_metrics,
            METRICS_HEAD + "ncu,,8.0,warp_size,a,doc\nncu,8.0,,warp_size,b,doc\n",
            "line 3: 'warp_size' has",
        ),
        (
            read_metrics,
            METRICS_HEAD + "ncu,,,grid_x,@grid_y,doc\nncu,,,grid_y,@grid_x,doc\n",
            "counters of ncu need each other: grid_",
        ),
        (read_devices, "a = 1\n", "stand outside a table"),
        (read_devices, "[a\n", "devices: "),
        (read_devices, "[gpu.A]\n", "neither capability nor device"),
        (read_devices, '[device.A]\ncompute_capability = "9.0"\n', "no table for compute capability '9.0'"),
        (read_references, "[A2000]\ntitle = 't'\n", "'authors', 'venue', 'year'"),
    ],
)
def test_a_wrong_row_is_named(read: Callable[[str], object], text: str, message: str) -> None:
    with pytest.raises(DomainError, match=re.escape(message)):
        read(text)


DEVICE = '[capability."9.0"]\nwarp_size = 32\n[device.A]\nname = "A"\nmatch = ["A"]\ncompute_capability = "9.0"\n'


@pytest.mark.parametrize(
    ("figures", "message"),
    [
        ("speed = 3\n", "device 'A': no such figures: ['speed']"),
        ("sms = 3\n", "device 'A': schedulers_per_sm is missing"),
        ("sms = -3\n", "device 'A': sms must be of"),
        ("sms = true\n", "device 'A': sms must be of"),
    ],
)
def test_a_wrong_figure_of_a_device_is_named(figures: str, message: str) -> None:
    source = '[device.A.source]\nsms = "x"\n'
    with pytest.raises(DomainError, match=re.escape(message)):
        read_devices(DEVICE + figures + source)

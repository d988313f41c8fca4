"""Blocks of a trace read at once give what the same lines give one by one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profsvc.formats.nvprof.blocks import parse
from profsvc.formats.nvprof.column_plan import column_plan
from profsvc.formats.nvprof.lines import TRACE, Layout
from profsvc.formats.nvprof.values import Values
from profsvc.formats.parsing.numbers import NumberFormat
from tests.formats.both_ways import READERS, with_another_cell
from tests.formats.conftest import ODD_NUMBERS
from tests.inputs.long_exports import gpu_trace

agree = READERS["nvprof"].agree


HEADER = (
    '"Start","Duration","Grid X","Grid Y","Grid Z","Block X","Block Y","Block Z","Registers Per Thread","Static SMem",'
    '"Dynamic SMem","Size","Throughput","Device","Context","Stream","Name"'
)
UNITS = "s,ms,,,,,,,,KB,B,MB,GB/s,,,,"
ROW = '1.25,2.5,4,1,1,64,1,1,16,1.000000,128,,,"GPU A (0)","1","7","saxpy(float*, int) [123]"\n'
COPY = '1.5,0.5,,,,,,,,,,4.0,8000.0,"GPU A (0)","1","7","[CUDA memcpy HtoD]"\n'
CALL = '1.75,0.01,,,,,,,,,,,,,,,"cudaLaunch (saxpy(float*, int) [123])"\n'


def trace(*rows, extra="", units=UNITS):
    return f"==1== Profiling result:\n{HEADER}{extra}\n{units}\n{''.join(rows)}".encode()


def test_a_long_trace_gives_the_same_both_ways():
    data = "".join(gpu_trace(400)).encode()
    found = agree(data)
    assert (len(found[0]["launches"]), len(found[0]["transfers"]), found[1]) == (320, 80, [400, 3, 0])
    assert found[2]["prefixes"] == "1024, by the sizes and throughputs of copies"


def test_plain_rows_are_read_at_once():
    layout = Layout(TRACE, HEADER.replace('"', "").split(","), UNITS.split(","))
    part = parse((ROW + COPY + CALL).encode(), column_plan(layout, Values(NumberFormat())))
    assert (part.rows, part.devices) == (3, ["GPU A (0)"])
    assert {name: columns["line"].tolist() for name, columns in part.tables.items()} == {
        "launches": [0],
        "transfers": [1],
        "api_calls": [2],
    }
    launch = {name: column.tolist()[0] for name, column in part.tables["launches"].items()}
    assert (launch["kernel"], launch["correlation_id"]) == ("saxpy(float*, int)", 123)
    assert (launch["start_ns"], launch["duration_ns"]) == (1_250_000_000, 2_500_000)
    assert (launch["shared_mem_static_bytes"], launch["shared_mem_dynamic_bytes"]) == (1024, 128)
    assert part.tables["transfers"]["bytes"].tolist()[0] == 4 << 20
    assert part.tables["api_calls"]["name"][0] == "cudaLaunch (saxpy(float*, int) [123])"


@pytest.mark.parametrize(
    "odd",
    [
        "program output\n",
        "\n",
        "1.5,2\n",
        "==1== Warning: no\n",
        HEADER + "\n",
        ROW.replace("1.25", "-1.25"),
        ROW.replace("1.25", "nan"),
        ROW.replace("1.25", "1e99"),
        ROW.replace("1.25", '"1,25"'),
        ROW.replace(",4,", ",4.0,"),
        ROW.replace(",4,", ",,"),
        ROW.replace(",4,", ",-4,"),
        ROW.replace(",4,", ",9007199254740993,"),
        ROW.replace(",4,", ",0x4,"),
        ROW.replace(",4,", ',"0X4",'),
        COPY.replace("8000.0", '"8000.0\n"'),
        COPY.replace("8000.0", '8000.0"'),
        COPY.replace("8000.0", '"8000.0\n'),
        ROW.replace("saxpy(float*, int) [123]", ""),
        ROW.replace("saxpy(float*, int) [123]", " [123]"),
        ROW.replace("saxpy(float*, int)", "f"),
        ROW.replace("[123]", "[123456789012]"),
        ROW.replace("[123]", "[x]"),
        ROW.replace("saxpy(float*, int) [123]", "Stream[12]"),
        ROW.replace("(float", '""(float'),
        ROW.replace("int)", "int"),
        ROW.replace('"GPU A (0)"', 'GPU A (0)"'),
        ROW.replace('[123]"', '[123]" [5]"'),
        CALL.replace('"cuda', "cuda"),
        COPY.replace('"[CUDA', "[CUDA"),
        ROW.replace("saxpy(float*, int) [123]", "[CUDA memcpy HtoD]"),
        ROW.replace("saxpy(float*, int) [123]", "[Unified Memory GPU page faults]"),
        ROW.replace("GPU A (0)", ""),
        ROW.replace("GPU A (0)", "GPU A"),
        ROW.replace("[123]", "\u00e4 [5]"),
        COPY.replace("HtoD]", "HtoD] [77]"),
        CALL.replace("[123])", "[123]"),
        ROW[:-1] + "\r\n",
        ROW[:60],
        ROW[:-2],
    ],
)
def test_an_odd_line_among_plain_ones(odd):
    agree(trace(ROW, COPY, CALL, odd, ROW.replace("123", "124"), COPY, CALL))
    agree(trace(ROW, COPY, CALL, odd))


ODD_CELLS = ("1e-05", "2.5e+01", "007", " 5", "5 ", "x", "1,5", '""', "'")
CELLS = st.sampled_from([*ROW.split(","), *COPY.split(","), *ODD_CELLS])
LINES = st.one_of(
    st.sampled_from([ROW, COPY, CALL, CALL.replace("[", "("), HEADER + "\n", UNITS + "\n"]),
    with_another_cell([ROW, COPY, CALL], CELLS, 16),
    st.text("=19.,\"'[]() aZ\u00e9", max_size=30).map(lambda text: text + "\n"),
)


@pytest.mark.parametrize("cell", [*ODD_NUMBERS, "-.5", "1e0003", "1E-1000"])
def test_an_odd_number_among_plain_ones(cell):
    for number in ("1.25,", "2.5,", ",4,", ",1.000000,", ",128,"):
        agree(trace(ROW, ROW.replace(number, number.replace(number.strip(","), cell), 1), ROW))
    agree(trace(COPY, COPY.replace(",4.0,", f",{cell},"), COPY))


@given(st.lists(LINES, max_size=25))
def test_any_lines_give_the_same_both_ways(lines):
    agree(trace(ROW, *lines))


@pytest.mark.parametrize("units", ["s,us,,,,,,,,B,B,KB,MB/s,,,,", "ms,ns,,,,,,,,,,B,,,,,", "s,ms,,,,,,,,lb,B,,,,,,"])
def test_other_units(units):
    agree(trace(ROW, COPY, CALL, ROW, units=units))


def test_numbers_of_calls_in_their_own_column():
    def rows(*pairs):
        return [row[:-1] + f",{number}\n" for row, number in pairs]

    extra, units = ',"Correlation_ID"', "s,ms,,,,,,,,KB,B,MB,GB/s,,,,,"
    agree(trace(*rows((ROW, 123), (COPY, 124), (CALL, 123), (ROW, 123)), extra=extra, units=units))
    agree(trace(*rows((ROW, 123), (COPY, 124), (CALL, 123), (ROW, 99)), extra=extra, units=units))
    agree(trace(*rows((ROW, 123), (ROW, ""), (CALL, "")), extra=extra, units=units))

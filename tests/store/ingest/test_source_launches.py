"""Source pages in a store: alone, beside pages of the same report, of several forms, ambiguous, hostile, deleted."""

import json
from itertools import permutations
from typing import Any

import pytest
from sqlalchemy import Engine, text

from profsvc import store
from profsvc.errors import InputError
from profsvc.store.connection.transactions import reading
from profsvc.store.schema.contents.source import KEYS
from tests.store.queries.told import One, details, raw, sums, trace, upload

pytestmark = pytest.mark.usefixtures("unanalysed")

REDUCE, SAXPY = "reduce(const float *, float *)", "saxpy(int, float *)"
METRICS = '"# Samples","Instructions Executed","stall_long_sb","stall_selected"'


def sass(*kernels: str, samples: int = 10) -> str:
    """A page of form sass: each kernel with two instructions."""
    return "".join(
        f'"Kernel Name","{kernel}",\n"Address","Source",{METRICS}\n'
        f'"0x{n:x}00","      LDG.E R1, [R2]","{samples + n}","64","{samples}","{n}"\n'
        f'"0x{n:x}10","@P0   EXIT","0","64","0","0"\n'
        for n, kernel in enumerate(kernels, 1)
    )


def both(*kernels: str, samples: int = 10, source: str = "y = x;") -> str:
    """A page of form cuda,sass of the same launches: the load is of two lines, as inlined code is."""
    return "".join(
        f'"File Path","/src/a.cu"\n"Function Name","{kernel}"\n"Line No","Source","Address","Source",{METRICS}\n'
        f'"7","{source}","-","-","{samples + n}","128","{samples}","{n}"\n'
        f'"","","0x{n:x}00","      LDG.E R1, [R2]","{samples + n}","64","{samples}","{n}"\n'
        f'"","","...","...","-","-","-","-"\n'
        f'"","","0x{n:x}10","@P0   EXIT","0","64","0","0"\n'
        f'"9","f();","-","-","{samples + n}","64","{samples}","{n}"\n'
        f'"","","0x{n:x}00","      LDG.E R1, [R2]","{samples + n}","64","{samples}","{n}"\n'
        for n, kernel in enumerate(kernels, 1)
    )


def launches(*kernels: str) -> list[One]:
    return [One(kernel, ns=1_000 + 37 * n) for n, kernel in enumerate(kernels)]


def rows(engine: Engine, query: str) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in store.query(engine, query).rows]


def joined(engine: Engine) -> list[tuple[Any, ...]]:
    query = (
        "select k.kernel, l.launch_index, k.reason from v1_source_kernels k"
        " left join v1_launches l on l.launch_id = k.launch_id order by k.source_id"
    )
    return rows(engine, query)


def test_a_page_alone_can_be_queried(engine: Engine) -> None:
    upload(engine, both(SAXPY), "source.csv")
    assert joined(engine) == [(SAXPY, None, "no file of the run has launches of Nsight Compute")]
    found = rows(
        engine,
        "select kind, file, source_line, source_text, address, opcode, sass, repeated, samples, samples_fraction,"
        " main_stall from v1_source_lines order by line_id",
    )
    load = ("0x100", "LDG.E", "LDG.E R1, [R2]")
    assert found == [
        ("line", "/src/a.cu", 7, "y = x;", None, None, None, 0, 11, 1.0, "Long Scoreboard"),
        ("instruction", "/src/a.cu", 7, "y = x;", *load, 0, 11, 1.0, "Long Scoreboard"),
        ("instruction", "/src/a.cu", 7, "y = x;", "0x110", "EXIT", "@P0   EXIT", 0, 0, 0.0, None),
        ("line", "/src/a.cu", 9, "f();", None, None, None, 0, 11, 1.0, "Long Scoreboard"),
        ("instruction", "/src/a.cu", 9, "f();", *load, 1, 11, 1.0, "Long Scoreboard"),
    ]
    stalls = "select reason, samples from v1_source_stalls where kind = 'instruction' and repeated = 0 order by reason"
    assert rows(engine, stalls) == [("Long Scoreboard", 10), ("Selected", 1)]


@pytest.mark.parametrize("names", list(permutations(("raw", "details", "source"))), ids="+".join)
def test_launches_are_found_by_name_and_order_and_nothing_doubles(engine: Engine, names: tuple[str, ...]) -> None:
    kernels = (REDUCE, SAXPY, REDUCE)
    files = {"raw": raw(launches(*kernels)), "details": details(launches(*kernels)), "source": both(*kernels)}
    for name in names:
        upload(engine, files[name], f"{name}.csv")
    assert joined(engine) == [(REDUCE, 0, None), (SAXPY, 1, None), (REDUCE, 2, None)]
    assert sums(engine)[0] == 3
    total = "select sum(samples) from v1_source_lines where kind = 'instruction' and repeated = 0"
    assert rows(engine, total) == [(11 + 12 + 13,)]


def test_a_launch_of_a_page_is_that_of_the_trace_that_represents_it(engine: Engine) -> None:
    upload(engine, raw(launches(REDUCE, SAXPY)), "raw.csv")
    upload(engine, both(REDUCE, SAXPY), "source.csv")
    upload(engine, trace(launches(REDUCE, SAXPY)), "trace.csv")
    query = "select launch_id from {} order by launch_id"
    assert rows(engine, query.format("v1_source_kernels")) == rows(engine, query.format("v1_launches"))


def test_template_arguments_may_be_printed_in_two_ways(engine: Engine) -> None:
    upload(engine, raw(launches("void f<1>(float *)", "void f<2>(float *)")), "raw.csv")
    upload(engine, both("void f<(int)1>(float *)", "void f<(int)2>(float *)"), "source.csv")
    assert [row[1:] for row in joined(engine)] == [(0, None), (1, None)]


def test_what_is_ambiguous_is_not_joined_and_said(engine: Engine) -> None:
    upload(engine, both(REDUCE, SAXPY), "source.csv")
    upload(engine, raw(launches(REDUCE, SAXPY, REDUCE)), "raw.csv")
    why = f"the page has {REDUCE} once, raw.csv (upload 2) 2 times"
    assert joined(engine) == [(REDUCE, None, why), (SAXPY, 1, None)]


@pytest.mark.parametrize(
    ("kernels", "why"),
    [
        ((REDUCE,), f"the page has {REDUCE} 2 times, raw.csv (upload 2) once"),
        ((SAXPY, SAXPY), f"raw.csv (upload 2) has no kernel {REDUCE}"),
    ],
)
def test_a_page_of_another_report_is_not_joined(engine: Engine, kernels: tuple[str, ...], why: str) -> None:
    upload(engine, both(REDUCE, REDUCE), "source.csv")
    upload(engine, raw(launches(*kernels)), "raw.csv")
    assert joined(engine) == [(REDUCE, None, why), (REDUCE, None, why)]


def test_kernels_in_another_order_are_not_joined(engine: Engine) -> None:
    upload(engine, raw(launches(SAXPY, REDUCE)), "raw.csv")
    upload(engine, both(REDUCE, SAXPY), "source.csv")
    why = "raw.csv (upload 1) has the kernels of the page in another order"
    assert [row[1:] for row in joined(engine)] == [(None, why), (None, why)]


def test_two_reports_that_fit_are_told(engine: Engine) -> None:
    upload(engine, raw(launches(REDUCE)), "one.csv")
    upload(engine, raw([One(REDUCE, ns=77_000)]), "two.csv")
    upload(engine, both(REDUCE), "source.csv")
    assert joined(engine) == [(REDUCE, None, "its kernels fit one.csv (upload 1), two.csv (upload 2)")]


@pytest.mark.parametrize("beside", [True, False], ids=["beside a raw page", "without launches"])
@pytest.mark.parametrize("first", ["sass", "both"])
def test_two_forms_of_one_report_count_once(engine: Engine, beside: bool, first: str) -> None:
    if beside:
        upload(engine, raw(launches(REDUCE, SAXPY)), "raw.csv")
    pages = {"sass": sass(REDUCE, SAXPY), "both": both(REDUCE, SAXPY)}
    for name in sorted(pages, key=lambda name: name != first):
        upload(engine, pages[name], f"{name}.csv")
    query = "select sum(samples), min(source_line) from {} where kind = 'instruction' and repeated = 0"
    assert rows(engine, query.format("v1_source_lines")) == [(11 + 12, 7)]
    assert rows(engine, query.format("v1_source_lines_all")) == [(2 * (11 + 12), 7)]
    assert rows(engine, "select sum(samples) from v1_source_stalls where kind = 'instruction' and repeated = 0") == [
        (11 + 12,)
    ]


def test_two_reports_with_other_samples_count_both(engine: Engine) -> None:
    upload(engine, sass(REDUCE), "one.csv")
    upload(engine, sass(REDUCE, samples=20), "two.csv")
    assert rows(engine, "select sum(samples) from v1_source_lines") == [(11 + 21,)]


@pytest.mark.parametrize("count", [255, 256, 257])
def test_many_lines_and_launches(engine: Engine, count: int) -> None:
    lines = "".join(f'"{n}","a{n};","{n}","1","0","0"\n' for n in range(1, count + 1))
    page = f'"File Path","a.cu"\n"Function Name","{REDUCE}"\n"Line No","Source",{METRICS}\n{lines}'
    upload(engine, page + both(*[SAXPY] * count), "source.csv")
    upload(engine, raw(launches(REDUCE, *[SAXPY] * count)), "raw.csv")
    assert rows(engine, "select count(*) from v1_source_lines where kind = 'line'") == [(3 * count,)]
    assert [row[1] for row in joined(engine)] == list(range(count + 1))
    assert rows(
        engine, f"select source_text, samples from v1_source_lines where samples = {count} and file = 'a.cu'"
    ) == [(f"a{count};", count)]


HOSTILE = 'x\'; DROP TABLE source_lines; -- <script>alert(1)</script> "r"(a), {0} %s \U0001f525 \u202e &amp;'


def test_hostile_text_is_kept_as_it_is(engine: Engine) -> None:
    upload(engine, both(SAXPY, source=HOSTILE), "source.csv")
    assert rows(engine, "select distinct source_text from v1_source_lines where source_line = 7") == [(HOSTILE,)]


def test_a_deleted_page_leaves_nothing(engine: Engine) -> None:
    upload(engine, raw(launches(SAXPY)), "raw.csv")
    upload(engine, both(SAXPY, source="secret();"), "source.csv")
    store.delete_upload(engine, 2)
    with reading(engine) as connection:
        left = {table: connection.execute(text(f"SELECT count(*) FROM {table}")).scalar() for table in KEYS}
        dictionary = connection.execute(text("SELECT count(*) FROM texts WHERE text LIKE '%secret%'")).scalar()
    assert (left, dictionary) == (dict.fromkeys(KEYS, 0), 0)


def test_a_page_outlives_its_launches_and_finds_them_again(engine: Engine) -> None:
    upload(engine, raw(launches(SAXPY)), "raw.csv")
    upload(engine, both(SAXPY), "source.csv")
    store.delete_upload(engine, 1)
    assert joined(engine) == [(SAXPY, None, "no file of the run has launches of Nsight Compute")]
    upload(engine, raw(launches(SAXPY)), "raw.csv")
    assert joined(engine) == [(SAXPY, 0, None)]


def test_a_page_without_rows_stores_nothing(engine: Engine) -> None:
    with pytest.raises(InputError, match="no table of a source page has a complete row"):
        upload(engine, f'"Kernel Name","{SAXPY}"\n"Address","Source",{METRICS}\n', "source.csv")
    assert rows(engine, "select count(*) from v1_runs") == [(0,)]


def report(*kernels: str, samples: int = 10) -> str:
    """The lines of a report with a launch and two instructions of each kernel."""
    said: list[dict[str, Any]] = [{"profsvc": "ncu-report", "version": 1, "package": ""}]
    said.append({"columns": [["gpu__time_duration.sum", "ns"]]})
    for n, kernel in enumerate(kernels):
        identity = {"ID": str(n), "Process ID": "1", "Kernel Name": kernel}
        said.append({"launch": identity, "values": [str(1_000 + 37 * n)]})
        load, leave = (
            [256 * (n + 1), "LDG.E R1, [R2]", 0, 64, samples, n + 1],
            [256 * (n + 1) + 16, "EXIT", None, 64, 0, 0],
        )
        metrics = [
            "inst_executed",
            *(f"smsp__pcsamp_warps_issue_stalled_{name}" for name in ("long_scoreboard", "selected")),
        ]
        said.append({"metrics": metrics, "lines": [["/src/a.cu", 7, "y = x;"]], "instructions": [load, leave]})
    return "".join(json.dumps(one) + "\n" for one in [*said, {"end": len(kernels)}])


def test_the_instructions_of_a_report_are_of_its_launches(engine: Engine) -> None:
    upload(engine, report(SAXPY, REDUCE, SAXPY), "a.ncu-rep")
    assert joined(engine) == [(SAXPY, 0, None), (REDUCE, 1, None), (SAXPY, 2, None)]
    found = rows(
        engine,
        "select kind, source_line, address, opcode, instructions, samples, samples_fraction, main_stall"
        " from v1_source_lines where kernel = 'reduce(const float *, float *)' order by line_id",
    )
    assert found == [
        ("instruction", 7, "0x200", "LDG.E", 64, 12, 1.0, "Long Scoreboard"),
        ("instruction", None, "0x210", "EXIT", 64, 0, 0.0, None),
        ("line", 7, None, None, 64, 12, 1.0, "Long Scoreboard"),
    ]


def test_a_source_page_beside_its_report_counts_once(engine: Engine) -> None:
    upload(engine, report(SAXPY, REDUCE), "a.ncu-rep")
    upload(engine, both(SAXPY, REDUCE), "source.csv")
    assert [row[1] for row in joined(engine)] == [0, 1, 0, 1]
    query = "select kind, kernel, count(*), sum(samples) from v1_source_lines where repeated = 0 group by kind, kernel"
    kinds = {tuple(row[:2]): tuple(row[2:]) for row in rows(engine, query)}
    assert kinds["instruction", SAXPY] == (2, 11)

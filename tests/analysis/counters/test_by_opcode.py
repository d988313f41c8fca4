"""Counters by opcode: equal to what Nsight Compute counts by class, in any order of files, and none where unsure."""

import csv
import io
from itertools import islice
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sqlalchemy import Engine

from profsvc import analysis, store
from profsvc.analysis.counters.by_opcode import counters_by_opcode, with_source_page
from profsvc.specs.metrics.instruction_classes import instruction_classes
from tests.benchmarks.causes import FILES, FIXTURES, FOLDERS, PAGES
from tests.inputs.uploads import ingest_all, pages_of_kernels, unpacked, without_analysis

ON, COUNTER = "thread_inst_executed_pred_on", "inst_bit_convert_thread"
COLUMNS = ["launch_id", "opcode", "access_size", "instructions", "thread_instructions_on"]


def executed(*rows: tuple[object, ...]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=COLUMNS)


def counters(engine: Engine, run: int) -> pd.DataFrame:
    return pd.DataFrame(store.select(engine, "v1_counters", run_id=run)).set_index("launch_id")


def test_sums_are_what_the_profiler_counts_by_class(first_flaws: Engine) -> None:
    counted = counters(first_flaws, 1)
    rows = store.executed_by_opcode(first_flaws, list(counted.index))
    table, _ = counters_by_opcode(rows, counted[ON])
    # Four of 92 kernels spin for a time that differs between the passes of the profiler.
    assert len(table) == len(counted) - 4
    assert table.notna().all(axis=None)
    for name in table:
        np.testing.assert_array_equal(table[name], counted.loc[table.index, name], err_msg=str(name))
        assert table[name].any() == counted.loc[table.index, name].any()
    assert (table[COUNTER] > 0).sum() > 5


@pytest.fixture
def counters_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the analysis of a run end with the counters of its launches, which are its first part, by opcode alone."""
    monkeypatch.setattr(analysis, "with_machine_code", lambda counted, _: counted)
    analyze_launches = analysis.analyze_launches
    monkeypatch.setattr(analysis, "analyze_launches", lambda *given: islice(analyze_launches(*given), 1))


@pytest.mark.usefixtures("counters_alone")
def test_sums_of_library_kernels_are_what_the_profiler_counts(engine: Engine) -> None:
    """Kernels of PyTorch, Triton, JAX and CuPy, with opcodes that programs of one source file seldom have."""
    folder = FIXTURES / "library_pairs"
    contents = [((folder / name).read_bytes(), name) for name in PAGES if "details" not in name]
    counted = counters(engine, ingest_all(engine, contents, store.RunInfo(name="library")).run_id)
    table, _ = counters_by_opcode(store.executed_by_opcode(engine, list(counted.index)), counted[ON])
    known = table[table.notna().all(axis=1)]
    assert (len(counted), len(table), len(known)) == (84, 81, 74)
    for name in sorted({each.counter for each in instruction_classes().values() if each.counter} & set(counted)):
        np.testing.assert_array_equal(known[name], counted.loc[known.index, name], err_msg=name)


def of_some_kernels(folder: Path) -> dict[str, bytes]:
    """Return the files of a set with every fourth of its launches."""
    *tables, source = (unpacked(folder / name) for name in FILES)
    rows = [[*csv.DictReader(io.StringIO(table.decode()))] for table in tables]
    kernels = {row["Kernel Name"] for row in rows[0][1::4]}
    kept = [[row for row in table if row["Kernel Name"] in {*kernels, ""}] for table in rows]  # "" in the row of units
    return dict(zip(FILES, (*map(_written, kept), pages_of_kernels(source, kernels)), strict=True))


def _written(rows: list[dict[str, str]]) -> bytes:
    out = io.StringIO()
    writer = csv.DictWriter(out, [*rows[0]], quoting=csv.QUOTE_ALL)
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue().encode()


@pytest.mark.usefixtures("counters_alone")
def test_counts_are_added_in_any_order_of_files(engine: Engine) -> None:
    said, contents = [], of_some_kernels(FOLDERS["second"])
    for order in (FILES, FILES[::-1], (*FILES[1:], FILES[0])):  # each file is once first, and once last
        files = [(contents[name], f"{name}.csv") for name in order]
        table = counters(engine, ingest_all(engine, files, store.RunInfo(name="-".join(order))).run_id)
        table = table.reset_index(drop=True)
        said.append(table[[each.counter for each in instruction_classes().values() if each.counter]])
        assert said[-1].notna().all(axis=None)
        assert len(table) > 10
    for other in said[1:]:
        pd.testing.assert_frame_equal(said[0], other)
    sources = store.query(engine, f"SELECT DISTINCT expression FROM v1_counter_values WHERE counter = '{COUNTER}'").rows
    assert [row[0].split(":")[0] for row in sources] == ["source page"]


def test_a_counter_that_is_there_stays() -> None:
    own = pd.DataFrame({ON: [60.0, 60.0], COUNTER: [7.0, np.nan]}, index=pd.Index([1, 2], name="launch_id"))
    said = {name: np.array(["m", "m" if name == ON else None], dtype=object) for name in own}
    rows = executed((1, "I2F.S32", None, 2.0, 60.0), (2, "F2I", None, 2.0, 60.0))
    table, sources = with_source_page((own, said), rows)
    assert table[COUNTER].tolist() == [7.0, 60.0]
    assert sources[COUNTER][1].startswith("source page: ")
    assert table["inst_pipe_xu_warp"].tolist() == [2.0, 2.0]


@pytest.mark.parametrize(
    "row",
    [
        (1, None, None, 1.0, 4.0),
        (1, "I2F", None, 1.0, np.nan),
        (1, "I2F", None, np.nan, 4.0),
        (1, "I2F", None, 1.0, 3.0),
        (1, "I2F", None, 1.0, 5.0),
    ],
)
def test_an_unsure_page_gives_nothing(row: tuple[object, ...]) -> None:
    whole = (1, "I2F", None, 2.0, 60.0)
    assert len(counters_by_opcode(executed(whole, (1, "F2I", None, 1.0, 4.0)), pd.Series({1: 64.0}))[0]) == 1
    assert counters_by_opcode(executed(whole, row), pd.Series({1: 64.0}))[0].empty
    assert counters_by_opcode(executed(whole), pd.Series({1: np.nan}))[0].empty


def test_beside_an_opcode_of_no_known_class_single_opcodes_count() -> None:
    rows = executed((1, "I2F", None, 2.0, 60.0), (1, "NEW.X", None, 1.0, 4.0), (2, "I2F", None, 2.0, 60.0))
    table = counters_by_opcode(rows, pd.Series({1: 64.0, 2: 60.0}))[0]
    assert table["inst_i2f_thread"].tolist() == [60.0, 60.0]
    classes = [COUNTER, "inst_ldst_thread", "inst_pipe_xu_warp", "memory_inst_32bit_warp"]
    assert table.loc[1, classes].isna().all()
    assert table.loc[2, classes].tolist() == [60.0, 0.0, 2.0, 0.0]


def test_an_opcode_that_no_class_counts_changes_none() -> None:
    rows = executed((1, "I2F", None, 2.0, 60.0), (1, "WARPGROUP.ARRIVE", None, 1.0, 4.0))
    table = counters_by_opcode(rows, pd.Series({1: 64.0}))[0]
    assert table[COUNTER].tolist() == [60.0]
    assert "" not in table


def test_instructions_that_did_not_run_need_no_class() -> None:
    rows = executed((1, "I2F", None, 2.0, 60.0), (1, "NEW", None, 0.0, 0.0))
    assert counters_by_opcode(rows, pd.Series({1: 60.0}))[0][COUNTER].tolist() == [60.0]


def test_without_access_sizes_the_classes_are_known() -> None:
    rows = executed((1, "LDG.E", None, 2.0, 60.0))
    table, _ = counters_by_opcode(rows, pd.Series({1: 60.0}))
    assert table["inst_ldst_thread"].tolist() == [60.0]
    assert table["memory_inst_32bit_warp"].isna().all()


def test_forms_of_opcodes_have_counters_of_their_own() -> None:
    on = [
        ("IMAD.HI.U32", 32.0), ("IMAD.HI.U32.X", 32.0), ("IMAD.HI", 32.0), ("ISETP.GE.U32.AND", 32.0),
        ("BAR.SYNC", 32.0), ("F2I.U64.TRUNC", 32.0), ("F2I.NTZ", 7.0), ("F2I.FTZ.NTZ", 2.0), ("F2I.FLOOR.NTZ", 32.0),
        ("FCHK", 20.0), ("IDP.4A.S8.S8", 24.0), ("LDC", 1.0),
    ]  # fmt: skip
    rows = executed(*((1, opcode, None, 1.0, threads) for opcode, threads in on))
    rows = rows.assign(lone_instructions=[0.0] * 11 + [1.0])
    table, said = counters_by_opcode(rows, pd.Series({1: sum(threads for _, threads in on)}))
    names = ("inst_multiply_high_thread", "inst_compare_unsigned_thread", "inst_f2i_long_thread")
    assert table.loc[1, list(names)].tolist() == [64.0, 32.0, 32.0]
    assert table.loc[1, ["inst_f2i_nearest_thread", "inst_f2i_thread"]].tolist() == [9.0, 73.0]
    assert table.loc[1, ["inst_divide_check_thread", "inst_dot_product_thread"]].tolist() == [20.0, 24.0]
    assert table.loc[1, ["barrier_inst_warp", "constant_ldc_inst_warp", "inst_lone_warp"]].tolist() == [1.0, 1.0, 1.0]
    assert str(said["inst_lone_warp"][0]).startswith("source page: sum(lone_instructions)")


def test_lookups_are_loads_from_random_places_that_are_not_written(engine: Engine) -> None:
    names = ("cipher_b", "rings_a", "partition_b", "beams_a", "beams_b")
    raw_page, source = (unpacked(FOLDERS["fifth"] / name) for name in (FILES[0], FILES[2]))
    with without_analysis():
        ingest_all(engine, [(raw_page, "raw.csv")], store.RunInfo(name="fifth"))
    launches = store.select(engine, "v1_launches", run_id=1)
    kernels = {row["kernel_short"]: row for row in launches if row["kernel_short"] in names}
    pages = pages_of_kernels(source, {row["kernel"] for row in kernels.values()})
    ingest_all(engine, [(pages, "source.csv")], store.RunInfo(name="fifth"))
    table = counters(engine, 1).loc[[kernels[name]["launch_id"] for name in names]]
    extra = table["shared_wavefronts_sass"] - table["shared_wavefronts_ideal"]
    lookups = (table["shared_lookup_wavefronts"] / extra).tolist()
    assert lookups[0] > 0.9, "a table of 256 entries"
    assert lookups[1:3] == [0.0, 0.0], "a stride, and stores"
    lone = (table["inst_lone_warp"] / table["inst_executed_warp"]).tolist()
    assert lone[3] > 0.9 > 0.2 > lone[4]

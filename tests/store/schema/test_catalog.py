import re

import pytest
from sqlalchemy import Engine, inspect, text

from profsvc import specs, store
from profsvc.store.connection.transactions import reading
from profsvc.store.queries.rows import ORDER
from profsvc.store.schema.catalog import COUNTER_VIEWS, DIALECT_SQL, KINDS, VIEWS, columns_statement, create_view_sql
from profsvc.store.schema.view_definition import FLAGS
from profsvc.tables import DTYPES
from tests.store.conftest import COUNTERS, only_on

# The columns that people were promised; more may stand beside them, none may go.
CONTRACT = """
v1_runs: run_id, project, name, device, host, commit_id, started_at, tags, launches, gpu_time_ns
v1_uploads: upload_id, run_id, file_name, sha256, format, tool, tool_version, status, lines, lines_stored,
    lines_skipped, lines_rejected, message, received_at
v1_rejects: upload_id, line, reason, text
v1_characterizations: upload_id, device, quantity, x, y, unit, method
v1_devices: device_id, name, compute_capability, sms
v1_kernels: kernel_id, kernel, kernel_short
v1_launches: launch_id, run_id, upload_id, launch_index, kernel, kernel_short, device, stream, start_ns, duration_ns,
    grid_x, grid_y, grid_z, block_x, block_y, block_z
v1_transfers: run_id, upload_id, kind, start_ns, duration_ns, bytes
v1_api_calls: run_id, upload_id, name, start_ns, duration_ns, process_id, thread_id, correlation_id
v1_ranges: run_id, upload_id, name, start_ns, duration_ns, domain
v1_kernel_summaries: run_id, upload_id, kernel, calls, total_ns, mean_ns, min_ns, max_ns
v1_sensors: sensor_id, run_id, upload_id, quantity, name, unit, gpu_index, x_mm, y_mm
v1_samples: sensor_id, run_id, quantity, sample_index, time_ns, elapsed_ns, value
v1_counters: launch_id
v1_metrics: run_id, upload_id, launch_id, kernel, metric, raw_text, unit, value, si_unit, invocations, statistic
v1_rules: launch_id, kernel, rule, kind, estimated_saving_fraction, estimated_speedup
v1_criteria: run_id, launch_id, kernel, criterion, value, share, speedup, speedup_as_published, flags
v1_potential: run_id, launch_id, kernel, bound, mem_throughput_ratio, arith_throughput_ratio, speedup, ideal_ns
v1_models: run_id, launch_id, kernel, model, quantity, value, unit, form, label, flags
v1_causes: run_id, launch_id, kernel, rank, cause, title, kind, saving_ns, saving_fraction, low, high, evidence,
    first_step
v1_power: run_id, window, sensor, mean_power_w, corrected_power_w, reference_temperature_c, coefficient_w_per_c,
    coefficient_low, coefficient_high, energy_j, corrected_energy_j, quality
v1_predictions: run_before, run_after, kernel_before, kernel_after, source, criterion, predicted, achieved
"""
PROMISED = {
    line.split(":")[0]: {c.strip() for c in line.split(":")[1].split(",")}
    for line in re.sub(r",\s*\n\s+", ", ", CONTRACT.strip()).splitlines()
}


def columns(view: str) -> list[str]:
    return [*VIEWS[view][1], *(COUNTERS if view in COUNTER_VIEWS else ())]


def test_the_database_has_exactly_these_views(engine: Engine) -> None:
    with reading(engine) as connection:
        found = inspect(connection)
        made = {view: [c["name"] for c in found.get_columns(view)] for view in found.get_view_names()}
    assert made == {view: columns(view) for view in VIEWS}


@pytest.mark.parametrize("view", PROMISED)
def test_promised_columns_are_there(view: str) -> None:
    assert set(columns(view)) >= PROMISED[view]


@pytest.mark.parametrize("view", VIEWS)
def test_every_column_is_explained(view: str) -> None:
    sentence, meanings = VIEWS[view]
    assert sentence.endswith(".")
    assert all(meanings.values())


def test_every_column_is_typed(engine: Engine, stored: store.StoredUpload) -> None:
    for view in VIEWS:
        kinds = KINDS[view] | (dict.fromkeys(COUNTERS, "float") if view in COUNTER_VIEWS else {})
        found = store.table(engine, view)
        assert {c: str(t) for c, t in found.dtypes.items()} == {c: DTYPES[kind] for c, kind in kinds.items()}, view


OWN = {"json_object": ("v1_runs",), "names": ("v1_runs",), "cells": ("v1_metrics",), "point": ("v1_metrics",)}
OWN |= {"now": ("v1_schedules", "v1_slots"), "hex_address": ("v1_source_lines", "v1_source_stalls")}
OWN |= {"evidence": ("v1_causes", "v1_causes_history")}


@pytest.mark.parametrize("view", VIEWS)
def test_views_are_plain_sql_for_both_databases(view: str) -> None:
    for dialect, spelled in DIALECT_SQL.items():
        text = re.sub("(?m)(  |^)-- .*$", "", create_view_sql(view, dialect, {"ipc_sm": 7}))
        if view == "v1_columns":
            text = re.sub(r"\(VALUES .*\)", "", text)  # what it says is not SQL
        for name, own in spelled.items():
            if name.startswith("sample"):  # columns with short names, which others contain as well
                text = text.replace(own, "") if view == "v1_samples" else text
                continue
            others = [other[name] for other in DIALECT_SQL.values() if other is not spelled]
            assert not any(other in text for other in others)
            assert (own in text) == (view.removesuffix("_all") in OWN[name])
            text = text.replace(own, "")
        assert "{" not in text
        assert '"' not in text.replace('"ipc_sm"', "")
        assert not re.search(r"\b(IFNULL|GLOB|GROUP_CONCAT|TOTAL)\b", text, re.IGNORECASE)


@only_on("sqlite", "plans are the database's own")
@pytest.mark.parametrize(
    ("query", "big"),
    [
        ("SELECT * FROM v1_launches WHERE run_id = 1", "l"),
        ("SELECT * FROM v1_launches WHERE launch_id = 1000000001", "l"),
        ("SELECT * FROM v1_metrics WHERE run_id = 1", "m"),
        ("SELECT * FROM v1_metrics WHERE upload_id = 1", "m"),
        ("SELECT * FROM v1_metrics WHERE launch_id = 1000000001", "m"),
        ("SELECT m.value FROM v1_launches l JOIN v1_metrics m ON m.launch_id = l.launch_id WHERE l.run_id = 1", "m"),
        ("SELECT ipc_sm FROM v1_counters WHERE run_id = 1", "l"),
        ("SELECT * FROM v1_rules WHERE run_id = 1", "g"),
        ("SELECT * FROM v1_criteria WHERE run_id = 1", "c"),
        ("SELECT * FROM v1_criteria WHERE launch_id = 1000000001", "c"),
        ("SELECT * FROM v1_potential WHERE launch_id = 1000000001", "c"),
        ("SELECT * FROM v1_power WHERE run_id = 1", "c"),
        ("SELECT * FROM v1_power_models WHERE run_id = 1 AND sensor_id = 1000000001", "c"),
        ("SELECT * FROM v1_transfers WHERE run_id = 1", "e"),
        ("SELECT * FROM v1_transfers WHERE transfer_id = 1000000001", "e"),
        ("SELECT * FROM v1_api_calls WHERE upload_id = 1", "e"),
        ("SELECT * FROM v1_ranges WHERE run_id = 1 AND name = 'epoch'", "e"),
        ("SELECT * FROM v1_kernel_summaries WHERE run_id = 1 AND kernel_short = 'gemm'", "e"),
        ("SELECT * FROM v1_sensors WHERE run_id = 1", "n"),
        ("SELECT * FROM v1_samples WHERE run_id = 1", "s"),
        ("SELECT * FROM v1_samples WHERE upload_id = 1", "s"),
        ("SELECT * FROM v1_samples WHERE sensor_id = 1000000001", "s"),
        ("SELECT s.value FROM v1_sensors n JOIN v1_samples s ON s.sensor_id = n.sensor_id WHERE n.run_id = 1", "s"),
    ],
)
def test_big_tables_are_walked_by_key(engine: Engine, query: str, big: str) -> None:
    with reading(engine) as connection:
        plan = [row[3] for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {query}")]
    assert not [step for step in plan if re.match(rf"SCAN {big}\b|MATERIALIZE|SEARCH {big}\b.*AUTOMATIC", step)], plan


@only_on("sqlite", "plans are the database's own")
@pytest.mark.parametrize("only", ["run_id = 1", "run_id = 1 AND quantity = 'power'", "sensor_id = 1000000001"])
def test_samples_are_reached_through_their_sensor_and_are_sorted_within_their_block_alone(
    engine: Engine, only: str
) -> None:
    query = f"SELECT * FROM v1_samples WHERE {only} ORDER BY {ORDER['v1_samples']}"
    with reading(engine) as connection:
        plan = [row[3] for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {query}")]
    assert "SEARCH s USING INTEGER PRIMARY KEY (rowid>? AND rowid<?) LEFT-JOIN" in plan
    (step,) = [step for step in plan if "ORDER BY" in step]
    assert re.match("USE TEMP B-TREE FOR (RIGHT PART|LAST TERM) OF ORDER BY", step)


def test_flags_are_names(engine: Engine, stored: store.StoredUpload) -> None:
    with reading(engine) as connection:
        lines = create_view_sql("v1_criteria", "sqlite", {}).splitlines()
        sql = next(line for line in lines if " AS flags," in line).split(" AS flags,")[0]
        for bits, names in [
            (0, ""),
            (1, FLAGS[0]),
            (0b1001000000, f"{FLAGS[6]} {FLAGS[9]}"),
            ((1 << len(FLAGS)) - 1, " ".join(FLAGS)),
        ]:
            got = connection.exec_driver_sql(f"SELECT {sql} FROM (SELECT {bits} AS flags) c").scalar_one()
            assert got == names


def said(engine: Engine) -> dict[tuple[str, str], tuple[str, str]]:
    rows = store.select(engine, "v1_columns")
    return {(row["view_name"], row["column_name"]): (row["kind"], row["meaning"]) for row in rows}


def test_the_views_say_what_they_hold(engine: Engine) -> None:
    found = said(engine)
    assert list(found) == [(view, column) for view in VIEWS for column in columns(view)]
    assert found["v1_runs", "name"] == ("text", "name of the run, unique in the project")
    assert found["v1_counters", "dram_read_bytes"] == ("float", specs.counters()["dram_read_bytes"].meaning)
    assert found["v1_columns", "kind"] == ("text", "int, float or text")


@only_on("sqlite", "it keeps a statement as it is written")
def test_the_schema_of_a_file_explains_itself(engine: Engine) -> None:
    with reading(engine) as connection:
        kept = dict(connection.exec_driver_sql("SELECT name, sql FROM sqlite_master WHERE type = 'view'").all())
    for view, (sentence, _) in VIEWS.items():
        assert f"CREATE VIEW {view} AS\n-- {sentence}\nSELECT\n" in kept[view]
    for (view, _), (_, meaning) in said(engine).items():
        assert f"  -- {meaning}\n" in kept[view]


@only_on("postgresql", "it keeps comments")
def test_a_database_explains_itself(engine: Engine) -> None:
    query = (
        "SELECT c.relname, a.attname, col_description(c.oid, a.attnum) FROM pg_class c"
        " JOIN pg_attribute a ON a.attrelid = c.oid WHERE c.relname LIKE 'v1_%' AND c.relkind = 'v' AND a.attnum > 0"
    )
    with reading(engine) as connection:
        found = {(view, column): says for view, column, says in connection.execute(text(query))}
        views = connection.execute(text("SELECT relname, obj_description(oid) FROM pg_class WHERE relkind = 'v'"))
        assert {name: says for name, says in views if name in VIEWS} == {
            v: sentence for v, (sentence, _) in VIEWS.items()
        }
    assert found == {name: meaning for name, (_, meaning) in said(engine).items()}


def test_a_meaning_is_one_line_and_quoted() -> None:
    for _, meanings in VIEWS.values():
        assert not [says for says in meanings.values() if "\n" in says]
    says = {"a": "it's 100 %"}
    assert """["v1_counters", "a", "float", "it''s 100 %"]""" in columns_statement(says)
    assert "('v1_counters', 'a', 'float', 'it''s 100 %')" in create_view_sql("v1_columns", "postgresql", {"a": 1}, says)

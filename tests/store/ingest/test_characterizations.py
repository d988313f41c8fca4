from collections.abc import Iterator

from sqlalchemy import Engine

from profsvc import store
from profsvc.tables import Batch, frame
from tests.store.conftest import batches, info


def measured(*rows: tuple[str, str, float | None, float]) -> Iterator[Batch]:
    """Yield an upload with a measurement a line, and a batch for each."""
    for line, (device, quantity, x, y) in enumerate(rows, 2):
        cells = {"device": [device], "quantity": [quantity], "x": [x], "y": [y], "line": [line]}
        yield Batch({"characterizations": frame("characterizations", cells | {"unit": ["1"]})}, lines_stored=1)


def put(engine: Engine, name: str, *rows: tuple[str, str, float | None, float]) -> store.StoredUpload:
    return store.write_upload(engine, info(name, f"{name}.csv", "characterization"), store.RunInfo(), measured(*rows))


def test_a_measurement_becomes_a_row(engine: Engine) -> None:
    stored = put(engine, "a", ("H200", "F_DRAMThr", 4096.0, 0.9), ("H200", "k_l2_load", None, 2.5))
    assert (stored.run, stored.launches, stored.lines_stored, stored.status) == ("a", 0, 2, "stored")
    assert store.select(engine, "v1_runs")[0]["device"] == "H200"
    first, second = store.select(engine, "v1_characterizations", upload_id=stored.upload_id)
    assert first == {
        "upload_id": 1, "run_id": 1, "device": "H200", "quantity": "F_DRAMThr", "x": 4096.0, "y": 0.9, "unit": "1",
        "method": None, "line": 2,
    }  # fmt: skip
    assert (second["quantity"], second["x"], second["y"], second["line"]) == ("k_l2_load", None, 2.5, 3)


def test_the_newest_upload_of_a_quantity_counts(engine: Engine) -> None:
    put(engine, "a", ("H200", "F_DRAMThr", 1.0, 0.5), ("H200", "F_DRAMThr", 2.0, 0.9), ("A100", "F_DRAMThr", 1.0, 0.7))
    put(engine, "b", ("H200", "F_L2Thr", 1.0, 0.6))
    put(engine, "c", ("H200", "F_DRAMThr", 3.0, 0.8), ("H200", "F_DRAMThr", 3.0, 0.82))
    found = store.characterizations(engine)
    assert found.columns.tolist() == ["device", "quantity", "x", "y"]
    assert found.to_numpy().tolist() == [
        ["A100", "F_DRAMThr", 1.0, 0.7],
        ["H200", "F_L2Thr", 1.0, 0.6],
        ["H200", "F_DRAMThr", 3.0, 0.8],
        ["H200", "F_DRAMThr", 3.0, 0.82],
    ]
    store.delete_upload(engine, 3)
    assert store.characterizations(engine)["y"].tolist() == [0.5, 0.9, 0.7, 0.6]
    store.delete_run(engine, 1)
    assert store.select(engine, "v1_characterizations", upload_id=1) == []


def test_a_store_without_measurements_gives_an_empty_table_of_the_same_types(engine: Engine) -> None:
    empty = store.characterizations(engine)
    put(engine, "a", ("H200", "k_l2_load", None, 2.5))
    assert empty.empty
    assert empty.dtypes.equals(store.characterizations(engine).dtypes)


def test_a_run_may_hold_launches_and_measurements(engine: Engine, stored: store.StoredUpload) -> None:
    into = store.RunInfo(run_id=stored.run_id)
    store.write_upload(engine, info("b", form="characterization"), into, measured(("H200", "F_L2Thr", 1.0, 0.6)))
    store.write_upload(engine, info("c"), into, batches(begin_ns=7))
    assert store.uploads(engine, stored.run_id)["launches"].tolist() == [4, 0, 4]
    assert len(store.characterizations(engine)) == 1
    assert store.select(engine, "v1_runs")[0]["device"] == "NVIDIA H200"

"""A run is called by its device where its launches ran on one; where they ran on several, by none of them alone."""

from pathlib import Path

import pytest
from sqlalchemy import Engine

from profsvc import store
from tests.store.queries.told import details, program, raw, upload

pytestmark = pytest.mark.usefixtures("unanalysed")

LAUNCHES = program(4)


def of_board(name: str, kernel: str) -> str:
    """A raw page of a board, whose launches are like no others."""
    return raw([one._replace(kernel=kernel) for one in LAUNCHES]).replace("NVIDIA H200", name)


def test_a_run_on_two_devices_is_not_labelled_with_one(engine: Engine, tmp_path: Path) -> None:
    upload(engine, of_board("NVIDIA H200", "left()"), "h200.csv")
    assert [run["device"] for run in store.select(engine, "v1_runs")] == ["NVIDIA H200"]
    upload(engine, of_board("NVIDIA A100", "right()"), "a100.csv")
    (run,) = store.select(engine, "v1_runs")
    assert (run["device"], run["devices"]) == (None, "NVIDIA A100 + NVIDIA H200")
    store.delete_upload(engine, 1)
    (run,) = store.select(engine, "v1_runs")
    assert (run["device"], run["devices"]) == ("NVIDIA A100", "NVIDIA A100")


def test_a_page_without_the_name_of_its_device_makes_no_device_of_its_own(engine: Engine) -> None:
    upload(engine, details(LAUNCHES), "details.csv")
    assert [device["name"] for device in store.select(engine, "v1_devices")] == [None]
    upload(engine, raw(LAUNCHES), "raw.csv")
    assert [device["name"] for device in store.select(engine, "v1_devices")] == ["NVIDIA H200"]
    for view in ("v1_launches", "v1_launches_all"):
        assert {one["device"] for one in store.select(engine, view)} == {"NVIDIA H200"}
    assert [run["devices"] for run in store.select(engine, "v1_runs")] == ["NVIDIA H200"]

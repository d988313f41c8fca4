"""Rows of CodeCarbon that belong to one run."""

from profsvc.formats.telemetry import codecarbon

HEADER = "timestamp,project_name,run_id,duration,emissions,cpu_energy,gpu_energy,ram_energy,energy_consumed\n"
FIRST = "2026-09-07T12:00:10,p,long,10,0.1,0.001,0,0.001,0.002\n"
LATER = "2026-09-07T12:10:10,p,long,610,0.1,0.061,0,0.061,0.122\n"
OTHER = "2026-09-07T12:00:{:02},p,r{},5,0.1,0.001,0,0.001,0.002\n"


def test_a_row_that_includes_one_stored_long_before_is_rejected(monkeypatch, read_all):
    monkeypatch.setattr(codecarbon, "MAX_WAITING", 3)
    others = "".join(OTHER.format(n, n) for n in range(5))
    far = read_all(f"{HEADER}{FIRST}{others}{LATER}".encode(), "codecarbon")
    (reject,) = far.rows("rejects")
    assert reject["line"] == 8
    assert reject["reason"].startswith("it includes line 2 of the same run, more than 3 rows before")
    near = read_all(f"{HEADER}{FIRST}{LATER}".encode(), "codecarbon")
    assert near.rejected == 0
    assert [row["duration_ns"] for row in near.rows("ranges")] == [610e9]

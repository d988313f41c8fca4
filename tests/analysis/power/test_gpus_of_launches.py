"""Launches are given the power of the GPU that ran them, or none where that is unknown."""

from dataclasses import replace

import pandas as pd
import pytest

from profsvc.analysis.power.analyze import analyze_power
from profsvc.analysis.power.logs import UTC, Log
from tests.analysis.power.made_logs import KERNELS, NO_MARKS, S, flat, launches_at


@pytest.mark.parametrize("seconds", [(20.0, 60.0), (0.0, 20.0), (15.0, 25.0)], ids=["end", "begin", "middle"])
def test_a_kernel_that_the_log_covers_in_part_is_one_window_without_energy(seconds):
    frames = analyze_power([flat(0, 500.0, 1, seconds)], NO_MARKS, launches_at(KERNELS, 0.999))
    row = frames["power_windows"].set_index("window").loc["k"]
    assert (row["duration_s"], row["launches"]) == (pytest.approx(19.999), 20)
    assert row["mean_power_w"] == pytest.approx(500.25, abs=0.01)
    assert row["energy_j"] is None
    assert "part_of_window" in row["quality"]


def loads_of(logs: list[Log], launches: pd.DataFrame) -> tuple[set[object], set[str]]:
    """Return the sensors whose power the launches are given, and the flags."""
    frames = analyze_power(logs, NO_MARKS, launches)
    table = frames["power_windows"]
    return {*table[table["kind"] == "kernel"]["sensor_id"]}, {*frames["power_quality"].get("flag", [])}


def test_a_kernel_is_given_the_power_of_the_gpu_on_which_it_ran():
    both = [flat(0, 77.0, 1), flat(1, 500.0, 2)]
    sensors, flags = loads_of(both, launches_at(KERNELS, 0.999, device=1))
    assert sensors == {2}
    assert "launches_of_another_device" in flags
    every = pd.concat([launches_at(KERNELS, 0.999), launches_at(KERNELS, 0.999, device=1)])
    assert loads_of(both, every)[0] == {1, 2}


def test_ranks_that_each_see_one_gpu_are_given_no_power_of_several():
    """Two files say device 0 for launches at the same time: which of the two GPUs ran which is unknown."""
    both = [flat(0, 77.0, 1), flat(1, 500.0, 2)]
    ranks = [launches_at(KERNELS + moved, 0.999).assign(upload_id=number) for number, moved in ((7, 0), (8, S // 2))]
    frames = analyze_power(both, NO_MARKS, pd.concat(ranks))
    assert not {*frames["power_windows"]["kind"]} & {"kernel"}
    said = frames["power_quality"].set_index("flag").loc["device_ambiguous"]
    assert said["value"].tolist() == [39, 39]
    message = said["message"].iloc[0]
    assert "uploads 7, 8 have launches of device 0 at the same time and not all name one host" in message
    assert "and the log is of GPU 0, 1" in message
    # A board of another number than that of both shows it too.
    assert loads_of([flat(1, 500.0, 2)], pd.concat(ranks)) == (set(), {"device_ambiguous"})
    # One after the other they may be of one GPU; with a device number of its own, each is known.
    later = ranks[1].assign(start_ns=ranks[1]["start_ns"] + 20 * S)
    assert loads_of(both, pd.concat([ranks[0], later]))[0] == {1}
    assert loads_of(both, pd.concat([ranks[0], ranks[1].assign(device_index=1)]))[0] == {1, 2}


def test_boards_of_two_hosts_with_one_number_give_no_launch_their_power():
    """Rank 0 and rank 1 ran on hosts whose only GPU has the number 0, each with a log of it."""
    hosts = [flat(0, 77.0, 1), replace(flat(0, 500.0, 2), upload_id=2)]
    ranks = [launches_at(KERNELS + moved, 0.999).assign(upload_id=number) for number, moved in ((7, 0), (8, S // 2))]
    for launches in (pd.concat(ranks), ranks[0]):
        frames = analyze_power(hosts, NO_MARKS, launches)
        assert not {*frames["power_windows"]["kind"]} & {"kernel"}
        said = frames["power_quality"].set_index("flag").loc["device_ambiguous"]
        assert said["message"].iloc[0].startswith("uploads 1, 2 log a GPU 0 each at the same time")
    # One log after the other may be of one board, and other channels of one GPU are.
    later = replace(flat(0, 77.0, 2, (60.0, 90.0)), upload_id=2)
    assert loads_of([hosts[0], later], ranks[0])[0] == {1}
    assert loads_of([hosts[0], replace(hosts[1], name="power.draw.average")], ranks[0])[0] == {1, 2}


def ranks_on(*hosts: str, moved: int = S // 2) -> pd.DataFrame:
    """Launches of two files on device 0 of these hosts, one of them ``moved`` behind the other."""
    both = zip((0, moved), hosts, (7, 8), strict=True)
    return pd.concat([launches_at(KERNELS + by, 0.999, host=host).assign(upload_id=n) for by, host, n in both])


@pytest.mark.parametrize("hosts", [("", ""), ("node1", ""), ("localhost", "localhost"), ("10.0.0.1", "10.0.0.1")])
def test_files_that_do_not_name_one_host_do_not_share_its_gpu(hosts):
    frames = analyze_power([flat(0, 500.0, 1)], NO_MARKS, ranks_on(*hosts))
    assert not {*frames["power_windows"]["kind"]} & {"kernel"}
    said = frames["power_quality"].set_index("flag").loc["device_ambiguous"]
    assert said["value"] == 39
    assert said["message"].startswith(
        "uploads 7, 8 have launches of device 0 at the same time and not all name one host"
    )


def test_files_of_one_host_share_its_gpu_and_that_is_said():
    for hosts in (("node1", "node1"), ("node1", "Node1.cluster")):
        assert loads_of([flat(0, 500.0, 1)], ranks_on(*hosts)) == ({1}, {"device_shared"})
    assert loads_of([flat(1, 500.0, 1)], ranks_on("node1", "node1")) == (set(), {"device_ambiguous"})


@pytest.mark.parametrize("gpu", [0, None], ids=["numbered", "a meter"])
@pytest.mark.parametrize("moved", [S // 2, 25 * S], ids=["together", "one after the other"])
def test_the_log_of_an_unknown_host_gives_launches_of_several_no_power(gpu, moved):
    frames = analyze_power([flat(gpu, 500.0, 1)], NO_MARKS, ranks_on("node1", "node2", moved=moved))
    assert not {*frames["power_windows"]["kind"]} & {"kernel"}
    said = frames["power_quality"].set_index("flag").loc["device_ambiguous"]
    assert (said["value"], said["message"].split(",")[:2]) == (40, ["the launches are of the hosts node1", " node2"])


def test_a_log_that_names_its_host_gives_power_to_the_launches_of_that_host():
    logs = [replace(flat(0, 100.0 * n, n), upload_id=n, host=host) for n, host in ((1, "node1:9400"), (2, "node2"))]
    frames = analyze_power(logs, NO_MARKS, ranks_on("node1", "node2"))
    table = frames["power_windows"]
    kernels = table[table["kind"] == "kernel"].set_index("sensor_id")
    assert kernels["begin_ns"].to_dict() == {1: KERNELS[0], 2: KERNELS[0] + S // 2}
    assert frames["power_quality"].empty
    assert loads_of(logs[:1], ranks_on("node2", "node2")) == (set(), {"launches_of_another_device"})
    assert loads_of(logs, ranks_on("", "")) == (set(), {"device_ambiguous"})


def test_marks_of_a_trace_are_of_the_gpus_that_ran_its_launches():
    """The step of a rank on an unknown or another GPU is no load of this one; a log of marks alone is."""
    step = {"name": "step", "domain": None, "start_ns": KERNELS[0], "duration_ns": 20.0 * S, "active_sms": pd.NA}
    marks = pd.DataFrame([step | {"launches": pd.NA, "upload_id": n, "clock": UTC} for n in (7, 8)])
    for launches in (ranks_on("", ""), ranks_on("node1", "node2")):
        frames = analyze_power([flat(0, 500.0, 1)], marks, launches)
        assert not {*frames["power_windows"]["source"]} & {"marks"}
        assert (frames["power_quality"]["flag"] == "device_ambiguous").sum() == 1
        table = analyze_power([flat(0, 500.0, 1)], marks.assign(upload_id=9), launches)["power_windows"]
        assert (table["source"] == "marks").sum() == 2
    apart = ranks_on("", "")
    apart["device_index"] = apart["upload_id"] - 7
    table = analyze_power([flat(0, 77.0, 1), flat(1, 500.0, 2)], marks, apart)["power_windows"]
    assert table[table["source"] == "marks"]["sensor_id"].tolist() == [1, 2]


def test_launches_of_no_named_device_are_given_no_power_of_several_gpus():
    both = [flat(0, 77.0, 1), flat(1, 500.0, 2)]
    unnamed, named = (launches_at(KERNELS, 0.999, device) for device in (-1, 1))
    frames = analyze_power(both, NO_MARKS, unnamed)
    assert not {*frames["power_windows"]["kind"]} & {"kernel"}
    said = frames["power_quality"].set_index("flag").loc["device_unknown"]
    assert said["value"].tolist() == [20, 20]
    assert "20 launches name no device, and the log is of GPU 0, 1" in said["message"].iloc[0]
    sensors, flags = loads_of(both, pd.concat([unnamed, named]))
    assert (sensors, flags & {"device_unknown"}) == ({2}, {"device_unknown"})
    # Beside the log of one GPU they can only be of that one, and a meter measures all of them.
    assert loads_of([both[0]], unnamed)[0] == {1}
    assert loads_of([flat(None, 577.0, 3)], unnamed)[0] == {3}


def test_the_one_gpu_of_a_log_ran_the_launches_of_the_one_device_and_that_is_said():
    sensors, flags = loads_of([flat(3, 500.0, 1)], launches_at(KERNELS, 0.999))
    assert sensors == {1}
    assert "device_renumbered" in flags


@pytest.mark.parametrize(("gpu", "device"), [(None, 1), (3, -1)], ids=["a meter", "a trace without devices"])
def test_what_is_not_numbered_is_taken_as_before(gpu, device):
    sensors, flags = loads_of([flat(gpu, 500.0, 1)], launches_at(KERNELS, 0.999, device=device))
    assert sensors == {1}
    assert not flags & {"device_renumbered", "launches_of_another_device"}

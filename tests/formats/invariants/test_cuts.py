"""Files cut at every byte: an `InputError`, or every whole row as in the whole file, and the loss told.

What takes long is cut at every few bytes, and around the ends of its first lines.

A last row that has all its cells is taken without its line end, and said to be: its last value alone may be another.
"""

import re
from pathlib import Path

import pytest

from profsvc.errors import InputError

FIXTURES = Path(__file__).parents[3] / "fixtures"
# file: how many bytes from one cut to the next
CUTS = {
    "afterburner/two_tables.hml": 35,
    "characterization/any_order.csv": 1,
    "characterization/plain.csv": 5,
    "codecarbon/tasks.csv": 11,
    "dcgm/dmon.txt": 5,
    "dcgm/long.csv": 3,
    "extech/dated.txt": 3,
    "extech/display.txt": 3,
    "extech/raw.txt": 3,
    "hardware_monitor/open.csv": 3,
    "hioki/pw3335.csv": 5,
    "joulescope/statistics.csv": 1,
    "jtop/old.csv": 5,
    "kineto/rocm.json": 9,
    "kineto/cuda.json": 43,
    "kineto/cupti_counters.json": 27,
    "kineto/mtia.json": 23,
    "kineto/rocprof_v1.json": 117,
    "lvm/multi_x.lvm": 5,
    "lvm/no_header.lvm": 3,
    "lvm/no_x_decimal_comma.lvm": 3,
    "lvm/two_segments.lvm": 5,
    "marks/h200.csv": 9,
    "marks/zoned.csv": 1,
    "memory_trace/plain.csv": 1,
    "monsoon/pymonsoon.csv": 1,
    "ncu_details/columns_15.csv": 5,
    "ncu_details/columns_20_ragged.csv": 55,
    "ncu_details/topology_and_strays.csv": 35,
    "ncu_python/normalized.csv": 51,
    "ncu_raw/name_with_newline.csv": 7,
    "ncu_raw/output_around_table.csv": 9,
    "ncu_raw/unquoted.csv": 3,
    "ncu_raw/utf16.csv": 7,
    "ncu_report_lines/instructions.jsonl": 3,
    "ncu_session/h200.csv": 11,
    "ncu_session/two_devices.txt": 3,
    "ncu_source/broken_rows.csv": 9,
    "ncu_source/h200_lines_and_instructions.csv": 1297,
    "ncu_source/instructions.csv": 27,
    "ncu_source/lines.csv": 9,
    "ncu_summary/broken_rows.csv": 7,
    "ncu_summary/per_gpu.csv": 3,
    "ncu_text/kernels_and_ranges.txt": 25,
    "ncu_text/no_kernels.txt": 1,
    "ncu_text/old_tables.txt": 25,
    "ncu_text/summary_per_gpu.txt": 13,
    "nsys_json/several_reports.json": 33,
    "proton/one_line.hatchet": 13,
    "proton/scopes.hatchet": 21,
    "nsys_sqlite/only_kernels.sqlite": 7,
    "nsys_stats/gpu_trace.csv": 9,
    "nsys_stats/several_reports.csv": 183,
    "nsys_text/boxes.txt": 11,
    "nsys_text/gpu_trace.txt": 5,
    "nvidia_smi/two_gpus.csv": 5,
    "nvidia_smi/units.csv": 11,
    "nvidia_smi_dmon/date_time.txt": 3,
    "nvidia_smi_q/cut.txt": 1,
    "nvidia_smi_q/h200.txt": 57,
    "nvml_energy/plain.csv": 3,
    "nvprof/api_trace.csv": 3,
    "nvprof/events_and_metrics.csv": 33,
    "nvprof/gpu_trace.csv": 15,
    "nvprof/summary.csv": 19,
    "nvprof_text/api_trace.txt": 3,
    "nvprof_text/events_and_metrics.txt": 17,
    "nvprof_text/gpu_trace.txt": 33,
    "nvprof_text/summary.txt": 19,
    "otii/recording.csv": 2,
    "picolog/elapsed.csv": 3,
    "picolog/zoned_german.csv": 3,
    "ptdaemon/channels.txt": 3,
    "ptdaemon/messages.txt": 5,
    "rocm_smi/rocm.csv": 7,
    "rocprof/rocprof.csv": 5,
    "tegrastats/tx2.txt": 5,
    "timeseries/units_row.csv": 3,
    "timeseries/us_dates.csv": 1,
    "timeseries/utf16.csv": 3,
    "tweet_a_watt/two_meters.csv": 3,
    "wattsup/log.txt": 3,
    "wattsup/records.raw": 5,
    "yokogawa/scpi_logger.csv": 3,
    "yokogawa/viewer.csv": 3,
    "zeus/power.csv": 1,
    "zeus/windows.csv": 1,
}


# What a line gives is complete with the line, but for a launch, whose metrics may stand on later lines.
LATER = {"launches", "sensors"}
# And for a phase, whose end is a line of its own.
ENDED_LATER = {"marks": {"ranges"}}


MAX_LINE_ENDS = 12


def sizes(data, step):
    """Where to cut: at every so many bytes, and around the ends of the first lines."""
    ends = [found.end() for found in re.finditer(b"\n", data)][:MAX_LINE_ENDS]
    return sorted(
        {*range(0, len(data), step), *(end + by for end in ends for by in (-1, 0, 1) if end + by < len(data))}
    )


@pytest.mark.parametrize("name", CUTS)
def test_whole_rows_or_a_refusal(name, read_all, values_of, count_lines):
    data, reader = (FIXTURES / name).read_bytes(), name.split("/")[0].replace("_", "-")
    ended_later = ENDED_LATER.get(reader, set())
    truth, later = values_of(read_all(data, reader)), LATER | ended_later
    for size in sizes(data, CUTS[name]):
        head = data[:size]
        try:
            content = read_all(head, reader)
        except InputError:
            continue
        values, lines = values_of(content), count_lines(head)
        ended = not head or head.endswith(b"\n")
        said = "stored although it has no newline" in content.message
        other = {value for value in values - truth if value[1] != lines and value[0] not in ended_later}
        assert not other, (size, other)
        assert values <= truth or (said and not ended), (size, values - truth)
        assert content.stored + content.skipped + content.rejected == lines, size
        rejects = [row["line"] for row in content.rows("rejects") if row["line"] + row["lines"] > lines]
        begun = min(rejects, default=lines)
        lost = {value for value in truth - values if value[1] <= lines and value[0] not in later}
        assert all(value[1] >= begun for value in lost), (size, lost)
        blank = not head[head.rfind(b"\n") + 1 :].strip(b"\0 \t")
        assert not lost or blank or content.message or content.rejected, size

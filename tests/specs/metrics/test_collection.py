"""The option that collects a counter, against the sections that Nsight Compute's own section files list."""

import re

import pytest

from profsvc import specs
from profsvc.specs.metrics.vocabulary import read_labels, read_sections


@pytest.mark.parametrize(
    ("tool", "counter", "capability", "known", "option"),
    [
        ("ncu", "sol_sm_fraction", "9.0", (), "ncu --section SpeedOfLight"),
        ("ncu", "dram_read_bytes", "9.0", (), "ncu --metrics dram__bytes_read.sum"),
        ("ncu", "sm_count", "9.0", (), "ncu --page raw"),
        ("ncu", "kernel_name", "9.0", (), None),
        ("ncu", "dram_read_bytes", "9.0", {"dram__bytes_read.sum"}, None),
        ("nvprof", "warp_execution_efficiency_fraction", "6.0", (), "nvprof --metrics warp_execution_efficiency"),
        ("nvprof", "grid_blocks", "6.0", (), "nvprof --events sm_cta_launched"),
        ("nvprof", "duration_ns", "6.0", (), "nvprof --print-gpu-trace"),
        ("nsys", "duration_ns", None, (), None),
    ],
)
def test_the_option(tool, counter, capability, known, option):
    assert specs.how_to_collect(tool, counter, capability, known) == option


def test_what_the_export_has_is_not_asked_for():
    names = {"sm__cycles_elapsed.sum"}
    assert specs.how_to_collect("ncu", "sm_elapsed_cycles_avg", "9.0", names) == "ncu --page raw"


@pytest.mark.parametrize("tool", ["ncu", "nvprof", "nsys"])
def test_every_counter_has_an_answer_of_one_shape(tool):
    sections = {section for section, *_ in read_labels()} | set(read_sections())
    shape = re.compile(
        r"ncu --section (\w+)|ncu --page raw|nvprof --print-gpu-trace|(?:ncu|nvprof)(?: --(?:metrics|events) [\w.,:]+)+"
    )
    capability = {"ncu": "9.0", "nvprof": "6.0", "nsys": None}[tool]
    for counter in specs.counters():
        option = specs.how_to_collect(tool, counter, capability)
        if option is None:
            continue
        match = shape.fullmatch(option)
        assert match, (counter, option)
        assert match[1] is None or match[1] in sections

"""The time that lines cause: waits at what is waited for, calls at the calling line, savings at their instructions."""

from collections import Counter
from typing import Any

import pytest

from profsvc.analysis.source_code.line_times import NO_TEXTS, is_of_toolkit, times_by_cause
from profsvc.specs.advice.causes import causes
from profsvc.specs.advice.line_evidence import line_evidence

HEADER = "/usr/local/cuda/targets/x86_64-linux/include/sm_20_atomic_functions.hpp"
COUNTS = (
    "l2_sectors", "ideal_l2_sectors", "shared_wavefronts", "ideal_shared_wavefronts", "thread_instructions",
    "thread_instructions_on",
)  # fmt: skip


def line_times(instructions: list[dict[str, Any]], causes: list[dict[str, Any]], texts: Any = NO_TEXTS) -> Counter:
    """The share of the time of each line, by all causes."""
    total: Counter = Counter()
    for times in times_by_cause(instructions, causes, texts).values():
        total.update(times)
    return total


def row(place: int, line: int, sass: str, file: str = "a.cu", **values: Any) -> dict[str, Any]:
    stalls = {name: values.pop(name) for name in list(values) if name[0].isupper()}
    named = {name.replace("_", " "): samples for name, samples in stalls.items()}
    blank = dict.fromkeys((*COUNTS, "access_size"))
    return blank | {
        "address": f"0x{0x100 + 0x10 * place:x}", "file": file, "source_line": line, "sass": sass, "instructions": 10,
        "samples": sum(stalls.values()), "stalls": named,
    } | values  # fmt: skip


def test_waits_count_for_the_load_and_the_barrier() -> None:
    code = [
        row(0, 1, "LDG.E R4, [R2.64]", Wait=5),
        row(1, 2, "FADD R5, R4, R5", Long_Scoreboard=60),
        row(2, 3, "BAR.SYNC 0x0", Wait=5),
        row(3, 4, "MOV R6, R7", Barrier=30),
    ]
    assert line_times(code, []) == pytest.approx({("a.cu", 1): 0.65, ("a.cu", 2): 0, ("a.cu", 3): 0.35, ("a.cu", 4): 0})


def test_a_saving_is_of_the_instructions_that_its_cause_lies_on() -> None:
    code = [
        row(0, 1, "LDS R4, [R2]", shared_wavefronts=320, ideal_shared_wavefronts=10, Wait=1),
        row(1, 2, "FADD R5, R4, R5", Wait=99),
    ]
    conflicts = {"cause": "bank_conflicts", "saving_fraction": 0.8}
    assert line_times(code, [conflicts])["a.cu", 1] == pytest.approx(0.8 + 0.2 * 0.01)
    # None of these instructions is divergent: what divergence saves lies on no line that is known.
    assert line_times(code, [{"cause": "uncoalesced_loads", "saving_fraction": 0.8}])["a.cu", 1] == pytest.approx(0.01)


def test_lanes_that_are_off_count_for_the_branch_behind_which_they_went_another_way() -> None:
    code = [
        row(0, 1, "ISETP.NE.AND P0, PT, R2, RZ, PT", thread_instructions=320, Wait=1),
        row(1, 2, "@P0 BRA 0x140", thread_instructions=320),
        row(2, 3, "FADD R4, R4, R5", thread_instructions=80, Wait=49),
        row(3, 3, "@P1 BRA 0x120", thread_instructions=80),
        row(4, 4, "EXIT", thread_instructions=320),
    ]
    diverges = [{"cause": "thread_divergence", "saving_fraction": 0.8}]
    assert line_times(code, diverges)["a.cu", 2] == pytest.approx(0.8)
    # A loop that lanes leave at different times counts for its own branch.
    loop = [code[0], row(1, 2, "NOP", thread_instructions=320), *code[2:]]
    assert line_times(loop, diverges)["a.cu", 3] == pytest.approx(0.8 + 0.2 * 0.98)
    # Where nobody knows the branch, it is the instruction.
    apart = [row(0, 1, "FADD R4, R4, R5", thread_instructions=160, Wait=1), row(1, 2, "EXIT", thread_instructions=320)]
    assert line_times(apart, diverges)["a.cu", 1] == pytest.approx(1.0)


def test_lanes_off_by_a_predicate_count_for_the_comparison_too_and_first_lanes_where_they_work() -> None:
    off = [{"cause": "predicated_off_threads", "saving_fraction": 0.8}]
    code = [
        row(0, 1, "ISETP.NE.AND P0, PT, R2, RZ, PT", thread_instructions=320, thread_instructions_on=320),
        row(1, 2, "@!P0 FADD R4, R4, R5", thread_instructions=320, thread_instructions_on=80),
        row(2, 3, "EXIT", thread_instructions=320, thread_instructions_on=320, Wait=1),
    ]
    assert line_times(code, off) == pytest.approx({("a.cu", 1): 0.4, ("a.cu", 2): 0.4, ("a.cu", 3): 0.2})
    first = [
        row(0, 1, "ISETP.GT.U32.AND P0, PT, R2, 0x7, PT", thread_instructions=320, thread_instructions_on=320),
        row(1, 2, "@P0 BRA 0x130", thread_instructions=320),
        row(2, 3, "FADD R4, R4, R5", thread_instructions=80, thread_instructions_on=80),
        row(3, 4, "EXIT", thread_instructions=320, thread_instructions_on=320, Wait=1),
    ]
    # Lanes that do not take a branch lose nothing there.
    assert line_times(first, off)["a.cu", 3] == pytest.approx(0.8)


def test_unequal_warps_lie_on_the_branch_of_a_loop_whose_turns_a_value_or_an_index_decides() -> None:
    uneven = [{"cause": "warp_imbalance", "saving_fraction": 0.8}]

    def loop(bound: str, inside: str) -> list[dict[str, Any]]:
        return [
            row(0, 1, bound),
            row(1, 3, "IADD3 R2, R2, 0x1, RZ", Wait=10),
            row(2, 3, inside),
            row(3, 3, "ISETP.LT.AND P0, PT, R2, R4, PT"),
            row(4, 2, "@P0 BRA 0x110"),
            row(5, 4, "BAR.SYNC 0x0"),
            row(6, 5, "EXIT", Barrier=30),
        ]

    assert line_times(loop("LDG.E R4, [R6.64]", "NOP"), uneven)["a.cu", 2] == pytest.approx(0.8)
    assert line_times(loop("S2R R4, SR_TID.X", "NOP"), uneven)["a.cu", 2] == pytest.approx(0.8)
    # All warps take as many turns as a constant says, or meet in each.
    assert line_times(loop("LDC R4, c[0x0][0x220]", "NOP"), uneven)["a.cu", 2] == 0
    assert line_times(loop("LDG.E R4, [R6.64]", "BAR.SYNC 0x0"), uneven)["a.cu", 2] == 0


def test_a_serial_section_lies_by_half_on_the_loop_of_its_thread() -> None:
    code = [
        row(0, 1, "MOV R2, RZ", thread_instructions=320),
        row(1, 7, "FADD R4, R4, R5", thread_instructions=10, Wait=40),
        row(2, 2, "@P0 BRA 0x110", thread_instructions=10),
        row(3, 3, "BAR.SYNC 0x0", thread_instructions=320),
        row(4, 1, "@P1 BRA 0x100", thread_instructions=320),
        row(5, 4, "EXIT", thread_instructions=320, Barrier=60),
    ]
    serial = [{"cause": "serial_section", "saving_fraction": 0.8}]
    found = line_times(code, serial)
    assert found == pytest.approx(
        {("a.cu", 1): 0, ("a.cu", 7): 0.48, ("a.cu", 2): 0.4, ("a.cu", 3): 0.12, ("a.cu", 4): 0}
    )


def test_the_toolkit_counts_for_the_line_that_wrote_its_operands_and_a_subroutine_for_its_calls() -> None:
    atomic = [
        row(0, 7, "IMAD.WIDE R2, R3, 0x4, R4", Wait=1),
        row(1, 8, "MOV R9, R8", Wait=1),
        row(2, 107, "RED.E.ADD [R2.64], R5", HEADER, Wait=98),
    ]
    assert line_times(atomic, []) == pytest.approx({("a.cu", 7): 0.99, ("a.cu", 8): 0.01})
    division = [
        row(0, 5, "CALL.REL.NOINC 0x130", instructions=30),
        row(1, 6, "CALL.REL.NOINC 0x130", instructions=10),
        row(2, 6, "EXIT"),
        row(3, 1, "MUFU.RCP R4, R5", Wait=80),
        row(4, 1, "RET.REL R2", Wait=20),
    ]
    assert line_times(division, []) == pytest.approx({("a.cu", 5): 0.75, ("a.cu", 6): 0.25})


def test_a_header_of_the_user_is_code_of_the_user() -> None:
    code = [row(0, 7, "MOV R2, R3", Wait=1), row(1, 20, "FADD R2, R2, R2", "/home/me/include/sums.cuh", Wait=3)]
    assert line_times(code, [])["/home/me/include/sums.cuh", 20] == pytest.approx(0.75)


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        (HEADER, True),
        ("/usr/local/cuda-12.4/bin/../targets/sbsa-linux/include/cuda_bf16.hpp", True),
        ("/opt/conda/envs/run/targets/x86_64-linux/include/cub/block/block_reduce.cuh", True),
        ("/venv/lib/python3.12/site-packages/nvidia/cu13/include/crt/mma.hpp", True),
        ("/venv/lib/python3.9/site-packages/nvidia/cuda_runtime/include/cuda_fp16.hpp", True),
        ("/opt/nvidia/hpc_sdk/Linux_x86_64/24.5/cuda/12.4/include/thrust/sort.h", True),
        (r"C:\Program Files\NVIDIA GPU Computing Toolkit\CUDA\v12.6\include\sm_30_intrinsics.hpp", True),
        ("/usr/include/crt/sm_80_rt.hpp", True),
        ("sm_60_atomic_functions.hpp", True),
        ("/src/device_atomic_functions.hpp", True),
        ("/home/me/engine/cuda/include/advection.cuh", False),
        ("/home/me/cuda-fluids/include/advection.cuh", False),
        ("/home/me/targets/h200/include/tiles.cuh", False),
        ("/src/my_sm_80_rt.hpp", False),
        ("", False),
    ],
)
def test_headers_of_the_toolkit_are_known_by_their_place_or_name(file: str, expected: bool) -> None:
    assert is_of_toolkit(file) is expected


def test_without_samples_no_line_has_a_time() -> None:
    assert line_times([row(0, 1, "EXIT")], []) == {}


def test_each_flaw_that_lies_on_a_line_has_its_evidence() -> None:
    whole_launch = {
        "grid_too_small", "tail_wave", "sm_imbalance", "partly_filled_warps", "launch_overhead",
    }  # fmt: skip
    assert set(line_evidence()) == {one.name for one in causes().values() if one.kind == "flaw"} - whole_launch


def test_products_of_double_precision_are_work_of_tensor_cores() -> None:
    code = [row(0, 1, "LDS.64 R4, [R2]", Wait=9), row(1, 2, "DFMA R6, R4, R8, R6", thread_instructions_on=320, Wait=1)]
    unused = {"cause": "tensor_cores_unused", "saving_fraction": 0.5}
    assert line_times(code, [unused])["a.cu", 2] == pytest.approx(0.5 + 0.5 * 0.1)

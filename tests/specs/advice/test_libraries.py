"""Libraries by the names of their kernels, and what callers can do."""

import re

import pandas as pd
import pytest

from profsvc.errors import DomainError
from profsvc.specs.advice.causes import causes
from profsvc.specs.advice.libraries import FILE, library_of, read_caller_steps, read_libraries
from profsvc.specs.table_files import rows_of
from tests.benchmarks.causes import FIXTURES

# Launches of fixtures/library_pairs by the name of the program that made them; its own kernels are of no library.
OWN = re.compile(r"^(?:void )?[a-z0-9_]+(?:\(|$)")


def test_examples_are_of_their_library() -> None:
    examples = {row["example"]: row["library"] for row in rows_of(FILE, ("library", "pattern", "example"))}
    assert len(examples) >= 12
    for example, library in examples.items():
        assert library_of(example) == library
        assert library_of(f"void {example}") == library


@pytest.mark.parametrize(
    "kernel",
    [
        "saxpy(float *, int)", "void gemm_tiled<(int)32>(float *)", "void my::at::native(int)", "_Z6reducePf",
        "void transform<thrust::plus<float>>(float *)", "triton_gemm", "fusion(float *)", "scan_columns_kernel", "",
        "flash_attention_mine", "void cupynamed_(int)", "format::native(int)", "void sgemm_naive(float *)",
    ],
)  # fmt: skip
def test_kernels_of_users_are_of_no_library(kernel: str) -> None:
    assert library_of(kernel) is None


@pytest.mark.parametrize(
    ("folder", "some", "libraries"),
    [
        (
            "library_pairs",
            {"gemm", "axpy", "rope_computed", "vote_local", "iterate_map"},
            {"PyTorch", "cuBLAS", "cuDNN", "FlashAttention", "XLA", "CuPy"},
        ),
        # Here Nsight Compute drops ``at::`` of the names of PyTorch, and there it dropped ``native::``.
        ("library_pairs_second", {"horner", "smooth", "top_two"}, {"PyTorch", "cuBLAS", "cuFFT", "XLA", "CuPy"}),
    ],
)
def test_kernels_of_real_programs_have_their_library(folder: str, some: set[str], libraries: set[str]) -> None:
    page = pd.read_csv(FIXTURES / folder / "ncu_raw_base.csv.gz", usecols=["Kernel Name"])["Kernel Name"]
    found = {kernel: library_of(kernel) for kernel in page.dropna().unique()}
    own = {kernel for kernel, library in found.items() if library is None}
    assert some <= {name.partition("(")[0] for name in own}
    assert all(OWN.match(kernel) for kernel in own), own
    assert set(found.values()) - {None} >= libraries


def test_each_step_is_short_and_follows_a_title() -> None:
    steps = read_caller_steps()
    assert len(steps) >= 25
    for cause, step in steps.items():
        assert step.endswith("."), cause
        assert step[0].islower(), cause
        assert len(step.split()) <= 25, cause
        assert step[:-1] not in causes()[cause].first_step


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("library,pattern,example\nA,(,x\n", "no regular expression"),
        ("library,pattern,example\nA,^b,a\n", "does not fit"),
    ],
)
def test_a_wrong_table_of_libraries_is_refused(text: str, said: str) -> None:
    with pytest.raises(DomainError, match=said):
        read_libraries(text)


def test_a_step_against_no_flaw_is_refused() -> None:
    with pytest.raises(DomainError, match="must be one of"):
        read_caller_steps("cause,step\nmemory_limit,do.\n")

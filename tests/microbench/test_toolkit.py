"""The compiler and the GPU are found or their absence is said; what was compiled is kept; the sources compile."""

import shutil
import subprocess
from importlib import resources
from pathlib import Path

import pytest

from profsvc.errors import InputError, ServiceError
from profsvc.microbench import toolkit
from profsvc.microbench.toolkit import PROGRAMS, build, find_device, find_tools, target
from tests.environment.cuda import NVCC, SMI, Script

NVCC_HERE = shutil.which("nvcc")


@pytest.mark.parametrize(
    ("missing", "message"),
    [("nvcc", "no CUDA compiler: nvcc is neither on the PATH"), ("nvidia-smi", "no GPU: nvidia-smi, which comes with")],
)
def test_a_missing_tool_is_named(cuda: Path, missing: str, message: str) -> None:
    (cuda / missing).unlink()
    with pytest.raises(InputError, match=message):
        find_tools()


def test_tools_of_cuda_home_are_found(cuda: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "toolkit" / "bin"
    home.mkdir(parents=True)
    (cuda / "nvcc").rename(home / "nvcc")
    monkeypatch.setenv("CUDA_HOME", str(home.parent))
    tools = find_tools()
    assert (tools.nvcc, tools.cuobjdump) == (str(home / "nvcc"), None)


@pytest.mark.parametrize(
    ("smi", "message"),
    [
        ("#!/bin/sh\necho 'No devices were found'; exit 6\n", "no GPU 0: nvidia-smi says 'No devices were found'"),
        (SMI.format("Tesla P100", "6.0", 0), r"Tesla P100 has compute capability 6.0; 7.5 or later is needed"),
        (SMI.format("a board", "[N/A]", 0), r"gives the compute capability '\[N/A\]'"),
        ("#!/bin/sh\nprintf '\\377\\n'\n", "no GPU 0: nvidia-smi says"),
    ],
)
def test_a_gpu_that_cannot_be_measured_is_refused(cuda: Path, script: Script, smi: str, message: str) -> None:
    script("nvidia-smi", smi)
    with pytest.raises(InputError, match=message):
        find_device(find_tools())


def test_what_was_compiled_is_kept_until_the_compiler_changes(cuda: Path, script: Script, tmp_path: Path) -> None:
    first = build(find_tools(), "90", tmp_path / "kept")
    assert sorted(first) == sorted(PROGRAMS)
    assert build(find_tools(), "90", tmp_path / "kept") == first
    calls = (cuda / "calls").read_text().splitlines()
    assert sum("-o" in call for call in calls) == len(PROGRAMS)
    assert sum(target("90", "tensor") in call for call in calls) == 1
    script("nvcc", NVCC.replace("13.0", "13.1"))
    assert build(find_tools(), "90", tmp_path / "kept")["memory"].parent != first["memory"].parent


def test_a_killed_build_leaves_no_program_behind(cuda: Path, script: Script, tmp_path: Path) -> None:
    script("nvcc", NVCC.replace("chmod +x", "exit 1; chmod +x").replace("printf", "echo bad flag >&2; printf"))
    with pytest.raises(InputError, match=r"nvcc cannot compile memory\.cu for sm_90: bad flag"):
        build(find_tools(), "90", tmp_path / "kept")
    assert not [path for path in (tmp_path / "kept").rglob("*") if path.name in PROGRAMS]


def test_a_tool_that_hangs_is_stopped(cuda: Path, script: Script, monkeypatch: pytest.MonkeyPatch) -> None:
    script("nvidia-smi", "#!/bin/sh\nexec sleep 60\n")
    monkeypatch.setattr(toolkit, "SECONDS_TO_ASK", 0.2)
    with pytest.raises(ServiceError, match=r"nvidia-smi did not end within 0.2 s"):
        find_device(find_tools())


@pytest.mark.skipif(NVCC_HERE is None, reason="no CUDA compiler here")
@pytest.mark.parametrize(
    ("program", "architecture"), [("memory", 75), ("arithmetic", 80), ("control", 120), ("tensor", 90)]
)
def test_the_sources_compile(program: str, architecture: int, tmp_path: Path) -> None:
    with resources.as_file(resources.files("profsvc.microbench") / f"{program}.cu") as source:
        options = ["-std=c++17", "-ptx", f"-DARCH={architecture}", "-o", str(tmp_path / "out.ptx")]
        place = f"-arch=compute_{architecture}{'a' if program == 'tensor' else ''}"
        done = subprocess.run(
            [str(NVCC_HERE), place, *options, str(source)], capture_output=True, text=True, check=False
        )
    assert (done.returncode, done.stderr) == (0, "")
    assert "clock64" in (tmp_path / "out.ptx").read_text()

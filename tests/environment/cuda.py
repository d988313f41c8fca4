"""A CUDA toolkit and a driver of scripts: what is compiled prints what the benchmarks printed on an H200."""

import gzip
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from profsvc.microbench.toolkit import PROGRAMS

RAW = Path(__file__).parents[2] / "fixtures" / "microbench" / "h200_raw.csv.gz"
NVCC = """#!/bin/sh
echo "$*" >>"$(dirname "$0")/calls"
[ "$1" = --version ] && echo "release 13.0" && exit 0
while [ "$1" != -o ]; do shift; done
printf '#!/bin/sh\\ncat "%s/%s.txt"\\n' "$(dirname "$0")" "$(basename "$3" .cu)" >"$2"
chmod +x "$2"
"""
SMI = "#!/bin/sh\necho '{}, {}, 580.159.04, {}, 38, 700.00'\n"
METRIC = "lts__throughput.avg.pct_of_peak_sustained_elapsed"
NCU = f"""#!/bin/sh
echo '==PROF== Connected to process 1'
echo '"ID","Kernel Name","{METRIC}"'
echo '"","","%"'
echo '"0","void read_all<0>(const uint4 *, unsigned long, int, unsigned int *)","82.87"'
"""
Script = Callable[[str, str], Path]


def raw_text(path: Path = RAW) -> str:
    return gzip.decompress(path.read_bytes()).decode()


def parts() -> dict[str, str]:
    """Return what each program printed."""
    texts = ["# device:" + part for part in raw_text().split("# device:")[1:]]
    assert len(texts) == len(PROGRAMS)
    return dict(zip(PROGRAMS, texts, strict=True))


@pytest.fixture
def script(tmp_path: Path) -> Script:
    """Write an executable script into the folder of the stand-ins."""
    folder = tmp_path / "bin"
    folder.mkdir()

    def write(name: str, text: str) -> Path:
        path = folder / name
        path.write_text(text)
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return path

    return write


@pytest.fixture
def cuda(script: Script, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put the stand-ins on the PATH and return their folder; nothing else of CUDA is found."""
    nvcc = script("nvcc", NVCC)
    script("nvidia-smi", SMI.format("NVIDIA H200", "9.0", 0))
    script("ncu", NCU)
    for name, text in parts().items():
        (nvcc.parent / f"{name}.txt").write_text(text)
    monkeypatch.setenv("PATH", os.pathsep.join([str(nvcc.parent), "/usr/bin", "/bin"]))
    monkeypatch.setattr("profsvc.microbench.toolkit.USUAL_PLACES", ())
    for name in ("CUDA_HOME", "CUDA_PATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    return nvcc.parent


POWER_LOG = RAW.with_name("power_smi_h200.csv.gz")
PHASES = RAW.with_name("power_marks_h200.csv")
# The program prints its marks once the whole log is there: it reads them from a pipe.
LOGGING_SMI = """#!/bin/sh
case "$*" in
  *--loop-ms*) zcat "{log}"; cd "$(dirname "$0")" && cat marks.txt >power.txt; exec sleep 60 ;;
  *timestamp*) exit {status} ;;
  *) echo 'NVIDIA H200, 9.0, 580.159.04, 0, 38, 700.00' ;;
esac
"""


@pytest.fixture
def power_cuda(cuda: Path, script: Script) -> Path:
    """Add what logs the power: nvidia-smi prints a log and stays, the program prints the marks of its phases."""
    script("nvidia-smi", LOGGING_SMI.format(log=POWER_LOG, status=0))
    os.mkfifo(cuda / "power.txt")
    (cuda / "marks.txt").write_text("# device: NVIDIA H200\nname,x,value,unit,repeat\n" + PHASES.read_text())
    return cuda

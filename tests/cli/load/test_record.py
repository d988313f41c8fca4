"""``profsvc record`` with stand-ins for the profilers: what is run, what is uploaded, what is said where one lacks."""

import ctypes
import gzip
import json
import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from profsvc.recording import energy_counter, passes, tools
from tests.cli.conftest import Call
from tests.environment.cuda import Script

FIXTURES = Path(__file__).parents[3] / "fixtures"
SMI = """#!/bin/sh
case "$*" in
  *--loop-ms*) echo "TZ=$TZ" >>"{folder}/calls"; cat "{folder}/smi.csv"; exec sleep 60 ;;
  *name*) echo '0, NVIDIA H200' ;;
esac
"""
NSYS = """#!/bin/sh
echo "nsys $*" >>"{folder}/calls"
for last in "$@"; do case "$last" in --output=*) out="${{last#--output=}}" ;; esac; done
if [ "$1" = export ]; then cp "{trace}" "$out"; exit; fi
echo report >"$out.nsys-rep"
while [ "${{1#-}}" != "$1" ] || [ "$1" = profile ]; do shift; done
exec "$@"
"""
# Collects, and cannot make the report of it.
NSYS_ALONE = NSYS.replace('echo report >"$out.nsys-rep"', 'echo data >"$out.qdstrm"')
IMPORTER = """#!/bin/sh
echo "importer $*" >>"{folder}/calls"
echo report >"$4"
"""
LACKING = "#!/bin/sh\necho 'error while loading shared libraries: libdw.so.1' >&2\nexit 127\n"
NCU = """#!/bin/sh
echo "ncu $*" >>"{folder}/calls"
if [ "$1" = --import ]; then
  case "$*" in
    *"--page raw"*) exec cat "{folder}/raw.csv" ;;
    *cuda,sass*) [ -e "{folder}/source.csv" ] && exec cat "{folder}/source.csv"; exit 1 ;;
    *"print-source sass"*) [ -e "{folder}/sass.csv" ] && exec cat "{folder}/sass.csv"; exit 0 ;;
    *) exit 0 ;;
  esac
fi
case "$*" in *--metrics*) {with_metrics} ;; esac
while [ "$1" != --log-file ]; do shift; done
echo "==PROF== Connected" >"$2"
{profile}
echo report >"$4.ncu-rep"
"""
PROGRAM = """#!/bin/sh
echo "program $*" >>"{folder}/calls"
echo "its own words"
exit {status}
"""
Machine = Callable[..., Path]


@pytest.fixture
def machine(script: Script, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """Put the named stand-ins on the PATH, with nothing else, and return their folder."""
    folder = tmp_path / "bin"
    (folder / "smi.csv").write_bytes((FIXTURES / "nvidia_smi" / "units.csv").read_bytes())
    (folder / "raw.csv").write_bytes(gzip.decompress((FIXTURES / "demo" / "ncu_raw.csv.gz").read_bytes()))
    trace = FIXTURES / "nsys_sqlite" / "only_kernels.sqlite"
    monkeypatch.setenv("PATH", os.pathsep.join([str(folder), "/usr/bin", "/bin"]))
    monkeypatch.setattr("profsvc.recording.tools.USUAL_PLACES", ())
    monkeypatch.setattr("profsvc.recording.tools.ROOT", tmp_path)
    monkeypatch.setattr(passes, "IDLE_S", 0.2)
    monkeypatch.setattr(energy_counter, "LIBRARY", "libnone.so")
    for name in ("CUDA_HOME", "CUDA_PATH", tools.DEVICES_VARIABLE):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)

    def make(*programs: str, status: int = 0, with_metrics: str = ":", profile: str = ":") -> Path:
        texts = {"nvidia-smi": SMI, "nsys": NSYS, "ncu": NCU, "app": PROGRAM}
        for name in (*programs, "app"):
            values = {"folder": folder, "trace": trace, "status": status}
            script(name, texts[name].format(**values, with_metrics=with_metrics, profile=profile))
        return folder

    return make


def calls(folder: Path) -> list[str]:
    return (folder / "calls").read_text().splitlines()


def test_one_command_gives_a_run_with_launches_trace_and_power(machine: Machine, cli: Call) -> None:
    folder = machine("nvidia-smi", "nsys", "ncu")
    done = cli("record", "--run", "today", "--tag", "branch=main", "--launches", 7, "--", "app", "--size", "3")
    assert done.code == 0, done.err
    assert "recording trace and power: app --size 3" in done.err
    for file, form in (("trace.sqlite", "nsys-sqlite"), ("smi.csv", "nvidia-smi"), ("raw.csv", "ncu-raw")):
        assert f"{file}: {form} stored as upload " in done.err
    assert done.err.endswith("see it with: profsvc show id:1\n")
    run = json.loads(cli("runs", "-o", "json").out)["rows"]
    assert [(row["name"], row["tags"]) for row in run] == [("today", {"branch": "main"})]
    assert run[0]["launches"] >= 34
    quantities = json.loads(cli("sql", "select distinct quantity from v1_sensors", "-o", "json").out)["rows"]
    assert {"power", "temperature", "clock"} <= {row["quantity"] for row in quantities}
    said = calls(folder)
    assert said.count("program --size 3") == 1  # the stand-in of ncu does not run it
    assert "TZ=UTC" in said
    profile = next(line for line in said if line.startswith("ncu --set full"))
    assert "--launch-count 7 " in profile
    assert profile.endswith("app --size 3")
    assert [line.partition(" --page ")[2] for line in said if line.startswith("ncu --import")] == [
        "raw --print-units base", "details", "source --print-source cuda,sass", "source --print-source sass",
    ]  # fmt: skip


ROW = '"Line No","Source","Address","Source","# Samples"\n"7","y = x;","0x10","      MOV R0, R1","3"\n'
WITH_LINES = f'"File Path","/a.cu"\n"Function Name","a"\n{ROW}'
WARNING = "==WARNING== No lineinfo available to show CUDA-C source related to 'b'.\n"


@pytest.mark.parametrize(
    ("page", "exported"),
    [
        (WITH_LINES, ["source"]),
        (WARNING * 3, ["machine_code"]),  # the kernels of a library alone
        (WARNING + WITH_LINES, ["source", "machine_code"]),
        ("", ["machine_code"]),
    ],
)
def test_machine_code_is_recorded_of_kernels_that_have_no_lines(
    machine: Machine, cli: Call, page: str, exported: list[str]
) -> None:
    folder = machine("nvidia-smi", "ncu")
    (folder / "source.csv").write_text(page)
    (folder / "sass.csv").write_text('"Kernel Name","a"\n"Address","Source","# Samples"\n"0x10","      NOP","3"\n')
    done = cli("record", "--no-trace", "--no-power", "app")
    assert done.code == 0
    assert re.findall(r"(\w+)\.csv: ncu-source stored", done.err) == exported


def test_the_default_run_is_named_after_the_program_and_new_each_time(machine: Machine, cli: Call) -> None:
    machine("nvidia-smi", "ncu")
    assert cli("record", "--no-trace", "--no-power", "app").code == 0
    name = json.loads(cli("runs", "-o", "json").out)["rows"][0]["name"]
    assert name.startswith("app 20")
    assert name.endswith("Z")


@pytest.mark.parametrize(
    ("programs", "options", "files", "note"),
    [
        (("nvidia-smi", "ncu"), [], {"smi.csv", "raw.csv"}, "without a trace: nsys (Nsight Systems) is not installed"),
        (("nvidia-smi", "nsys"), [], {"smi.csv", "trace.sqlite"}, "without a profile: ncu (Nsight Compute) is not"),
        (("nvidia-smi", "nsys"), ["--no-profile", "--no-power"], {"trace.sqlite"}, ""),
        (("nvidia-smi",), ["--no-profile", "--no-trace"], {"smi.csv"}, ""),
        (("nvidia-smi", "nsys", "ncu"), ["--no-trace", "--no-power"], {"raw.csv"}, ""),
    ],
)
def test_what_is_installed_and_wanted_is_recorded(
    machine: Machine, cli: Call, programs: tuple[str, ...], options: list[str], files: set[str], note: str
) -> None:
    machine(*programs)
    done = cli("record", *options, "--run", "today", "--", "app")
    assert done.code == 0, done.err
    stored = json.loads(cli("sql", "select file_name from v1_uploads", "-o", "json").out)["rows"]
    assert {row["file_name"] for row in stored} == files
    assert note in done.err
    assert bool(note) == ("is not installed" in done.err)


def beside_nsys(folder: Path, text: str) -> None:
    place = folder.parent / "linux-desktop-glibc" / "QdstrmImporter"
    place.parent.mkdir()
    place.write_text(text)
    place.chmod(0o755)


def test_what_nsys_only_collected_becomes_a_report(machine: Machine, script: Script, cli: Call) -> None:
    folder = machine("nvidia-smi", "nsys")
    script("nsys", NSYS_ALONE.format(folder=folder, trace=FIXTURES / "nsys_sqlite" / "only_kernels.sqlite"))
    beside_nsys(folder, IMPORTER.format(folder=folder))
    done = cli("record", "--no-profile", "--no-power", "--out", "kept", "--", "app")
    assert done.code == 0, done.err
    assert "trace.sqlite: nsys-sqlite stored" in done.err
    assert "importer -i kept/trace.qdstrm -o kept/trace.nsys-rep" in calls(folder)


@pytest.mark.parametrize(
    ("importer", "words"),
    [
        (LACKING, "QdstrmImporter, which makes the report, says 'error while loading shared libraries: libdw.so.1'"),
        ("", "nsys collected trace.qdstrm but its QdstrmImporter, which makes the report, is not installed"),
    ],
)
def test_without_what_makes_the_report_the_power_is_left(
    machine: Machine, script: Script, cli: Call, importer: str, words: str
) -> None:
    folder = machine("nvidia-smi", "nsys")
    script("nsys", NSYS_ALONE.format(folder=folder, trace="none"))
    if importer:
        beside_nsys(folder, importer)
    done = cli("record", "--no-profile", "--", "app")
    assert done.code == 7
    assert f"not recorded: trace: {words}" in done.err.replace("nsys collected trace.qdstrm, and ", "")
    assert "Error: 1 part is missing; the messages above say why" in done.err
    assert "smi.csv: nvidia-smi stored" in done.err


@pytest.mark.parametrize(
    ("programs", "status", "words"),
    [
        ((), 0, "no GPU: nvidia-smi, which comes with the driver, is not on the PATH"),
        (("nvidia-smi",), 0, "no profiler: ncu (Nsight Compute) and nsys (Nsight Systems) are neither on the PATH"),
        (("nvidia-smi", "nsys", "ncu"), 3, "app ended with exit status 3, so nothing is uploaded"),
    ],
)
def test_what_cannot_be_recorded_ends_with_6(
    machine: Machine, cli: Call, programs: tuple[str, ...], status: int, words: str
) -> None:
    machine(*programs, status=status)
    done = cli("record", "--", "app")
    assert done.code == 6
    assert words in done.err
    assert json.loads(cli("runs", "-o", "json").out)["rows"] == []


def test_a_gpu_that_does_not_answer(machine: Machine, script: Script, cli: Call) -> None:
    machine("ncu")
    script("nvidia-smi", "#!/bin/sh\necho 'No devices were found'\nexit 6\n")
    done = cli("record", "--", "app")
    assert (done.code, "no GPU 0: nvidia-smi says 'No devices were found'" in done.err) == (6, True)


def test_a_program_that_does_not_exist(machine: Machine, cli: Call) -> None:
    machine("nvidia-smi")
    done = cli("record", "--no-profile", "--no-trace", "--", "./none")
    assert (done.code, "cannot run ./none: No such file or directory" in done.err) == (6, True)


DENIED = 'echo "==ERROR== ERR_NVGPUCTRPERM" >"$2"; exit 1'


def test_counters_that_the_driver_reserves_leave_the_rest(machine: Machine, cli: Call) -> None:
    machine("nvidia-smi", "nsys", "ncu", profile=DENIED)
    done = cli("record", "--run", "today", "--", "app")
    assert done.code == 7
    assert "not recorded: profile: the driver reserves performance counters for administrators" in done.err
    assert "trace.sqlite: nsys-sqlite stored" in done.err


def test_counters_that_the_driver_reserves_alone(machine: Machine, cli: Call) -> None:
    machine("nvidia-smi", "ncu", profile=DENIED)
    done = cli("record", "--no-power", "--", "app")
    assert (done.code, "nothing was recorded: profile: the driver reserves" in done.err) == (6, True)


def test_a_device_without_one_of_the_metrics_is_profiled_without_them(machine: Machine, cli: Call) -> None:
    folder = machine("nvidia-smi", "ncu", with_metrics="exit 1")
    assert cli("record", "--no-power", "--no-trace", "--", "app").code == 0
    profiles = [line for line in calls(folder) if line.startswith("ncu --set full")]
    assert ["--metrics" in line for line in profiles] == [True, False]


def test_only_the_commands(machine: Machine, cli: Call) -> None:
    folder = machine("nvidia-smi", "nsys", "ncu")
    done = cli("record", "--dry-run", "--kernel", "gemm", "--out", "kept", "--", "app", "a b")
    assert done.code == 0
    trace, profile = done.out.splitlines()
    assert trace.endswith("--output=kept/trace app 'a b'")
    assert "--kernel-name regex:gemm" in profile
    assert not (folder / "calls").exists()
    assert cli("record", "--no-profile", "--no-trace", "--no-power", "--", "app").code == 2


def test_reports_and_exports_are_kept_where_wanted(machine: Machine, cli: Call, tmp_path: Path) -> None:
    machine("nvidia-smi", "nsys", "ncu")
    assert cli("record", "--out", "kept", "--", "app").code == 0
    assert {"trace.nsys-rep", "trace.sqlite", "report.ncu-rep", "raw.csv", "smi.csv"} <= {
        path.name for path in (tmp_path / "kept").iterdir()
    }


def test_profilers_are_found_where_they_are_installed(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = machine("nvidia-smi", "ncu", "nsys")
    for version in ("2024.1", "2025.3"):
        place = tmp_path / "opt" / "nvidia" / "nsight-compute" / version
        place.mkdir(parents=True)
        (folder / "ncu").copy(place / "ncu") if hasattr(Path, "copy") else os.link(folder / "ncu", place / "ncu")
    copy = tmp_path / "opt" / "nvidia" / "nsight-compute" / "2025.3" / "host" / "target-linux-x64" / "nsys"
    copy.parent.mkdir(parents=True)
    os.link(folder / "nsys", copy)
    (folder / "ncu").unlink()
    monkeypatch.setenv(tools.DEVICES_VARIABLE, "1,2")
    assert tools.find_tools(["nsys"]).nsys == str(folder / "nsys")
    (folder / "nsys").unlink()
    found = tools.find_tools(["ncu", "nsys"])
    assert found.nsys == str(copy)
    assert found.ncu == str(tmp_path / "opt/nvidia/nsight-compute/2025.3/ncu")
    assert found.gpus == "1,2"


class Library:
    """The functions of NVML, for one board with a counter."""

    def __init__(self) -> None:
        self.energy_mj = 1000

    def nvmlDeviceGetHandleByIndex_v2(self, number: ctypes.c_uint, _device: object) -> int:
        return int(number.value != 0)

    def nvmlDeviceGetTotalEnergyConsumption(self, _device: object, value: object) -> int:
        self.energy_mj += 7
        value._obj.value = self.energy_mj  # type: ignore[attr-defined]
        return 0


def test_the_energy_counter_is_logged_in_the_form_that_is_read(tmp_path: Path, cli: Call) -> None:
    file = tmp_path / "nvml_energy.csv"
    with energy_counter.logging_energy(file, "0", Library()):
        passes.time.sleep(0.3)
    lines = file.read_text().splitlines()
    assert lines[0] == "unix_s,gpu,energy_mj"
    assert 4 <= len(lines) <= 8
    assert [int(line.rpartition(",")[2]) for line in lines[1:]] == [1014 + 7 * n for n in range(len(lines) - 1)]
    done = cli("upload", file, "--run", "energy")
    assert f"{file.name}: nvml-energy stored" in done.err
    assert " 0 rejected" in done.err


@pytest.mark.parametrize("gpus", ["1", "GPU-1234", ""])
def test_a_board_without_a_counter_has_no_log(tmp_path: Path, gpus: str) -> None:
    with energy_counter.logging_energy(tmp_path / "log.csv", gpus, Library()):
        pass
    assert not (tmp_path / "log.csv").exists()

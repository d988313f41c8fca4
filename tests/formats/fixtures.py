"""The files under fixtures that have a truth beside them: what must be read of them, or the words of their refusal."""

from pathlib import Path

ROOT = Path(__file__).parents[2] / "fixtures"
TRUTH, REFUSAL = ".expected.json", ".error.txt"


def beside(path: Path, suffix: str) -> Path:
    """The truth of a file."""
    return path.parent / (path.name.split(".")[0] + suffix)


def shown(path: Path) -> str:
    """The name of a file in a list of tests."""
    return f"{path.parent.name}/{path.name}"


def files(*folders: str) -> list[Path]:
    """The files of some folders, without their truths."""
    paths = (path for folder in folders for path in sorted((ROOT / folder).iterdir()))
    return [path for path in paths if not path.name.endswith((TRUTH, REFUSAL))]


def good(*folders: str) -> list[Path]:
    """Those of them that are read."""
    return [path for path in files(*folders) if beside(path, TRUTH).exists()]


MONITORS = {
    "afterburner", "codecarbon", "dcgm", "nvidia_smi", "nvidia_smi_dmon", "nvidia_smi_q", "nvml_energy",
    "nvidia_smi_stats", "prometheus", "rocm_smi", "tegrastats", "zeus",
}  # fmt: skip
PHASE = ("name", "start_ns", "duration_ns", "domain", "active_sms", "launches", "line")
FOLDERS = sorted({path.parent.name for end in (TRUTH, REFUSAL) for path in ROOT.glob(f"*/*{end}")})

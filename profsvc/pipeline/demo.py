"""The bundled exports of the demonstration."""

from pathlib import Path


def demo_files() -> list[Path]:
    """Return the bundled exports of the demonstration, wherever the package is installed."""
    return sorted(p for p in _demo_folder().iterdir() if p.suffix in {".gz", ".csv"})


def demo_runs() -> list[tuple[str, Path]]:
    """Return what the demonstration shows in a browser: runs, and a file of each; the shortest wait comes first."""
    served = sorted(path for path in (_demo_folder() / "served").rglob("*") if path.is_file())
    more = [(path.parent.name, path) for path in served]
    return [("h200", path) for path in demo_files()] + sorted(more, key=lambda pair: pair[0] == "h200")


def _demo_folder() -> Path:
    here = Path(__file__).parent.parent
    return here / "demo" if (here / "demo").is_dir() else here.parent / "fixtures" / "demo"

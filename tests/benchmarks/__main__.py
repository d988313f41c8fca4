"""What the benchmarks of each subject answer. Run one of them with ``python -m tests.benchmarks.NAME``."""

import ast
from pathlib import Path

from tests.command_line import parser_of

FOLDER = Path(__file__).parent
SUBJECTS = {
    "Causes, criteria and potential, on kernels with known flaws": (
        "causes", "unseen", "ledger", "criteria", "potential", "mended", "mended_ranges", "merged_launches",
    ),
    "Models": ("model_times", "models", "memory_hierarchy"),
    "Nights: false findings, and changes found": (
        "bound_alone", "change", "detection", "night_record", "night_events", "nightly", "public_histories",
    ),
    "Power and temperature": ("power", "power_recovery"),
    "Reading and loading files": ("reading", "loading", "wide", "launch_keys", "cluster"),
    "Questions to a full store": (
        "querying", "users_questions", "history", "lists", "timeline", "partitions", "busy_year",
    ),
    "The command line and the service": (
        "commands", "first_look", "every_page", "run_pages", "serving", "readers", "slow_clients", "schema_cases",
        "schedule",
    ),
}  # fmt: skip


def first_line(name: str) -> str:
    """Return the first line of the docstring of a benchmark, which is not imported."""
    words = ast.get_docstring(ast.parse((FOLDER / f"{name}.py").read_text(encoding="utf-8"))) or ""
    return words.splitlines()[0].partition(": ``python")[0]


def main() -> None:
    parser_of(__doc__).parse_args()
    width = max(len(name) for names in SUBJECTS.values() for name in names)
    for subject, names in SUBJECTS.items():
        print(f"\n{subject}\n")
        for name in names:
            print(f"  {name:{width}}  {first_line(name)}")


if __name__ == "__main__":
    main()

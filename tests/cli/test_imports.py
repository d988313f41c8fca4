"""What a command may import: a question must not wait for what it does not use."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FRAMES = {"pandas", "pyarrow", "scipy", "matplotlib"}
HEAVY = FRAMES | {"numpy", "sqlalchemy", "alembic", "rich", "httpx", "fastapi", "apscheduler", "pydantic"}
# The words of a command, what it must not import, and how many modules it may: some more than it does.
COMMANDS = {
    "--version": (HEAVY | {"click", "sqlite3"}, 90),
    "--help": (FRAMES | {"sqlalchemy", "rich"}, 400),
    "runs --help": (HEAVY, 160),
    "runs": (HEAVY, 235),
    "runs -o json": (HEAVY, 235),
    "sql select/**/1": (HEAVY, 240),
    "findings list": (HEAVY, 240),
    "formats": (HEAVY, 250),
    "formats ncu-raw": (HEAVY, 250),
    "show": (HEAVY, 280),
    "show --all": (HEAVY, 280),
    "show h200 -o json": (HEAVY, 280),
}
CODE = """
import json, sys
from profsvc.cli import main
sys.argv = ["profsvc", *json.loads(sys.argv[1])]
try:
    main()
except SystemExit as end:
    if end.code:
        raise
finally:
    print(json.dumps(sorted(sys.modules)), file=sys.stderr)
"""


@pytest.mark.parametrize("words", COMMANDS)
def test_a_command_imports_what_it_uses(demo, words: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", CODE, json.dumps(words.split())],
        env=os.environ | {"PROFSVC_STORE": str(demo.url.database)},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    modules = json.loads(done.stderr.splitlines()[-1])
    forbidden, most = COMMANDS[words]
    assert not forbidden & set(modules)
    assert len(modules) <= most

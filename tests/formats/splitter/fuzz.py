"""Asks a compiled splitter about random blocks and compares what it answers with the oracle.

``python -m tests.robustness.sanitized splitter --minutes 60`` compiles the splitter with the sanitizers of addresses
and of undefined behaviour and runs this file under them; the process ends where one finds something.
"""

import importlib.machinery
import importlib.util
import random
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import oracle


def main(path: str, seconds: float, seed: int) -> int:
    loader = importlib.machinery.ExtensionFileLoader("_splitter", path)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("_splitter", loader))
    loader.exec_module(module)
    end, asked, rows = time.monotonic() + seconds, 0, 0
    while time.monotonic() < end:
        question = oracle.question(random.Random(f"{seed} {asked}"))
        if wrong := oracle.differences(module, question):
            sys.stdout.write(f"seed {seed}, question {asked}: {wrong}\n{question}\n")
            return 1
        asked, rows = asked + 1, rows + question.block.count(b"\n")
    sys.stdout.write(f"{asked} blocks of {rows} lines: no difference\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1], float(sys.argv[2]), int(sys.argv[3])))

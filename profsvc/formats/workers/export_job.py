"""Job of a worker process (`profsvc.workers.worker`) that runs a vendor's tool to export an untrusted file.

The tool inherits the limits. The first request has the command, the environment and the folder to run in. Its response
is ``("exported", exit status, last words)``.
"""

import marshal
import subprocess
from collections.abc import Callable
from typing import Any

MAX_WORDS = 300


def run(asked: dict[str, Any], received: Callable[[], Any], send: Callable[[bytes], None]) -> None:
    """Run the tool and respond with its exit status and the end of what it printed."""
    try:
        done = subprocess.run(
            asked["command"], cwd=asked["folder"], env=asked["environment"], stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
        )  # fmt: skip
    except OSError as error:
        send(marshal.dumps(("error", str(error))))
        return
    words = " ".join(done.stdout[-4096:].decode("utf-8", "replace").split())
    send(marshal.dumps(("exported", done.returncode, words[-MAX_WORDS:])))

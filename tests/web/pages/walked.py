"""The pages that a browser walks: each with a text that must be seen on it. A new page is a new line here."""

from typing import NamedTuple


class Walked(NamedTuple):
    """A page: a name for its pictures, its path with ``{run}``, ``{board}`` and ``{launch}`` in it, a text on it."""

    name: str
    path: str
    see: str
    status: int = 200


WALKED = (
    Walked("runs", "/", "h200"),
    Walked("runs-none", "/?search=nothing+like+it", "No run answers"),
    Walked("run", "/runs/{run}", "What to do first"),
    Walked("run-power", "/runs/{board}", "power.draw"),
    Walked("run-kernel", "/runs/{run}/kernels/10", "gemm"),
    Walked("rejects", "/runs/{measured}/rejects", "why"),
    Walked("launch", "/runs/{run}/launches/{launch}", "Speed of light"),
    Walked("devices", "/devices", "Catalogue"),
    Walked("device", "/devices/NVIDIA%20H200", "What was measured of it"),
    Walked("upload", "/upload?run=today", "Files"),
    Walked("explain", "/explain/divergence?run={run}&launch={launch}", "lanes on"),
    Walked("login", "/login", "Token"),
    Walked("missing", "/runs/999999", "999999", 404),
)

"""Names of copies and memsets, as the tools print them, to kinds such as HtoD."""

import re

_PLACES = {
    "host": "H",
    "device": "D",
    "array": "A",
    "peer": "P",
    "h": "H",
    "d": "D",
    "a": "A",
    "p": "P",
}
_COPY = re.compile(r"(?:Memcpy|Memset)(?: (?P<kind>\w+))? ?\((?P<source>[^()]*?)(?: -> (?P<target>[^()]*))?\)")
# Of the first rocprof and of ONNX Runtime.
_COPY_LONG = re.compile(r"(?:Copy|Memcpy)(Host|Device|Peer)To(Host|Device|Peer)\b")
# Of Intel's PTI, where M is memory of the host, and of PaddlePaddle.
_COPY_SHORT = re.compile(r"(?:\w+\(([HMD])2([HMD])\)|MEMCPY_([HD])to([HD]))")


def copy_kind(operation: str) -> str:
    """Return the kind of a copy or memset, such as ``HtoD``; an unknown operation keeps its name.

    >>> [copy_kind(text) for text in ("[CUDA memcpy Host-to-Device]", "[CUDA memset]", "[CUDA memcpy DtoH]")]
    ['HtoD', 'memset', 'DtoH']
    >>> copy_kind("[CUDA memcpy Unified Host-to-Device]"), copy_kind("[CUDA Unified Memory memcpy HtoD]")
    ('unified HtoD', 'unified HtoD')
    """
    text = operation.strip().strip("[]").lower()
    if "memset" in text.split():
        return "memset"
    last = text.split()[-1] if text else ""
    source, _, target = last.partition("-to-") if "-to-" in last else last.partition("to")
    if source in _PLACES and target in _PLACES:
        return f"{'unified ' if 'unified' in text else ''}{_PLACES[source]}to{_PLACES[target]}"
    return operation.strip().strip("[]") or "unknown"


def parse_transfer(name: str, is_set: bool) -> dict[str, object]:
    """Return the kind and the memories of a copy or memset, as Kineto or the first rocprof name it.

    >>> [parse_transfer(f"zeCommandListAppendMemoryCopy({places})", False)["kind"] for places in ("M2D", "D2H", "S2D")]
    ['HtoD', 'DtoH', 'zeCommandListAppendMemoryCopy(S2D)']
    """
    match = _COPY.match(name)
    if is_set:
        return {"kind": "memset", "target_memory": match["source"] if match else None}
    if rocm := _COPY_LONG.match(name):
        return {"kind": f"{rocm[1][0]}to{rocm[2][0]}", "source_memory": rocm[1], "target_memory": rocm[2]}
    if short := _COPY_SHORT.fullmatch(name):
        source, target = ("H" if place == "M" else place for place in short.groups() if place)
        return {"kind": f"{source}to{target}"}
    if match is None:
        return {"kind": copy_kind(name)}
    return {
        "kind": copy_kind(match["kind"] or name),
        "source_memory": match["source"] or None,
        "target_memory": match["target"] or None,
    }

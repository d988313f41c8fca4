"""Memory traces of a run: their bytes read again, simulated, and what was found into the store."""

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
import pandas as pd

from profsvc import store
from profsvc.analysis.launches import memory_traces
from profsvc.errors import NotFoundError, ServiceError
from profsvc.formats.native import memory_trace
from profsvc.formats.native.memory_references import Sites
from profsvc.formats.parsing.stream import open_stream
from profsvc.formulas.memory_hierarchy import hierarchy_of, pack
from profsvc.pipeline.ingestion.kept_bytes import OpenUpload
from profsvc.specs import Device
from profsvc.specs import device as device_of

if TYPE_CHECKING:
    from sqlalchemy import Engine

MAX_LINES = 20_000_000


def simulate_traces(engine: "Engine", run_id: int, opened: OpenUpload) -> int:
    """Simulate the memory traces of a run that were not, or were by an older version; return how many were.

    Bytes that are not kept leave what there is, or say so.
    """
    count = 0
    for upload in store.select(engine, "v1_uploads", run_id=run_id, format=memory_trace.NAME):
        known = store.select(engine, "v1_traces", upload_id=upload["upload_id"])
        if known and known[0]["draws"] and known[0]["version"] == memory_traces.VERSION:
            continue
        try:
            with opened(upload) as stream:
                _simulate(engine, upload, stream)
        except ServiceError as error:
            if not known:
                store.save_trace(engine, upload["upload_id"], {**_trace_header(upload), "reason": str(error)})
            continue
        count += 1
    return count


def rows_of_run(engine: "Engine", run_id: int) -> Iterator[dict[str, pd.DataFrame]]:
    """Yield the rows of results of the traces of a run, if it has any."""
    traces = store.traces_of_run(engine, run_id)
    if traces:
        yield {"models": memory_traces.trace_rows(traces)}


def _simulate(engine: "Engine", upload: Mapping[str, Any], stream: BinaryIO) -> None:
    """Simulate one trace on the caches of its device; store what was found, or why nothing could be."""
    facts, about, sites = json.loads(upload["facts"]), _trace_header(upload), Sites()
    try:
        device = _device(engine, upload, facts)
        about["device"] = device.name
        parts = memory_trace.parts(open_stream(stream), sites, facts["order"] == "by warp")
        sector_bytes = memory_traces.device_caches(device, 1).sector_bytes
        packed = pack(parts, memory_traces.LINE_BYTES, MAX_LINES, sector_bytes)
        h = memory_traces.device_caches(device, int(packed.warp.max(initial=0)) + 1)
    except (NotFoundError, ValueError) as error:
        store.save_trace(engine, upload["upload_id"], {**about, "reason": str(error)})
        return
    found = hierarchy_of(packed, h)
    about |= {"lines": found.lines, "draws": found.runs, "flags": found.flags, "blocks_left_out": packed.left_out}
    about |= {"blocks": int(np.unique(packed.block).size), "sms": h.sms, "slots": h.slots, "line_bytes": h.line_bytes}
    about |= {"l1_sets": h.l1.sets, "l1_ways": h.l1.ways, "l2_sets": h.l2.sets, "l2_ways": h.l2.ways}
    draws = np.column_stack([found.ratios.T, found.dram_lines]).tolist()
    names = list(sites)
    rows = zip(*(column.tolist() for column in found.sites), strict=True)
    store.save_trace(engine, upload["upload_id"], about, draws, ((names[site], *rest) for site, *rest in rows))


def _trace_header(upload: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is known of a trace before it is simulated."""
    facts = json.loads(upload["facts"])
    known = {"kernel": facts.get("kernel"), "references_read": int(facts["references"])}
    nothing = dict.fromkeys(("lines", "blocks", "blocks_left_out", "draws", "flags"), 0)
    return {**known, **nothing, "version": memory_traces.VERSION}


def _device(engine: "Engine", upload: Mapping[str, Any], facts: Mapping[str, str]) -> Device:
    """Return the device that the trace names, else that of its run."""
    run = store.select(engine, "v1_runs", run_id=upload["run_id"])[0]
    if (named := facts.get("device") or run["device"]) is None:
        raise NotFoundError(
            "the device is unknown: name it in the trace (# device: NAME), or with --device in any upload to this "
            f"run, then run: profsvc analyze id:{upload['run_id']}"
        )
    return device_of(named)

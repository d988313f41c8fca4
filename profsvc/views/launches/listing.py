"""The launches of a run or of one kernel, and why one has no results."""

import re
import shlex
from typing import TYPE_CHECKING, Any

from profsvc import specs, store
from profsvc.errors import NotFoundError
from profsvc.kernel_names import matching_kernels

if TYPE_CHECKING:
    from sqlalchemy import Engine

LIMIT = 40
"""Default number of launches shown."""


def grouped(rows: list[dict[str, Any]]) -> dict[Any, list[dict[str, Any]]]:
    """Return rows by their launch_id."""
    groups: dict[Any, list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault(row["launch_id"], []).append(row)
    return groups


def tools_of(uploads: list[dict[str, Any]]) -> dict[int, str]:
    """Return the tool of each upload by its name in `profsvc.specs`."""
    return {upload["upload_id"]: str(upload["format"]).split("-")[0] for upload in uploads}


def _of_id(engine: "Engine", run_id: int, launch_id: int) -> list[dict[str, Any]]:
    """Return the launch with a number in the store, or the launch that it duplicates."""
    every = store.launch_rows(engine, "v1_launches_all", run_id, [launch_id]) if launch_id < 2**62 else []
    if not every:
        raise NotFoundError(f"run {run_id} has no launch with the launch_id {launch_id}; see v1_launches")
    return store.launch_rows(engine, "v1_launches", run_id, [every[0]["same_as"] or launch_id])


def why_no_result(engine: "Engine", run_id: int, tool: str, device: str | None = None) -> str:
    """Return why a launch of a run has no rows of criteria and potential."""
    if store.LAUNCHES_PART in store.unfinished(engine, run_id).get(run_id, ()):
        return f"the results of this run are not computed yet, or were cut short; run: profsvc analyze id:{run_id}"
    how = specs.how_to_measure(tool, device)
    return f"the export lacks the metrics for the criteria of this launch; {how}"


@store.snapshot
def launches_of(
    engine: "Engine",
    run_name: str | int,
    kernel: str | None = None,
    limit: int | None = None,
    *,
    may_lack: bool = False,
) -> tuple[list[dict[str, Any]], bool]:
    """Return launches of a run or of one kernel: by number, ``id:`` launch_id, name or part of it.

    At most ``limit`` launches, the longest, and whether there are more. A kernel without launches is an error unless
    the run ``may_lack`` them.
    """
    run_id = store.find_run(engine, run_name)
    store.require_rows_of(engine, run_id, "its launches are among")
    if kernel is None:
        return store.longest_launches(engine, run_id, limit)
    if re.fullmatch(r"#?\d+", kernel):
        index = int(kernel.lstrip("#"))
        chosen = store.longest_launches(engine, run_id, limit, index=index) if index < 2**62 else ([], False)
        if not chosen[0]:
            numbers = _numbers(engine, run_id)
            raise NotFoundError(f"no kernel named {kernel!r}, and no launch of that number in {run_name!r}; {numbers}")
        return chosen
    if numbered := re.fullmatch(r"id:(\d+)", kernel, re.ASCII):
        return _of_id(engine, run_id, int(numbered[1])), False
    kernels = store.select(engine, "v1_kernel_totals", run_id=run_id)
    meant = set(matching_kernels(kernel, [one["kernel"] for one in kernels]))
    exact = {one["kernel_id"] for one in kernels if one["kernel"] in meant}
    if ids := exact or {one["kernel_id"] for one in kernels if kernel in one["kernel"]}:
        return store.longest_launches(engine, run_id, limit, kernel_ids=sorted(ids))
    if may_lack:
        return [], False
    summed = store.select(engine, "v1_kernel_summaries", run_id=run_id, category="kernel")
    if matching_kernels(kernel, [one["kernel"] for one in summed]):
        raise NotFoundError(
            f"run {run_name!r} has totals of the kernel {kernel!r} and no single launches; see them with: profsvc show "
            f"id:{run_id}, and over runs: profsvc history {shlex.quote(kernel)}"
        )
    raise NotFoundError.near("kernel", kernel, {str(one["kernel_short"]) for one in (*kernels, *summed)})


def _numbers(engine: "Engine", run_id: int) -> str:
    """Return the range of launch numbers of a run as text."""
    first, last = store.launch_numbers(engine, run_id)
    return "the run has no launches" if first is None else f"it has launches #{first} to #{last}"

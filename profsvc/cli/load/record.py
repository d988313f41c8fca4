"""``record``: run a program under the profilers of this machine and upload what they wrote."""

import os
import shlex
import tempfile
from contextlib import nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

from click import Context, echo

from profsvc.cli.console.common import parse_pairs, print_message
from profsvc.cli.console.declaration import Argument, Group, Option
from profsvc.cli.load.upload import store_files, taking
from profsvc.errors import InputError, PartlyStoredError, UsageError


def record(
    context: Context,
    program: Annotated[list[str], Argument(help="Program and its arguments, after --.", metavar="PROGRAM...")],
    run: Annotated[str, Option(help="Run to add the files to; default: the program and the time.")] = "",
    project: Annotated[str, Option(help="Project of the run.")] = "default",
    commit: Annotated[str, Option(help="Commit that is measured.")] = "",
    tag: Annotated[list[str], Option(help="Tag of the run, such as branch=main; repeatable.")] = [],
    launches: Annotated[
        int, Option(min=0, help="Profile this many launches; 0 means all, which may take long.", metavar="N")
    ] = 100,
    kernel: Annotated[str, Option(help="Profile only kernels that match this pattern.", metavar="REGEX")] = "",
    profile: Annotated[bool, Option("--profile/--no-profile", help="Profile kernels with ncu.")] = True,
    trace: Annotated[bool, Option("--trace/--no-trace", help="Trace the program with nsys.")] = True,
    power: Annotated[bool, Option("--power/--no-power", help="Log power, clocks and temperature.")] = True,
    out: Annotated[Path | None, Option(help="Keep reports and exports in this folder.", metavar="FOLDER")] = None,
    dry_run: Annotated[bool, Option("--dry-run", help="Only print the commands that would be run.")] = False,
) -> None:
    """Run a program under ncu and nsys, log the power of the board, and upload everything into one run.

    The program runs once for the trace and the power log, and once for the profile. Power is logged by nvidia-smi and,
    where the driver has it, by the energy counter. CUDA_VISIBLE_DEVICES names the GPUs to log; default: GPU 0.

    A profiler that is not installed is left out. Exit code 6: no GPU, no profiler, or the program failed. Exit code 7:
    a part could not be recorded or stored.

    Examples:

      profsvc record -- ./app --size 4096

      profsvc record --run today --tag branch=main -- python train.py

      profsvc record --kernel "gemm|reduce" --launches 20 --out recording -- ./app

      profsvc record --no-profile --no-trace -- ./app
    """
    from profsvc import pipeline, recording, store
    from profsvc.recording.tools import missing_notes

    wanted = [name for name, is_wanted in (("ncu", profile), ("nsys", trace)) if is_wanted]
    if not (wanted or power):
        raise UsageError("--no-profile, --no-trace and --no-power leave nothing to record; leave one of them out")
    tags = parse_pairs("--tag", tag)
    tools = recording.find_tools(wanted)
    plan = recording.Plan(tuple(program), launches, kernel, power)
    if dry_run:
        folder = out or Path("FOLDER")
        for command in recording.commands(tools, plan, folder).values():
            echo(shlex.join(command))
        return
    for note in missing_notes(tools, wanted):
        print_message(note)
    name = os.fsencode(Path(program[0]).name).decode("utf-8", "backslashreplace")
    run = run or f"{name} {datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
    info = store.RunInfo(project=project, name=run, tags=tags, commit_id=commit or None)
    store.check_run_names(info)
    take = taking(context, pipeline.ReadOptions(zone="UTC"))  # a store that cannot be opened is found before the work
    with tempfile.TemporaryDirectory(prefix="profsvc-record-") if out is None else nullcontext(str(out)) as place:
        Path(place).mkdir(parents=True, exist_ok=True)
        made = recording.record(tools, plan, Path(place), print_message)
        verdicts, refused = store_files([str(file) for file in made.files], take, info)
    for problem in made.problems:
        print_message(f"not recorded: {problem}")
    if refused == len(made.files):
        raise InputError("nothing was stored")
    if run_ids := sorted({one.run_id for one in verdicts if one.run_id is not None}):
        print_message(f"see it with: profsvc show id:{run_ids[0]}")
    if refused or made.problems:
        missing = len(made.problems) + refused
        parts = "1 part is" if missing == 1 else f"{missing} parts are"
        raise PartlyStoredError(f"{parts} missing; the messages above say why")


def register(app: Group) -> None:
    """Add the command of this file."""
    app.function(context_settings={"allow_interspersed_args": False})(record)

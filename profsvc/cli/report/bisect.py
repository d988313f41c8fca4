"""``bisect``: find the commit of a finding by measuring commits between its runs."""

import os
import shlex
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from click import Context
from click.exceptions import Exit

from profsvc.cli.console.common import OutputOption, open_engine, print_json, print_message, print_rows
from profsvc.cli.console.declaration import Argument, Group, Option
from profsvc.cli.console.exit_codes import INTERRUPTED
from profsvc.cli.load.upload import store_files, taking
from profsvc.errors import InputError, counted

if TYPE_CHECKING:
    from sqlalchemy import Engine

COLUMNS = ("commit", "author", "at", "subject", "probability", "runs", "value")
MIN_SHOWN_PROBABILITY = 0.001
SHORT = 12


def bisect(
    context: Context,
    finding: Annotated[int, Argument(help="Number of the finding.")],
    repo: Annotated[Path, Option(help="Git repository of the program.", metavar="FOLDER")] = Path(),
    run: Annotated[
        str,
        Option(
            help="Shell command that builds and measures a commit; without it nothing is measured.", metavar="COMMAND"
        ),
    ] = "",
    good: Annotated[
        str, Option(help="Commit before the change; default: that of the last run before.", metavar="COMMIT")
    ] = "",
    bad: Annotated[
        str, Option(help="Commit with the change; default: that of the first run since.", metavar="COMMIT")
    ] = "",
    max_runs: Annotated[int, Option(min=1, help="Measure this often at most.", metavar="N")] = 40,
    output: OutputOption = "table",
) -> None:
    """Find the commit that a finding began with: say which commit to measure next, or measure until it is found.

    Each measured commit changes how probable every commit between the last good and the first bad run is. The commit
    that halves the probability is measured next; one whose value lies between both levels is measured again. The search
    ends when one commit has 95 % of the probability. If more than the code changed, such as the driver, the commit
    before the change is measured first: where it is slow now too, no commit caused the change.

    With --run, each commit is checked out into a folder of its own, and the command runs there. Files that it writes to
    the folder $PROFSVC_OUT are uploaded; if there are none, what it prints is. $PROFSVC_COMMIT is the commit. The runs
    are kept in the project 'PROJECT bisect', so that no nightly report takes them for new ones. If it is interrupted,
    the same command continues. A commit whose command fails is left out.

    Exit code 6: no commit could be measured. Exit code 130: it was interrupted.

    Examples:

      profsvc bisect 3 --repo ~/app

      profsvc bisect 3 --repo ~/app --run 'make -s && nsys profile -o $PROFSVC_OUT/trace ./app'
    """
    from profsvc.pipeline import commits
    from profsvc.views.nightly import findings as findings_view

    engine = open_engine(context)
    row = findings_view.found(engine, finding)
    ends = good or None, bad or None
    state: Mapping[str, Any] = findings_view.blame_of(engine, row, repo, *ends)
    if run:
        with tempfile.TemporaryDirectory(prefix="profsvc-bisect-") as place:
            folder = Path(place) / "commit"
            try:
                state = _measure(context, engine, row, state, repo, folder, run, ends, max_runs)
            except KeyboardInterrupt:
                print_message(
                    "interrupted: what was measured is stored, the run of now is not; the same command goes on",
                    kind="error",
                )
                raise Exit(INTERRUPTED) from None
            finally:
                commits.remove_checkout(repo, folder)
    if output == "json":
        print_json(state)
        return
    shown = [one for one in _all(state) if one["probability"] >= MIN_SHOWN_PROBABILITY or one["runs"]]
    print_rows(COLUMNS, [one | {"commit": one["commit"][:SHORT]} for one in shown], output)
    print_message(_verdict(state, row))
    best = state["best"]["commit"]
    if state["found"] and best != state["outside"]["commit"] and (merged := commits.merge_of(repo, best)):
        print_message(
            f"{best[:SHORT]} merged {counted(merged.commits, 'commit')}; search with: profsvc bisect {finding} --repo "
            f"{shlex.quote(str(repo))} --good {merged.base[:SHORT]} --bad {merged.tip[:SHORT]}"
        )


def _all(state: Mapping[str, Any]) -> list[Any]:
    """Return the commit before all candidates, and these."""
    return [state["outside"], *state["candidates"]]


def _verdict(state: Mapping[str, Any], finding: Mapping[str, Any]) -> str:
    """Return what is known, and what to measure next."""
    from profsvc.reports.nightly.differences import difference_text

    best, count = state["best"], len(state["candidates"])
    context = ", ".join(map(difference_text, state["context"]))
    if state["found"] and best["commit"] == state["outside"]["commit"]:
        return (
            f"finding {state['finding_id']}: no commit changed {finding['label']}: {best['commit'][:SHORT]}, from "
            "before the change, is now at the level after it; look at "
            f"{context or 'the driver, the clocks and the inputs'}"
        )
    if state["found"]:
        return (
            f"finding {state['finding_id']}: {finding['label']} changed with {best['commit'][:SHORT]} by "
            f"{best['author']} ({best['subject']}); probability {100 * best['probability']:.3g} %"
        )
    left = f"the code may not be the cause: {context}; " if context and not state["outside"]["runs"] else ""
    left += f"{state['suspects']} of {counted(count, 'commit')} left, {state['first_suspect'][:SHORT]} to "
    left += state["last_suspect"][:SHORT]
    if state["measure"] is None:
        return f"{left}; no other commit can be measured"
    return f"{left}; measure next: {state['measure']} (upload it with --commit, or give --run)"


def _measure(
    context: Context, engine: "Engine", finding: Mapping[str, Any], state: Mapping[str, Any], repository: Path,
    folder: Path, command: str, ends: tuple[str | None, str | None], max_runs: int,
) -> Mapping[str, Any]:  # fmt: skip
    """Measure commits until the one of the finding is found; return the last state of the search."""
    from profsvc import pipeline, store
    from profsvc.pipeline import commits
    from profsvc.views.nightly import findings as findings_view

    take = taking(context, pipeline.ReadOptions(zone="UTC"))
    blocked: list[str] = []
    stored = 0
    for _ in range(max_runs):
        commit = state["measure"]
        if commit is None:
            break
        (known,) = (one for one in _all(state) if one["commit"] == commit)
        number = known["runs"] + 1
        print_message(f"measuring {commit[:SHORT]} (run {number} of it; {counted(state['suspects'], 'commit')} left)")
        commits.check_out(repository, folder, commit)
        name = f"finding {state['finding_id']} {commit[:SHORT]} run {number}"
        tags = {"bisect": str(state["finding_id"])}
        info = store.RunInfo(project=state["project"], name=name, commit_id=commit, tags=tags)
        problem = _run_once(folder, command, commit, take, info)
        state = findings_view.blame_of(engine, finding, repository, *ends, blocked)
        after = next(one["runs"] for one in _all(state) if one["commit"] == commit)
        if problem is None and after < number:
            problem = f"its files have no {finding['quantity']} of {finding['label']}"
        stored += problem is None
        if problem is not None:
            print_message(f"{commit[:SHORT]} is left out: {problem}", kind="error")
            blocked.append(commit)
            state = findings_view.blame_of(engine, finding, repository, *ends, blocked)
    if blocked and not stored:
        raise InputError(f"no commit could be measured; the last reason: {problem}")
    return state


def _run_once(folder: Path, command: str, commit: str, take: Any, info: Any) -> str | None:
    """Run the command on a commit and store what it wrote; return why nothing was stored, None if it was."""
    with tempfile.TemporaryDirectory(prefix="profsvc-bisect-out-") as place:
        out = Path(place) / "out"
        out.mkdir()
        printed = Path(place) / "printed.txt"
        environment = os.environ | {"PROFSVC_OUT": str(out), "PROFSVC_COMMIT": commit}
        with printed.open("wb") as stream:
            done = subprocess.run(command, shell=True, cwd=folder, env=environment, stdout=stream, check=False)
        if done.returncode:
            return f"the command ended with exit code {done.returncode}"
        files = sorted(str(file) for file in out.rglob("*") if file.is_file()) or [str(printed)]
        stored, _ = store_files(files, take, info)
        return None if stored else "none of its files could be read"


def register(app: Group) -> None:
    """Add the command of this file."""
    app.function()(bisect)

"""Commits of a git repository between two that were measured."""

import subprocess
from pathlib import Path
from typing import NamedTuple

from profsvc.errors import InputError, UsageError

FIELDS = ("%H", "%an", "%aI", "%s")
SEPARATOR = "%x00"
"""No name and no subject can contain it."""
MAX_COMMITS = 100_000


class Commit(NamedTuple):
    """A commit: its hash, the name of its author and its time as git has them, and the first line of its message."""

    sha: str
    author: str
    at: str
    subject: str


def commits_between(repository: Path, good: str, bad: str) -> list[Commit]:
    """Return the commits after ``good`` up to ``bad``, oldest first, along the first parents of merges.

    Raise `UsageError` where ``good`` is no ancestor of ``bad``.
    """
    first, last = (resolve(repository, commit) for commit in (good, bad))
    if first == last:
        raise UsageError(f"the runs before and after the change are of the same commit {first[:12]}: look at the "
                         "driver, clocks and inputs, not at commits")  # fmt: skip
    if _git(repository, "merge-base", "--is-ancestor", first, last).returncode:
        raise UsageError(f"{first[:12]} (before the change) is no ancestor of {last[:12]} (after it) in {repository}; "
                         + (_shallow(repository) or "give the commits with --good and --bad"))  # fmt: skip
    return _log(repository, f"{first}..{last}", MAX_COMMITS)


def named_commit(repository: Path, commit: str) -> Commit:
    """Return a commit."""
    return _log(repository, resolve(repository, commit), 1)[0]


class Merge(NamedTuple):
    """What a merge brought: the newest commit that both sides have, the tip of the merged side, and its commits."""

    base: str
    tip: str
    commits: int


def merge_of(repository: Path, commit: str) -> Merge | None:
    """Return what a commit merged into its first parent; None for one that is no merge of two."""
    sha = resolve(repository, commit)
    parents = _git(repository, "rev-list", "--parents", "--max-count=1", sha).stdout.decode("ascii").split()[1:]
    if len(parents) != 2:
        return None
    base = _git(repository, "merge-base", *parents).stdout.decode("ascii").strip()
    count = _git(repository, "rev-list", "--count", "--first-parent", f"{base}..{parents[1]}").stdout.strip()
    return Merge(base, parents[1], int(count)) if base and int(count or 0) > 1 else None


def _log(repository: Path, commits: str, most: int) -> list[Commit]:
    form = f"--format={SEPARATOR.join(FIELDS)}"
    shape = ("--first-parent", "--no-show-signature", "--encoding=UTF-8", f"--max-count={most}", "-z", form)
    done = _git(repository, "log", *shape, commits)
    if done.returncode:
        raise InputError(f"{repository}: git log failed: {_words(done.stderr)}")
    cells = done.stdout.decode("utf-8", "backslashreplace").split("\0")
    rows = zip(*(cells[place :: len(FIELDS)] for place in range(len(FIELDS))), strict=False)
    return [Commit(*row) for row in rows][::-1]


def resolve(repository: Path, commit: str) -> str:
    """Return the full hash of a commit; raise `UsageError` for one that the repository does not have."""
    done = _git(repository, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{commit}^{{commit}}")
    if done.returncode:
        reason = (
            _words(done.stderr)
            or _shallow(repository)
            or ("fetch it; if a rebase or a forced push removed it, give what took its place with --good or --bad")
        )
        raise UsageError(f"{repository}: commit {commit!r} was not found: {reason}")
    return done.stdout.decode("ascii", "replace").strip()


def _shallow(repository: Path) -> str:
    """Return what to do where the history of a clone ends early, else nothing."""
    shallow = _git(repository, "rev-parse", "--is-shallow-repository").stdout.strip() == b"true"
    return "the clone is shallow: git fetch --unshallow" if shallow else ""


def check_out(repository: Path, folder: Path, commit: str) -> None:
    """Put a commit into a folder beside the repository's own; the first call makes the folder."""
    if (folder / ".git").exists():
        done = _git(folder, "checkout", "--quiet", "--force", "--detach", commit)
    else:
        _git(repository, "worktree", "prune")
        done = _git(repository, "worktree", "add", "--quiet", "--force", "--detach", str(folder), commit)
    if done.returncode:
        raise InputError(f"{repository}: commit {commit[:12]} cannot be checked out: {_words(done.stderr)}")


def remove_checkout(repository: Path, folder: Path) -> None:
    """Remove the folder of `check_out`."""
    _git(repository, "worktree", "remove", "--force", str(folder))


def _git(repository: Path, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(["git", "-C", str(repository), *arguments], capture_output=True, check=False)
    except OSError as error:
        raise UsageError(f"git cannot be run: {error.strerror}; install git") from None


def _words(output: bytes) -> str:
    lines = output.decode("utf-8", "backslashreplace").strip().splitlines()
    return lines[-1] if lines else ""

"""``db``: the store's schema, its backup, and what is not needed any more."""

from pathlib import Path
from typing import Annotated

import typer

from profsvc.cli.common import Sure, agreed, engine_of, files_of, say
from profsvc.errors import UsageError, counted

group = typer.Typer(no_args_is_help=True, help="The store: its schema, a backup, and what is not needed any more.")


@group.command()
def upgrade(context: typer.Context) -> None:
    """Bring the store to this program's schema; a SQLite file is copied first.

    Example:

      profsvc --store lab.sqlite db upgrade
    """
    from profsvc import store

    engine = engine_of(context, as_it_is=True)
    say(f"{store.address(engine)}: schema {store.upgrade(engine, tell=say)}")


@group.command()
def current(context: typer.Context) -> None:
    """Print the schema of the store and that of this program; nothing is changed.

    Example:

      profsvc db current
    """
    from profsvc import store

    typer.echo(f"store {store.current(engine_of(context, as_it_is=True)) or 'empty'}, program {store.head()}")


@group.command()
def backup(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(help="Where to; a file that does not exist yet.")],
    with_files: Annotated[bool, typer.Option("--with-files", help="Bring the kept bytes to FILE.files.")] = False,
) -> None:
    """Copy the store as it is at one moment, while others write, and check the copy.

    A copy of a SQLite store is a store: profsvc --store FILE. A server's is for pg_restore.

    Example:

      profsvc db backup before-move.sqlite --with-files
    """
    from profsvc import store

    engine = engine_of(context)
    files = files_of(engine) if with_files else None
    done = store.backup(engine, file, files)
    held = ", ".join(counted(count, _one(table)) for table, count in done.rows.items() if count)
    kept = f"; {counted(done.files, 'file')} of kept bytes" if with_files else ""
    say(f"{file}: whole; {held or 'no rows'}{kept}")
    if done.unfinished:
        numbers = ", ".join(map(str, done.unfinished))
        say(f"beware: the analysis of run {numbers} was under way; in a store made of the copy, doctor finishes it")
    if done.missing:
        say(f"beware: {done.missing} kept files are missing in the store itself; profsvc doctor says which")


@group.command()
def prune(
    context: typer.Context,
    older_than: Annotated[str, typer.Option(help="Delete runs without a new file for so long: 90d, 12w, 36h.")] = "",
    project: Annotated[str, typer.Option(help="Only runs of this project.")] = "",
    keep_tagged: Annotated[
        list[str], typer.Option(help="KEY or KEY=VALUE, runs with this tag stay; may be repeated.")
    ] = [],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only list what would go.")] = False,
    yes: Sure = False,
) -> None:
    """Delete old runs, after listing them, and remove what uploads that were killed left behind.

    The runs can be had back with ``undelete`` until ``db vacuum``.

    Examples:

      profsvc db prune --older-than 90d --keep-tagged release --dry-run

      profsvc db prune --yes
    """
    from profsvc import store

    if (project or keep_tagged) and not older_than:
        raise UsageError("--project and --keep-tagged say which old runs go; give --older-than, such as 90d, too")
    engine = engine_of(context)
    files = files_of(engine)
    tags = {key: value if given else None for key, given, value in (text.partition("=") for text in keep_tagged)}
    runs = store.aged_runs(engine, store.read_age(older_than), project or None, tags) if older_than else []
    found = store.waste(engine, files)
    listed = [f"run {r['project']}/{r['run']} (id {r['run_id']}), {r['last_upload']}: {store.holding(r)}" for r in runs]
    listed += [f"left behind: {path}" for path in (*found.leftovers, *found.orphans)]
    if not listed:
        say("there is nothing to remove")
        return
    agreed("would go" if dry_run else "this goes", listed, yes or dry_run)
    if dry_run:
        return
    for run in runs:
        store.delete_run(engine, run["run_id"])
    freed = store.sweep(engine, files)
    gone = f"{counted(len(runs), 'run')} deleted, {counted(freed, 'byte')} of leftovers removed"
    say(f"{gone}; `profsvc db vacuum` gives the space back")


def _one(table: str) -> str:
    """Name one of what a table is named after."""
    return table.removesuffix("es" if table.endswith("ches") else "s").replace("_", " ")


@group.command()
def vacuum(context: typer.Context, yes: Sure = False) -> None:
    """Remove for good what was deleted, after listing it, and give its space back.

    Example:

      profsvc db vacuum --yes
    """
    from profsvc import store

    engine = engine_of(context)
    files = files_of(engine)
    rows = store.deleted_uploads(engine)
    listed = [f"upload {r['upload_id']} ({r['file_name']}) of run {r['run']!r}: {store.holding(r)}" for r in rows]
    if listed:
        agreed("this goes for good, and can not be had back", listed, yes)
    of_files, of_database = store.vacuum(engine, files)
    say(f"{of_files} bytes of kept files and {of_database} bytes of the database are free again")


@group.command("create-reader")
def create_reader(
    context: typer.Context,
    name: str = typer.Argument(help="Name of the role."),
    rotate: bool = typer.Option(False, "--rotate", help="Give the role a new password."),
) -> None:
    """Make a role of Postgres that may read the v1_ views and nothing else; its address is printed once.

    Run it as a superuser: some doors only they can close. Running it again sets the role right and keeps its password.

    Example:

      profsvc --store postgresql://postgres@db.lab/profsvc db create-reader grafana
    """
    from profsvc import store

    made = store.create_reader(engine_of(context, as_it_is=True), name, rotate=rotate)
    typer.echo(made.url)
    if made.password:
        say("This address holds the password, which is kept nowhere and not shown again; --rotate gives a new one.")
    else:
        say("The role was there and is set right; its password is as it was, and --rotate gives a new one.")
    if made.open_doors:
        shown = (
            [*made.open_doors[:5], f"{len(made.open_doors) - 5} more"] if len(made.open_doors) > 6 else made.open_doors
        )
        say(f"Still open to it: {'; '.join(shown)}. Run the same as a superuser of the database to close them.")


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.add_typer(group, name="db", epilog="Example: profsvc db current")

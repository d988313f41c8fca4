"""``db``: schema, backups and cleanup of the store."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from click import Context

from profsvc.cli.console.common import (
    OutputOption,
    YesOption,
    confirm_removal,
    open_engine,
    open_files,
    print_message,
    print_row,
)
from profsvc.cli.console.declaration import Argument, Group, Option
from profsvc.cli.maintenance import archive
from profsvc.errors import UsageError, counted

if TYPE_CHECKING:
    from profsvc.store.sandbox.reader_role import Reader

group = Group(help="The store: schema, backups and cleanup.")


@group.function()
def upgrade(context: Context) -> None:
    """Migrate the store to the schema of this program; a SQLite file is copied first.

    Example:

      profsvc --store lab.sqlite db upgrade
    """
    from profsvc import store

    engine = open_engine(context, as_it_is=True)
    print_message(f"{store.address(engine)}: schema {store.upgrade(engine, tell=print_message)}")


@group.function()
def current(context: Context, output: OutputOption = "table") -> None:
    """Print the schema of the store and that of this program; nothing is changed.

    Example:

      profsvc db current
    """
    from profsvc import store

    row = {"store": store.schema_revision(open_engine(context, as_it_is=True)), "program": store.latest_revision()}
    print_row(row, output, f"store {row['store'] or 'empty'}, program {row['program']}")


@group.function()
def backup(
    context: Context,
    file: Annotated[Path, Argument(help="File to create; it must not exist yet.")],
    with_files: Annotated[bool, Option("--with-files", help="Also copy the kept bytes, to FILE.files.")] = False,
) -> None:
    """Back up the store at one moment, while others write, and check the copy.

    A copy of a SQLite store is a store: profsvc --store FILE. A server's is for pg_restore.

    Example:

      profsvc db backup before-move.sqlite --with-files
    """
    from profsvc import store

    engine = open_engine(context)
    files = open_files(engine) if with_files else None
    done = store.backup(engine, file, files)
    held = ", ".join(counted(count, _one(table)) for table, count in done.rows.items() if count)
    kept = f"; {counted(done.files, 'file')} of kept bytes" if with_files else ""
    print_message(f"{file}: whole; {held or 'no rows'}{kept}")
    if done.unfinished:
        numbers = ", ".join(map(str, done.unfinished))
        print_message(f"warning: run {numbers} was being analyzed; profsvc doctor finishes the analysis in the copy")
    if done.missing:
        lacking = counted(done.missing, "kept file")
        print_message(f"warning: the store itself lacks {lacking}; profsvc doctor lists them")


@group.function()
def snapshot(
    context: Context,
    file: Annotated[Path, Argument(help="SQLite file to create; it must not exist yet.")],
    view: Annotated[
        list[str], Option(help="Only this view, such as runs or v1_launches; repeatable.", metavar="VIEW")
    ] = [],
    project: Annotated[str, Option(help="Only runs of this project.")] = "",
) -> None:
    """Write the views as plain tables of a SQLite file, for tools that read such files, such as Datasette.

    The table v1_columns has the meaning of every column. The file is not a store: db backup makes a copy that is.

    Examples:

      profsvc db snapshot today.sqlite

      profsvc db snapshot lab.sqlite --project lab --view runs --view launches --view criteria
    """
    from profsvc import store

    rows = store.write_snapshot(open_engine(context), file, view, project or None)
    held = f"{counted(sum(rows.values()), 'row')} of {counted(len(rows), 'view')}"
    print_message(f"{file}: {held}; open it with: datasette {file}")


@group.function()
def prune(
    context: Context,
    older_than: Annotated[
        str, Option(help="Delete runs that were added, and got their last file, longer ago: 90d, 12w, 36h.")
    ] = "",
    project: Annotated[str, Option(help="Only runs of this project.")] = "",
    keep_tagged: Annotated[list[str], Option(help="Keep runs with this tag; repeatable.")] = [],
    dry_run: Annotated[bool, Option("--dry-run", help="Only list what would be removed.")] = False,
    yes: YesOption = False,
) -> None:
    """List and delete old runs, and remove leftovers of interrupted uploads.

    The age of a run counts from its newest file, but not from before the run was added to this store: a time
    given with --at makes no run older.

    Deleted runs can be restored with profsvc undelete until profsvc db vacuum.

    Examples:

      profsvc db prune --older-than 90d --keep-tagged release --dry-run

      profsvc db prune --yes
    """
    from profsvc import store

    if (project or keep_tagged) and not older_than:
        raise UsageError("--project and --keep-tagged need --older-than, such as --older-than 90d")
    engine = open_engine(context)
    files = open_files(engine)
    tags = {key: value if given else None for key, given, value in (text.partition("=") for text in keep_tagged)}
    runs = store.aged_runs(engine, store.read_age(older_than), project or None, tags) if older_than else []
    found = store.unneeded_files(engine, files)
    listed = [
        f"run {r['project']}/{r['run']} (id {r['run_id']}), {r['last_added']}: {store.content_summary(r)}" for r in runs
    ]
    listed += [f"left behind: {path}" for path in (*found.leftovers, *found.orphans)]
    if not listed:
        print_message("nothing to remove")
        return
    confirm_removal("would be removed" if dry_run else "This will remove", listed, yes or dry_run)
    if dry_run:
        return
    deleted = store.delete_aged_runs(engine, runs)
    for run in runs:
        if run not in deleted:
            print_message(f"run {run['project']}/{run['run']} (id {run['run_id']}): left, as it changed meanwhile")
    freed = store.remove_unneeded(engine, files)
    gone = f"{counted(len(deleted), 'run')} deleted, {counted(freed, 'byte')} of leftovers removed"
    print_message(f"{gone}; profsvc db vacuum frees the space")


def _one(table: str) -> str:
    """Name one of what a table is named after."""
    return table.removesuffix("es" if table.endswith("ches") else "s").replace("_", " ")


@group.function()
def vacuum(context: Context, yes: YesOption = False) -> None:
    """List and permanently remove deleted uploads, and free their space.

    Example:

      profsvc db vacuum --yes
    """
    from profsvc import store

    engine = open_engine(context)
    files = open_files(engine)
    rows = store.deleted_uploads(engine)
    listed = [
        f"upload {r['upload_id']} ({r['file_name']}) of run {r['run']!r}: {store.content_summary(r)}" for r in rows
    ]
    if listed:
        confirm_removal("This will permanently remove", listed, yes)
    of_files, of_database = store.vacuum(engine, files)
    print_message(f"{of_files} bytes of kept files and {of_database} bytes of the database freed")


@group.function("create-reader")
def create_reader(
    context: Context,
    name: Annotated[str, Argument(help="Name of the role.")],
    rotate: Annotated[bool, Option("--rotate", help="Set a new password.")] = False,
    output: OutputOption = "table",
) -> None:
    """Create a Postgres role that can only read the v1_ views; its address is printed once.

    Run it as a superuser; some privileges only a superuser can revoke. Running it again repairs the role and keeps its
    password.

    Example:

      profsvc --store postgresql://postgres@db.lab/profsvc db create-reader grafana
    """
    from profsvc import store

    _print_role(store.create_reader(open_engine(context, as_it_is=True), name, rotate=rotate), output)


@group.function("create-loader")
def create_loader(
    context: Context,
    name: Annotated[str, Argument(help="Name of the role.")],
    rotate: Annotated[bool, Option("--rotate", help="Set a new password.")] = False,
    output: OutputOption = "table",
) -> None:
    """Create a Postgres role that can only load files and compute results, for the workers of a cluster.

    It sees no tokens, schedules, reports or findings, and cannot delete uploads or change the schema. Its address is
    printed once. Running it again repairs the role and keeps its password.

    Example:

      profsvc --store postgresql://postgres@db.lab/profsvc db create-loader workers
    """
    from profsvc import store

    _print_role(store.create_loader(open_engine(context, as_it_is=True), name, rotate=rotate), output)


def _print_role(made: "Reader", output: str) -> None:
    """Print the address of a role, and what it can do beyond what it should."""
    print_row({"name": made.name, "url": made.url, "new_password": made.password is not None}, output, made.url)
    if made.password:
        print_message(
            "This address contains the password, which is not stored or shown again; --rotate sets a new one."
        )
    else:
        print_message("The role existed and was repaired; its password is unchanged. --rotate sets a new one.")
    if made.excess_privileges:
        shown = (
            [*made.excess_privileges[:5], f"{len(made.excess_privileges) - 5} more"]
            if len(made.excess_privileges) > 6
            else made.excess_privileges
        )
        print_message(
            f"It still has access to: {'; '.join(shown)}. Run the same as a superuser of the database to revoke this."
        )


def register(app: Group) -> None:
    """Add the commands of this file."""
    archive.register(group)
    app.add_group(group, "db", epilog="Example: profsvc db current")

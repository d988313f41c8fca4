"""``db``: the store's schema."""

import typer

from profsvc.cli.common import engine_of, say

group = typer.Typer(no_args_is_help=True, help="The store's schema: bring it up to date, or say which it is.")


@group.command()
def upgrade(context: typer.Context) -> None:
    """Bring the store to this program's schema; a SQLite file is copied first.

    Example:

      profsvc --store lab.sqlite db upgrade
    """
    from profsvc import store

    engine = engine_of(context, as_it_is=True)
    say(f"{store.address(engine)}: schema {store.upgrade(engine)}")


@group.command()
def current(context: typer.Context) -> None:
    """Print the schema of the store and that of this program; nothing is changed.

    Example:

      profsvc db current
    """
    from profsvc import store

    typer.echo(f"store {store.current(engine_of(context, as_it_is=True)) or 'empty'}, program {store.head()}")


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

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
    say(f"{engine.url.render_as_string(hide_password=True)}: schema {store.upgrade(engine)}")


@group.command()
def current(context: typer.Context) -> None:
    """Print the schema of the store and that of this program; nothing is changed.

    Example:

      profsvc db current
    """
    from profsvc import store

    typer.echo(f"store {store.current(engine_of(context, as_it_is=True)) or 'empty'}, program {store.head()}")


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.add_typer(group, name="db", epilog="Example: profsvc db current")

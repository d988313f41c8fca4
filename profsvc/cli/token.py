"""``token``: who may ask the service for what."""

from typing import Annotated

import typer

from profsvc.cli.common import Output, engine_of, put, say

group = typer.Typer(no_args_is_help=True, help="Tokens of the service: who may ask for what.")
COLUMNS = ("token_id", "name", "scopes", "project", "created_at", "expires_at", "last_used_at", "revoked_at", "holds")


@group.command()
def create(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="What it is for, such as ci.")],
    scope: Annotated[
        list[str], typer.Option(help="upload, read, sql or admin (all of them); repeatable. Default: upload and read.")
    ] = [],
    project: Annotated[str, typer.Option(help="Only this project; then upload and read alone are possible.")] = "",
    days: Annotated[float, typer.Option(min=0, help="It holds for so many days; 0: until it is revoked.")] = 0,
) -> None:
    """Make a token and print it, once: the store keeps only its hash.

    From the first token on, the service needs one of everybody.

    Examples:

      profsvc token create ci --scope upload --project nightly --days 365

      profsvc token create dashboard --scope read --scope sql
    """
    from profsvc import store

    made = store.create_token(engine_of(context), name, scope or ["upload", "read"], project or None, days or None)
    typer.echo(made)
    say("This is the only time that it is shown. Whoever uses it sets PROFSVC_TOKEN to it, and PROFSVC_URL.")


@group.command("list")
def list_(context: typer.Context, output: Output = "table") -> None:
    """List the tokens; what they are is not known, only what they may do.

    Example:

      profsvc token list
    """
    from profsvc import store

    rows = store.list_tokens(engine_of(context))
    put(COLUMNS, rows, output)
    if not rows:
        say("there is no token, so the service answers without one, to this machine alone: profsvc token create NAME")


@group.command()
def revoke(
    context: typer.Context, token: Annotated[str, typer.Argument(help="The token by its name or number.")]
) -> None:
    """Take the rights of a token from now on.

    Example:

      profsvc token revoke ci
    """
    from profsvc import store

    row = store.revoke_token(engine_of(context), token)
    say(f"token {row['token_id']} ({row['name']}) holds no more")


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.add_typer(group, name="token", epilog="Example: profsvc token list")

"""``token``: access to the service."""

from typing import Annotated

from click import Context

from profsvc.cli.console.common import (
    LimitOption,
    OutputOption,
    open_engine,
    open_main_reader,
    print_message,
    print_row,
    print_rows,
)
from profsvc.cli.console.declaration import Argument, Group, Option

group = Group(help="Access tokens of the service.")
COLUMNS = ("token_id", "name", "scopes", "project", "created_at", "expires_at", "last_used_at", "revoked_at", "active")


@group.function()
def create(
    context: Context,
    name: Annotated[str, Argument(help="Name of the token, such as ci.")],
    scope: Annotated[
        list[str], Option(help="upload, read, sql or admin (all of them); repeatable. Default: upload and read.")
    ] = [],
    project: Annotated[str, Option(help="Only this project; allows upload and read only.")] = "",
    days: Annotated[float, Option(min=0, help="Valid for N days (0 = no expiry).")] = 0,
    output: OutputOption = "table",
) -> None:
    """Create a token and print it once; the store keeps only its hash.

    Creating the first token turns authentication on.

    Examples:

      profsvc token create ci --scope upload --project nightly --days 365

      profsvc token create dashboard --scope read --scope sql
    """
    from profsvc import store

    made = store.create_token(open_engine(context), name, scope or ["upload", "read"], project or None, days or None)
    print_row({"name": name, "token": made}, output, made)
    print_message("It is shown only now. To use it, set PROFSVC_TOKEN to it and PROFSVC_URL to the service.")


@group.function("list")
def list_(context: Context, limit: LimitOption = 0, output: OutputOption = "table") -> None:
    """List tokens (secrets are not stored).

    Example:

      profsvc token list
    """
    from profsvc import store

    rows = store.list_tokens(open_main_reader(context))
    print_rows(COLUMNS, rows, output, limit=limit)
    if not rows:
        print_message(
            "no tokens yet: the service needs none and listens locally only; create one with: profsvc token create NAME"
        )


@group.function()
def revoke(context: Context, token: Annotated[str, Argument(help="Token by name or number.")]) -> None:
    """Revoke a token.

    Example:

      profsvc token revoke ci
    """
    from profsvc import store

    row = store.revoke_token(open_engine(context), token)
    print_message(f"token {row['token_id']} ({row['name']}) revoked")


def register(app: Group) -> None:
    """Add the commands of this file."""
    app.add_group(group, "token", epilog="Example: profsvc token list")

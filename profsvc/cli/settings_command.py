"""``settings``: every setting with its value and source."""

from typing import Annotated

from click import echo

from profsvc.cli.console.common import OutputOption, print_message, print_rows
from profsvc.cli.console.declaration import Group, Option

COLUMNS = ("setting", "value", "source", "variable")


def settings(
    meaning: Annotated[bool, Option("--help-text", help="Also print what each setting means.")] = False,
    schema: Annotated[bool, Option("--schema", help="Print the JSON Schema of the file instead.")] = False,
    output: OutputOption = "table",
) -> None:
    """List all settings with their values and where each comes from: environment, file or default.

    The file is config.toml in your configuration folder, or the one that PROFSVC_CONFIG names. The environment
    overrides the file. Secrets are not printed.

    Examples:

      profsvc settings

      profsvc settings --help-text --json

      profsvc settings --schema
    """
    from profsvc import settings as known

    if schema:
        import json

        echo(json.dumps(known.schema(), indent=1))
        return
    rows = [
        {
            "setting": one.setting.name,
            "value": known.shown(one),
            "source": one.source,
            "variable": one.setting.variable,
            "meaning": one.setting.help,
        }
        for one in known.resolve()
    ]
    print_rows([*COLUMNS, *(["meaning"] if meaning else [])], rows, output)
    file = known.config_file()
    print_message(f"file: {file}" if file else f"no file; it would be {known.default_config_file()}", only_verbose=True)


def register(app: Group) -> None:
    """Add the command of this file."""
    app.function()(settings)

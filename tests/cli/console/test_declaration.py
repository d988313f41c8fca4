"""Options and arguments as functions declare them."""

from pathlib import Path
from typing import Annotated, Any

import pytest
from click import Context
from click.testing import CliRunner, Result

from profsvc.cli.console.declaration import Argument, Command, Group, Option


def call(function: Any, *words: str) -> Result:
    return CliRunner().invoke(Command(function, "try"), list(words), obj={"store": ""}, standalone_mode=True)


def every(
    context: Context,
    names: Annotated[list[str], Argument(help="Names.")],
    count: Annotated[int, Option(help="Count.", min=0, max=9)] = 3,
    seconds: Annotated[float, Option(help="Seconds.", min=0.5)] = 1.0,
    angle: Annotated[float | None, Option(help="Angle.")] = None,
    out: Annotated[Path | None, Option("--out", "-o", help="File.")] = None,
    tag: Annotated[list[str], Option(help="Tags.")] = [],  # noqa: B006  # as commands are written
    numbers: Annotated[list[int] | None, Option("--number", help="Numbers.")] = None,
    deep: Annotated[bool, Option("--deep/--no-deep", help="Deep.")] = False,
    kind: Annotated[str, Option(help="Kind.", callback=str.upper)] = "a",
) -> None:
    """Print every value.

    Example:

      profsvc try a
    """
    assert isinstance(context, Context)
    given = (names, count, seconds, angle, out, tag, numbers, deep, kind)
    print(repr(given), context.obj["store"])  # noqa: T201


def test_defaults_and_values_have_the_types_that_are_declared() -> None:
    assert call(every, "a").output == f"{(['a'], 3, 1.0, None, None, [], None, False, 'A')!r} \n"
    words = "a b --count 4 --seconds 2 --angle -7 -o f --tag x --tag y --number 1 --number 2 --deep --kind b --store s"
    wanted = (["a", "b"], 4, 2.0, -7.0, Path("f"), ["x", "y"], [1, 2], True, "B")
    assert call(every, *words.split()).output == f"{wanted!r} s\n"


def test_a_list_is_new_in_each_call() -> None:
    def grow(tag: Annotated[list[str], Option(help="Tags.")] = []) -> None:  # noqa: B006
        """Grow."""
        tag.append("more")
        print(tag)  # noqa: T201

    assert call(grow).output == call(grow).output == "['more']\n"


@pytest.mark.parametrize(
    ("words", "seen", "allowed"),
    [
        (["a", "--count", "x"], "x", "integer"),
        (["a", "--count", "10"], "10", "0<=x<=9"),
        (["a", "--seconds", "0.1"], "0.1", "x>=0.5"),
        (["a", "--seconds", "nan"], "nan", "number"),
        (["a", "--angle", "x"], "x", "float"),
        ([], "Missing argument 'NAME...'", "Names."),
        (["a", "--counts", "1"], "--counts", "--count"),
        (["a", "--deep=1"], "--deep", "does not take a value"),
        (["a", "-q", "-v"], "--quiet", "exclude each other"),
    ],
)
def test_a_wrong_value_is_refused_with_what_was_seen_and_what_is_allowed(words, seen, allowed) -> None:
    refused = call(every, *words)
    said = f"{refused.output} {refused.exception}"
    assert refused.exit_code != 0
    assert seen in said
    assert allowed in said


def test_help_names_what_is_meant() -> None:
    shown = call(every, "--help").output
    assert "Usage: try [OPTIONS] NAME...\n" in shown
    for line in (
        "  NAME  Names.  [required]",
        "  --count N           Count.  [default: 3; 0<=x<=9]",
        "  --tag KEY=VALUE     Tags.",
        "  --deep / --no-deep  Deep.  [default: no-deep]",
        "  -q, --quiet    Print only data and errors.",
        "    profsvc try a",
    ):
        assert f"{line}\n" in shown, shown
    assert "--json" not in shown


def test_groups_list_commands_as_they_were_added() -> None:
    group = Group("all", help="All of them.")

    @group.function()
    def zebra() -> None:
        """Show a zebra."""

    @group.function("ant", hidden=False)
    def other() -> None:
        """Show an ant."""

    outer = Group("outer")
    outer.add_group(group, "inner", epilog="The end.")
    shown = CliRunner().invoke(outer, ["inner"])
    assert shown.exit_code == 2
    assert shown.output.index("zebra") < shown.output.index("ant")
    assert shown.output.endswith("The end.\n")
    assert "inner  All of them\n" in CliRunner().invoke(outer, ["--help"]).output


@pytest.mark.parametrize("words", [["a", "--number", str(2**63)], ["a", "--number", "1", "--number", str(-(2**63))]])
def test_an_integer_that_no_database_holds_is_refused(words: list[str]) -> None:
    result = call(every, *words)
    assert result.exit_code == 2
    assert f"Invalid value for '--number': {words[-1]} is not an integer of 64 bits." in result.output

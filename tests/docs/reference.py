"""The pages of ``profsvc/docs/reference`` as text, each generated from what it describes."""

import inspect
import math
import re
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from profsvc import api, settings, specs, store
from profsvc.cli.application import app
from profsvc.cli.console.declaration import SHARED
from profsvc.cli.console.exit_codes import EXIT_CODES
from profsvc.client import Client
from profsvc.errors import ProfsvcError, error_kinds
from profsvc.reports.text.models import index as model_text
from profsvc.specs.advice.causes import alternatives, causes
from profsvc.store.schema.catalog import KINDS
from profsvc.views.calculators.answers import calculate
from profsvc.views.calculators.catalog import CALCULATORS
from profsvc.views.calculators.declaration import FILES, SUFFIXES, example_command
from profsvc.views.calculators.values import allowed


def table(titles: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Write a table; a bar in a cell is escaped."""
    cells = [[" ".join(str(cell).split()).replace("|", "\\|") for cell in row] for row in rows]
    lines = [titles, ["---"] * len(titles), *cells]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def sentence(text: str) -> str:
    """Write a text as a sentence: a capital at its beginning, a point at its end."""
    text = text.strip()
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "!", "?")) else ".")


def code(text: object) -> str:
    return f"`{text}`" if text not in (None, "") else ""


def block(text: str, language: str = "text") -> str:
    return f"```{language}\n{textwrap.dedent(text).strip()}\n```"


def all_commands(group: Any = None, context: Any = None, words: tuple[str, ...] = ()) -> Iterator[tuple[str, Any, Any]]:
    """Yield the words that call each command, the command and its context."""
    group = group or app
    context = context or group.make_context("profsvc", ["--help"], resilient_parsing=True)
    for name, command in group.commands.items():
        if command.hidden:
            continue
        below = type(context)(command, info_name=name, parent=context)
        if hasattr(command, "commands"):
            yield from all_commands(command, below, (*words, name))
        else:
            yield " ".join(("profsvc", *words, name)), command, below


def plain_doc(of: Any) -> str:
    """Return a docstring as Markdown."""
    return (inspect.getdoc(of) or "").replace("``", "`").replace("<", "&lt;")


def help_text(text: str) -> Iterator[str]:
    """Write the help of a command as Markdown: its indented paragraphs are commands to be copied."""
    examples: list[str] = []
    for paragraph in text.replace("\b\n", "").split("\n\n"):
        if paragraph.startswith("  "):
            examples.append(textwrap.dedent(paragraph))
            continue
        if examples:
            yield block("\n".join(examples))
            examples = []
        yield " ".join(paragraph.split()).replace("<", "&lt;")
    if examples:
        yield block("\n".join(examples))


def commands() -> Iterator[str]:
    yield "Every command with its arguments and options."
    group = app
    context = group.make_context("profsvc", ["--help"], resilient_parsing=True)
    yield "Options of every command, given before it:"
    yield table(["option", "meaning"], _options(group, context))
    for words, command, own in all_commands(group, context):
        yield f"## {words}"
        yield from help_text(command.help or "")
        yield table(["argument or option", "meaning"], _options(command, own))
    yield "Exit codes are listed in [exit codes](exit-codes.md), variables in [settings](settings.md)."


def _options(command: Any, context: Any) -> Iterator[tuple[str, str]]:
    for param in command.params:
        record = param.get_help_record(context)
        if record and set(param.opts).isdisjoint(SHARED):
            yield code(re.sub(r" <.*>$", "", record[0].strip())), record[1]


def settings_page() -> Iterator[str]:
    yield (
        "A setting is read from its environment variable, else from the configuration file, else the default is used. "
        "An empty variable counts as unset. `profsvc settings` lists all values with their source."
    )
    yield (
        "The file is `config.toml` in your configuration folder (on Linux `~/.config/profsvc/`), or the file that "
        "`PROFSVC_CONFIG` names. Its keys are the setting names without the prefix, in small letters: "
        "`sql_rows = 500`. An unknown key is an error."
    )
    rows = []
    for one in settings.SETTINGS:
        default = int(one.default) if isinstance(one.default, bool) else one.default
        rows.append((code(f"PROFSVC_{one.name.upper()}"), code(default), one.help))
    yield table(["variable", "default", "meaning"], rows)
    yield (
        "`PROFSVC_DEBUG=1` prints the traceback of an internal error. `PROFSVC_SPLITTER=0` turns the compiled modules "
        "off, which read and store long exports faster."
    )


def views() -> Iterator[str]:
    yield (
        "The `v1_` views are documented and stable; everything else in the store is private. "
        "Query them with [`profsvc sql`](commands.md#profsvc-sql) or over [HTTP](http.md)."
    )
    listed = {name: about for name, about in store.VIEWS.items() if not name.endswith(("_all", "_history"))}
    yield table(["view", "one row is"], ((f"[`{name}`](#{name})", one) for name, (one, _) in listed.items()))
    yield (
        "Views ending in `_all` have the rows of every file, also of launches that several files contain. "
        "Views ending in `_history` have the rows of every version of the analysis, and `is_current`."
    )
    yield "".join(f"* `{name}`\n" for name in store.VIEWS if name not in listed)
    for name, (about, columns) in listed.items():
        yield f"## {name}"
        yield sentence(about)
        shown = {column: meaning for column, meaning in columns.items() if column in KINDS[name]}
        yield table(
            ["column", "type", "meaning"],
            ((code(column), KINDS[name][column], meaning) for column, meaning in shown.items()),
        )
        if len(shown) < len(columns) or name == "v1_counters":
            yield "And one column per [counter](counters.md), which is NULL where the export lacks it."


def formats_page() -> Iterator[str]:
    yield "Formats are detected from the first bytes of a file. `--format NAME` forces one."
    yield (
        "A file that another program saved again is read as the original if its lines are the same: with blanks "
        "after commas, with quotes around each line or each cell once more, with row numbers of pandas in the first "
        "column, with the quotes, row names and names of R, as a table in Markdown, or with a process or a time "
        "before each line (mpirun --tag-output, srun --label, ts). Lines of several processes are refused with the "
        "command that takes those of one. A log or a table of a profiler in a Parquet or Arrow (Feather) file is "
        "read too: the index of pandas comes first, and row n is line n + 1. The fact `saved_again_with` says so. A "
        "spreadsheet may round numbers: tables of profilers with semicolons or tabs are refused."
    )
    pages = specs.format_pages()
    rows = ((f"[`{name}`](#{name})", page.partition("\n")[0]) for name, page in pages.items())
    yield table(["format", "what it is"], rows)
    for name, page in pages.items():
        yield f"## {name}"
        yield block(page)


def counters() -> Iterator[str]:
    yield (
        "A counter is a quantity under one name, whatever tool measured it. Each is a column of `v1_counters`; "
        "`v1_counter_values` has the expression that it was computed by."
    )
    rows = ((code(one.name), one.unit, one.meaning, one.better) for one in specs.counters().values())
    yield table(["counter", "unit", "meaning", "better"], rows)


def criteria() -> Iterator[str]:
    known = specs.criteria()
    yield "Every criterion lies in [0, 1]; 1 means nothing left to gain. [Pictures](../explanation/nine-criteria.md)."
    for one in known["criterion"]:
        source = specs.references()[one["reference"]]
        yield f"## {one['title']}"
        yield table(
            ["", ""],
            [
                ("name in rows", code(one["name"])),
                ("computed for a", one["level"]),
                ("formula", code(one["formula"])),
                *(("conditional form", code(one[name])) for name in ("conditional",) if name in one),
                ("source", f"{source.title} ({source.year}), {one['section']}"),
                ("counters", ", ".join(map(code, one["counters"]))),
                ("what to do", one["hint"]),
            ],
        )
    near_peak = known["attainable"]["near_peak"]
    yield "## Units"
    yield (
        f"A memory is considered saturated at {near_peak:.0%} of its peak, issue slots and arithmetic pipes at "
        f"{math.sqrt(near_peak):.0%}. Where a microbenchmark measured more, the geometric mean of {near_peak:.0%} and "
        "that counts; where it measured less, that counts."
    )
    rows = ((unit["title"], code(unit["name"]), unit["hint"]) for unit in known["unit"])
    yield table(["unit", "name in rows", "what to do"], rows)
    yield "## Models"
    rows = ((one.title, code(one.name), code(one.formula), one.hint) for one in specs.models().values())
    yield table(["model", "name in rows", "formula", "how to read it"], rows)


def causes_page() -> Iterator[str]:
    yield (
        "Causes of lost time in the rows of `v1_causes`. [How the time is divided](../explanation/lost-time.md). "
        "A *flaw* can be removed. A *limit* is a unit at its limit: nothing to gain in that launch alone."
    )
    for one in causes().values():
        yield f"## {one.title}"
        source = specs.references()[one.reference]
        yield table(
            ["", ""],
            [
                ("name in rows", code(one.name)),
                ("kind", one.kind),
                ("evidence", ", ".join(map(code, one.evidence))),
                ("first step", one.first_step),
                ("what it is", one.remedy),
                *(
                    ("may mean", f"{causes()[other.cause].title.lower()}, {other.condition}")
                    for other in alternatives().get(one.name, ())
                ),
                ("rules of Nsight Compute", ", ".join(map(code, one.rules)) or "none"),
                ("source", f"{source.title} ({source.year})"),
            ],
        )


def flags() -> Iterator[str]:
    yield "Words in rows of the views: flags, quantities, kinds and states."
    by_kind: dict[str, list[tuple[str, str]]] = {}
    for word, meanings in specs.terms().items():
        for kind, meaning in meanings.items():
            by_kind.setdefault(kind, []).append((code(word), meaning))
    for kind in sorted(by_kind):
        yield f"## {kind.capitalize()}"
        yield table(["word", "meaning"], by_kind[kind])


def exit_codes() -> Iterator[str]:
    yield "Exit codes of the command line, and the errors behind them with their HTTP status."
    yield table(["exit code", "meaning"], EXIT_CODES.items())
    rows = (
        (code(one.code()), one.exit_code, one.status, plain_doc(one).partition("\n\n")[0])
        for one in error_kinds(ProfsvcError)
        if one.__module__ == ProfsvcError.__module__
    )
    yield table(["error", "exit code", "HTTP status", "meaning"], rows)


def http() -> Iterator[str]:
    from profsvc.store import blob_store_of, connect
    from profsvc.web.app import create_app, openapi_document
    from profsvc.web.http.state import AppState

    engine = connect(":memory:")
    described = openapi_document(create_app(AppState(engine, blob_store_of(engine))))
    engine.dispose()
    yield (
        "Paths of the service. `/openapi.json` has the same with every schema. An answer has `ok: true`, or "
        "`ok: false` and `error` with `code`, `message` and `request_id`."
    )
    yield "A token is sent as `Authorization: Bearer TOKEN`. The scope is what the token must allow."
    by_tag: dict[str, list[tuple[str, Any]]] = {}
    for path, operations in described["paths"].items():
        for method, one in operations.items():
            if not path.endswith((".json", ".csv", ".ndjson", ".svg", ".png")):
                by_tag.setdefault(one["tags"][0], []).append((f"{method.upper()} {path}", one))
    yield (
        "Lists and SQL end in `.json`, `.csv` or `.ndjson` as well, plots in `.json`, `.svg` or `.png`. Every list "
        "takes its columns as filters, such as `run_id=1` and `duration_ns__gt=1e6`: see [views](views.md)."
    )
    for tag, operations in by_tag.items():
        yield f"## {tag.capitalize()}"
        yield table(
            ["request", "scope", "what it does"],
            ((code(path), one["x-scope"], one["description"].partition(" Filter by")[0]) for path, one in operations),
        )
        for path, one in operations:
            if one["parameters"] and tag != "views":
                yield f"### {path}"
                rows = ((code(p["name"]), p.get("description", "")) for p in one["parameters"])
                yield table(["parameter", "meaning"], rows)


def python() -> Iterator[str]:
    yield "Use the service from a Python program. It needs only the base package."
    module = sys.modules["profsvc.client"]
    example = (inspect.getdoc(module) or "").partition("::\n\n")[2].partition("\n\n")[0]
    yield block(example)
    yield "## Results as frames"
    yield plain_doc(api.open)
    for kind in (api.Results, api.Run, api.Comparison):
        yield f"`{kind.__name__}`: {plain_doc(kind)}"
        members = inspect.getmembers(kind, lambda one: inspect.isfunction(one) or isinstance(one, property))
        yield "\n".join(f"* `{name}`: {plain_doc(one)}" for name, one in members if not name.startswith("_"))
    yield "## Client"
    yield plain_doc(Client)
    for name, function in inspect.getmembers(Client, inspect.isfunction):
        if not name.startswith("_"):
            shown = inspect.signature(function)
            own = shown.replace(parameters=list(shown.parameters.values())[1:])
            arguments = (
                str(own).partition(" -> ")[0].replace("collections.abc.", "").replace("pathlib._local.", "pathlib.")
            )
            yield f"### {name}"
            yield block(f"{name}{arguments}")
            yield plain_doc(function)


def calculators() -> Iterator[str]:
    yield (
        "Models that answer from a few numbers, a table (CSV) or a description (TOML). Command line, `/models` and "
        "`/v1/models/NAME` give the same. A number may have a prefix on its unit, such as `1.2 GHz` where MHz are "
        "asked for. Numbers are separated by commas; `1:4` is 1, 2, 3, 4, and `0:1:0.25` has a step. "
        "`--example` answers the first example."
    )
    for one in CALCULATORS.values():
        yield f"## {one.name}"
        yield f"{one.title}. {one.question} Source: {one.source}."
        yield table(
            ["input", "what it is", "allowed", "default"],
            ((code(i.name), i.help, allowed(i), code(i.default)) for i in one.inputs),
        )
        for i in one.inputs:
            if i.columns:
                rows = ((code(column.name), column.help, allowed(column)) for column in i.columns)
                yield table([f"column of {i.name}", "what it is", "allowed"], rows)
        for example in one.examples:
            yield sentence(example.text)
            for i in one.inputs:
                if i.kind in FILES and i.name in example.values:
                    yield f"`{i.name}.{SUFFIXES[i.kind]}`:"
                    yield f"```text\n{example.values[i.name].strip()}\n```"
            shown = model_text.answer(calculate(one, example.values), 120)
            yield f"```text\n$ {example_command(one, example)}\n{shown.rstrip()}\n```"


PAGES: Mapping[str, tuple[str, Callable[[], Iterator[str]]]] = {
    "commands": ("Commands", commands),
    "counters": ("Counters", counters),
    "calculators": ("Models that answer from inputs", calculators),
    "causes": ("Causes of lost time", causes_page),
    "criteria": ("Criteria, units and models", criteria),
    "exit-codes": ("Exit codes", exit_codes),
    "flags": ("Flags and other words", flags),
    "formats": ("Formats", formats_page),
    "http": ("HTTP", http),
    "python": ("Python client", python),
    "settings": ("Settings", settings_page),
    "views": ("Views and columns", views),
}


def page(name: str) -> str:
    """Return a page as it must be."""
    title, parts = PAGES[name]
    return "\n\n".join([f"# {title}", *(part.strip() for part in parts() if part.strip())]) + "\n"

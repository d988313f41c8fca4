"""``power --ipp`` and ``power --sms``: power of each unit, and on several numbers of SMs."""

from typing import Annotated, Any

from click import Context

from profsvc.cli.console.common import open_reader, open_service, print_view
from profsvc.cli.console.declaration import Option
from profsvc.errors import UsageError

Ipp = Annotated[bool, Option("--ipp", help="Power of each unit of the device for each kernel, beside the measured.")]
Sms = Annotated[bool, Option("--sms", help="Power, work per joule and energy saved on each number of SMs.")]
Kernel = Annotated[str | None, Option(help="With --sms: a launch on fewer SMs by the models, by number or name.")]


def is_asked(ipp: bool, sms: bool, kernel: str | None, others: dict[str, object]) -> bool:
    """Tell whether units or numbers of SMs are asked for; refuse what does not go together."""
    given = [name for name, value in (("--ipp", ipp), ("--sms", sms)) if value]
    if kernel is not None and not sms:
        raise UsageError("--kernel needs --sms; add it")
    allowed = () if ipp or kernel is not None else ("--sensor",)
    beside = [*given[1:], *(name for name, value in others.items() if value is not None and name not in allowed)]
    if given and beside:
        raise UsageError(f"{given[0]} excludes {beside[0]}; give one of them")
    return bool(given)


def show(context: Context, run: str, output: str, *, ipp: bool, kernel: str | None, sensor: str | None) -> None:
    """Print the power of each unit, or of each number of SMs."""
    from profsvc.reports.text.power import components as components_text

    view = _units(context, run) if ipp else _sms(context, run, kernel, sensor)
    print_view(
        view, output, components_text.unit_powers if ipp else components_text.sm_counts, view["columns"], view["rows"]
    )


def _units(context: Context, run: str) -> dict[str, Any]:
    if service := open_service(context):
        return service.unit_powers(run)
    from profsvc.views.power import components

    return components.unit_powers(open_reader(context), run)


def _sms(context: Context, run: str, kernel: str | None, sensor: str | None) -> dict[str, Any]:
    if service := open_service(context):
        return service.sm_counts(run, kernel=kernel, sensor=sensor)
    from profsvc.views.power import sm_counts

    engine = open_reader(context)
    return sm_counts.launch_sm_counts(engine, run, kernel) if kernel else sm_counts.sm_counts(engine, run, sensor)

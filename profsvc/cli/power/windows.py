"""``power``: power and energy of a run, as measured and at one temperature."""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from click import Context

from profsvc.cli.console.common import (
    OutputOption,
    open_reader,
    open_service,
    picture_format,
    print_view,
    write_picture,
)
from profsvc.cli.console.declaration import Argument, Group, Option
from profsvc.cli.power import by_unit
from profsvc.cli.power import heat_map as heat
from profsvc.errors import UsageError

if TYPE_CHECKING:
    from profsvc.analysis.power.options import Options

# No board works outside this range, and a temperature in kelvin lies beyond it.
COLDEST_C, HOTTEST_C = -60.0, 150.0


def power(
    context: Context,
    run: Annotated[str, Argument(help="Run by name or id.")],
    reference_temperature: Annotated[
        float | None, Option(help="Correct to this temperature in degrees C; default: the device's median.")
    ] = None,
    host_power: Annotated[
        float | None, Option(help="Power of the host in W, subtracted from a wall meter's reading.")
    ] = None,
    sensor: Annotated[str | None, Option(help="Only this power sensor, by name or number.")] = None,
    temperature_sensor: Annotated[str | None, Option(help="Matching temperature sensor, by name or number.")] = None,
    offset: Annotated[
        float | None, Option(help="Seconds that the clock of the temperature log is ahead of the power log's.")
    ] = None,
    plot: Annotated[
        Path | None, Option(help="Plot to FILE.svg, FILE.png, or FILE.html with all pictures.", metavar="FILE")
    ] = None,
    ipp: by_unit.Ipp = False,
    sms: by_unit.Sms = False,
    kernel: by_unit.Kernel = None,
    heat_map: heat.HeatMap = None,
    minus: heat.Minus = None,
    calibration: heat.Calibration = None,
    rc_s: heat.RcS = None,
    rotated: heat.Rotated = None,
    angle: heat.Angle = None,
    output: OutputOption = "table",
) -> None:
    """Show power and energy of a run, one row per window, as measured and at one temperature.

    Windows come from phase marks (profsvc formats marks), else from kernels of a trace on the same clock, else from
    the power levels. Results with other options are computed for this call and not stored.

    --ipp shows how the power of each kernel is distributed over the units of the device, fitted to the newest runs of
    the project. --sms shows which number of SMs does most work per joule and what fewer SMs save.

    --heat-map shows the steady temperatures of the thermocouples on the die instead. --rotated tests whether they show
    the chip or the spacer.

    Examples:

      profsvc power today

      profsvc power today --reference-temperature 40 --sensor power.draw.instant

      profsvc power wall --host-power 159 --plot power.html

      profsvc power today -o csv

      profsvc power today --ipp

      profsvc power today --sms --sensor power.draw.instant

      profsvc power spacer --heat-map map.svg --minus spacer_idle --calibration plates

      profsvc power spacer --rotated spacer_90
    """
    from profsvc.analysis.power.options import Options
    from profsvc.reports.text.power import run_power as power_text
    from profsvc.views.power.run_power import WINDOWS

    form = picture_format("--plot", plot, "html")
    _known("--reference-temperature", reference_temperature, COLDEST_C, HOTTEST_C, "degrees C")
    _known("--host-power", host_power, 0.0, math.inf, "W")
    _known("--offset", offset, -math.inf, math.inf, "s")
    others: dict[str, object] = {"--reference-temperature": reference_temperature, "--host-power": host_power}
    others |= {"--sensor": sensor, "--temperature-sensor": temperature_sensor, "--offset": offset, "--plot": plot}
    thermocouples = {"--heat-map": heat_map, "--rotated": rotated}
    if by_unit.is_asked(ipp, sms, kernel, others | thermocouples):
        by_unit.show(context, run, output, ipp=ipp, kernel=kernel, sensor=sensor)
        return
    asked = heat.Asked(heat_map, minus, calibration, rc_s, rotated, angle)
    if heat.is_asked(asked, others):
        heat.show(context, run, asked, output)
        return
    options = Options(reference_temperature, host_power, temperature_sensor, sensor, offset)
    view, drawn = _seen(context, run, options, form)
    if plot is not None:
        _write(plot, drawn)
    print_view(view, output, power_text.power, WINDOWS, view["windows"])


def _known(option: str, value: float | None, least: float, most: float, unit: str) -> None:
    if value is not None and not (math.isfinite(value) and least <= value <= most):
        allowed = f"{least:g} to {most:g} {unit}" if math.isfinite(most) else f"a finite number of {unit}"
        allowed += ", not negative" if least == 0 else ""
        raise UsageError(f"{option} is {value:g}, but must be {allowed}")


def _seen(context: Context, run: str, options: "Options", form: str) -> tuple[dict[str, Any], list[tuple[str, bytes]]]:
    """Return the power of a run, and its pictures in a form, if one is wanted, by name."""
    if service := open_service(context):
        from profsvc.client.protocol import decode_pictures

        view = service.power(
            run, reference_temperature=options.reference_temperature_c, host_power=options.host_power_w,
            sensor=options.sensor, temperature_sensor=options.temperature, offset=options.offset_s, draw=form or None,
        )  # fmt: skip
        return view, decode_pictures(view)
    from profsvc.views.power import plots as power_plots
    from profsvc.views.power import run_power as power_view

    engine = open_reader(context)
    view = power_view.power(engine, run, options)
    return view, [(one.name, one.data) for one in (power_plots.drawn(engine, view, form) if form else ())]


def _write(plot: Path, drawn: list[tuple[str, bytes]]) -> None:
    """Write the pictures: the first under the name given, the others beside it."""
    files = [plot, *(plot.with_name(f"{plot.stem}-{name}{plot.suffix}") for name, _ in drawn[1:])]
    for file, (_, data) in zip(files, drawn, strict=True):
        write_picture(file, data)


def register(app: Group) -> None:
    """Add the command of this file."""
    app.function()(power)

"""``power --heat-map`` and ``power --rotated``: thermocouple readings on the die."""

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from click import Context

from profsvc.cli.console.common import open_reader, open_service, picture_format, print_view, write_picture
from profsvc.cli.console.declaration import Option
from profsvc.errors import UsageError

TURN_DEG = 90.0

HeatMap = Annotated[
    Path | None,
    Option("--heat-map", help="Map the thermocouples on the die: FILE.svg, FILE.png, or FILE.json.", metavar="FILE"),
]
Minus = Annotated[str | None, Option(help="With --heat-map: subtract the map of this run, such as an idle one.")]
Calibration = Annotated[
    str | None, Option(help="With --heat-map or --rotated: calibration run between plates of one temperature.")
]
RcS = Annotated[
    float | None,
    Option("--rc-s", help="With either: time constant of the chip in s, for logs that begin with the load."),
]
Rotated = Annotated[str | None, Option(help="Run with the rotated spacer: test whether both show the same chip.")]
Angle = Annotated[
    float | None, Option(help="With --rotated: degrees counter-clockwise, 0 if it was put back; else 90.")
]


class Asked(NamedTuple):
    """What a call of ``power`` asks of thermocouples."""

    file: Path | None
    minus: str | None
    calibration: str | None
    rc_s: float | None
    rotated: str | None
    angle_deg: float | None


def is_asked(asked: Asked, others: Mapping[str, object]) -> bool:
    """Tell whether thermocouples are asked for; refuse what does not go together, before any work is done.

    ``others`` are options of power by name.
    """
    chosen = {"--heat-map": asked.file, "--rotated": asked.rotated}
    given = [name for name, value in chosen.items() if value is not None]
    needs: dict[str, tuple[object, list[str]]] = {
        "--minus": (asked.minus, ["--heat-map"]),
        "--angle": (asked.angle_deg, ["--rotated"]),
        "--calibration": (asked.calibration, list(chosen)),
        "--rc-s": (asked.rc_s, list(chosen)),
    }
    for name, (value, wanted) in needs.items():
        if value is not None and not set(given) & set(wanted):
            raise UsageError(f"{name} needs {' or '.join(wanted)}; add it")
    beside = [*given[1:], *(name for name, value in others.items() if value is not None)]
    if given and beside:
        raise UsageError(f"{given[0]} is about thermocouples and excludes {beside[0]}; give one of them")
    _known(asked)
    return bool(given)


def _known(asked: Asked) -> None:
    rc_s, angle = asked.rc_s, asked.angle_deg
    picture_format("--heat-map", asked.file, "json")
    if rc_s is not None and not (math.isfinite(rc_s) and rc_s > 0):
        raise UsageError(f"--rc-s is {rc_s:g}, but must be a finite number of s above 0")
    if angle is not None and not math.isfinite(angle):
        raise UsageError(f"--angle is {angle:g}, but must be a finite number of degrees")


def show(context: Context, run: str, asked: Asked, output: str) -> None:
    """Write the map to its file, or try the turned spacer; print the rows in the form asked for."""
    from profsvc.reports.text.power import heat_map as heat_map_text
    from profsvc.views.power.heat_map import ROWS

    if asked.file is None:
        view = _rotated(context, run, asked)
    else:
        view, drawn = _mapped(context, run, asked, picture_format("--heat-map", asked.file, "json"))
        write_picture(asked.file, drawn)
    print_view(view, output, heat_map_text.page, ROWS, view["models"])


def _rotated(context: Context, run: str, asked: Asked) -> dict[str, Any]:
    second = asked.rotated or ""
    if service := open_service(context):
        return service.rotated(run, second, angle=asked.angle_deg, calibration=asked.calibration, rc_s=asked.rc_s)
    from profsvc.views.power import heat_map as heat_map_view

    angle = TURN_DEG if asked.angle_deg is None else asked.angle_deg
    return heat_map_view.rotated(open_reader(context), run, second, angle, asked.calibration, asked.rc_s)


def _mapped(context: Context, run: str, asked: Asked, form: str) -> tuple[dict[str, Any], bytes]:
    """Return the map of a run and what is written of it."""
    wanted: dict[str, Any] = {"minus": asked.minus, "calibration": asked.calibration, "rc_s": asked.rc_s}
    if service := open_service(context):
        from profsvc.client.protocol import decode_pictures

        view = service.heat_map(run, **wanted, draw=None if form == "json" else form)
        pictures = dict(decode_pictures(view))
    else:
        from profsvc.reports.plots.heat_map import picture
        from profsvc.views.power import heat_map as heat_map_view

        made = heat_map_view.heat_map(open_reader(context), run, **wanted)
        view = made.view
        pictures = {} if form == "json" else {"heat-map": picture(made.die_map, made.title, form)}
    words = json.dumps(view["heat_map"], ensure_ascii=False, allow_nan=False) + "\n"
    return view, pictures.get("heat-map", words.encode("utf-8", "backslashreplace"))

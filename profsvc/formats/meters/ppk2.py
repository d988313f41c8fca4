"""Reader of the CSV that the Power Profiler app of Nordic Semiconductor exports for its Power Profiler Kits."""

from profsvc.formats.timeseries.labels import Channel, channel
from profsvc.formats.timeseries.tables.lines import Layout
from profsvc.formats.timeseries.tables.table import delimited_reader
from profsvc.formats.timeseries.tables.time_columns import TimeColumns

NAME = "ppk2"

TOOL = "Power Profiler Kit"
FIRST = ["Timestamp(ms)", "Current(uA)"]
INPUTS = {f"D{number}" for number in range(8)}
# One text of eight digits for all inputs: it looks like a number, and older versions print it in the other order.
JOINED = {"D0-D7", "Bits"}


def layout(sign: str, cells: list[str]) -> Layout | None:
    """Return the layout of a header: time, current, and the digital inputs joined, one by one, both or not at all."""
    if cells[:2] != FIRST or not {*cells[2:]} <= INPUTS | JOINED:
        return None
    places = tuple(place for place, cell in enumerate(cells) if place and cell not in JOINED)
    channels = tuple(Channel(cells[place], "state", "1") if place > 1 else channel("Current", "uA") for place in places)
    left = tuple(cell for cell in cells if cell in JOINED)
    return Layout(sign, tuple(cells), TimeColumns((0,), "ms"), places, channels, left=left)


sniff, read = delimited_reader(TOOL, layout)

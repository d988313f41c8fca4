"""What a user may say of a power log; it stands alone, so that stored results are read without the analysis."""

from typing import NamedTuple


class Options(NamedTuple):
    """What the user says of a run: temperature to correct to, power of the host, and sensors by name."""

    reference_temperature_c: float | None = None
    host_power_w: float | None = None
    temperature: str | None = None
    sensor: str | None = None
    offset_s: float | None = None

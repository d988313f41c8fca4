from .reading import (
    HEAD_BYTES as HEAD_BYTES,
    METERS as METERS,
    READERS as READERS,
    Reader as Reader,
    by_name as by_name,
    detect as detect,
    read as read,
)
from .timeseries.column_mapping import read_columns as read_columns
from .timeseries.sensor_positions import read_positions as read_positions

"""What a session page says of the devices of a run, lent to launches whose own page does not say it."""

import pandas as pd

PREFIX = "device__attribute_"
DISPLAY_NAME = f"{PREFIX}display_name"
_CAPABILITY = [f"{PREFIX}compute_capability_{part}" for part in ("major", "minor")]
_COLUMNS = ["launch_id", "section", "metric", "value", "si_unit"]


def _consistent_attributes(attributes: pd.DataFrame) -> pd.DataFrame:
    """Keep the devices that all session pages of the run name alike, each from the page that came last."""
    names = attributes[attributes["metric"] == DISPLAY_NAME].groupby("device_index")["raw_text"].nunique()
    known = attributes[attributes["device_index"].isin(names.index[names == 1])]
    return known[known["upload_id"] == known.groupby("device_index")["upload_id"].transform("max")]


def fill_from_session(launches: pd.DataFrame, attributes: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return ``launches`` with the device named where it was not, and the attributes as metrics of each launch.

    ``attributes`` has ``upload_id, device_index, metric, raw_text, value, si_unit``. They count for the launches of
    the same device ordinal, unless the two state different compute capabilities.
    """
    named, parts = launches.copy(), [pd.DataFrame(columns=_COLUMNS)]
    if attributes.empty:  # few runs have a session page, and groups of nothing take milliseconds
        return named, parts[0]
    for index, said in _consistent_attributes(attributes).groupby("device_index"):
        cells = said.drop_duplicates("metric").set_index("metric")["raw_text"]
        capability = ".".join(str(cells.get(part, "")) for part in _CAPABILITY)
        same = (named["device_index"] == index) & named["compute_capability"].isin([capability]).fillna(False)
        own = named["device"]
        same &= own.isna() | (own == cells[DISPLAY_NAME])
        ids = named.loc[same, "launch_id"]
        named.loc[same, "device"] = cells[DISPLAY_NAME]
        rows = said.assign(section=None)[_COLUMNS[1:]]
        parts.append(pd.DataFrame({"launch_id": ids}).merge(rows, how="cross"))
    filled = [part for part in parts if len(part)]
    return named, pd.concat(filled, ignore_index=True) if filled else parts[0]

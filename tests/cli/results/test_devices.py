"""``devices`` on the command line."""

import json


def test_devices_are_those_of_the_store_or_of_the_catalogue(on_demo):
    assert [r["name"] for r in json.loads(on_demo("devices", "-o", "json").out)["rows"]] == ["NVIDIA H200"]
    catalogue = json.loads(on_demo("devices", "--catalogue", "-o", "json").out)["rows"]
    assert {"name", "compute_capability", "sms"} <= set(catalogue[0])
    assert "H200" in " ".join(row["name"] for row in catalogue)

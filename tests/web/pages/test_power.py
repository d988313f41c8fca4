"""What the page of power says of its sensors."""

from profsvc.web.pages.power import _quality_warnings, _sensor_groups

WINDOW = {
    "sensor_id": 7, "sensor": "p", "gpu_index": 0, "device": None, "window": "mix", "mean_power_w": 300.0,
    "energy_j": 2100.0, "quality": "late", "corrected_power_w": None, "corrected_power_low_w": None,
    "corrected_power_high_w": None, "corrected_energy_j": None, "corrected_energy_low_j": None,
    "corrected_energy_high_j": None, "coefficient_w_per_c": None, "reason": "the range is 2 \u00b0C",
}  # fmt: skip
LATE = {"sensor_id": 7, "sensor": "p", "window": "mix", "flag": "late", "message": "0.5 s late"}


def test_what_a_flag_is_said_of_often_is_said_once_and_the_rest_on_demand() -> None:
    others = [LATE | {"message": f"0.{n} s late"} for n in (6, 7)]
    said = _quality_warnings(
        [LATE, LATE | {"window": "idle"}, *others, LATE | {"flag": "gap", "window": None}], {7: [7]}
    )
    assert [(one["flag"], one["message"], len(rest)) for one, rest in said] == [
        ("late", "0.5 s late", 2),
        ("gap", "0.5 s late", 0),
    ]
    assert said[0][0]["windows"] == ["p, mix", "p, idle"]


def test_a_reading_of_two_names_has_one_table_and_one_word_of_warning() -> None:
    twin = {"sensor_id": 8, "sensor": "p.average"}
    view = {"windows": [WINDOW, WINDOW | twin], "coefficients": [], "quality": [LATE, LATE | twin]}
    assert [(group["title"], len(group["windows"])) for group in _sensor_groups(view)] == [("p, p.average of GPU 0", 1)]
    assert _sensor_groups(view)[0]["windows"][0]["warnings"] == "late"
    for same, named in (({7: [7, 8]}, ["p, mix"]), ({7: [7], 8: [8]}, ["p, mix", "p.average, mix"])):
        assert [one["windows"] for one, _ in _quality_warnings(view["quality"], same)] == [named]

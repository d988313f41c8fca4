"""The page of a run's power: what is unknown says why, what is many is cut and says so."""

from profsvc.reports.text.power.run_power import power

SENSOR = {"sensor_id": 7, "sensor": "p", "gpu_index": None, "device": None}
MODEL = SENSOR | {
    "model": "thermal", "quantity": "rc_rise_s", "value": 35.0, "low": 30.0, "high": 41.0, "unit": "s",
    "window": None, "form": None, "flags": "", "reason": None,
}  # fmt: skip
WARNING = SENSOR | {"flag": "gap", "window": None, "message": "no reading for 3 s"}
COEFFICIENT = SENSOR | {
    "law": "linear", "form": "consistent", "clock_hz": 1.98e9, "coefficient_w_per_c": 1.25, "coefficient_low": 1.0,
    "coefficient_high": 1.5, "range_c": 12.0, "used": 1, "reason": None, "load": None, "basis": "3 windows of this run",
}  # fmt: skip


def page(**parts):
    view = {"run": {"name": "r", "run_id": 1, "project": "d"}, "stored": True}
    return power(view | {key: parts.get(key, []) for key in ("windows", "coefficients", "models", "quality")})


def window(label, **more):
    names = ("corrected_power", "corrected_energy")
    row = {f"{name}{end}": None for name in names for end in ("_low_w", "_high_w", "_low_j", "_high_j", "_w", "_j")}
    row |= {
        "window": label,
        "duration_s": 7.0,
        "mean_power_w": 300.0,
        "settled_power_w": 301.0,
        "mean_temperature_c": 40.0,
        "energy_j": 2100.0,
    }
    row |= {"coefficient_w_per_c": None, "coefficient_low": None, "coefficient_high": None}
    return SENSOR | row | {"reference_temperature_c": None, "quality": None, "reason": None} | more


def test_a_figure_has_its_interval_or_its_reason():
    assert "    rc_rise_s 35.00 [30.00, 41.00] s\n" in page(models=[MODEL])
    gone = MODEL | {"value": None, "low": None, "high": None}
    assert "    rc_rise_s unknown\n" in page(models=[gone])
    assert "    mix: rc_rise_s too short  (CLIPPED, OVERLAP)\n" in page(
        models=[gone | {"window": "mix", "reason": "too short", "flags": "CLIPPED OVERLAP"}]
    )


def test_windows_say_what_they_are_corrected_with_or_why_not():
    known = {
        "corrected_power_w": 298.0, "corrected_power_low_w": 297.0, "corrected_power_high_w": 299.0,
        "coefficient_w_per_c": 1.25, "coefficient_low": 1.0, "coefficient_high": 1.5, "reference_temperature_c": 38.0,
    }  # fmt: skip
    others = [window(f"w{n}", reason="the range is 2 C") for n in range(7)]
    shown = page(windows=[window("mix", **known), *others])
    assert "298.0 [297.0, 299.0]" in shown
    assert "  corrected to 38 \u00b0C with 1.250 [1.000, 1.500] W/\u00b0C; 95 % confidence intervals\n" in shown
    assert "  not corrected (w0; w1; w2; w3; w4 and 2 more): the range is 2 C\n" in shown
    assert "  not corrected (all windows): the range is 2 C\n" in page(windows=others)


def test_coefficients_say_where_they_hold():
    used = page(coefficients=[COEFFICIENT])
    said = "linear, consistent at 1980 MHz: 1.250 [1.000, 1.500] W/\u00b0C, over 12 \u00b0C (used)"
    assert f"{said}, from 3 windows of this run\n" in used
    none = {"coefficient_w_per_c": None, "range_c": None, "clock_hz": None, "used": 0, "reason": "too few"}
    assert "    linear, consistent: none, from 3 windows of this run: too few\n" in page(
        coefficients=[COEFFICIENT | none]
    )


def test_equal_warnings_are_cut():
    shown = page(quality=[WARNING] * 7)
    assert shown.count("    gap: no reading for 3 s\n") == 5
    assert "    gap: and 2 more: -o json\n" in shown


def test_a_window_names_what_is_its_own_and_the_sensor_the_rest():
    late = WARNING | {"flag": "counter_disagrees", "window": "mix", "message": "3 % less"}
    rows = [window("idle", quality="gap"), window("mix", quality="counter_disagrees; gap")]
    shown = page(windows=rows, quality=[WARNING, late]).splitlines()
    assert next(line for line in shown if line.startswith("idle")).endswith("2100")
    assert next(line for line in shown if line.startswith("mix")).endswith("  counter_disagrees")
    assert {"    gap: no reading for 3 s", "    counter_disagrees: mix: 3 % less"} <= set(shown)


def test_one_reading_of_two_names_is_shown_once():
    twin = {"sensor_id": 8, "sensor": "p.average"}
    rows = [window("idle"), window("mix", mean_power_w=500.0)]
    same = page(windows=rows + [row | twin for row in rows], quality=[WARNING, WARNING | twin])
    assert same.count("\nmix") == 1
    assert same.endswith("  p.average has identical readings\n")
    for other in (rows[1] | {"mean_power_w": 500.1}, rows[1] | {"gpu_index": 1}, rows[1] | {"energy_j": None}):
        assert page(windows=[*rows, rows[0] | twin, other | twin]).count("\nmix") == 2
    unknown = [window("mix", mean_power_w=None, energy_j=None)]
    assert page(windows=unknown + [row | twin for row in unknown]).count("\nmix") == 2

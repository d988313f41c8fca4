"""Power and temperature on recorded logs of an NVIDIA H200: ``python -m tests.benchmarks.power``.

Prints what a run's analysis finds: idle power and time constants with intervals, the temperature coefficient or why it
is refused, whether a corrected plateau still slopes, the energy of every load beside the board's energy counter, power
against SMs fitted without the whole device and compared with it, and what each unit draws with the error on kernels
left out. Captures that are not there are skipped, and named.
"""

import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from sqlalchemy import Engine

from profsvc import pipeline, store
from profsvc.formulas.power.active_sms import fit_active_sms, predict_active_sms
from profsvc.reports.text.power.components import components as in_words
from profsvc.views.power.components import components
from tests.command_line import parser_of

ROOT = Path(__file__).parents[2]
CAPTURES = ROOT.parent / "shared" / "captures" / "h200"
HELD_OUT = ROOT / "fixtures" / "held_out"
LOGS = ("nvml_energy.csv", "smi_100ms.csv", "phases.csv")
PROFILED = ("ncu_raw_base.csv.gz", "power_smi.csv.gz", "power_marks.csv")
WHOLE = 132


def uploaded(folder: str, files: Sequence[Path]) -> Engine:
    """Upload files to one run of a fresh store."""
    engine = store.open_store(str(Path(folder) / "store.sqlite"))
    for file in files:
        with file.open("rb") as stream:
            pipeline.ingest(engine, stream, file.name, store.RunInfo(name="h200"), pipeline.ReadOptions(zone="UTC"))
    return engine


def _text(value: float, form: str) -> str:
    return "" if pd.isna(value) else f"{value:{form}}"


def _models(engine: Engine) -> None:
    rows = store.table(engine, "v1_power_models")
    chosen = rows[rows["model"].isin(["idle", "thermal", "sensor"])]
    print(f"\n{'sensor':22}{'window':16}{'figure':24}{'value':>10}  95 % interval")
    for row in chosen.to_dict("records"):
        value = "unknown" if pd.isna(row["value"]) else f"{row['value']:.4g} {row['unit']}"
        interval = "" if pd.isna(row["low"]) else f"[{row['low']:.4g}, {row['high']:.4g}]"
        why = row["reason"] or row["form"] or ""
        print(f"{row['sensor']:22}{row['window'] or '':16}{row['quantity']:24}{value:>10}  {interval:22} {why}")


def _coefficients(engine: Engine) -> None:
    print(f"\n{'sensor':22}{'MHz':>6}{'law':>13}{'W/degC':>9}  95 % interval       range degC  readings")
    for row in store.table(engine, "v1_power_coefficients").to_dict("records"):
        interval = (
            "" if pd.isna(row["coefficient_low"]) else f"[{row['coefficient_low']:.3g}, {row['coefficient_high']:.3g}]"
        )
        clock = "" if pd.isna(row["clock_hz"]) else f"{row['clock_hz'] / 1e6:.0f}"
        value = "" if pd.isna(row["coefficient_w_per_c"]) else f"{row['coefficient_w_per_c']:.3g}"
        span = "" if pd.isna(row["range_c"]) else f"{row['range_c']:.1f}"
        figures = f"{clock:>6}{row['law']:>13}{value:>9}  {interval:20}{span:>10}{row['readings']:>10}"
        print(f"{row['sensor']:22}{figures}  {row['reason'] or ''}")


def _windows(engine: Engine) -> None:
    print(f"\n{'sensor':22}{'window':16}{'W':>8}{'degC':>7}{'J':>10}{'counter J':>11}{'ratio':>7}  corrected W, slope")
    for row in store.table(engine, "v1_power").to_dict("records"):
        figures = [row["mean_power_w"], row["mean_temperature_c"], row["energy_j"], row["counter_energy_j"]]
        texts = [_text(value, ".1f") for value in figures]
        ratio = _text(row["counter_ratio"], ".3f")
        left = "not corrected"
        if not pd.isna(row["corrected_power_w"]):
            slope, error = row["corrected_slope_w_per_s"], row["corrected_slope_se_w_per_s"]
            left = f"{row['corrected_power_w']:8.1f}   {slope:+.4f} W/s = {slope / error:+.1f} standard errors"
        told = f"{texts[0]:>8}{texts[1]:>7}{texts[2]:>10}{texts[3]:>11}{ratio:>7}  {left}"
        print(f"{row['sensor']:22}{row['window']:16}{told}")
    late = store.table(engine, "v1_power_quality")
    for row in late[late["flag"] == "averaged"].to_dict("records"):
        print(row["message"])


def _sweep(engine: Engine) -> None:
    rows = store.table(engine, "v1_power")
    idle = store.table(engine, "v1_power_models")
    print(f"\n{'sensor':22}{'law':10}{'left out W':>11}{'132 SMs W':>10}{'measured':>9}{'off':>8}  (fit: 1 to 99 SMs)")
    for sensor, own in rows[(rows["load"] == "mem") & rows["settled_power_w"].notna()].groupby("sensor"):
        own_idle = idle[(idle["sensor"] == sensor) & (idle["quantity"] == "idle_power_w")]["value"].iloc[0]
        sms, power = (own[name].to_numpy(np.float64) for name in ("active_sms", "settled_power_w"))
        part = sms < WHOLE
        fit = fit_active_sms(sms[part], power[part], WHOLE, float(own_idle))
        measured = float(power[sms == WHOLE][0])
        for law in fit.laws:
            found = float(predict_active_sms(fit, [WHOLE], law.law).power_w[0])
            chosen = " <- chosen" if law.law == fit.law else ""
            off = 100 * (found / measured - 1)
            figures = f"{float(law.left_out_rms_w):11.1f}{found:10.1f}{measured:9.1f}{off:+7.1f} %{chosen}"
            print(f"{sensor!s:22}{law.law:10}{figures}")


def main() -> None:
    """Print everything that the captures at hand allow."""
    if not CAPTURES.is_dir():
        print(f"skipped: the H200 session of idle, mixed load and memory sweep is not there ({CAPTURES.name})")
    else:
        with tempfile.TemporaryDirectory() as folder:
            engine = uploaded(folder, [CAPTURES / name for name in LOGS])
            for part in (_models, _coefficients, _windows, _sweep):
                part(engine)
            engine.dispose()
    with tempfile.TemporaryDirectory() as folder:
        engine = uploaded(folder, [HELD_OUT / name for name in PROFILED])
        print(f"\n{in_words(components(engine), with_kernels=True, width=140)}")
        engine.dispose()


if __name__ == "__main__":
    parser_of(__doc__).parse_args()
    main()

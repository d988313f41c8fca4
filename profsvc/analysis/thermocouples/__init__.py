"""Results of thermocouples: series, plate calibration, steady state, rotation, heat map."""

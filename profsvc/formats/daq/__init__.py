"""Readers of data acquisition: LabVIEW LVM and TDMS, PicoLog; thermocouples and voltages."""

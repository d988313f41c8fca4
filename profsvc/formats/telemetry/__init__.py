"""Readers of board monitors: nvidia-smi, DCGM, rocm-smi, tegrastats, jtop, Afterburner, Zeus, CodeCarbon."""

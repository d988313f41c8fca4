"""Readers of Nsight Systems: reports of ``nsys stats`` (CSV, JSON, text) and exported databases."""

"""Profiles of Triton's Proton."""

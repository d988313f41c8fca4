"""The units that take a kernel's time, and the operations whose costs add up to it; names alone, without NumPy."""

UNITS = ("dram", "l2", "l1", "shared", "arithmetic")
OPERATIONS = (
    "dram_load",
    "dram_store",
    "l2_load",
    "l2_store",
    "l1_load",
    "l1_store",
    "shared_load",
    "shared_store",
    "integer",
    "single",
    "special",
    "double",
)

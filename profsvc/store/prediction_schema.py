"""The base table of predictions; a part of `profsvc.store.schema`. Texts stand as numbers of ``texts``."""

from profsvc.store.parts import integer, real, ref, row_id, table, text

TEXTS = (
    "device", "source", "kind", "criterion", "matched_by", "same_work", "reason", "analysis_version", "changed_because"
)  # fmt: skip
"""Columns that hold the number of a text; in the table their names end in ``_id``."""
NEVER_NULL = {"source", "kind", "criterion", "matched_by"}

predictions = table(
    "predictions",
    row_id("prediction_id"),
    ref("run_before", "runs.run_id", cascade=True, nullable=False, index=True),
    ref("run_after", "runs.run_id", cascade=True, nullable=False, index=True),
    ref("kernel_before_id", "kernels.kernel_id", nullable=False),
    ref("kernel_after_id", "kernels.kernel_id", nullable=False),
    *(ref(f"{name}_id", "texts.text_id", nullable=name not in NEVER_NULL) for name in TEXTS[:-1]),
    real("predicted", nullable=False),
    real("achieved", nullable=False),
    real("value_before"),
    real("value_after"),
    real("before_ns", nullable=False),
    real("after_ns", nullable=False),
    integer("scored", nullable=False),
    text("made_at", nullable=False),
    integer("changed"),
    integer("changed_because_id"),
    sqlite_autoincrement=True,
)
